"""A page: its tree, and every link in its markup, its forms and its scripts.

Of a form, each choice that a GET request can make; of a script, the addresses in its data and in
the literals of its handlers.
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

_MAX_SCRIPT: Final = 4 << 20
_MAX_LITERALS: Final = 200
_MAX_STRINGS: Final = 50_000
_MAX_DEPTH: Final = 40

_ASSIGNED: Final = re.compile(r"(?:=|\(|:|return)\s*(?=[\[{])|^\s*(?=[\[{])")
_QUOTED: Final = re.compile(r"\"((?:[^\"\\\n]|\\.){1,2000})\"|'((?:[^'\\\n]|\\.){1,2000})'")
_NAVIGATION: Final = re.compile(
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
    """An address in data, with the strings and numbers of the objects that contain it."""

    address: str
    fields: Mapping[str, str] = field(default_factory=dict)


def addresses_in(source: str, *, is_json: bool) -> Iterator[Datum]:
    """The addresses in the data of a script, in order, each once."""
    addresses: set[str] = set()
    values = list(_values(source[:_MAX_SCRIPT], is_json=is_json))
    for value in values:
        for datum in _walk(value):
            if datum.address not in addresses and len(addresses) < _MAX_STRINGS:
                addresses.add(datum.address)
                yield datum
    if is_json:
        return
    # Literals that are not JSON, such as {name: 'x'}, may contain PDFs too.
    for quoted in _QUOTED.finditer(source[:_MAX_SCRIPT]):
        text = _unescaped(quoted[1] or quoted[2])
        if _PDF.search(text) and _ADDRESS.fullmatch(text) and text not in addresses:
            addresses.add(text)
            yield Datum(address=text)


def _unescaped(literal: str) -> str:
    try:
        return str(json.loads(f'"{literal.replace(chr(34), "")}"'))
    except ValueError:
        return literal.replace("\\/", "/")


def destinations(handler: str) -> list[str]:
    """The addresses in an event handler, or in an address that is a script."""
    handler = handler[:4096]
    targets = [double or single for double, single in _NAVIGATION.findall(handler)]
    if targets:
        return targets
    literals = [double or single for double, single in _QUOTED.findall(handler)]
    return [text for text in literals if is_address(text)]


def is_address(text: str) -> bool:
    """Whether a literal looks like an address and not like a word."""
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
    for _ in range(_MAX_LITERALS):
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
    """Without recursion, as data may be nested very deeply."""
    waiting: list[tuple[Any, str, dict[str, str], int]] = [(value, "", {}, 0)]
    while waiting:
        node, key, above, depth = waiting.pop()
        if isinstance(node, str):
            if _is_listed(key, node):
                yield Datum(address=node, fields=above)
        elif depth < _MAX_DEPTH and isinstance(node, dict):
            fields = above | _scalars(node)
            waiting += [(node[name], str(name), fields, depth + 1) for name in reversed(node)]
        elif depth < _MAX_DEPTH and isinstance(node, list):
            waiting += [(item, key, above, depth + 1) for item in reversed(node)]


def _is_listed(key: str, text: str) -> bool:
    if not is_address(text):
        return False
    return bool(_PDF.search(text) or _ADDRESS_KEY.fullmatch(_CAMEL.sub("_", key)))


def _scalars(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        str(name).lower(): str(value)[:300]
        for name, value in row.items()
        if isinstance(value, (str, int)) and not isinstance(value, bool)
    }


_MAX_CHOICES: Final = 200
_TEXT_INPUTS: Final = frozenset(
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
_BUTTONS: Final = frozenset({"button", "reset", "image", "submit"})

Choice = tuple[str, str, str]
"""The name, value and visible text of a choice."""


def form_addresses(element: Any, base: str) -> Iterator[tuple[str, str]]:
    """Addresses and their texts: each choice of a form, each target of a menu."""
    if element.tag == "select":
        yield from _menu_targets(element)
    elif (element.get("method") or "get").lower().strip() == "get":
        yield from _get_requests(element, base)


def _menu_targets(select: Any) -> Iterator[tuple[str, str]]:
    for option in select.iter("option"):
        value = (option.get("value") or "").strip()
        if is_address(value):
            yield value, option.text_content()


def _get_requests(form: Any, base: str) -> Iterator[tuple[str, str]]:
    fields = _fields(form)
    if fields is None or not any(len(choices) > 1 for choices in fields):
        return
    parts = urlsplit(form.get("action") or base)
    for chosen in islice(product(*fields), _MAX_CHOICES):
        query = urlencode([(name, value) for name, value, _ in chosen if name])
        text = " ".join(label for _, _, label in chosen if label)
        yield urlunsplit(parts._replace(query=query, fragment="")), text


def _fields(form: Any) -> list[list[Choice]] | None:
    """The choices of each field; None if a user would have to enter a text."""
    fields: list[list[Choice]] = []
    radios: dict[str, list[Choice]] = {}
    for control in form.iter("input", "select", "textarea"):
        name = control.get("name") or ""
        kind = (control.get("type") or "").lower() if control.tag == "input" else control.tag
        if kind in _BUTTONS or not name:
            continue
        if kind in _TEXT_INPUTS or kind == "textarea":
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
    choices = []
    for option in select.iter("option"):
        text = option.text_content().strip()
        value = option.get("value")
        choices.append((name, text if value is None else value, text))
    # The empty one is "please choose"; it counts only if there is no other.
    return [choice for choice in choices if choice[1]] or choices


def _label(control: Any) -> str:
    label = next(control.iterancestors("label"), None)
    if label is not None:
        return str(label.text_content()).strip()
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
# Handwritten pages open a <font> for each line and close none: each would be inside the previous.
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
_MAX_LINKS: Final = 50_000
_MAX_ADDRESS: Final = 4096
_NOT_WEB: Final = re.compile(r"(?:mailto|tel|javascript|data|about|blob|file|ftp):", re.IGNORECASE)
_MAX_TEXT: Final = 500
_NO_FIELDS: Final[Mapping[str, str]] = MappingProxyType({})
_BREAKS: Final = re.compile(r"[\t\r\n]")
_thread: Final = local()


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """An address that a page links to."""

    url: str
    """Absolute and canonical."""
    text: str
    """The visible text, on one line."""
    element: Any
    """The element of the link; None if it is in a script."""
    kind: Kind
    script: Any = None
    """The script element that contains it."""
    fields: Mapping[str, str] = field(default_factory=lambda: _NO_FIELDS)
    """The values of the object that contains it in a script's data."""


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
    """Of the tree, in order. lxml creates elements again unless they are referenced."""
    _links: list[Link] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.elements.extend(self.tree.iter(etree.Element))

    def links(self) -> list[Link]:
        """Every link, in the order of the document."""
        if not self._links:
            self._links.extend(_LinkReader(self).read())
        return list(self._links)

    def title(self) -> str:
        """The title, or the first heading."""
        for tag in ("title", "h1"):
            for element in self.tree.iter(tag):
                if text := single_line(element.text_content()):
                    return text
        return ""


def read_page(data: bytes, url: str, media_type: str | None = None) -> WebPage:
    """Parse a page; WrongContentError if it is not HTML."""
    media_type = media_type or ""
    if not _HTML_TYPES.fullmatch(media_type.partition(";")[0].strip()):
        raise WrongContentError(f"{url} is {media_type}, not a page")
    refuse_other_files(data, "HTML")
    charset = _CHARSET.search(media_type)
    decoded = decode(data, declared=charset[1] if charset else None)
    text, _ = without_controls(_UNSTORABLE.sub("", decoded.text))
    if not _TAG.search(text):
        raise WrongContentError(f"{url} is not HTML: it has no tag")
    if (xml := _XML.match(text)) and "html" not in (xml[1] or xml[2]).lower():
        raise WrongContentError(f"{url} is XML: its root element is <{xml[1] or xml[2]}>")
    encoding = "utf-8" if decoded.encoding in {"mixed", "ascii"} else decoded.encoding
    return WebPage(url, _tree(_DECLARATION.sub("", text, count=1)), text, encoding)


def single_line(text: str) -> str:
    """A text on one line, with at most 500 characters."""
    return " ".join(text[: 8 * _MAX_TEXT].split())[:_MAX_TEXT]


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
    """The parser of this thread: creating one takes half as long as parsing a page."""
    if not hasattr(_thread, "parser"):
        _thread.parser = html.HTMLParser(
            encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True
        )
    return _thread.parser


class _LinkReader:
    """Collects the links of one page."""

    def __init__(self, page: WebPage) -> None:
        self._page = page
        self._base = _base(page)
        self._links: list[Link] = []
        self._existing: set[tuple[str, Any]] = set()

    def read(self) -> list[Link]:
        for element in self._page.elements:
            if len(self._links) >= _MAX_LINKS:
                break
            tag = element.tag
            if tag in {"a", "area", "link"}:
                self._anchor(element)
            elif tag in {"frame", "iframe", "embed", "object"}:
                self._frame(element)
            elif tag in {"form", "select"}:
                for address, text in form_addresses(element, self._base):
                    self._add(address, single_line(text), element, "form")
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
                self._add(address, visible_text(element), element, "anchor")
        elif href and not href.startswith("#"):
            self._add(href, visible_text(element), element, "anchor")

    def _frame(self, element: Any) -> None:
        source = element.get("data" if element.tag == "object" else "src")
        if source:
            title = element.get("title") or element.get("name") or ""
            self._add(source, single_line(title), element, "frame")

    def _script(self, element: Any) -> None:
        kind = (element.get("type") or "").lower()
        for datum in addresses_in(element.text or "", is_json="json" in kind):
            title = next(
                (datum.fields[key] for key in ("title", "name", "label") if key in datum.fields), ""
            )
            self._add(
                datum.address,
                single_line(title),
                None,
                "script",
                script=element,
                fields=datum.fields,
            )

    def _meta(self, element: Any) -> None:
        if (element.get("http-equiv") or "").lower() == "refresh":
            target = _REFRESH.match(element.get("content") or "")
            if target:
                self._add(target[1], "", element, "meta")

    def _attributes(self, element: Any) -> None:
        for name, value in element.attrib.items():
            if name in _HANDLERS:
                for address in destinations(value):
                    self._add(address, visible_text(element), element, "script")
            elif (
                name.startswith("data-")
                and _DATA_NAME.fullmatch(name)
                and is_address(value)
                and not _PICTURE.search(value)
            ):
                self._add(value, visible_text(element), element, "data")

    def _add(self, address: str, text: str, element: Any, kind: Kind, **fields: Any) -> None:
        url = absolute(address, self._base, encoding=self._page.encoding)
        if url is None or (url, element) in self._existing:
            return
        self._existing.add((url, element))
        self._links.append(Link(url=url, text=text, element=element, kind=kind, **fields))


def absolute(address: str, base: str, *, encoding: str = "utf-8") -> str | None:
    """The canonical form of an address on a page; None if it is not a web address."""
    # Browsers drop line breaks and tabs inside an address, and read backslashes as slashes.
    address = _BREAKS.sub("", address).strip()
    if not address or len(address) > _MAX_ADDRESS or _NOT_WEB.match(address):
        return None
    try:
        return canonical(_joined(base, address.replace("\\", "/")), encoding=encoding)
    except ValueError:
        return None


def _joined(base: str, address: str) -> str:
    if address.startswith("/") and not address.startswith("//"):
        return "/".join(base.split("/", 3)[:3]) + address
    return urljoin(base, address)


def visible_text(element: Any) -> str:
    """The visible text of an element, or the description of its picture."""
    if text := single_line(element.text_content()):
        return text
    for each in (element, *element.iter("img", "input", "svg", "button")):
        for name in ("alt", "title", "aria-label", "value"):
            if text := single_line(each.get(name) or ""):
                return text
    return ""


def _base(page: WebPage) -> str:
    for base in page.tree.iter("base"):
        if href := (base.get("href") or "").strip():
            return absolute(href, page.url) or page.url
    return page.url


def by_element(links: Sequence[Link]) -> dict[Any, list[Link]]:
    """Links by the element, or the script, that contains them."""
    links_by_element: dict[Any, list[Link]] = {}
    for link in links:
        element = link.script if link.element is None else link.element
        links_by_element.setdefault(element, []).append(link)
    return links_by_element
