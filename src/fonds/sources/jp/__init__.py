"""Japanese law as e-Gov publishes it: the constitution and all acts, one XML file for each.

The text is that of the law as of a day, all amendments worked in. At e-Gov's address
the acts are those of the list `lawlists/2`, and the edition is the day on which that list was
answered, in Tokyo, for e-Gov serves what is in force then and names no edition. Files are named by
the law's id, the day since when the revision is in force, and the id of the amending law
(`405AC0000000088_20240401_504AC0100000052.xml`). Of several revisions of an act the edition has the
newest that is not younger than it; where it is older than all of them, or no day, the oldest or
the newest.

Quirks of the publisher:
- Any level between the law and its articles may be missing. `Num` is the number, `36_2` for the
  article printed as 第三十六条の二, and `38:84` for a range of articles that were deleted together.
  What is deleted need not be marked by `Delete`: its text is 削除, and 略 where a supplement is
  an extract.
- Each law that amended this one left its own supplementary provisions (附則), and all of these
  begin at article 1. They are distinguished by that law's number, those of the law itself
  having none.
- Paragraphs that are in no article, as in old decrees and in short supplements, are one leaf
  `provision`; text before the main provisions is a leaf `front`.
- Amending laws quote whole articles of others, and tables hold paragraphs; neither is a node.
- Chapters and articles of a law have no id of their own, but a place on its page
  (`#Mp-Ch_4-At_36_2`), to which only the full path leads.
- A reading set beside a word follows it in brackets, in texts and labels, but not in the law's
  title, by which it is cited.
- Files that do not carry the law's id are known by the id that follows from the attributes of
  `Law`, or by the law's number, or by its title; see `laws`. Their links go to the API,
  which takes the number.
- For a law that does not exist the API answers with a `Result` whose code is not 0. Answers of its
  second version (`law_data_response`) are read from files too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import groupby
from pathlib import PurePosixPath
from typing import IO, Any, Final
from urllib.parse import quote

from lxml import etree

from fonds.errors import MalformedError, SuspiciousYieldError, WrongContentError
from fonds.sources.base import Rate
from fonds.sources.formats import xml
from fonds.sources.formats.act_files import ActFiles
from fonds.sources.jp.outline import SUPPLEMENT, JpOutline, cite_jp, other_forms
from fonds.sources.jurisdiction import CodeInfo, Leaf, Page, Shard, Step, TocNode

# What a law is called: its id at e-Gov, its number, its title, and the day of a revision.
#
# An id has fifteen characters. `405AC0000000088` is of the fourth era (Heisei), its fifth year, an
# act, number 88; `321CONSTITUTION` is complete as it is. Acts (AC), cabinet orders (CO), imperial
# orders
# (IO) and decrees of the Grand Council (DF, 太政官布告) end with ten digits, the number behind
# zeros. It is so for acts on a bill of the Cabinet; on a bill of the lower house the first of the
# ten
# digits is 1, on one of the upper house the second, which the file of a law does not say.
# Ordinances
# and rules (`347M50002000034`) have a code of their ministry in the middle, which it does not say
# either.

LAW_ID: Final = re.compile(r"[1-5]\d\d(?:CONSTITUTION|[A-Z][0-9A-Z]{11})(?![0-9A-Za-z])")
_DAY: Final = re.compile(r"(?<!\d)(1[89]\d\d|20\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)")
_ERAS: Final = {"Meiji": 1, "Taisho": 2, "Showa": 3, "Heisei": 4, "Reiwa": 5}
_KINDS: Final = {"Act": "AC", "CabinetOrder": "CO", "ImperialOrder": "IO"}
_DECREE: Final = "太政官布告"
_LABEL: Final = re.compile(r"(?:(.+)（)?((?:明治|大正|昭和|平成|令和)[^（）]+)(?(1)）)")


def id_in(path: str) -> str:
    """The law's id that a file or an address of e-Gov is named by; empty for other names."""
    match = LAW_ID.match(PurePosixPath(path).name)
    return match[0] if match else ""


def day_in(path: str) -> str | None:
    """The day since when a revision is in force, as the file's name tells it; ISO 8601."""
    for year, _, month, day in _DAY.findall(PurePosixPath(path).name):
        try:
            return date(int(year), int(month), int(day)).isoformat()
        except ValueError:
            continue
    return None


def derived_id(attributes: Mapping[str, str], law_number: str) -> str:
    """The id that follows from the attributes of `Law`, were its bill the Cabinet's; or empty."""
    era, kind = _ERAS.get(attributes.get("Era", "")), attributes.get("LawType", "")
    year, number = (attributes.get(name, "").strip() for name in ("Year", "Num"))
    if not (era and year.isdecimal()):
        return ""
    if kind == "Constitution":
        return f"{era}{int(year):02}CONSTITUTION"
    code = "DF" if _DECREE in law_number else _KINDS.get(kind)
    return f"{era}{int(year):02}{code}{int(number):010}" if code and number.isdecimal() else ""


def law_label(title: str, law_number: str) -> str:
    """`行政手続法（平成五年法律第八十八号）`, as laws name each other."""
    return f"{title}（{law_number}）" if title and law_number else title or law_number


def split_label(label: str) -> tuple[str, str]:
    """Title and number out of such a label; a law without a title is called by its number."""
    match = _LABEL.fullmatch(label)
    return (match[1] or match[2], match[2]) if match else (label, "")


_TOKYO: Final = timedelta(hours=9)
_LAW: Final = "api/1/lawdata/"
_CHUNK_SIZE: Final = 1 << 14
_MAX_HEAD_SIZE: Final = 1 << 21


class Jp(ActFiles):
    """The source `jp`."""

    info = CodeInfo(
        name="jp",
        title="Japanese law",
        summary="Japanese law, cited as `民法第七百九条`",
        organisation="Digital Agency of Japan",
        version="1.0.0",
        schedule=None,
        rate=Rate(per_second=1),
        tables=(),
        fetch_concurrency=1,
        published_at="the day since when the revision is in force, in the file's name",
        base="https://laws.e-gov.go.jp/",
        jurisdiction="Japan",
        unit="act",
        language="ja",
    )
    roots = ("Law", "DataRoot", "law_data_response")
    metadata = "LawTitle"
    index = "api/1/lawlists/2"

    def act(self, name: str, head: Any) -> TocNode:
        """The law in a file, known by the best name it carries."""
        law = next(head.iter("Law"), None)
        if law is None:
            raise WrongContentError("a part of a law only: it is not in a <Law>")
        law_id = id_in(name) or _text(head, ".//LawId") or _text(head, ".//law_id")
        law_number = "".join(_text(law, "LawNum").split())
        title = _text(law, ".//LawTitle")
        stem = PurePosixPath(name).stem
        return TocNode(
            kind=self.info.unit,
            number=law_id or derived_id(law.attrib, law_number) or law_number or title or stem,
            label=law_label(title, law_number) or stem,
            pages=(name,),
            identifier=law_id,
            published_at=day_in(name) or day_in(_text(head, ".//law_revision_id")),
        )

    def handler(self, unit: TocNode) -> JpOutline:
        """The outline of one law."""
        return JpOutline(unit.identifier)

    def listed(self, index: Page) -> Iterator[TocNode]:
        """The laws of e-Gov's list, each once."""
        listed_ids = set()
        for entry in _content(index).iter("LawNameListInfo"):
            law_id = _text(entry, "LawId")
            if not LAW_ID.fullmatch(law_id):
                raise MalformedError(f"the list of laws has {law_id!r} as the id of a law")
            if law_id not in listed_ids:
                listed_ids.add(law_id)
                label = law_label(_text(entry, "LawName"), _text(entry, "LawNo"))
                yield TocNode(
                    kind=self.info.unit,
                    number=law_id,
                    label=label or law_id,
                    pages=(f"{_LAW}{law_id}",),
                    identifier=law_id,
                )
        if not listed_ids:
            raise SuspiciousYieldError("the list of laws is empty; it always has all of them")

    def edition_label(self, index: Page) -> str:
        """The day on which e-Gov answered, in Tokyo."""
        _content(index)
        return (index.archived.retrieved_at + _TOKYO).date().isoformat()

    def chosen(self, units: Sequence[TocNode], version: str) -> Iterable[TocNode]:
        """Of the revisions of each law the one that is in force in the edition."""
        by_number = sorted(units, key=lambda unit: unit.number)
        chosen = []
        for _, same in groupby(by_number, key=lambda unit: unit.number):
            chosen += _with_distinct_labels(_in_force(list(same), version))
        return sorted(chosen, key=lambda unit: unit.pages)

    def shardify(self, leaf: Leaf) -> Shard:
        """Called by law and printed number: `行政手続法第三十六条の二`."""
        law, law_number = split_label(leaf.lineage[0].label)
        supplement = next((step for step in leaf.lineage if step.kind == SUPPLEMENT), None)
        position = {
            "law": law,
            "supplement": supplement.label if supplement else "",
            "amended_by": supplement.number if supplement else "",
        }
        provision = _provision(leaf)
        law_id, is_nested, _ = leaf.identifier.partition("#")
        forms = other_forms(**position, provision=provision, law_number=law_number, law_id=law_id)
        return Shard(
            title=f"{cite_jp(**position)}{provision}",
            citation_string=cite_jp(**position, provision=provision),
            source_url=_address(leaf.identifier, law_number),
            normalizer="egov_v1",
            format="xml",
            aliases=(leaf.identifier, *forms) if is_nested else forms,
            published_at=leaf.published_at or _as_day(leaf.version),
        )

    def _head(self, stream: IO[bytes]) -> Any:
        """The root as far as the law's title, or where it has none as far as its provisions."""
        parser = etree.XMLPullParser(
            ("start", "end"), resolve_entities=False, no_network=True, load_dtd=False
        )
        root, read = None, 0
        try:
            while read < _MAX_HEAD_SIZE and (chunk := stream.read(_CHUNK_SIZE)):
                read += len(chunk)
                parser.feed(chunk)
                events: Any = parser.read_events()
                for event, element in events:
                    root = self._checked(element) if root is None else root
                    if (event, element.tag) in _LABELLED_LEVELS:
                        return root
        except etree.XMLSyntaxError as error:
            raise MalformedError(f"not well-formed XML: {error.msg}") from None
        if root is not None:
            _refuse_failure(root)
        raise MalformedError("holds no law" if read else "the file is empty")


source: Final = Jp()

_LABELLED_LEVELS: Final = frozenset(
    {("end", "LawTitle"), *(("start", name) for name in ("Article", "Paragraph", "Preamble"))}
)


# Answers of e-Gov -------------------------------------------------------------------------


def _content(page: Page) -> Any:
    root = xml.read(page.read(), "DataRoot")
    _refuse_failure(root)
    return root


def _refuse_failure(root: Any) -> None:
    if (code := _text(root, "Result/Code")) not in {"", "0"}:
        raise WrongContentError(f"e-Gov answers {code}: {_text(root, 'Result/Message')}")


def _text(element: Any, path: str) -> str:
    """The text at a path without the readings set beside words; white space folded."""
    child = element.find(path)
    if child is None:
        return ""
    return " ".join("".join(_spoken(child)).split())


def _spoken(element: Any) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if child.tag != "Rt":
            yield from _spoken(child)
        yield child.tail or ""


# Revisions --------------------------------------------------------------------------------


def _in_force(revisions: list[TocNode], version: str) -> list[TocNode]:
    """Those of the newest day that is not after the edition's."""
    days = sorted(unit.published_at for unit in revisions if unit.published_at)
    if not days:
        return revisions
    limit = _as_day(version)
    reached = [day for day in days if limit is None or day <= limit]
    day = reached[-1] if reached else days[0]
    return [unit for unit in revisions if unit.published_at == day]


def _with_distinct_labels(units: list[TocNode]) -> list[TocNode]:
    """Labels made distinct by the names of the files, where nothing else distinguishes them."""
    first, *others = sorted(units, key=lambda unit: unit.pages)
    return [first, *(replace(unit, number=f"{unit.number}:{unit.pages[0]}") for unit in others)]


def _as_day(version: str) -> str | None:
    return version if day_in(version) == version else None


# Documents --------------------------------------------------------------------------------


def _provision(leaf: Leaf) -> str:
    """The printed number of a leaf; that of paragraphs in no article is that of their level."""
    if leaf.kind == "provision":
        above: Step = leaf.lineage[-1]
        return "" if above.kind in {"act", SUPPLEMENT} else above.label
    return leaf.label


def _address(identifier: str, law_number: str) -> str:
    if identifier:
        return f"{source.info.base}law/{identifier}"
    return f"{source.info.base}{_LAW}{quote(law_number)}" if law_number else source.info.base
