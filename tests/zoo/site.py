"""What a site of the zoo is: its pages, what it lists, and how it answers a request."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit

HOME: Final = "http://home.invalid"
"""Stands for the site's own address in its pages."""
ELSEWHERE: Final = "http://files.invalid"
"""Stands for the address of the site's file server, in its pages and in what it lists."""
LAST_MODIFIED: Final = "Fri, 28 Nov 2025 00:00:00 GMT"


@dataclass(frozen=True, kw_only=True)
class Truth:
    """A PDF that a site lists."""

    path: str
    """Below the site's root; on the file server it begins with `ELSEWHERE`."""
    organization: str | None
    """None where no page states it."""
    period: str | None
    """As `2024-Q1`, `2024-H2`, `2024-05` or `2024-annual`; None where nothing states it."""
    downloads: bool = True
    """False: it is listed, but fetching it must end as a failure."""
    aliases: tuple[str, ...] = ()
    """Other addresses under which it may be told of, such as where a redirect ends."""
    copy_of: str | None = None
    """The path of another PDF that has the very same bytes."""


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A request; names of headers are lower-case."""

    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    count: int = 1
    """How often this target has been asked for, this time included."""
    number: int = 1
    """How many requests the site has had, this one included."""

    @property
    def path(self) -> str:
        return unquote_to_bytes(urlsplit(self.target).path).decode("utf-8", "replace")

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A response; one whose `drip` is set is sent in pieces of so many bytes."""

    body: bytes = b""
    status: int = 200
    media: str | None = "text/html"
    headers: Mapping[str, str] = field(default_factory=dict)
    drip: int = 0

    @cached_property
    def head(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}"]
        lines += [f"Content-Type: {self.media}"] if self.media else []
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if self.status != HTTPStatus.NOT_MODIFIED:
            lines.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join([*lines, "", ""]).encode()

    @cached_property
    def wire(self) -> bytes:
        return self.head + self.body


Route = str | bytes | Answer | Callable[[Ask], Answer | str]
NOT_FOUND: Final = Answer(status=404, body=b"<html><title>404</title><h1>Not found</h1></html>")

OFFICE_FILE: Final = Answer(body=b"PK\x03\x04" + bytes(96), media="application/octet-stream")


@dataclass(frozen=True, kw_only=True, eq=False)
class ZooSite:
    """A small website that lists reports in its own way."""

    id: str
    name: str
    """The office whose site it is."""
    listed: tuple[Truth, ...]
    pages: Mapping[str, Route]
    """By path, or by path and query. Text is HTML in the site's encoding."""
    start: str = "/"
    unwanted: frozenset[str] = frozenset()
    """Links that its pages show and that are no reports."""
    forbidden: frozenset[str] = frozenset()
    """Paths that robots.txt keeps from us; to find them is no fault, to ask for them is one."""
    notes: str = ""
    encoding: str = "utf-8"
    """Of the bytes, whatever is declared."""
    media: str = "text/html; charset=utf-8"
    """The Content-Type of its pages."""
    validators: bool = True
    """Whether its PDFs have an ETag and a time of change."""
    pdf_headers: Callable[[str], Mapping[str, str]] = lambda _path: {}
    """Further headers of the PDF at a path."""
    gate: Callable[[Ask], Answer | None] = lambda _ask: None
    """Answers first; None lets the request through."""
    drip: int = 0
    """Bytes in each piece of a PDF; 0 sends it whole."""
    missing: Answer = NOT_FOUND
    files: ZooSite | None = None
    """A second server that keeps files for this one."""

    def answer(self, ask: Ask) -> Answer:
        """The response to a request, before it is looked at whether the client has it."""
        refused = self.gate(ask)
        if refused is not None:
            return refused
        route = self._routes.get(key(ask.target))
        if route is None:
            # A web server hands out a file whatever stands behind the question mark.
            route = self._routes.get(key(urlsplit(ask.target).path))
        if route is None:
            return self.missing
        return self._answered(route(ask) if callable(route) else route)

    def _answered(self, route: str | bytes | Answer) -> Answer:
        if isinstance(route, Answer):
            return route
        body = route if isinstance(route, bytes) else route.encode(self.encoding)
        return Answer(body=body, media=self.media)

    @cached_property
    def _routes(self) -> dict[Key, Route]:
        routes: dict[Key, Route] = {}
        for path in self.unwanted | self.forbidden:
            office = path.endswith((".xls", ".xlsx", ".docx"))
            routes[key(path)] = OFFICE_FILE if office else self._pdf(path, f"{self.id} {path}")
        for truth in self.listed:
            told = f"{self.id} {truth.organization} {truth.period} {truth.copy_of or truth.path}"
            for path in (truth.path, *truth.aliases) if truth.downloads else ():
                routes[key(path)] = self._pdf(path, told)
        return routes | {key(path): route for path, route in self.pages.items()}

    def _pdf(self, path: str, text: str) -> Answer:
        body = pdf(text)
        headers = dict(self.pdf_headers(path))
        if self.validators:
            etag = hashlib.sha256(body).hexdigest()[:16]
            headers |= {"ETag": f'"{etag}"', "Last-Modified": LAST_MODIFIED}
        return Answer(body=body, media="application/pdf", headers=headers, drip=self.drip)


Key = tuple[bytes, tuple[tuple[bytes, bytes], ...]]


def key(target: str) -> Key:
    """What two spellings of an address have in common: decoded, parameters in any order."""
    path, _, query = target.partition("#")[0].partition("?")
    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    decoded = sorted((unquote_to_bytes(name), unquote_to_bytes(value)) for name, _, value in pairs)
    return unquote_to_bytes(path), tuple(decoded)


def reports(
    rows: Iterable[tuple[str, str | None, str | None]], *, below: str = ""
) -> tuple[Truth, ...]:
    """What a site lists, from rows of path, organisation and period."""
    return tuple(
        Truth(path=below + path, organization=organization, period=period)
        for path, organization, period in rows
    )


def fill(template: str, **parts: str) -> str:
    """A page with its parts in the places that bear their names; other braces are left alone."""
    for name, part in parts.items():
        template = template.replace(f"{{{name}}}", part)
    return template


def lines(rows: Iterable[str]) -> str:
    """Pieces of markup, one below the other."""
    return "\n".join(rows)


def pdf(text: str, *, padding: int = 0) -> bytes:
    """A PDF of one page that says this text, and is the longer by some bytes of padding."""
    said = text.encode("ascii", "backslashreplace").decode()
    for special in "\\()":
        said = said.replace(special, "\\" + special)
    drawn = f"BT /F1 9 Tf 20 100 Td ({said}) Tj ET"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 200] /Contents 4 0 R /Resources 6 0 R >>",
        f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Font << /F1 5 0 R >> >>",
    ]
    if padding:
        objects.append(f"<< /Length {padding} >>\nstream\n{'0' * padding}\nendstream")
    out, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(out))
        out += f"{number} 0 obj\n{content}\nendobj\n"
    size, table = len(objects) + 1, len(out)
    out += f"xref\n0 {size}\n0000000000 65535 f \n"
    out += "".join(f"{place:010} 00000 n \n" for place in places)
    out += f"trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n"
    return out.encode("ascii")
