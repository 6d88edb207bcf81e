"""The lists above the chapters: titles.htm, and the page of each title.

Pages in a folder are known by their content, whatever their names, and sorted by title.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final

from fonds.errors import MalformedError, WrongContentError
from fonds.sources.cgs.chapter import (
    Chapter,
    address_of,
    is_chapter,
    key_of,
    revised_to,
    supplement_year,
    title_number,
    visible_text,
)
from fonds.sources.formats.html import by_class, read_page, text_of
from fonds.sources.jurisdiction import Origin, Page, Span

_TITLE_FILE: Final = re.compile(r"(?:^|/)(title_0*([0-9]+[a-z]*)\.html?)(?:#|$)", re.IGNORECASE)
_CHAPTER_FILE: Final = re.compile(
    r"(?:^|/)((chap|art)_0*([0-9]+[a-z]*)\.html?)(?:#|$)", re.IGNORECASE
)
_NAME: Final = re.compile(r"(?:title|chapter|article)\s+(\w+)", re.IGNORECASE)
_DEAD: Final = re.compile(r"\(\s*(All sections [^)]*)\)", re.IGNORECASE)
_REVISED: Final = re.compile(r"Revised to January 1, ([0-9]{4})", re.IGNORECASE)
_SUPPLEMENT: Final = re.compile(r"\brefer to the ([0-9]{4}) Supplement\b", re.IGNORECASE)
_LISTS_TITLES: Final = re.compile(
    rb"<[a-z][^<>]{0,500}?\b(?:toc_ttl_desig|titles\.htm)\b", re.IGNORECASE
)
_LISTS_CHAPTERS: Final = re.compile(rb"<h1\b[^<>]{0,500}?\btitle-no\b", re.IGNORECASE)
_NOTE: Final = re.compile(
    rb"<p\b[^<>]{0,500}?\b(?:front-note|cross-ref|annotation|history|source)\b"
    rb"[^<>]*>.*?(?:</p\s*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_PAGE_CONTENT: Final = re.compile(
    rb"<body\b[^<>]*>(.*?)(?:</body|</html|\Z)", re.DOTALL | re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedNode:
    """A title or a chapter as it is listed above."""

    kind: str
    number: str
    label: str
    file: str
    """The name of its page."""
    remark: str = ""
    """`All sections repealed or obsolete`."""

    @property
    def full_label(self) -> str:
        """Its label, and the remark in brackets."""
        return f"{self.label} ({self.remark})" if self.remark else self.label

    def in_(self, entries: Sequence[ListedNode]) -> bool:
        """Whether a list has the same page."""
        return any(self.file == entry.file for entry in entries)


@dataclass(frozen=True, kw_only=True, slots=True)
class Titles:
    """The list of all titles."""

    entries: tuple[ListedNode, ...]
    revision: str | None
    """The year the statutes are revised to."""
    supplement: str | None
    """The year of the supplement that readers are sent to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Title:
    """The page of one title: its chapters, and the position of its own notes."""

    number: str
    label: str
    chapters: tuple[ListedNode, ...]
    notes: Span | None
    text: str
    """The text of the notes."""
    supplement: str | None
    """The year of the supplement it is from, empty if unknown; None for the statutes themselves."""
    address: str
    """The page's path below the publisher's base."""


def is_list_of_titles(data: bytes) -> bool:
    """Whether the bytes are a list of titles."""
    return _LISTS_TITLES.search(data) is not None and not lists_chapters(data)


def lists_chapters(data: bytes) -> bool:
    """Whether the bytes are the page of a title."""
    return _LISTS_CHAPTERS.search(data) is not None


def read_titles(name: str, data: bytes) -> Titles:
    """The titles that have pages; those reserved for future use have none."""
    root = read_page(data)
    entries = tuple(_titles(root))
    if not entries:
        raise WrongContentError(f"{name} lists no title of the statutes: it may have moved")
    text = text_of(root) or ""
    revised, supplement = _REVISED.search(text), _SUPPLEMENT.search(text)
    return Titles(
        entries=entries,
        revision=revised[1] if revised else None,
        supplement=supplement[1] if supplement else None,
    )


def all_repealed(label: str) -> bool:
    """Whether a title is listed with the remark that none of its sections is left."""
    return _DEAD.search(label) is not None


def read_title(name: str, data: bytes) -> Title:
    """A title's own page."""
    if not lists_chapters(data) and not _CHAPTER_FILE.search(data.decode("latin-1")):
        raise WrongContentError(f"{name} is not the page of a title: it may have moved")
    root = read_page(data)
    printed = {field: _heading(root, field) for field in ("title-no", "title-name")}
    number = _NAME.match(printed["title-no"])
    file = _TITLE_FILE.search(name)
    if number is None and file is None:
        raise MalformedError(f"{name} does not say which title it is")
    chapters = tuple(_chapters(root))
    notes = _notes(data) if chapters else _whole(data)
    supplement = supplement_year(name, data)
    title = (number[1] if number else file[2] if file else "").lower()
    return Title(
        number=title,
        label=" - ".join(filter(None, printed.values())),
        chapters=chapters,
        notes=notes,
        text=visible_text(data[notes.start : notes.start + notes.length]) if notes else "",
        supplement=supplement,
        address=address_of(supplement, _file_name(title)),
    )


def _file_name(number: str) -> str:
    digits = "".join(takewhile(str.isdigit, number))
    return f"title_{digits.zfill(2)}{number[len(digits) :]}.htm"


def with_new_entries(
    base: Sequence[ListedNode], supplement: Sequence[ListedNode]
) -> list[ListedNode]:
    """All entries, those that only the supplement has in the place of their number."""
    entries = list(base)
    for entry in supplement:
        if not entry.in_(entries):
            key = key_of(entry.number)
            before = [at for at, existing in enumerate(entries) if key_of(existing.number) <= key]
            entries.insert(before[-1] + 1 if before else 0, entry)
    return entries


def _titles(root: Any) -> Iterator[ListedNode]:
    for file, (entry, links) in _linked(root, _TITLE_FILE).items():
        texts = [text for text in map(text_of, links) if text]
        number = _NAME.match(texts[0]) if texts else None
        remark = _DEAD.search(_row(links[-1]))
        yield ListedNode(
            kind="title",
            number=number[1] if number else entry[2].lower(),
            label=" - ".join(dict.fromkeys(texts)) or f"Title {entry[2]}",
            file=file,
            remark=remark[1] if remark else "",
        )


def _chapters(root: Any) -> Iterator[ListedNode]:
    for file, (entry, links) in _linked(root, _CHAPTER_FILE).items():
        kind = "article" if entry[2].lower() == "art" else "chapter"
        texts = [text for text in map(text_of, links) if text]
        number = _NAME.match(texts[0]) if texts else None
        yield ListedNode(
            kind=kind,
            number=number[1] if number else entry[3],
            label=" - ".join(dict.fromkeys(texts)) or f"{kind.capitalize()} {entry[3]}",
            file=file,
        )


def _linked(root: Any, pattern: re.Pattern[str]) -> dict[str, tuple[re.Match[str], list[Any]]]:
    """Links by the file they lead to, in the page's order: number and name are two links."""
    files: dict[str, tuple[re.Match[str], list[Any]]] = {}
    for link in root.iter("a"):
        if match := pattern.search((link.get("href") or "").strip()):
            files.setdefault(match[1], (match, []))[1].append(link)
    return files


def _row(link: Any) -> str:
    row = next(link.iterancestors("tr"), None)
    return text_of(row) or ""


def _heading(root: Any, name: str) -> str:
    heading = next(by_class(root, name), None)
    return (text_of(heading) or "").rstrip("* ")


def _notes(data: bytes) -> Span | None:
    matches = list(_NOTE.finditer(data))
    if not matches:
        return None
    return Span(start=matches[0].start(), length=matches[-1].end() - matches[0].start())


def _whole(data: bytes) -> Span | None:
    match = _PAGE_CONTENT.search(data)
    if match is None or not visible_text(match[1]):
        return None
    return Span(start=match.start(1), length=len(match[1]))


_HTML: Final = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_PROMISED: Final = re.compile(r"(?:^|/)(?:chap|art)_[0-9]+[a-z]*\.html?$", re.IGNORECASE)
_LOOKED_AT: Final = 4096


@dataclass(slots=True)
class TitleFiles:
    """The files of one title in a folder."""

    number: str
    label: str = ""
    title_pages: list[str] = field(default_factory=list)
    chapters: list[str] = field(default_factory=list)


@dataclass(slots=True)
class StatutesFolder:
    """The files of the statutes in a folder."""

    titles: dict[str, TitleFiles] = field(default_factory=dict)
    lists: list[Titles] = field(default_factory=list)
    years: set[str] = field(default_factory=set)

    def in_order(self) -> list[TitleFiles]:
        """The titles by their number, named as the lists of titles name them."""
        names = {
            entry.number: entry.full_label
            for title_list in self.lists
            for entry in title_list.entries
        }
        for number, files in self.titles.items():
            files.label = names.get(number) or files.label or f"Title {number}"
        return sorted(self.titles.values(), key=lambda files: key_of(files.number))

    @property
    def revision(self) -> str:
        """The newest year that any page is revised to, if they tell."""
        years = [title_list.revision or "" for title_list in self.lists]
        return max([*self.years, *years], default="")


async def scan(origin: Origin) -> StatutesFolder:
    """Look into every file; raises if none is a page of the statutes."""
    folder = StatutesFolder()
    for name in origin.files or ():
        page = await origin.read(name)
        with page.open() as stream:
            data = stream.read(_LOOKED_AT)
            data = data + stream.read() if _HTML.search(data) else b""
        if is_chapter(data):
            files = _files_for(folder, title_number(name, data))
            files.chapters.append(name)
            folder.years.add(revised_to(name, data))
        elif lists_chapters(data):
            title = read_title(name, data)
            files = _files_for(folder, title.number)
            files.title_pages.append(name)
            files.label = files.label or title.label
        elif is_list_of_titles(data):
            folder.lists.append(read_titles(name, data))
        elif _PROMISED.search(name):
            raise WrongContentError(f"{name} holds no chapter: it is empty, or an error page")
    if not folder.titles:
        raise WrongContentError(
            "no page of the Connecticut General Statutes: expected chapters as the General "
            "Assembly serves them, such as chap_229.htm"
        )
    return folder


def _files_for(folder: StatutesFolder, number: str) -> TitleFiles:
    return folder.titles.setdefault(number, TitleFiles(number))


@dataclass(slots=True)
class Pair:
    """A chapter as the statutes have it, and as the supplement has it."""

    base: Chapter | None = None
    supplement: Chapter | None = None

    def add(self, chapter: Chapter, name: str) -> None:
        """Take one of the two; raises if it is there already."""
        chapters = self.base if chapter.supplement is None else self.supplement
        if chapters is not None:
            raise MalformedError(f"{name} differs from another page of {chapter.label}: keep one")
        if chapter.supplement is None:
            self.base = chapter
        else:
            self.supplement = chapter

    @property
    def chapter(self) -> Chapter:
        """The label of a chapter, by the page of the statutes if there is one."""
        page = self.base or self.supplement
        assert page is not None
        return page


def paired(chapters: Iterable[tuple[Page, Chapter]]) -> list[Pair]:
    """Each chapter with its supplement, in the order of their numbers.

    The same bytes under two names are one page; two pages of one chapter that differ are an error.
    """
    pairs: dict[tuple[str, str], Pair] = {}
    numbers: set[str] = set()
    for page, chapter in chapters:
        if page.archived.sha256 not in numbers:
            numbers.add(page.archived.sha256)
            key = (chapter.kind, chapter.number.lower())
            pairs.setdefault(key, Pair()).add(chapter, page.name)
    return sorted(pairs.values(), key=lambda pair: key_of(pair.chapter.number))
