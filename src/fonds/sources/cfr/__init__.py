"""The Code of Federal Regulations: eCFR's daily text, and the annual edition.

Quirks of the publisher:

- eCFR's API serves a title as of a day, but none later than the title's own
  `up_to_date_as_of`; titles lag behind each other by some days. Title 35 is reserved, and has no
  file.
- A part or a section asked for by itself has no title around it. Its `hierarchy_metadata` names
  the title, escaped once or twice, with `_SUBSTITUTE_DATE_` in the place of a date.
- In govinfo's bulk files `DIV1` is a volume, and its `N` the volume's number; chapters, and even
  parts, go on from one volume to the next, where their headings are repeated, `(CONTINUED)`.
- The annual edition is in volumes, or in a file for each part. An unchanged volume is published in
  a new cover: a volume of 2025 may say that it is revised as of 2023. What a volume prints before
  and after its title (how to use the Code, finding aids) is not part of the Code, and left out.
- Numbers do not tell the part: 14 CFR part 241 has a section 19-8.1, title 43 numbers by subpart.
  They are in `N`, with or without the sign, in `SECTNO`, or only in the heading.
- The end tags of some sections were forgotten: all parts that follow are within the section.
- Ranges of reserved sections and parts are one element. A level that is reserved and holds
  nothing is a leaf, so that its citation leads somewhere.
- The sections a note quotes as they will read once they are in force (`REVTXT`) are text of the
  section that the note is on.
- Text directly under a part (authority, source, notes) is its front; the part is cited by
  it. A volume that goes on with a part prints these again: they follow as `front~2`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final
from urllib.parse import quote

from fonds.citations.forms import cfr_form, cfr_part_form
from fonds.errors import ParseError, UsageError, WrongContentError
from fonds.sources.base import Rate
from fonds.sources.cfr.heads import (
    MAX_HEAD_LENGTH,
    FileHead,
    Gpo,
    TitleShape,
    UslmVolume,
    edition_of_name,
    level_number,
    look,
    title_of_name,
)
from fonds.sources.cfr.outline import CfrFileParser, CfrOutline
from fonds.sources.formats import fields
from fonds.sources.formats.congress import read_object
from fonds.sources.formats.xml import portions
from fonds.sources.jurisdiction import FRONT, CodeInfo, Leaf, Origin, Page, Shard, Step, TocNode

# eCFR's list of titles, and the days up to which it holds their text.

INDEX: Final = "api/versioner/v1/titles.json"


def newest_day(data: bytes) -> str:
    """The latest day that eCFR has the text of."""
    days = [_up_to(title) for title in _titles(data)]
    return max(days)


def titles(data: bytes, version: str) -> Iterator[TocNode]:
    """The titles that are not reserved, as of a day.

    A title that lags behind is taken as of the last day there is of it; it is refused for later
    ones.
    """
    for title in _titles(data):
        number, day = fields.required(title, "number"), min(version, _up_to(title))
        yield TocNode(
            kind="title",
            number=number,
            label=f"Title {number}—{fields.required(title, 'name')}",
            pages=(f"api/versioner/v1/full/{day}/title-{number}.xml",),
        )


def _titles(data: bytes) -> list[Mapping[str, Any]]:
    listed = read_object(data, INDEX).get("titles")
    if not isinstance(listed, list) or not all(isinstance(title, Mapping) for title in listed):
        raise WrongContentError(f"{INDEX} holds no list of titles")
    in_force = [title for title in listed if not title.get("reserved")]
    if not in_force:
        raise WrongContentError(f"{INDEX} lists no title that is not reserved")
    return in_force


def _up_to(title: Mapping[str, Any]) -> str:
    day = fields.text(title, "up_to_date_as_of")
    if day is None:
        number = fields.required(title, "number")
        raise UsageError(f"eCFR does not say up to which day it has title {number}; try later")
    return day


# Which of the files in a folder make up an edition, and which of them a title.


@dataclass(frozen=True, slots=True)
class EditionFile:
    """A file, and what it says of itself; nothing if it is broken."""

    name: str
    head: FileHead | None

    @property
    def title(self) -> str:
        """The title it is of."""
        return self.head.title if self.head else title_of_name(self.name)

    @property
    def edition(self) -> str:
        """The edition it is of; empty if it does not say."""
        return self.head.edition if self.head else edition_of_name(self.name)


def newest_edition(files: Sequence[EditionFile]) -> str:
    """The newest stamp that any file bears; where none does, the day of the last amendment."""
    _refuse_nothing(files)
    stated = [file.edition for file in files if file.edition]
    amended = [file.head.published_at for file in files if file.head and file.head.published_at]
    if newest := max(stated or amended, default=""):
        return newest
    raise UsageError(
        "the files do not say of which day they are; say it: --version 2025-01-31, or --version "
        "2025 for the annual edition"
    )


def units(files: Sequence[EditionFile], version: str) -> Iterator[TocNode]:
    """The titles of one edition in the order of their numbers, each with its files."""
    _refuse_nothing(files)
    titles: dict[str, list[EditionFile]] = defaultdict(list)
    for file in _of_edition(files, version):
        titles[file.title].append(file)
    for title in sorted(titles, key=int):
        pages = _pages(title, titles[title])
        days = [file.head.published_at for file in pages if file.head and file.head.published_at]
        yield TocNode(
            kind="title",
            number=title,
            label=max(
                (file.head.label for file in pages if file.head), key=len, default=f"Title {title}"
            ),
            pages=tuple(file.name for file in pages),
            published_at=max(days, default=None),
        )


def _refuse_nothing(files: Sequence[EditionFile]) -> None:
    if not files:
        raise WrongContentError(
            "no file of the CFR here; expected XML of ecfr.gov (title-40.xml), or of govinfo.gov "
            "(ECFR-title40.xml, CFR-2024-title40-vol1.xml)"
        )


def _of_edition(files: Sequence[EditionFile], version: str) -> list[EditionFile]:
    """Those that bear the stamp; if none does, all of them, unless they are of several editions."""
    if exact := [file for file in files if file.edition == version]:
        return exact
    stated = sorted({file.edition for file in files if file.edition})
    unstated = [file for file in files if not file.edition]
    if len(stated) > 1 and not unstated:
        raise UsageError(
            f"no file is of {version}; there are several editions: {', '.join(stated)}; say one "
            f"of them: --version {stated[-1]}"
        )
    return unstated if len(stated) > 1 else list(files)


def _pages(title: str, files: list[EditionFile]) -> list[EditionFile]:
    """The files of a title in the order of its text; parts are left out where volumes are there."""
    largest = max(file.head.shape if file.head else TitleShape.PART for file in files)
    chosen = [file for file in files if file.head is None or file.head.shape == largest]
    ordered = sorted(chosen, key=_order)
    for first, other in pairwise(ordered):
        if first.head and other.head and _numbers_in(first.head) == _numbers_in(other.head) != ():
            raise UsageError(
                f"{first.name} and {other.name} contain the same of title {title}; remove one"
            )
    return ordered


def _numbers_in(head: FileHead) -> tuple[int, ...]:
    """The units of a file that no other file may contain; overlapping parts say so by number."""
    if head.shape == TitleShape.WHOLE:
        return (0,)
    return (head.volume, head.first) if head.shape == TitleShape.VOLUME else ()


def _order(file: EditionFile) -> tuple[int, int, str]:
    return (file.head.volume, file.head.first, file.name) if file.head else (0, 0, file.name)


# How the Code of Federal Regulations is cited.
#
# The Bluebook's rule 14.2: title, section or part, and the year of the edition, `40 C.F.R. §
# 60.112b
# (2025).` What is smaller than a part follows it, what has no part is cited by its chapter:
# `40 C.F.R. pt. 60, app. A (2025).`, `40 C.F.R. ch. I, subch. C (2025).`

_SEVERAL: Final = re.compile(r"[–—,]|\b(?:and|through|to)\b")
_LEVELS: Final = {
    "subtitle": ("subtit.", "subtits."),
    "chapter": ("ch.", "chs."),
    "subchapter": ("subch.", "subchs."),
    "part": ("pt.", "pts."),
    "subpart": ("subpt.", "subpts."),
    "section": ("§", "§§"),
    "appendix": ("app.", "apps."),
}
_ANNEXES: Final = {
    "table": "tbl.",
    "figure": "fig.",
    "exhibit": "ex.",
    "supplement": "supp.",
    "schedule": "sched.",
    "attachment": "attach.",
}


def cite_cfr(title: str, *where: str, year: int | None) -> str:
    """`40 C.F.R. pt. 60, app. A (2025).`; of an edition whose year is unknown, none is stated."""
    position = f"{title} C.F.R. {', '.join(where)}".rstrip()
    return f"{position} ({year})." if year else f"{position}."


def cite_level(kind: str, number: str, *, several: bool = False) -> str:
    """`§ 60.112b`, `pt. 60`, `subpt. Kb`, `app. A`; `§§` and `pts.` where the number is a range.

    `several` says that it is one where the number does not: `1.1-1.3` may be a single section's.
    """
    one, more = _LEVELS[kind]
    word = more if several or _SEVERAL.search(number) else one
    return f"{word} {number}".rstrip()


def cite_appendix(number: str) -> str:
    """`app. A` for `A`, `tbl. 1` for `Table 1`: not all that is appended is called an appendix."""
    word, _, rest = number.partition(" ")
    if short := _ANNEXES.get(word.lower()):
        return f"{short} {rest}".rstrip()
    return cite_level("appendix", number)


# The title, citation and address of the document of a leaf.

_SITE: Final = "https://www.ecfr.gov"
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_YEAR: Final = re.compile(r"(?:17|18|19|20|21)\d\d(?!\d)")
_CITED_LEVELS: Final = (
    "subtitle",
    "chapter",
    "subchapter",
    "part",
    "subpart",
    "section",
    "appendix",
)
_OF_PART: Final = frozenset({"part", "subpart", "section", "appendix"})
_BELONGS: Final = re.compile(
    r"\b(?:to|of)\s+"
    r"(?:(?P<section>§\s*\S+)|Subpart\s+(?P<subpart>[A-Za-z0-9]+)\b|Part\s+(?P<part>[\w-]+))",
    re.IGNORECASE,
)
_PLURAL: Final = re.compile(r"§§|(?:sub)?(?:chapters|parts)\b", re.IGNORECASE)
_DESIGNATION: Final = re.compile(r"\s*(?:[—–\[]|\s-\s|--).*", re.DOTALL)


def shard(leaf: Leaf) -> Shard:
    """All of it; a front has the name of the level it is in."""
    steps = [step for step in _steps(leaf) if step.kind in _CITED_LEVELS]
    title = leaf.lineage[0].number
    return Shard(
        title=leaf.label,
        citation_string=cite_cfr(title, *_positions(leaf, steps), year=_year(leaf)),
        source_url=_address(leaf, title, steps),
        normalizer="uslm_v1" if leaf.identifier.startswith("/us/cfr/") else "ecfr_xml_v1",
        format="xml",
        aliases=tuple(_aliases(leaf, title)),
        published_at=leaf.version if _DAY.fullmatch(leaf.version) else leaf.published_at,
    )


def _steps(leaf: Leaf) -> list[Step]:
    own = Step(kind=leaf.kind, number=leaf.number, label=leaf.label)
    return [*leaf.lineage[1:], *([] if leaf.kind == FRONT else [own])]


def _positions(leaf: Leaf, steps: list[Step]) -> Iterator[str]:
    """From the part down if there is one: its number is unique in the title, a chapter's too."""
    if leaf.kind == "section":
        yield _cited(steps[-1])
    elif leaf.kind == "appendix":
        yield from _around_appendix(leaf.label, steps[:-1])
        yield cite_appendix(leaf.number)
    else:
        for step in _from_part(steps):
            if step.number:
                yield _cited(step)


def _cited(step: Step) -> str:
    several = _PLURAL.match(step.label) is not None
    return cite_level(step.kind, step.number, several=several)


def _around_appendix(label: str, steps: list[Step]) -> Iterator[str]:
    """The level it is appended to, as its heading says; its position does not always show it."""
    matches = _BELONGS.finditer(_designation(label))
    stated = {name: text for match in matches for name, text in match.groupdict("").items() if text}
    if "section" in stated:
        yield cite_level("section", stated["section"].lstrip("§ "))
        return
    levels = {step.kind: step.number for step in _from_part(steps)}
    if part := stated.get("part") or levels.pop("part", ""):
        subpart = stated.get("subpart", "") if stated else levels.get("subpart", "")
        levels = {"part": part, "subpart": subpart}
    for kind, number in levels.items():
        if number:
            yield cite_level(kind, number)


def _from_part(steps: list[Step]) -> list[Step]:
    inner = [step for step in steps if step.kind in _OF_PART]
    return inner or steps


def _address(leaf: Leaf, title: str, steps: list[Step]) -> str:
    when = f"on/{leaf.version}" if _DAY.fullmatch(leaf.version) else "current"
    levels = steps[-1:] if leaf.kind == "section" else _from_part(steps)
    if leaf.kind == "appendix" and "subpart" not in _designation(leaf.label).lower():
        levels = [step for step in levels if step.kind != "subpart"]
    return "/".join([_SITE, when, f"title-{title}", *map(_segment, levels)])


def _segment(step: Step) -> str:
    number = _designation(step.label) if step.kind == "appendix" else step.number
    return f"{step.kind}-{quote(number.replace('–', '-'), safe='()')}"


def _designation(label: str) -> str:
    return _DESIGNATION.sub("", label)


def _year(leaf: Leaf) -> int | None:
    match = _YEAR.match(leaf.version) or _YEAR.match(leaf.published_at or "")
    return int(match[0]) if match else None


def _aliases(leaf: Leaf, title: str) -> Iterator[str]:
    above = leaf.lineage[-1]
    is_first_front = leaf.id.endswith(f"/{FRONT}")
    if leaf.kind == "section" and leaf.number:
        yield cfr_form(title, leaf.number)
    elif leaf.kind == "part":
        yield cfr_part_form(title, leaf.number)
    elif is_first_front and above.kind == "part":
        yield cfr_part_form(title, above.number)
    is_own = leaf.identifier and not leaf.identifier.endswith("/")
    if is_own and (leaf.kind != FRONT or is_first_front):
        yield leaf.identifier


class Adapter:
    """The CFR, title by title."""

    info = CodeInfo(
        name="cfr",
        title="Code of Federal Regulations",
        summary="Code of Federal Regulations, cited as `40 C.F.R. § 60.112b (2025).`",
        organisation="Office of the Federal Register",
        version="1.0.0",
        schedule="30 6 * * 1",
        rate=Rate(per_second=1, burst=2),
        tables=(),
        fetch_concurrency=2,
        published_at="the day asked for; the revision date of the annual edition",
        base="https://www.ecfr.gov/",
        jurisdiction="United States",
        unit="title",
        csl_type="regulation",
    )

    async def newest_version(self, origin: Origin) -> str:
        """The day of the newest text, or the edition that the files are of."""
        if origin.files is None:
            index = await origin.read(INDEX)
            return newest_day(index.read())
        return newest_edition(await _files_of(origin))

    async def discover_unit_roots(self, origin: Origin) -> AsyncIterator[TocNode]:
        """The titles that are not reserved, or those that the files hold."""
        if origin.files is None:
            index = await origin.read(INDEX)
            roots = titles(index.read(), origin.version)
        else:
            roots = units(await _files_of(origin), origin.version)
        for root in roots:
            yield root

    def expand(self, node: TocNode, pages: Mapping[str, Page]) -> Iterator[TocNode]:
        """Every level and every leaf of a title, while its files are read."""
        outline = CfrOutline()
        for page in pages.values():
            yield from _listed(node, page, outline)
        yield from outline.close()

    def shardify(self, leaf: Leaf) -> Shard:
        """Its citation, its page at eCFR, and its other names."""
        return shard(leaf)


def _listed(node: TocNode, page: Page, outline: CfrOutline) -> Iterator[TocNode]:
    with page.open() as stream:
        head = look(stream.read(MAX_HEAD_LENGTH), page.name)
    if head.title != node.number:
        raise WrongContentError(f"{page.name} is of title {head.title}, not {node.number}")
    outline.next_file()
    for depth, (heading, label) in enumerate(head.ancestors, start=1):
        kind = heading.partition(" ")[0].lower()
        number = level_number(heading)
        outline.container(TocNode(kind=kind, number=number, label=label, depth=depth))
    listing = CfrFileParser(
        UslmVolume() if head.is_uslm else Gpo(),
        outline,
        page=page.name,
        title=node.number,
        above=len(head.ancestors),
    )
    with page.open() as stream:
        for _ in portions(stream, listing):
            yield from outline.drain()


async def _files_of(origin: Origin) -> list[EditionFile]:
    """The files of the CFR among all; a broken one counts if its name says that it is one."""
    names = origin.files or ()
    files = []
    for name in names:
        with (await origin.read(name)).open() as stream:
            start = stream.read(MAX_HEAD_LENGTH)
        try:
            files.append(EditionFile(name, look(start, name)))
        except ParseError:
            if len(names) == 1:
                raise
            if name.lower().endswith(".xml") and title_of_name(name):
                files.append(EditionFile(name, None))
    return files


source: Final = Adapter()
