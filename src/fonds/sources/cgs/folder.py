"""Pages in a folder: known by what they hold, whatever they are called, and sorted by title."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from fonds.errors import MalformedError, WrongContentError
from fonds.sources.cgs.chapter import (
    Chapter,
    is_chapter,
    revised_to,
    title_number,
)
from fonds.sources.cgs.index import (
    Titles,
    is_list_of_titles,
    lists_chapters,
    read_title,
    read_titles,
)
from fonds.sources.cgs.numbers import key_of
from fonds.sources.jurisdiction import Origin, Page

_HTML: Final = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_PROMISED: Final = re.compile(r"(?:^|/)(?:chap|art)_[0-9]+[a-z]*\.html?$", re.IGNORECASE)
_LOOKED_AT: Final = 4096


@dataclass(slots=True)
class Held:
    """What a folder holds of one title."""

    number: str
    label: str = ""
    title_pages: list[str] = field(default_factory=list)
    chapters: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Folder:
    """What a folder holds of the statutes."""

    titles: dict[str, Held] = field(default_factory=dict)
    lists: list[Titles] = field(default_factory=list)
    years: set[str] = field(default_factory=set)

    def in_order(self) -> list[Held]:
        """The titles by their number, named as the lists of titles name them."""
        names = {entry.number: entry.full_label for one in self.lists for entry in one.entries}
        for number, held in self.titles.items():
            held.label = names.get(number) or held.label or f"Title {number}"
        return sorted(self.titles.values(), key=lambda held: key_of(held.number))

    @property
    def revision(self) -> str:
        """The newest year that any page is revised to, if they tell."""
        told = [one.revision or "" for one in self.lists]
        return max([*self.years, *told], default="")


async def scan(origin: Origin) -> Folder:
    """Look into every file; raises if none is a page of the statutes."""
    folder = Folder()
    for name in origin.files or ():
        page = await origin.read(name)
        with page.open() as stream:
            data = stream.read(_LOOKED_AT)
            data = data + stream.read() if _HTML.search(data) else b""
        if is_chapter(data):
            held = _held(folder, title_number(name, data))
            held.chapters.append(name)
            folder.years.add(revised_to(name, data))
        elif lists_chapters(data):
            title = read_title(name, data)
            held = _held(folder, title.number)
            held.title_pages.append(name)
            held.label = held.label or title.label
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


def _held(folder: Folder, number: str) -> Held:
    return folder.titles.setdefault(number, Held(number))


@dataclass(slots=True)
class Pair:
    """A chapter as the statutes have it, and as the supplement has it."""

    base: Chapter | None = None
    supplement: Chapter | None = None

    def add(self, chapter: Chapter, name: str) -> None:
        """Take one of the two; raises if it is there already."""
        known = self.base if chapter.supplement is None else self.supplement
        if known is not None:
            raise MalformedError(f"{name} differs from another page of {chapter.label}: keep one")
        if chapter.supplement is None:
            self.base = chapter
        else:
            self.supplement = chapter

    @property
    def chapter(self) -> Chapter:
        """What it is called, by the page of the statutes if there is one."""
        known = self.base or self.supplement
        assert known is not None
        return known


def paired(chapters: Iterable[tuple[Page, Chapter]]) -> list[Pair]:
    """Each chapter with its supplement, in the order of their numbers.

    The same bytes under two names are one page; two pages of one chapter that differ are an error.
    """
    pairs: dict[tuple[str, str], Pair] = {}
    known: set[str] = set()
    for page, chapter in chapters:
        if page.archived.sha256 not in known:
            known.add(page.archived.sha256)
            key = (chapter.kind, chapter.number.lower())
            pairs.setdefault(key, Pair()).add(chapter, page.name)
    return sorted(pairs.values(), key=lambda pair: key_of(pair.chapter.number))
