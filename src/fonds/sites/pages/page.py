"""A page as a crawl sees it: its tree, and every link that its markup shows.

What a form offers that can be asked for by an address alone.

Addresses that stand in scripts: data that a page carries, literals in its handlers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from threading import local
from types import MappingProxyType
from typing import Any, Final, Literal
from urllib.parse import urlencode, urljoin, urlsplit, urlunsplit

from lxml import etree, html

from fonds.errors import MalformedError, WrongContentError
from fonds.normalize.encodings import decode, without_controls
from fonds.normalize.html import refuse_other_files
from fonds.sites.pages.urls import canonical

_LONGEST: Final = 4 << 20
_MOST_LITERALS: Final = 200
_MOST_STRINGS: Final = 50_000
_DEEPEST: Final = 40

_ASSIGNED: Final = re.compile(r"(?:=|\(|:|return)\s*(?=[\[{])|^\s*(?=[\[{])")
_QUOTED: Final = re.compile(r"\"((?:[^\"\\\n]|\\.){1,2000})\"|'((?:[^'\\\n]|\\.){1,2000})'")
_GOES: Final = re.compile(
    r"(?:location(?:\.href)?\s*=|(?:location\.(?:assign|replace)|window\.open|\bopen)\s*\()\s*"
    r"(?:\"([^\"\n]{1,2000})\"|'([^'\n]{1,2000})')"
)
_ADDRESS: Final = re.compile(
    r"https?://\S+|/(?!/)[^\s<>{}]*|\.{0,2}/?(?:[\w%~.-]+/)*[\w%~().-]+\.(?:pdf|s?html?|php|aspx?|jsp|do|cgi)"
    r"(?:\?\S*)?|\?[\w%.-]+=\S*|[\w%./-]+\?[\w%.-]+=\S*",
    re.IGNORECASE,
)
_PDF: Final = re.compile(r"\.pdf(?:$|[?#;&])", re.IGNORECASE)
_ADDRESS_KEY: Final = re.compile(
    r"(?:.*[_-])?(?:url|uri|href|link|path|file|pdf|download|src|document|attachment)s?",
    re.IGNORECASE,
)
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, kw_only=True, slots=True)
class Datum:
    """An address in data, with the plain values that stand beside and above it."""

    address: str
    fields: Mapping[str, str] = field(default_factory=dict)


def addresses_in(source: str, *, is_json: bool) -> Iterator[Datum]:
    """The addresses in the data of a script, in their order, each once."""
    seen: set[str] = set()
    values = list(_values(source[:_LONGEST], is_json=is_json))
    for value in values:
        for datum in _walk(value):
            if datum.address not in seen and len(seen) < _MOST_STRINGS:
                seen.add(datum.address)
                yield datum
    if is_json:
        return
    # What is no JSON, such as {name: 'x'}, still shows its PDFs.
    for quoted in _QUOTED.finditer(source[:_LONGEST]):
        text = _unescaped(quoted[1] or quoted[2])
        if _PDF.search(text) and _ADDRESS.fullmatch(text) and text not in seen:
            seen.add(text)
            yield Datum(address=text)


def _unescaped(literal: str) -> str:
    try:
        return str(json.loads(f'"{literal.replace(chr(34), "")}"'))
    except ValueError:
        return literal.replace("\\/", "/")


def destinations(handler: str) -> list[str]:
    """Where an event handler, or an address that is a script, leads to by its own words."""
    handler = handler[:4096]
    found = [one or two for one, two in _GOES.findall(handler)]
    if found:
        return found
    literals = [one or two for one, two in _QUOTED.findall(handler)]
    return [text for text in literals if is_address(text)]


def is_address(text: str) -> bool:
    """Whether a literal reads like an address and not like a word."""
    return len(text) > 1 and bool(_ADDRESS.fullmatch(text))


def _values(source: str, *, is_json: bool) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    if is_json:
        try:
            yield decoder.decode(source)
        except (ValueError, RecursionError):
            return
        return
    position = 0
    for _ in range(_MOST_LITERALS):
        start = _ASSIGNED.search(source, position)
        if start is None:
            return
        try:
            value, position = decoder.raw_decode(source, start.end())
        except (ValueError, RecursionError):
            position = start.end() + 1
            continue
        yield value


def _walk(value: Any) -> Iterator[Datum]:
    """Without recursion: data may be nested as deeply as its writer likes."""
    waiting: list[tuple[Any, str, dict[str, str], int]] = [(value, "", {}, 0)]
    while waiting:
        here, key, above, depth = waiting.pop()
        if isinstance(here, str):
            if _is_listed(key, here):
                yield Datum(address=here, fields=above)
        elif depth < _DEEPEST and isinstance(here, dict):
            fields = above | _plain(here)
            waiting += [(here[name], str(name), fields, depth + 1) for name in reversed(here)]
        elif depth < _DEEPEST and isinstance(here, list):
            waiting += [(each, key, above, depth + 1) for each in reversed(here)]


def _is_listed(key: str, text: str) -> bool:
    if not is_address(text):
        return False
    return bool(_PDF.search(text) or _ADDRESS_KEY.fullmatch(_CAMEL.sub("_", key)))


def _plain(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        str(name).lower(): str(value)[:300]
        for name, value in row.items()
        if isinstance(value, (str, int)) and not isinstance(value, bool)
    }


_MOST: Final = 200
_FREE: Final = frozenset(
    {
        "",
        "text",
        "search",
        "email",
        "tel",
        "url",
        "number",
        "date",
        "password",
        "file",
        "month",
        "range",
        "datetime-local",
    }
)
_SILENT: Final = frozenset({"button", "reset", "image", "submit"})

Choice = tuple[str, str, str]
"""Name, value, and what a reader sees of it."""


def offered(element: Any, base: str) -> Iterator[tuple[str, str]]:
    """Addresses and their texts: each choice a form leaves, each place a menu jumps to."""
    if element.tag == "select":
        yield from _jumps(element)
    elif (element.get("method") or "get").lower().strip() == "get":
        yield from _asked(element, base)


def _jumps(select: Any) -> Iterator[tuple[str, str]]:
    for option in select.iter("option"):
        value = (option.get("value") or "").strip()
        if is_address(value):
            yield value, option.text_content()


def _asked(form: Any, base: str) -> Iterator[tuple[str, str]]:
    fields = _fields(form)
    if fields is None or not any(len(choices) > 1 for choices in fields):
        return
    parts = urlsplit(form.get("action") or base)
    for chosen in islice(product(*fields), _MOST):
        query = urlencode([(name, value) for name, value, _ in chosen if name])
        told = " ".join(text for _, _, text in chosen if text)
        yield urlunsplit(parts._replace(query=query, fragment="")), told


def _fields(form: Any) -> list[list[Choice]] | None:
    """The choices of each field; None where a reader would have to write something."""
    fields: list[list[Choice]] = []
    radios: dict[str, list[Choice]] = {}
    for control in form.iter("input", "select", "textarea"):
        name = control.get("name") or ""
        kind = (control.get("type") or "").lower() if control.tag == "input" else control.tag
        if kind in _SILENT or not name:
            continue
        if kind in _FREE or kind == "textarea":
            return None
        if kind == "select":
            fields.append(_options(control, name))
        elif kind == "radio":
            radios.setdefault(name, []).append(
                (name, control.get("value") or "on", _label(control))
            )
        elif kind == "hidden" or control.get("checked") is not None:
            fields.append([(name, control.get("value") or "", "")])
    return [choices for choices in (*fields, *radios.values()) if choices]


def _options(select: Any, name: str) -> list[Choice]:
    found = []
    for option in select.iter("option"):
        text = option.text_content().strip()
        value = option.get("value")
        found.append((name, text if value is None else value, text))
    # The empty one says "please choose"; it matters only where it is all there is.
    return [choice for choice in found if choice[1]] or found


def _label(control: Any) -> str:
    around = next(control.iterancestors("label"), None)
    if around is not None:
        return str(around.text_content()).strip()
    return (control.tail or "").strip()


Kind = Literal["anchor", "frame", "form", "script", "data", "meta"]

_TAG: Final = re.compile(r"<[a-zA-Z!][^>]*>")
_XML: Final = re.compile(
    r"\s*<\?xml[^>]*\?>\s*(?:<!--.*?-->\s*)*(?:<!DOCTYPE\s+(\w+)|<([\w:.-]+))", re.DOTALL
)
_DECLARATION: Final = re.compile(r"^\s*<\?xml[^>]*\?>")
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff\ufffe\uffff]")
_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_HTML_TYPES: Final = re.compile(
    r"text/(?:html|plain|xml)|application/(?:xhtml\+xml|xml|octet-stream|x-httpd-php)|",
    re.IGNORECASE,
)
# Pages by hand open a <font> for each line and close none; each would stand inside the last.
_PHRASES: Final = re.compile(
    r"</?(?:font|b|i|u|s|big|small|center|strong|em|span|tt|nobr)(?:\s[^>]*)?>", re.IGNORECASE
)
_REFRESH: Final = re.compile(
    r"\s*[\d.]*\s*[;,]\s*(?:url\s*=\s*)?[\"']?\s*([^\"'\s]+)", re.IGNORECASE
)
_DATA_NAME: Final = re.compile(
    r"data-(?:.*[_-])?(?:href|url|uri|src|file|link|pdf|download|path|next|more|target|document)"
    r"(?:[_-].*)?",
    re.IGNORECASE,
)
_PICTURE: Final = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|ico|avif)(?:[?#]|$)", re.IGNORECASE)
_HANDLERS: Final = ("onclick", "onmousedown", "onkeypress", "ondblclick")
_MOST_LINKS: Final = 50_000
_LONGEST_ADDRESS: Final = 4096
_NOWHERE: Final = re.compile(r"(?:mailto|tel|javascript|data|about|blob|file|ftp):", re.IGNORECASE)
_LONGEST_TEXT: Final = 500
_NO_FIELDS: Final[Mapping[str, str]] = MappingProxyType({})
_BREAKS: Final = re.compile(r"[\t\r\n]")
_own: Final = local()


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """An address that a page leads to."""

    url: str
    """Absolute and canonical."""
    text: str
    """What a reader sees of it, white space folded."""
    element: Any
    """Where it stands; None where it came from a script."""
    kind: Kind
    script: Any = None
    """The script element that holds it."""
    fields: Mapping[str, str] = field(default_factory=lambda: _NO_FIELDS)
    """The values that stand beside it in a script's data."""


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page that was fetched and read."""

    url: str
    """The final address, after redirects."""
    tree: Any
    text: str
    """The decoded markup."""
    encoding: str = "utf-8"
    elements: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)
    """Of the tree, in order. lxml makes each anew whenever it is met, unless somebody holds it."""
    _found: list[Link] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.elements.extend(self.tree.iter(etree.Element))

    def links(self) -> list[Link]:
        """Every link that the markup shows, in the order of the document."""
        if not self._found:
            self._found.extend(_LinkReader(self).read())
        return list(self._found)

    def title(self) -> str:
        """What the page calls itself."""
        for tag in ("title", "h1"):
            for element in self.tree.iter(tag):
                if told := folded(element.text_content()):
                    return told
        return ""


def read_page(data: bytes, url: str, media_type: str | None = None) -> WebPage:
    """The page that some bytes are; WrongContentError for what is no HTML."""
    media_type = media_type or ""
    if not _HTML_TYPES.fullmatch(media_type.partition(";")[0].strip()):
        raise WrongContentError(f"{url} is {media_type}, not a page")
    refuse_other_files(data, "HTML")
    named = _CHARSET.search(media_type)
    decoded = decode(data, declared=named[1] if named else None)
    text, _ = without_controls(_UNSTORABLE.sub("", decoded.text))
    if not _TAG.search(text):
        raise WrongContentError(f"{url} is no HTML: it holds no tag")
    if (xml := _XML.match(text)) and "html" not in (xml[1] or xml[2]).lower():
        raise WrongContentError(f"{url} is XML: its root element is <{xml[1] or xml[2]}>")
    encoding = "utf-8" if decoded.encoding in {"mixed", "ascii"} else decoded.encoding
    return WebPage(url, _tree(_DECLARATION.sub("", text, count=1)), text, encoding)


def folded(text: str) -> str:
    """A text on one line, cut where no reader would read on."""
    return " ".join(text[: 8 * _LONGEST_TEXT].split())[:_LONGEST_TEXT]


def _tree(text: str) -> Any:
    root, too_deep = _parsed(text)
    if too_deep:
        root, _ = _parsed(_PHRASES.sub("", text))
    return root


def _parsed(text: str) -> tuple[Any, bool]:
    parser = _parser()
    try:
        root = html.document_fromstring(text.encode(), parser=parser, ensure_head_body=False)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError) as error:
        raise MalformedError(f"not readable as HTML: {error}") from None
    return root, any("depth" in entry.message for entry in parser.error_log)


def _parser() -> Any:
    """The parser of this thread: to make one takes half as long as to parse a page."""
    if not hasattr(_own, "parser"):
        _own.parser = html.HTMLParser(
            encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True
        )
    return _own.parser


class _LinkReader:
    """Collects the links of one page."""

    def __init__(self, page: WebPage) -> None:
        self._page = page
        self._base = _base(page)
        self._links: list[Link] = []
        self._seen: set[tuple[str, Any]] = set()

    def read(self) -> list[Link]:
        for element in self._page.elements:
            if len(self._links) >= _MOST_LINKS:
                break
            tag = element.tag
            if tag in {"a", "area", "link"}:
                self._anchor(element)
            elif tag in {"frame", "iframe", "embed", "object"}:
                self._frame(element)
            elif tag in {"form", "select"}:
                for address, told in offered(element, self._base):
                    self._add(address, folded(told), element, "form")
            elif tag == "script":
                self._script(element)
            elif tag == "meta":
                self._meta(element)
            self._attributes(element)
        return self._links

    def _anchor(self, element: Any) -> None:
        href = (element.get("href") or "").strip()
        if element.tag == "link":
            if "next" in (element.get("rel") or "").lower().split():
                self._add(href, "next", element, "meta")
        elif href.lower().startswith("javascript:"):
            for address in destinations(href):
                self._add(address, told_by(element), element, "anchor")
        elif href and not href.startswith("#"):
            self._add(href, told_by(element), element, "anchor")

    def _frame(self, element: Any) -> None:
        source = element.get("data" if element.tag == "object" else "src")
        if source:
            told = element.get("title") or element.get("name") or ""
            self._add(source, folded(told), element, "frame")

    def _script(self, element: Any) -> None:
        kind = (element.get("type") or "").lower()
        for datum in addresses_in(element.text or "", is_json="json" in kind):
            told = next(
                (datum.fields[key] for key in ("title", "name", "label") if key in datum.fields), ""
            )
            self._add(
                datum.address, folded(told), None, "script", script=element, fields=datum.fields
            )

    def _meta(self, element: Any) -> None:
        if (element.get("http-equiv") or "").lower() == "refresh":
            found = _REFRESH.match(element.get("content") or "")
            if found:
                self._add(found[1], "", element, "meta")

    def _attributes(self, element: Any) -> None:
        for name, value in element.attrib.items():
            if name in _HANDLERS:
                for address in destinations(value):
                    self._add(address, told_by(element), element, "script")
            elif (
                name.startswith("data-")
                and _DATA_NAME.fullmatch(name)
                and is_address(value)
                and not _PICTURE.search(value)
            ):
                self._add(value, told_by(element), element, "data")

    def _add(self, address: str, text: str, element: Any, kind: Kind, **more: Any) -> None:
        url = absolute(address, self._base, encoding=self._page.encoding)
        if url is None or (url, element) in self._seen:
            return
        self._seen.add((url, element))
        self._links.append(Link(url=url, text=text, element=element, kind=kind, **more))


def absolute(address: str, base: str, *, encoding: str = "utf-8") -> str | None:
    """The canonical form of an address that stands on a page; None for what leads nowhere."""
    # Browsers drop line breaks and tabs inside an address, and read backslashes as slashes.
    address = _BREAKS.sub("", address).strip()
    if not address or len(address) > _LONGEST_ADDRESS or _NOWHERE.match(address):
        return None
    try:
        return canonical(_joined(base, address.replace("\\", "/")), encoding=encoding)
    except ValueError:
        return None


def _joined(base: str, address: str) -> str:
    if address.startswith("/") and not address.startswith("//"):
        return "/".join(base.split("/", 3)[:3]) + address
    return urljoin(base, address)


def told_by(element: Any) -> str:
    """What a reader sees of an element; of a picture its description."""
    if told := folded(element.text_content()):
        return told
    for each in (element, *element.iter("img", "input", "svg", "button")):
        for name in ("alt", "title", "aria-label", "value"):
            if told := folded(each.get(name) or ""):
                return told
    return ""


def _base(page: WebPage) -> str:
    for base in page.tree.iter("base"):
        if href := (base.get("href") or "").strip():
            return absolute(href, page.url) or page.url
    return page.url


def by_element(links: Sequence[Link]) -> dict[Any, list[Link]]:
    """Links by the element, or the script, that holds them."""
    held: dict[Any, list[Link]] = {}
    for link in links:
        held.setdefault(link.script if link.element is None else link.element, []).append(link)
    return held
