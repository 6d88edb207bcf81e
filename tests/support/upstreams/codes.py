"""Codes of any size, computed from the numbers of their sections, and a server for their folders.

    write_usc_title(folder / "usc91.xml", sections=100_000, words=150)
    write_usc_site(folder, {91: 40, 92: 40})
    write_dc_code(folder, {"1": 40, "2": 40})
    with FolderServer(folder) as upstream:
        upstream.damage(dc_index("2"), "gone")
        ... fonds code ingest dc --from upstream.address ...
        upstream.mend(dc_index("2"))

A title is written as it is computed and never held in memory. The same arguments give the same
bytes; another edition is one written with amendments.
"""

from __future__ import annotations

import hashlib
import struct
import zipfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

from tests.support.upstreams.misbehaving import Handler, MisbehavingServer, Request, Response

RELEASE_POINT: Final = "119-36"
DC_LIST: Final = "us/dc/council/code/index.xml"

_USLM: Final = "http://xml.house.gov/schemas/uslm/1.0"
_DC: Final = "https://code.dccouncil.us/schemas/dc-library"
_SPACES: Final = (
    f'xmlns="{_DC}" xmlns:codified="https://code.dccouncil.us/schemas/codified" '
    'xmlns:codify="https://code.dccouncil.us/schemas/codify" '
    'xmlns:xi="http://www.w3.org/2001/XInclude"'
)
_SMALL: Final = "the of and to in for by on as any such a or that with under each no this all be"
_STEMS: Final = """
    anchor beacon berth buoy canal cargo dock ferry fog gale harbor haven keeper lamp ledger light
    mast moor oil pier pilot quay reef rope sail ship signal storm tide tower vessel wharf wick
"""
_ENDINGS: Final = ("", "s", "ed", "ing", "age", "er", "less", "ward", "like", "ful")
_WORDS: Final = [
    *(_SMALL.split() * 12),
    *map("".join, product(_STEMS.split(), _ENDINGS)),
]


# Words ------------------------------------------------------------------------------------


def _prose(count: int, *key: object) -> str:
    """Sentences that depend on the key alone."""
    stream = hashlib.shake_128(repr(key).encode()).digest(2 * count)
    drawn = [_WORDS[place % len(_WORDS)] for place in struct.unpack(f"<{count}H", stream)]
    pieces = (" ".join(drawn[at : at + 14]) for at in range(0, count, 14))
    return " ".join(f"{piece.capitalize()}." for piece in pieces)


def _heading(*key: object) -> str:
    return _prose(4, "heading", *key).rstrip(".")


@dataclass(frozen=True, kw_only=True)
class Amendments:
    """What another edition has otherwise, by the numbers of sections."""

    added: Mapping[int, str] = field(default_factory=dict)
    """Sentences at the end of sections."""
    omitted: Collection[int] = ()
    renumbered: Mapping[int, str] = field(default_factory=dict)
    """Sections that are there under another number."""


AS_ENACTED: Final = Amendments()


# The United States Code, one file a title -------------------------------------------------


def write_usc_title(
    path: Path,
    *,
    sections: int,
    words: int = 120,
    title: int = 91,
    per_chapter: int = 100,
    release_point: str = RELEASE_POINT,
    amendments: Amendments = AS_ENACTED,
) -> None:
    """Write a title in USLM 1.0, its sections numbered from 1, so many to a chapter."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(_usc_head(title, release_point))
        for chapter, first in enumerate(range(1, sections + 1, per_chapter), 1):
            numbers = range(first, min(first + per_chapter, sections + 1))
            file.writelines(_chapter(title, chapter, numbers, words, amendments))
        file.write("</title>\n</main>\n</uscDoc>\n")


def write_usc_site(folder: Path, titles: Mapping[int, int], *, words: int = 120) -> None:
    """Write the publisher's site: the page of the current release point, and a zip a title."""
    links = []
    for title, sections in titles.items():
        page = folder / usc_archive(title)
        page.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory() as scratch, zipfile.ZipFile(page, "w") as archive:
            file = Path(scratch) / f"usc{title}.xml"
            write_usc_title(file, sections=sections, words=words, title=title)
            archive.write(file, file.name)
        links.append(f'<div>Title {title} <a href="{usc_archive(title)}">[XML]</a></div>')
    listing = "<!DOCTYPE html><html><body>\n" + "\n".join(links) + "\n</body></html>\n"
    (folder / "download.shtml").write_text(listing, "utf-8")


def usc_archive(title: int) -> str:
    """The path of a title's zip file."""
    congress, law = RELEASE_POINT.split("-")
    return f"releasepoints/us/pl/{congress}/{law}/xml_usc{title:02}@{RELEASE_POINT}.zip"


def _usc_head(title: int, release_point: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<?xml-stylesheet type="text/css" href="usctitle.css"?>\n'
        f'<uscDoc xmlns="{_USLM}" xmlns:dc="http://purl.org/dc/elements/1.1/" '
        'xmlns:dcterms="http://purl.org/dc/terms/" xml:lang="en" '
        f'identifier="/us/usc/t{title}">\n'
        f"<meta>\n<dc:title>Title {title}</dc:title>\n<dc:type>USCTitle</dc:type>\n"
        f"<docNumber>{title}</docNumber>\n"
        f"<docPublicationName>Online@{release_point}</docPublicationName>\n"
        '<property role="is-positive-law">yes</property>\n<dc:publisher>OLRC</dc:publisher>\n'
        "<dcterms:created>2025-03-25T08:29:53</dcterms:created>\n</meta>\n<main>\n"
        f'<title id="t{title}" identifier="/us/usc/t{title}"><num value="{title}">Title {title}—'
        f"</num><heading>{_heading(title).upper()}</heading>\n"
    )


def _chapter(
    title: int, chapter: int, numbers: range, words: int, amendments: Amendments
) -> Iterator[str]:
    above = f"/us/usc/t{title}/ch{chapter}"
    yield (
        f'<chapter id="c{chapter}" identifier="{above}"><num value="{chapter}">CHAPTER {chapter}—'
        f"</num><heading>{_heading(title, chapter, 0).upper()}</heading>\n"
        '<toc role="twoColumnTOC"><layout>\n'
    )
    kept = [number for number in numbers if number not in amendments.omitted]
    for number in kept:
        yield (
            f'<tocItem><column class="twoColumnLeft">{number}.</column><column '
            f'class="twoColumnRight">{_heading(title, number)}.</column></tocItem>\n'
        )
    yield "</layout></toc>\n"
    for number in kept:
        yield _usc_section(title, number, words, amendments)
    yield "</chapter>\n"


def _usc_section(title: int, number: int, words: int, amendments: Amendments) -> str:
    """One section: two subsections, whence it comes, and a note."""
    printed = amendments.renumbered.get(number, str(number))
    known = f"/us/usc/t{title}/s{printed}"
    more = f" {added}" if (added := amendments.added.get(number)) else ""
    rest = max(words - 20, 2)
    return (
        f'<section id="s{printed}" identifier="{known}"><num value="{printed}">§ {printed}.</num>'
        f"<heading> {_heading(title, number)}</heading>"
        f'<subsection class="indent0" identifier="{known}/a"><num value="a">(a)</num><content> '
        f"{_prose(rest // 2, title, number, 'a')}</content>\n</subsection>\n"
        f'<subsection class="indent0" identifier="{known}/b"><num value="b">(b)</num><content> '
        f"{_prose(rest - rest // 2, title, number, 'b')}{more}</content>\n</subsection>\n"
        f'<sourceCredit>(<ref href="/us/pl/90/{number}">Pub. L. 90–{number}</ref>, <date '
        f'date="1967-01-02">Jan. 2, 1967</date>, 81 Stat. {number}.)</sourceCredit>\n'
        '<notes type="uscNote"><note topic="amendments"><heading>Amendments</heading>'
        f'<p class="indent0">1999—{_prose(8, title, number, "note")}</p></note></notes>\n'
        "</section>\n"
    )


# The D.C. Code, one file a section --------------------------------------------------------


def write_dc_code(
    folder: Path, titles: Mapping[str, int], *, words: int = 60, per_chapter: int = 50
) -> None:
    """Write a folder as the Council lays it out: a list, an index a title, a file a section."""
    includes = "".join(f'  <xi:include href="./titles/{title}/index.xml"/>\n' for title in titles)
    (folder / DC_LIST).parent.mkdir(parents=True, exist_ok=True)
    (folder / DC_LIST).write_text(
        f'<?xml version="1.0" encoding="utf-8"?>\n<document {_SPACES} id="D.C. Code">\n'
        "  <heading>Code of the District of Columbia</heading>\n"
        f"  <meta><effective>0001-01-01</effective></meta>\n{includes}</document>\n",
        "utf-8",
    )
    for title, sections in titles.items():
        _write_dc_title(folder, title, sections, words, per_chapter)


def dc_index(title: str) -> str:
    """The path of a title's index."""
    return f"us/dc/council/code/titles/{title}/index.xml"


def dc_section(number: str) -> str:
    """The path of a section's file."""
    title = number.partition("-")[0]
    return f"us/dc/council/code/titles/{title}/sections/{number}.xml"


def dc_numbers(title: str, sections: int, per_chapter: int = 50) -> Iterator[tuple[int, str]]:
    """The sections of a title, each with its chapter: `1-101` is the first of the first."""
    for at in range(sections):
        chapter, place = at // per_chapter + 1, at % per_chapter + 1
        yield chapter, f"{title}-{chapter}{place:02}"


def _write_dc_title(folder: Path, title: str, sections: int, words: int, per_chapter: int) -> None:
    (folder / dc_section(f"{title}-0")).parent.mkdir(parents=True, exist_ok=True)
    chapters: dict[int, list[str]] = {}
    for chapter, number in dc_numbers(title, sections, per_chapter):
        chapters.setdefault(chapter, []).append(number)
        (folder / dc_section(number)).write_text(_dc_text(number, words), "utf-8")
    listed = "".join(_dc_chapter(title, chapter, kept) for chapter, kept in chapters.items())
    (folder / dc_index(title)).write_text(
        f'<?xml version="1.0" encoding="utf-8"?>\n<container {_SPACES} containing-doc="D.C. Code">'
        f"\n  <prefix>Title</prefix>\n  <num>{title}</num>\n"
        f"  <heading>{_heading('dc', title)}.</heading>\n{listed}</container>\n",
        "utf-8",
    )


def _dc_chapter(title: str, chapter: int, numbers: list[str]) -> str:
    includes = "".join(f'    <xi:include href="./sections/{number}.xml"/>\n' for number in numbers)
    return (
        f"  <container>\n    <prefix>Chapter</prefix>\n    <num>{chapter}</num>\n"
        f"    <heading>{_heading('dc', title, chapter)}.</heading>\n{includes}  </container>\n"
    )


def _dc_text(number: str, words: int) -> str:
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<section {_SPACES} containing-doc="D.C. Code">\n'
        f"  <num>{number}</num>\n  <heading>{_heading('dc', number)}.</heading>\n"
        f"  <text>{_prose(words, 'dc', number)}</text>\n"
        f"  <para>\n    <num>(1)</num>\n    <text>{_prose(12, 'dc', number, 1)}</text>\n  </para>\n"
        '  <annotations>\n    <annotation doc="D.C. Law 99-2" type="History">Sept. 14, 2082, '
        "D.C. Law 99-2, § 2</annotation>\n  </annotations>\n</section>\n"
    )


# Serving ----------------------------------------------------------------------------------

Damage = Literal["gone", "moved", "apology", "empty", "malformed", "cut", "hangs", "falters"]
"""404; a redirect to a web page; a web page in its place; no bytes; the first half; a transfer
that breaks off; one that never begins; a 500 before the first answer that is fine."""

_TYPES: Final = {".xml": "application/xml", ".zip": "application/zip"}
_HTML: Final = "text/html; charset=utf-8"
_APOLOGY: Final = Response(
    b"<!DOCTYPE html>\n<html><head><title>Moved</title></head><body><p>See our new site.</p>"
    b"</body></html>\n",
    content_type=_HTML,
)
_REDIRECTS: Final = {"moved": "/apology", "cut": "/truncated", "hangs": "/hangs"}


class FolderServer(MisbehavingServer):
    """Serves the files of a folder on a loopback port, each honestly until it is damaged."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._damaged: set[str] = set()
        self.route("/*", self._whole)

    def damage(self, path: str, how: Damage) -> None:
        """Serve a file in another way from here on."""
        self._damaged.add(path)
        self.route(f"/{path}", self._answers(how))

    def mend(self, path: str) -> None:
        """Serve a file as it is, from here on."""
        self._damaged.discard(path)
        self.route(f"/{path}", self._whole)

    def mend_all(self) -> None:
        """Serve all files as they are, from here on."""
        for path in list(self._damaged):
            self.mend(path)

    def _whole(self, request: Request) -> Response:
        file = self._folder / request.path.lstrip("/")
        if not file.is_file():
            return Response(b"no such page", 404)
        return Response(file.read_bytes(), content_type=_TYPES.get(file.suffix, _HTML))

    def _half(self, request: Request) -> Response:
        whole = self._whole(request)
        return Response(whole.body[: len(whole.body) // 2], content_type=whole.content_type)

    def _answers(self, how: Damage) -> Handler:
        if to := _REDIRECTS.get(how):
            return lambda _request: Response(status=302, headers={"Location": to})
        if how == "falters":
            return _after_one_failure(self._whole)
        honest = {"gone": Response(b"gone", 404), "apology": _APOLOGY, "empty": Response()}
        return self._half if how == "malformed" else lambda _request: honest[how]


def _after_one_failure(handler: Handler) -> Handler:
    asked: list[Request] = []

    def answer(request: Request) -> Response:
        asked.append(request)
        return handler(request) if len(asked) > 1 else Response(b"not yet", 500)

    return answer
