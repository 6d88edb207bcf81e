"""A page as a crawl sees it: its tree, and every link that its markup shows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import local
from types import MappingProxyType
from typing import Any, Final, Literal
from urllib.parse import urljoin

from lxml import etree, html

from fonds.errors import MalformedError, WrongContentError
from fonds.normalize.encodings import decode, without_controls
from fonds.normalize.html import refuse_other_files
from fonds.sites.pages.addresses import canonical
from fonds.sites.pages.forms import offered
from fonds.sites.pages.scripts import addresses_in, destinations, is_address

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
class Page:
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
            self._found.extend(_Reader(self).read())
        return list(self._found)

    def title(self) -> str:
        """What the page calls itself."""
        for tag in ("title", "h1"):
            for element in self.tree.iter(tag):
                if told := folded(element.text_content()):
                    return told
        return ""


def read_page(data: bytes, url: str, media_type: str | None = None) -> Page:
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
    return Page(url, _tree(_DECLARATION.sub("", text, count=1)), text, encoding)


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


class _Reader:
    """Collects the links of one page."""

    def __init__(self, page: Page) -> None:
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


def _base(page: Page) -> str:
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
