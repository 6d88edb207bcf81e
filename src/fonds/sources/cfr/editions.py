"""Which of the files in a folder make up an edition, and which of them a title."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fonds.errors import UsageError, WrongContentError
from fonds.sources.cfr.heads import Head, Shape, edition_of_name, title_of_name
from fonds.sources.jurisdiction import TocNode


@dataclass(frozen=True, slots=True)
class Found:
    """A file, and what it says of itself; nothing if it is broken."""

    name: str
    head: Head | None

    @property
    def title(self) -> str:
        """The title it is of."""
        return self.head.title if self.head else title_of_name(self.name)

    @property
    def edition(self) -> str:
        """The edition it is of; empty if it does not say."""
        return self.head.edition if self.head else edition_of_name(self.name)


def newest_edition(files: Sequence[Found]) -> str:
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


def units(files: Sequence[Found], version: str) -> Iterator[TocNode]:
    """The titles of one edition in the order of their numbers, each with its files."""
    _refuse_nothing(files)
    titles: dict[str, list[Found]] = defaultdict(list)
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


def _refuse_nothing(files: Sequence[Found]) -> None:
    if not files:
        raise WrongContentError(
            "no file of the CFR here; expected XML of ecfr.gov (title-40.xml), or of govinfo.gov "
            "(ECFR-title40.xml, CFR-2024-title40-vol1.xml)"
        )


def _of_edition(files: Sequence[Found], version: str) -> list[Found]:
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


def _pages(title: str, files: list[Found]) -> list[Found]:
    """The files of a title in the order of its text; parts are left out where volumes are there."""
    largest = max(file.head.shape if file.head else Shape.PIECE for file in files)
    chosen = [file for file in files if file.head is None or file.head.shape == largest]
    ordered = sorted(chosen, key=_order)
    for one, other in pairwise(ordered):
        if one.head and other.head and _holds(one.head) == _holds(other.head) != ():
            raise UsageError(
                f"{one.name} and {other.name} both hold the same of title {title}; take one away"
            )
    return ordered


def _holds(head: Head) -> tuple[int, ...]:
    """What no two files can hold; pieces may overlap, and say so by their numbers."""
    if head.shape == Shape.WHOLE:
        return (0,)
    return (head.volume, head.first) if head.shape == Shape.VOLUME else ()


def _order(file: Found) -> tuple[int, int, str]:
    return (file.head.volume, file.head.first, file.name) if file.head else (0, 0, file.name)
