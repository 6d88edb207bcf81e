"""Which files of a folder hold titles or sections of the Code, told by their bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from posixpath import basename, dirname
from typing import Final

from fonds.errors import NotFoundError, ParseError, UsageError, WrongContentError
from fonds.sources.families.xml_spans import portions
from fonds.sources.jurisdiction import Origin, Page
from fonds.sources.usc.numbers import natural_order, title_number
from fonds.sources.usc.outline import LEAVES, check_root
from fonds.sources.usc.release_points import STAMP

_EXPECTED: Final = (
    "expected titles of the United States Code in USLM (usc42.xml, or xml_usc42@119-36.zip as "
    "downloaded; unpack xml_uscAll), or folders of single sections (42/1396a.xml)"
)
_TITLE_FILE: Final = re.compile(r"(?:xml_)?usc(\d+[a-z]?)(?:@[\w-]+)?\.(?:xml|zip)", re.IGNORECASE)
_SECTION_FILE: Final = re.compile(r"(\d[^\W_]*(?:-[^\W_]+)*)(?:_(\d+))?\.xml", re.IGNORECASE)
"""`300aa-34.xml`; mirrors save the second section of the same number as `3598_2.xml`."""
_IN_IDENTIFIER: Final = re.compile(r"/us/usc/t(\d+[a-z]?)(?=/|$)", re.IGNORECASE)
_TEXT: Final = frozenset({"main", "appendix"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """A title that was found."""

    title: str
    page: str
    release_point: str = ""
    sections: tuple[str, ...] = ()
    """The files of its sections, if it has one for each; the page is the first of them."""


class Head:
    """A listener for what a file says of itself before its text begins."""

    def __init__(self) -> None:
        self.root = ""
        self.identifier = ""
        self.meta: dict[str, str] = {}
        self.is_complete = False
        self._heard: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str], offset: int) -> None:
        """The root, or an element of the metadata."""
        del offset
        self._heard.clear()
        if not self.root:
            check_root(name, attributes)
            self.root, self.identifier = name, attributes.get("identifier", "")
        self.is_complete = self.is_complete or self.root in LEAVES or name in _TEXT

    def end(self, name: str, offset: int) -> None:
        """An element of the metadata, or all of it."""
        del offset
        self.meta.setdefault(name, "".join(self._heard).strip())
        self.is_complete = self.is_complete or name == "meta"

    def text(self, data: str) -> None:
        """Kept until the element ends."""
        self._heard.append(data)


def read_head(page: Page) -> Head:
    """What a file is, from its first bytes; raises `ParseError` if it is nothing of the Code."""
    head = Head()
    with page.open() as stream:
        for _ in portions(stream, head):
            if head.is_complete:
                break
    return head


async def units_in(origin: Origin, files: Sequence[str]) -> list[Unit]:
    """The titles that files hold, in the order of the Code; at least one, and none twice."""
    found: dict[str, Unit] = {}
    for unit in await _units(origin, files):
        other = found.setdefault(unit.title, unit)
        # Whoever downloads an archive may unpack it beside it.
        if other is not unit and "!" not in unit.page:
            raise UsageError(
                f"title {unit.title} is in {other.page} and again in {unit.page}; give a "
                "folder that holds one edition only"
            )
    if not found:
        raise WrongContentError(f"nothing here is part of the Code: {_EXPECTED}")
    return sorted(found.values(), key=lambda unit: natural_order(unit.title))


async def _units(origin: Origin, files: Sequence[str]) -> list[Unit]:
    """Files of titles first, then folders of sections, then archives."""
    titles: list[Unit] = []
    folders: dict[str, Unit] = {}
    for page in _candidates(files):
        folder = dirname(page)
        if folder in folders and _SECTION_FILE.fullmatch(basename(page)):
            continue
        if (unit := await _looked_at(origin, page)) is None:
            continue
        if unit.sections:
            folders[folder] = unit
        else:
            titles.append(unit)
    of_sections = [_with_all_sections(unit, files) for unit in folders.values()]
    return sorted([*titles, *of_sections], key=lambda unit: "!" in unit.page)


def _with_all_sections(unit: Unit, files: Sequence[str]) -> Unit:
    folder = dirname(unit.page)
    beside = [name for name in files if dirname(name) == folder]
    found = sorted(filter(section_in, beside), key=section_in) or [unit.page]
    return replace(unit, page=found[0], sections=tuple(found))


def section_in(name: str) -> tuple[object, ...]:
    """What a file of one section is ordered by; empty for other files."""
    found = _SECTION_FILE.fullmatch(basename(name))
    return (natural_order(found[1]), int(found[2] or 1)) if found else ()


def _candidates(files: Sequence[str]) -> list[str]:
    """The pages that may be XML; of a single file, whatever its name is."""
    if len(files) == 1 and not files[0].lower().endswith(".zip"):
        return list(files)
    archives = [f"{name}!*.xml" for name in files if name.lower().endswith(".zip")]
    return [name for name in files if name.lower().endswith(".xml")] + archives


async def _looked_at(origin: Origin, page: str) -> Unit | None:
    name = basename(page.partition("!")[0])
    found = _TITLE_FILE.fullmatch(name)
    named = title_number(found[1]) if found else ""
    try:
        head = read_head(await origin.read(page))
    except (NotFoundError, ParseError):
        # A file with the name of a title is one that is damaged; the walk will say how.
        return Unit(title=named, page=page) if named else None
    if head.root in LEAVES:
        title = _title_in(head.identifier) or title_number(basename(dirname(page)))
        return Unit(title=title, page=page, sections=(page,)) if title else None
    stated = title_number(head.meta.get("docNumber", "")) or _title_in(head.identifier)
    title = stated or named
    return Unit(title=title, page=page, release_point=_stamp(head, name)) if title else None


def _title_in(identifier: str) -> str:
    found = _IN_IDENTIFIER.match(identifier)
    return title_number(found[1]) if found else ""


def _stamp(head: Head, name: str) -> str:
    """The release point, which USLM 2 leaves out of the metadata."""
    for stated in (
        head.meta.get("docPublicationName", ""),
        head.meta.get("docReleasePoint", ""),
        name,
    ):
        if found := STAMP.search(stated.rpartition("@")[2]):
            return found[0]
    return ""
