"""Release points: the publisher's stamps of the Code, and the pages that list their files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin

from fonds.sources.usc.numbers import natural_order, title_number

CURRENT: Final = "download.shtml"
STAMP: Final = re.compile(r"(\d+)-(\d+(?:not\d+)*(?:u\d+)?)")
"""`119-36`; `119-102not101` is without a law that is not classified yet, `118-22u1` an update."""

_LINK: Final = re.compile(
    r"""href\s*=\s*["']([^"']*?xml_usc(\w+)@([\w-]+)\.zip)["']""", re.IGNORECASE
)
# The one title that Congress has left free is linked as well, and leads to an apology.
_RESERVED: Final = re.compile(r"Title\s+(\d+)[^<>\d]{0,40}\breserved\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class TitleFile:
    """The archive of one title at one release point."""

    title: str
    release_point: str
    page: str
    """The XML in it, as a path below the publisher's address."""


def past_page(stamp: str) -> str | None:
    """The page that lists the files of a release point of the past; None for other stamps."""
    found = STAMP.fullmatch(stamp)
    if found is None:
        return None
    return f"releasepoints/us/pl/{found[1]}/{found[2]}/usc-rp@{stamp}.htm"


def linked_files(html: str, page: str, base: str) -> list[TitleFile]:
    """The titles whose XML a page links to, each once, in the order of the Code."""
    reserved = {found[1] for found in _RESERVED.finditer(html)}
    files: dict[tuple[str, str], TitleFile] = {}
    for href, printed, stamp in _LINK.findall(html):
        title, address = title_number(printed), urljoin(base + page, href)
        if title and title not in reserved and address.startswith(base):
            member = f"usc{printed}.xml" if printed.isdigit() else "*.xml"
            found = TitleFile(
                title=title, release_point=stamp, page=f"{address[len(base) :]}!{member}"
            )
            files.setdefault((stamp, title), found)
    return sorted(files.values(), key=lambda file: natural_order(file.title))


def newest(files: list[TitleFile]) -> str:
    """The release point of the latest law among files; empty if there are none."""
    stamps = {file.release_point for file in files}
    return max(stamps, key=natural_order, default="")
