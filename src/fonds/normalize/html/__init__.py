"""HTML pages and fragments as Markdown: the whole body, without scripts and boilerplate.

What is left out as boilerplate, such as menus and feet, is listed with its reason.
"""

from __future__ import annotations

import re
from typing import Any, Final

from lxml import etree

from fonds.errors import MalformedError, WrongContentError
from fonds.model import BaseNormalizer, NormalizedBody
from fonds.normalize.encodings import decode, without_controls
from fonds.normalize.html.boilerplate import find_boilerplate
from fonds.normalize.html.captions import mark_headings
from fonds.normalize.html.walker import HtmlWalker, page_address

_SILENT: Final = ("script", "style", "head", "title", "meta", "link", "template", "base")
_TAG: Final = re.compile(r"<[A-Za-z!?/]")
_ANY_TAG: Final = re.compile(r"</?([A-Za-z][A-Za-z0-9:-]*)[^<>]*>")
_XML: Final = re.compile(
    r"\s*<\?xml[^>]*>\s*+(?:<!--(?:(?!-->).)*+-->\s*+)*+(?:<!DOCTYPE\s+(\w+)|<([\w:]+))", re.DOTALL
)
# References to control characters, which lxml can read into a tree but not write.
_CONTROL: Final = re.compile(
    r"&#(?:0*(?:[0-8]|1[124-9]|2\d|3[01]|127|6553[45])(?!\d)"
    r"|[xX]0*(?:[0-8bBcCeEfF]|1[0-9a-fA-F]|7[fF]|[fF]{3}[eEfF])(?![0-9a-fA-F]));?"
)
_DECLARATION: Final = re.compile(r"^\s*<\?xml[^>]*>")
_FLAT: Final = frozenset({"script", "style", "p", "br", "h1", "h2", "h3", "h4", "h5", "h6"})
_OTHER: Final = (
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip-compressed"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"{\\rtf", "an RTF file"),
    (b"\xd0\xcf\x11\xe0", "an old Office file"),
)


class Html(BaseNormalizer):
    """The normalizer `html_v1`."""

    name = "html_v1"
    version = "1.3.0"
    accepts_format = "html"

    def to_markdown(self, data: bytes, source_hint: str | None = None) -> NormalizedBody:
        """The page's text as Markdown; a hint that is an address completes its links."""
        root, address, warnings = read_html(data, source_hint)
        content = self._content(root)
        _lift_title(content)
        boilerplate = find_boilerplate(content)
        mark_headings(content)
        text = HtmlWalker(content, address, boilerplate).walk(warnings)
        if not any(character.isalnum() for character in text.markdown):
            raise WrongContentError(
                "the page contains no text outside scripts and navigation; "
                "it may be built by a script in the browser"
            )
        return text

    def _content(self, root: Any) -> Any:
        return root


class HtmlArticle(Html):
    """The normalizer `html_article_v1`: of a page that marks its one article, only that.

    Sites of one office share heads, menus and feet. Only what the page itself marks as its content
    is taken, and nothing is guessed; a page that marks none, or several, is taken whole.
    """

    name = "html_article_v1"

    def _content(self, root: Any) -> Any:
        for name in ("article", "main"):
            candidates = list(root.iter(name))
            if len(candidates) == 1 and any(map(str.strip, candidates[0].itertext())):
                candidates[0].tail = None
                candidates[0].getparent().remove(candidates[0])
                return candidates[0]
        return root


def refuse_other_files(data: bytes, expected: str) -> None:
    """Raise for an empty file and for well-known formats that are not text."""
    start = data[:64].lstrip()
    for magic, kind in _OTHER:
        if start.startswith(magic):
            raise WrongContentError(f"the file is {kind}, not {expected}")
    if not data.strip():
        raise MalformedError("the file is empty")


def read_html(data: bytes, hint: str | None = None) -> tuple[Any, str | None, tuple[str, ...]]:
    """A page without its scripts, its address, and warnings of what was changed."""
    refuse_other_files(data, "HTML")
    decoded = decode(data)
    text, removed = without_controls(decoded.text)
    if not _TAG.search(text):
        raise WrongContentError("not HTML: the file contains no tag")
    if (xml := _XML.match(text)) and "html" not in (xml[1] or xml[2]).lower():
        raise WrongContentError(f"XML instead of HTML: the root element is <{xml[1] or xml[2]}>")
    root, flattened = _parsed(_CONTROL.sub("", _DECLARATION.sub("", text, count=1)))
    address = page_address(root, hint)
    _open_head(root)
    etree.strip_elements(root, *_SILENT, with_tail=False)
    navigation = _open_navigation(root)
    return root, address, (*decoded.warnings, *removed, *flattened, *navigation)


def _parsed(text: str) -> tuple[Any, tuple[str, ...]]:
    root, too_deep = _tree(text)
    if not too_deep:
        return root, ()
    root, too_deep = _tree(_flat(text))
    if too_deep:
        raise MalformedError("the page's elements are nested too deeply to be read")
    return root, ("nested too deeply: only paragraphs and headings are kept",)


def _tree(text: str) -> tuple[Any, bool]:
    parser = etree.HTMLParser(
        encoding="utf-8",
        huge_tree=True,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        # A text with surrogates cannot come from `decode`, so this encoding never fails.
        root = etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError as error:
        raise MalformedError(f"not readable as HTML: {error.msg}") from None
    if root is None:
        raise MalformedError("the file contains no element")
    too_deep = any("depth" in entry.message for entry in parser.error_log.filter_from_fatals())
    return root, too_deep


def _flat(text: str) -> str:
    return _ANY_TAG.sub(lambda tag: tag[0] if tag[1].lower() in _FLAT else "\n", text)


def _open_head(root: Any) -> None:
    # An unknown element in the head makes the parser read on there, past where the body begins.
    for head in list(root.iter("head")):
        if next(head.iter("p", "div", "table", "h1", "h2", "ul", "ol", "body"), None) is not None:
            head.tag = "div"


def _lift_title(root: Any) -> None:
    """Put the title of a page before the navigation that holds it, if there is no other."""
    titles = list(root.iter("h1"))
    if len(titles) != 1 or (titles[0].tail or "").strip():
        return
    for nav in titles[0].iterancestors("nav"):
        nav.addprevious(titles[0])


def _open_navigation(root: Any) -> tuple[str, ...]:
    retained = 0
    for nav in list(root.iter("nav")):
        # A nav that was never closed swallows the page behind it.
        if next(nav.iterdescendants("main", "article", "footer"), None) is not None:
            nav.tag = "div"
            retained += 1
    return ("a navigation element holds the page itself and is kept",) if retained else ()
