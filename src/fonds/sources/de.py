"""German federal law, as gesetze-im-internet.de consolidates it: one file for each act.

Quirks of the publisher:
- An act is a flat list of norms. The first one is the act itself; a norm with a
  `gliederungseinheit` begins a division, one with an `enbez` is a provision of the last division.
  A division is below the one whose key (`gliederungskennzahl`, three digits a level) is the
  beginning of its own; levels may be skipped. So annexes at an act's end are listed below its last
  division, though they belong to the act.
- `(XXXX) §§ 92 bis 98` is a run of provisions that are gone. Others say `(weggefallen)` as their
  title, or as their text. Some numbers appear twice, with an older and a newer wording.
- `jurabk` is the documentation office's abbreviation, often with a year (`UWG 2004`); `amtabk` is
  the official one (`UWG`), and often missing. The folder of an act is made of the former.
- Nothing has an edition: the site serves each act as of today. `builddate` is when a file was
  made, and a file is made again when its act changes. The edition of a folder is the newest such
  day, that of the site the day on which its list was fetched.
- Some acts are only announced: a norm without text, which says where the act can be read.

Ids: `act-bgb/buch-2/abschnitt-8/titel-1/untertitel-1/section-433`. The level is the division's own
name; a number in words stays in words (`abschnitt-Erster`); a division that is only numbered is a
`gliederung` (`gliederung-II`), one that has only a name is `gliederung-Geldstrafe`. A `§` is
a `section`, an `Art` an `article`, an `Anlage` an `annex`, everything else is called what it is
(`eingangsformel`, `anhang-EV`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from fonds.errors import MalformedError, SuspiciousYieldError
from fonds.sources.base import Rate
from fonds.sources.formats import xml
from fonds.sources.formats.act_files import ActFiles, ActHandler, Element
from fonds.sources.jurisdiction import FRONT, CodeInfo, Leaf, Page, Shard, TocNode

# Kinds and numbers of acts, divisions and norms, from the publisher's names.

SITE: Final = "https://www.gesetze-im-internet.de/"
DIVISION: Final = "gliederung"
"""The kind of a division that the law numbers without naming its level: `II.`, `a)`."""
NORM: Final = "norm"
"""The kind of a norm that has no name."""

_LEVEL: Final = (
    r"(?P<kind>(?:Unter|Haupt|Ober)*(?:[Bb]uch|[Tt]eil|[Kk]apitel|[Aa]bschnitt|[Tt]itel|[Ss]tück"
    r"|[Aa]bteilung|[Gg]ruppe))"
)
_NUMBER: Final = r"(?P<number>\d+ ?[a-z]{0,2}|[IVXLC]+ ?[a-z]?|[A-Z]{1,2}\d*)"
# "Buch 2", "Teil I", also "Teil 1 Allgemeine Vorschriften"; "1. Unterabschnitt"; "Erster
# Abschnitt", "Allgemeiner Teil"; "II.", "IV a.", "a)".
_DIVISIONS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_LEVEL} {_NUMBER}(?![^\W_]).*",
        rf"{_NUMBER}\.? {_LEVEL}",
        rf"(?P<number>\w+) {_LEVEL}",
        r"(?P<number>\d+ ?[a-z]?|[IVXLC]+ ?[a-z]?|[A-Z]|[a-z]{1,2})[.)]?",
    )
)
_MAX_NAME_LENGTH: Final = 60

_OMITTED: Final = re.compile(r"\(X+\)\s*")
_KINDS: Final = {
    "section": re.compile(r"§+\s*(.*)"),
    "article": re.compile(r"Art(?:ikel|\.|(?=\s))\s*(.*)"),
    "annex": re.compile(r"Anlagen?(?:\s+(.*))?"),
}
_OTHER: Final = re.compile(r"([^\W\d_]+)\s+((?:\d|[IVXLC]+\b|[A-Z]{1,3}\b).*)")
_PARENTHESIS: Final = re.compile(r"\s*\(.*\)\s*$")

_REPEALED: Final = re.compile(
    r"\W*(?:weggefallen|aufgehoben|gestrichen|entfallen)\W*", re.IGNORECASE
)
_STATUSES: Final = (
    (_REPEALED, "repealed"),
    (re.compile(r"\W*gegenstandslos\W*", re.IGNORECASE), "obsolete"),
    (re.compile(r"\(?.*zukünftig in Kraft\W*", re.IGNORECASE), "not in force"),
)

_SLUG: Final = re.compile(r"[a-z0-9_-]+")
_BARE_NUMBER: Final = re.compile(r"\d+[a-z]{0,2}")


@dataclass(frozen=True, slots=True)
class Name:
    """The kind and number of a node."""

    kind: str
    number: str


def of_division(name: str, key: str) -> Name:
    """`Buch 2`, `1. Unterabschnitt`, `Erster Abschnitt`, `II.`, `Art 229`, or words of its own.

    A number in words stays as it is (`abschnitt-Erster`). A division without level and number is
    called by its name; if that is long, by the last three digits of its key.
    """
    if article := _KINDS["article"].fullmatch(name):
        return Name("article", article[1])
    for pattern in _DIVISIONS:
        if match := pattern.fullmatch(name):
            kind = match.groupdict().get("kind") or DIVISION
            return Name(kind.lower(), " ".join(match["number"].split()))
    return Name(DIVISION, name if len(name) <= _MAX_NAME_LENGTH else key[-3:])


def of_norm(name: str) -> Name:
    """`§ 433`, `(XXXX) §§ 92 bis 98`, `Art 1`, `Anlage 1`, `Anhang EV`, `Eingangsformel`."""
    label = without_mark(name)
    for kind, pattern in _KINDS.items():
        if match := pattern.fullmatch(label):
            return Name(kind, _PARENTHESIS.sub("", match[1] or "").rstrip("."))
    if match := _OTHER.fullmatch(label):
        return Name(match[1].lower(), _PARENTHESIS.sub("", match[2]).rstrip("."))
    if not label or not label[0].isalpha():
        return Name(NORM, label)
    return Name(label.lower(), "")


def without_mark(name: str) -> str:
    """The name without the documentation office's `(XXXX)`, by which it marks what is gone."""
    return _OMITTED.sub("", name)


def status_of(name: str, title: str, beginning: str) -> str:
    """Why a norm is not in force, by its name, its title, or its text if that is short."""
    for words in (title, beginning):
        for pattern, status in _STATUSES:
            if words and pattern.fullmatch(words):
                return status
    return "repealed" if _OMITTED.match(name) else ""


def slug_of(page: str, abbreviation: str) -> str:
    """The publisher's folder of an act: as the page lies in one, or made as the publisher does.

    `BImSchV 1 2010` is in `bimschv_1_2010`, `1-DM-GoldmünzG` in `1-dm-goldm_nzg`.
    """
    path = PurePosixPath(page.partition("!")[0])
    folder = path.parent.name
    if folder and path.stem in {folder, "xml"} and _SLUG.fullmatch(folder):
        return folder
    made = "".join(
        sign if _SLUG.fullmatch(sign) else "_" for sign in " ".join(abbreviation.lower().split())
    )
    return made or path.stem


def address_of(slug: str, norm: Name, article: str) -> str:
    """The page a person would open: the norm's own where its name follows from the number."""
    act = f"{SITE}{slug}/"
    if not _BARE_NUMBER.fullmatch(norm.number):
        return act
    if norm.kind == "section" and _BARE_NUMBER.fullmatch(article):
        return f"{act}art_{article}__{norm.number}.html"
    prefix = {"section": "__", "article": "art_", "annex": "anlage_"}.get(norm.kind)
    return act if prefix is None or article else f"{act}{prefix}{norm.number}.html"


# Reading an act: a flat list of norms, whose divisions are marked by keys alone.

_SHORT: Final = 60
_NO_TITLES: Final = frozenset({"", "-"})


class NormHandler(ActHandler):
    """Lists the divisions and norms of one act."""

    text_elements = frozenset(
        {
            "langue",
            "standkommentar",
            "enbez",
            "titel",
            "gliederungskennzahl",
            "gliederungsbez",
            "gliederungstitel",
        }
    )
    breaks = frozenset({"BR"})

    def __init__(self) -> None:
        super().__init__()
        self._keys: list[str] = []
        """Those of the divisions that are open."""
        self._names: list[str] = []
        self._beginning = ""
        """Of the norm's text, as much as is needed to see that it is gone."""
        self._is_text = False

    def opened(self, element: Element) -> None:
        """A norm's text begins, or something in it that is seen but has no words."""
        if element.name == "norm":
            self._beginning = ""
        elif element.name == "text":
            self._is_text = True
        elif element.name in {"IMG", "FILE"}:
            element.has_text = True

    def text(self, data: str) -> None:
        """Some text; the first words of a norm are kept."""
        super().text(data)
        if self._is_text and len(self._beginning) <= _SHORT:
            self._beginning += data[: _SHORT + 1]

    def closed(self, element: Element) -> None:
        """Hand up what metadata said; list a norm when it ends."""
        if element.name == "text":
            self._is_text = False
        elif element.name in {"gliederungseinheit", "standangabe", "metadaten"}:
            self.above[-1].texts.update(element.texts)
        elif element.name == "textdaten" and element.has_text:
            self.above[-1].texts["textdaten"] = "has words"
        elif element.name == "norm":
            self._norm(element)

    def _norm(self, norm: Element) -> None:
        texts = norm.texts
        has_words = "textdaten" in texts
        name, title = texts.get("enbez", ""), texts.get("titel", "")
        if "gliederungsbez" in texts or "gliederungskennzahl" in texts:
            self._division(norm)
            if has_words and not name:
                self._front(norm, self._names[-1])
        elif "langue" in texts and not name:
            if has_words or texts.get("standkommentar"):
                self._front(norm, texts["langue"])
            return
        elif not name and (has_words or title):
            self._leaf(norm, name, title)
        if name:
            self._leaf(norm, name, title)

    def _division(self, norm: Element) -> None:
        key = norm.texts.get("gliederungskennzahl", "")
        label = headed(norm.texts.get("gliederungsbez", ""), norm.texts.get("gliederungstitel", ""))
        if not key:
            raise MalformedError(f"the division {label!r} has no key that says where it belongs")
        if self._keys and self._keys[-1] == key and self._names[-1] == label:
            return
        while self._keys and (key == self._keys[-1] or not key.startswith(self._keys[-1])):
            self._keys.pop()
            self._names.pop()
        self._keys.append(key)
        self._names.append(label or key)
        name = of_division(norm.texts.get("gliederungsbez", ""), key)
        self.nodes.append(
            TocNode(
                kind=name.kind,
                number=name.number,
                label=self._names[-1],
                depth=len(self._keys),
                identifier=norm.attributes.get("doknr", ""),
            )
        )

    def _front(self, norm: Element, label: str) -> None:
        self._append(norm, FRONT, "", label, "")

    def _leaf(self, norm: Element, name: str, title: str) -> None:
        designation = of_norm(name)
        printed = without_mark(name)
        heading = printed if title in _NO_TITLES else f"{printed} {title}".strip()
        label = heading or norm.attributes.get("doknr", designation.kind)
        beginning = " ".join(self._beginning.split())
        status = status_of(name, title, beginning)
        self._append(norm, designation.kind, designation.number, label, status)

    def _append(self, norm: Element, kind: str, number: str, label: str, status: str) -> None:
        self.nodes.append(
            TocNode(
                kind=kind,
                number=number,
                label=label,
                depth=len(self._keys) + 1,
                is_leaf=True,
                span=norm.span,
                identifier=norm.attributes.get("doknr", ""),
                status=status,
            )
        )


def headed(number: str, title: str) -> str:
    """A division's number and title as one heading: `Buch 2 – Schuldrecht`, `II. Einkommen`."""
    if title in _NO_TITLES or not number:
        return number if title in _NO_TITLES else title
    return f"{number} {title}" if number[-1] in ".):" else f"{number} – {title}"


# How German federal law is cited: the provision, then the act's abbreviation.
#
# The abbreviation is the one by which the documentation office tells acts apart (`UWG 2004`),
# since
# the official one (`UWG`) may name several.

_SIGNS: Final = {"section": "§", "article": "Art.", "annex": "Anlage"}
_SEVERAL: Final = re.compile(r"\s(?:bis|und|u\.)\s|,")


def provision(*, kind: str, number: str, article: str = "") -> str:
    """`§ 433`, `§§ 92 bis 98`, `Art. 229 § 34`, `Anlage 1`, `Eingangsformel`, without the act.

    `article` is the one that a section is part of, in acts whose articles have sections.
    """
    sign = _SIGNS.get(kind, kind.capitalize())
    if kind == "section" and _SEVERAL.search(number):
        sign = "§§"
    within = f"Art. {article} " if article and kind == "section" else ""
    return f"{within}{sign} {number}".rstrip()


def cite_provision(*, kind: str, number: str, act: str, article: str = "") -> str:
    """`§ 433 BGB`, `Art. 229 § 34 BGBEG`, `Anlage 1 BImSchV 1 2010`."""
    return f"{provision(kind=kind, number=number, article=article)} {act}"


_MEMBER: Final = "xml.zip"
_BUILT: Final = re.compile(r"(\d{4})(\d\d)(\d\d)")
# A label as this adapter makes it: `UWG 2004 (UWG) – Gesetz gegen den unlauteren Wettbewerb`.
_UNIT: Final = re.compile(r"(?P<act>.*?)(?: \((?P<official>.*?)\))? – ")


class GermanFederalLaw(ActFiles):
    """The source `de`."""

    info = CodeInfo(
        name="de",
        title="German federal law",
        summary="German federal law, cited as `§ 433 BGB`",
        organisation="Bundesministerium der Justiz, Bundesamt für Justiz",
        version="1.0.0",
        schedule=None,
        rate=Rate(per_second=2, burst=4),
        tables=(),
        published_at="day on which the file was made (builddate)",
        base=SITE,
        jurisdiction="Germany",
        unit="act",
        language="de",
    )
    roots = ("dokumente",)
    metadata = "metadaten"
    index = "gii-toc.xml"

    def act(self, name: str, head: Any) -> TocNode:
        """An act by its abbreviations and title."""
        metadata = head.find(".//metadaten")
        short, official, title = (
            xml.text(metadata, path) or "" for path in ("jurabk", "amtabk", "kurzue")
        )
        title = title or xml.text(metadata, "langue") or ""
        if not short:
            raise MalformedError("the act has no abbreviation (jurabk), by which it is named")
        full_name = f"{short} ({official})" if official not in {"", short} else short
        return TocNode(
            kind=self.info.unit,
            number=slug_of(name, short),
            label=f"{full_name} – {title or short}",
            pages=(name,),
            identifier=head.get("doknr", ""),
            published_at=_day(head.get("builddate", "")),
        )

    def number_of(self, path: str) -> str:
        """The publisher's folder, if the file is in one."""
        return slug_of(path, "")

    def handler(self, unit: TocNode) -> ActHandler:
        """Lists divisions and norms."""
        del unit
        return NormHandler()

    def listed(self, index: Page) -> Iterator[TocNode]:
        """The acts that the publisher's list links to."""
        items = xml.read(index.read(), "items").findall("item")
        if not items:
            raise SuspiciousYieldError(f"{self.index} lists no act; it always has thousands")
        for item in items:
            slug = _slug(xml.required(item, "link"))
            label = xml.text(item, "title") or slug
            page = f"{slug}/{_MEMBER}!*.xml"
            yield TocNode(kind=self.info.unit, number=slug, label=label, pages=(page,))

    def edition_label(self, index: Page) -> str:
        """The day on which the list was fetched."""
        return index.archived.retrieved_at.date().isoformat()

    def shardify(self, leaf: Leaf) -> Shard:
        """A provision, by its number and the act's abbreviation."""
        unit, *divisions = leaf.lineage
        match = _UNIT.match(unit.label)
        act, official = (match["act"], match["official"]) if match else (unit.label, None)
        above = divisions[-1] if divisions else None
        article = above.number if above and above.kind == "article" else ""
        if leaf.kind == NORM:
            names = [f"{act}, {leaf.label}"]
        elif leaf.kind == FRONT:
            names = [f"{act}, {above.label}" if above else act]
        else:
            name = {"kind": leaf.kind, "number": leaf.number, "article": article}
            names = [cite_provision(act=short, **name) for short in (act, official) if short]
            names.append(f"{act} {provision(**name)}")
        return Shard(
            title=leaf.label,
            citation_string=names[0],
            source_url=address_of(unit.number, Name(leaf.kind, leaf.number), article),
            normalizer="gii_v1",
            format="xml",
            aliases=tuple(dict.fromkeys(filter(None, [*names, leaf.identifier]))),
            published_at=leaf.published_at,
        )


source: Final = GermanFederalLaw()


def _day(built: str) -> str | None:
    match = _BUILT.match(built)
    return "-".join(match.groups()) if match else None


def _slug(link: str) -> str:
    """The folder in `http://www.gesetze-im-internet.de/bgb/xml.zip`."""
    folder, _, file = unquote(urlsplit(link).path).strip("/").rpartition("/")
    if file != _MEMBER or not folder or "/" in folder:
        raise MalformedError(f"the list of acts has a link that leads to no act: {link[:120]!r}")
    return folder
