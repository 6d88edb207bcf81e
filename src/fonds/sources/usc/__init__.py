"""The United States Code, title by title, as the Office of the Law Revision Counsel prepares it.

Quirks of the publisher:
- An edition is a release point, named after the latest law in it: `119-36`. `119-102not101` is
  without a law that is not worked in yet, `118-22u1` a later correction. Titles that a law did not
  touch are published again with it, and say in their metadata when they were really made.
- The link to an appendix has its number in lower case (`xml_usc05a@…zip`), the file in it in
  upper case, but only for the titles 5 and 50. Title 53 is reserved; its link points to an apology.
- The order of levels differs from title to title. In the appendices, compiled acts, court rules,
  reorganization plans and plain `level`s take the place of chapters, most without a number.
- One `section` element may be that of many: `[§§ 202 to 204.` has its closing bracket at the end of
  the heading. The same number may be there twice, both in force.
- Sections without an identifier are mostly quoted: they are in notes, as laws enacted them.
- Notes may be before and after a table of contents, and each run of them is a document.
- Older files write ranges and lists into identifiers (`/us/usc/t45/s1 to 14`), newer ones use
  `s1...14` for a range and give both identifiers, with a space between, for a list.

A folder may also hold single sections, a file each (`42/1396a.xml`), as mirrors have them. Their
chapters are unknown, and they are directly under the title.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from posixpath import basename
from typing import Final
from urllib.parse import quote

from fonds.citations.forms import usc_appendix_form, usc_chapter_form, usc_form
from fonds.errors import MalformedError, ParseError, UsageError, WrongContentError
from fonds.sources.base import Rate
from fonds.sources.jurisdiction import CodeInfo, Leaf, Origin, Page, Shard, TocNode
from fonds.sources.usc.outline import (
    CURRENT,
    LEAVES,
    TitleFile,
    UscOutline,
    UscTitle,
    linked_files,
    newest,
    past_page,
    read_head,
    read_outline,
    title_number,
    units_in,
)

# How the United States Code is cited, by the Bluebook's rules 12.3 and 12.9.
#
# A section is `42 U.S.C. § 1396a (2024).`; one of an appendix `5 U.S.C. app. § 3 (2024).`, but the
# federal rules of procedure and evidence in appendices have names of their own:
# `Fed. R. Crim. P. 11 (2024).` What is directly under a chapter is cited as the chapter.

_YEAR: Final = re.compile(r"(?:17|18|19|20|21)\d\d(?!\d)")
_SEPARATOR: Final = re.compile(r",\s*(?:and\s+)?|\s+and\s+|\s*;\s*")
_RANGE: Final = re.compile(r"\s+to\s+")
_APPENDIX: Final = re.compile(r"(\d+)a", re.IGNORECASE)

_RULES: Final = (
    ("criminal procedure", "Fed. R. Crim. P."),
    ("civil procedure", "Fed. R. Civ. P."),
    ("appellate procedure", "Fed. R. App. P."),
    ("bankruptcy procedure", "Fed. R. Bankr. P."),
    ("evidence", "Fed. R. Evid."),
)
_LEVELS: Final = {
    "title": "tit.",
    "subtitle": "subtit.",
    "division": "div.",
    "subdivision": "subdiv.",
    "part": "pt.",
    "subpart": "subpt.",
    "chapter": "ch.",
    "subchapter": "subch.",
    "article": "art.",
    "reorganizationplan": "Reorg. Plan No.",
}


def cite_usc(
    *,
    title: str,
    year: str,
    number: str = "",
    levels: Iterable[tuple[str, str]] = (),
    rules: str = "",
    is_rule: bool = False,
) -> str:
    """The citation of a section or rule by its number, or of a level by the way down to it.

    `title` may be an appendix (`18a`); `levels` are pairs of kind and number below the title;
    `rules` is the name that `rules_name` gives; a rule without it is known by its appendix.
    """
    if not number:
        parts = [_marked(_LEVELS[kind], at) for kind, at in levels if at and kind in _LEVELS]
        below = ", ".join(parts)
    elif rules:
        below = _numbers(number)
    else:
        below = _marked("r." if is_rule else "§", number)
    return f"{' '.join(filter(None, [rules or _cited_title(title), below]))} ({year})."


def edition_year(version: str, published_at: str | None) -> str:
    """The year an edition is cited by, or the edition's own stamp where nothing tells a year."""
    for stated in (version, published_at or ""):
        if match := _YEAR.match(stated):
            return match[0]
    return version


def rules_name(headings: Iterable[str]) -> str:
    """`Fed. R. Crim. P.` if FEDERAL RULES OF CRIMINAL PROCEDURE is a heading; else nothing."""
    for heading in headings:
        lowered = heading.casefold()
        if lowered.startswith("federal rules of "):
            return next((short for name, short in _RULES if lowered[17:].startswith(name)), "")
    return ""


def section_numbers(number: str) -> Sequence[str]:
    """The sections that a printed number names: all of a list, the first and last of a range."""
    return [section for part in _parts(number) for section in part]


def _parts(number: str) -> list[list[str]]:
    return [_RANGE.split(part.strip()) for part in _SEPARATOR.split(number) if part.strip()]


def _cited_title(title: str) -> str:
    appendix = _APPENDIX.fullmatch(title)
    return f"{appendix[1]} U.S.C. app." if appendix else f"{title} U.S.C."


def _marked(mark: str, number: str) -> str:
    if len(section_numbers(number)) > 1:
        mark = f"{mark[:-1]}s." if mark.endswith(".") else mark * 2
    return f"{mark} {_numbers(number)}"


def _numbers(number: str) -> str:
    return ", ".join(map(_range, _parts(number)))


def _range(part: list[str]) -> str:
    # A dash between numbers that have hyphens of their own would be misread.
    return (" to " if any("-" in section for section in part) else "–").join(part)


BASE: Final = "https://uscode.house.gov/download/"
_VIEW: Final = "https://uscode.house.gov/view.xhtml"


class Usc:
    """The code `usc`."""

    info = CodeInfo(
        name="usc",
        title="United States Code",
        summary="United States Code, cited as `42 U.S.C. § 1396a (2024).`",
        organisation="Office of the Law Revision Counsel, U.S. House of Representatives",
        version="1.0.0",
        # A release point appears a few days after each law, most weeks.
        schedule="40 6 * * 6",
        rate=Rate(per_second=0.5, burst=2),
        tables=(),
        fetch_concurrency=2,
        published_at="day the title's file was made (dcterms:created)",
        base=BASE,
        jurisdiction="United States",
        unit="title",
        csl_type="legislation",
    )

    async def newest_version(self, origin: Origin) -> str:
        """The current release point, or the one that all files have in common."""
        if origin.files is None:
            return newest(await self._listed(origin, CURRENT))
        stamps = {unit.release_point for unit in await units_in(origin, origin.files)}
        if len(stamps) == 1 and (version := stamps.pop()):
            return version
        links = (
            f"are of {', '.join(sorted(filter(None, stamps)))}" if any(stamps) else "do not tell"
        )
        raise UsageError(f"the release point is unknown, for the files {links}; say --version")

    async def discover_unit_roots(self, origin: Origin) -> AsyncIterator[TocNode]:
        """The titles, appendices after the titles they belong to."""
        if origin.files is not None:
            for unit in await units_in(origin, origin.files):
                yield _root(unit)
            return
        files = await self._listed(origin, CURRENT)
        edition = origin.version
        if (page := past_page(edition)) is None:
            edition = newest(files)
        elif edition not in {file.release_point for file in files}:
            files = await self._listed(origin, page)
        for file in files:
            if file.release_point == edition:
                yield _root(UscTitle(title=file.title, page=file.page))

    def expand(self, node: TocNode, pages: Mapping[str, Page]) -> Iterator[TocNode]:
        """All nodes of a title, from its one file or from those of its sections."""
        page = pages[node.pages[0]]
        try:
            if not page.archived.size:
                raise MalformedError("the file is empty")
            is_section = read_head(page).root in LEAVES
            yield from _sections(node, page) if is_section else _title(node, page)
        except ParseError as error:
            raise type(error)(f"{page.name}: {error}") from None

    def shardify(self, leaf: Leaf) -> Shard:
        """How a section, a rule, or the text of a level is cited and found."""
        title = leaf.lineage[0].number
        levels = [(step.kind, step.number) for step in leaf.lineage[1:]]
        rules = rules_name(step.label for step in leaf.lineage if step.kind == "courtrules")
        citation = cite_usc(
            title=title,
            year=edition_year(leaf.version, leaf.published_at),
            number=leaf.number,
            levels=levels,
            rules=rules,
            is_rule=leaf.kind == "courtrule",
        )
        return Shard(
            # Of a section that was only listed, the first heading of its text says more.
            title="" if leaf.label == _bare_label(leaf.number) else leaf.label or citation,
            citation_string=citation,
            source_url=_address(title, leaf),
            normalizer="uslm_v1",
            format="xml",
            aliases=tuple(dict.fromkeys(_aliases(title, leaf, citation if rules else ""))),
            published_at=leaf.published_at,
        )

    async def _listed(self, origin: Origin, page: str) -> list[TitleFile]:
        html = (await origin.read(page)).read().decode("utf-8", "replace")
        files = linked_files(html, page, self.info.base)
        if not files:
            raise WrongContentError(f"{page} links to no title: the publisher may have changed it")
        return files


source: Final = Usc()


def _root(unit: UscTitle) -> TocNode:
    number = unit.title.removesuffix("a")
    label = f"Title {number}" if number == unit.title else f"Title {number} Appendix"
    return TocNode(
        kind="title",
        number=unit.title,
        label=label,
        pages=(unit.page,),
        leaf_pages=tuple(unit.sections),
        identifier=_identifier(unit.title),
    )


def _identifier(title: str) -> str:
    return f"/us/usc/t{title}"


# Reading ----------------------------------------------------------------------------------


def _title(unit: TocNode, page: Page) -> Iterator[TocNode]:
    outline = UscOutline()
    with page.open() as stream:
        for node in read_outline(stream, outline):
            if node.depth:
                yield node
                continue
            number = title_number(outline.meta.get("docNumber", ""))
            if number and number != unit.number:
                raise WrongContentError(f"holds title {number} and not title {unit.number}")
            yield replace(node, number=unit.number, label=node.label or unit.label)


def _sections(unit: TocNode, page: Page) -> Iterator[TocNode]:
    """Sections by the names of their files, which are read when their turn comes."""
    yield replace(unit, depth=0, pages=())
    if len(unit.leaf_pages) <= 1:
        with page.open() as stream:
            for node in read_outline(stream, UscOutline()):
                yield replace(node, pages=(page.name,), span=None)
        return
    for name in unit.leaf_pages:
        number = basename(name).removesuffix(".xml").partition("_")[0]
        yield TocNode(
            kind="section",
            number=number,
            label=_bare_label(number),
            is_leaf=True,
            pages=(name,),
            identifier=f"{unit.identifier}/s{number.replace('-', '–')}",
        )


# Naming -----------------------------------------------------------------------------------


def _bare_label(number: str) -> str:
    return f"§ {number}"


def _aliases(title: str, leaf: Leaf, rule: str) -> Iterator[str]:
    # Newer files name a list of sections by all their identifiers, with spaces between.
    yield from filter(None, leaf.identifier.replace(" /", "\n/").split("\n"))
    number = title.removesuffix("a")
    if leaf.kind == "section":
        form = usc_form if number == title else usc_appendix_form
        yield from (form(number, section) for section in section_numbers(leaf.number))
    elif rule and leaf.number:
        yield rule.partition(" (")[0]
    elif leaf.id.endswith("/front") and leaf.lineage[-1].kind == "chapter" and number == title:
        chapters = section_numbers(leaf.lineage[-1].number)
        yield from (usc_chapter_form(title, chapter) for chapter in chapters)


def _address(title: str, leaf: Leaf) -> str:
    if title.endswith("a"):
        path = f"/prelim@title{title.removesuffix('a')}/title{title}"
        return f"{_VIEW}?path={path}&edition=prelim"
    address = f"USC-prelim-title{title}"
    if leaf.kind == "section" and (numbers := section_numbers(leaf.number)):
        address += f"-section{quote(numbers[0])}"
    elif [step.kind for step in leaf.lineage] == ["title", "chapter"]:
        address += f"-chapter{quote(leaf.lineage[1].number)}"
    return f"{_VIEW}?req=granuleid:{address}&num=0&edition=prelim"
