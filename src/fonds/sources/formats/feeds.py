"""RSS 2.0, RSS 1.0 and Atom, read alike.

Quirks of publishers that are dealt with here:
- Texts escaped twice: `T&amp;amp;E` in the file is `T&E` to a reader.
- `EST` the whole year round: the clock on the wall in Washington is meant, summer or not.
- Dates without a zone: offices in Washington write them, so the same clock is meant.
- Names in lower case (`pubdate`), links relative to the channel's, spaces in addresses.
- White space before the XML declaration, control characters pasted from word processors.
- An HTML page, answered with 200 where the feed used to be.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from email.utils import parsedate_tz
from typing import Any, Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

from lxml import etree

from fonds.errors import SuspiciousYieldError, WrongContentError
from fonds.sources.formats import xml
from fonds.sources.formats.days import WASHINGTON
from fonds.sources.formats.html import joined, text_of

_RSS_1: Final = "http://purl.org/rss/1.0/"
_ATOM: Final = "http://www.w3.org/2005/Atom"
_OLD_ATOM: Final = "http://purl.org/atom/ns#"
_DUBLIN_CORE: Final = "http://purl.org/dc/elements/1.1/"
_TERMS: Final = "http://purl.org/dc/terms/"
_CONTENT: Final = "http://purl.org/rss/1.0/modules/content/"
_ABOUT: Final = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about"
_OWN: Final = ("", _RSS_1, _ATOM, _OLD_ATOM)

"""The clock of offices that name none; a day of publication is a day there."""
_CLOCKS: Final = {
    name: ZoneInfo(zone)
    for zone, names in {
        "America/New_York": ("EST", "EDT", "ET"),
        "America/Chicago": ("CST", "CDT", "CT"),
        "America/Denver": ("MST", "MDT", "MT"),
        "America/Los_Angeles": ("PST", "PDT", "PT"),
    }.items()
    for name in names
}

_PAGE: Final = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_LOOKED_AT: Final = 1024
# Forbidden in XML 1.0; these bytes mean the same in every encoding that is let through.
_CONTROLS: Final = bytes(code for code in range(32) if code not in b"\t\n\r")
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_TAG: Final = re.compile(r"<(?:/?[A-Za-z][A-Za-z0-9]*[\s/>]|!--)")
_REFERENCE: Final = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_SILENT: Final = ("script", "style", "head", "template")
# RFC 822 puts the zone last, by name or as an offset.
_ZONE: Final = re.compile(r":\d\d\s*([A-Za-z]{1,4}|[-+]\d{2}:?\d{2})$")
_MAX_ESCAPES: Final = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedItem:
    """One entry of a feed; what it does not say is None."""

    title: str | None = None
    link: str | None = None
    """Absolute, where the feed itself tells what it is relative to."""
    guid: str | None = None
    """As written: an address, a path, `14637 at http://…`."""
    published: datetime | None = None
    """Aware, in the zone it was written in."""
    description: str | None = None
    """Plain text on one line."""
    html: str | None = None
    """The description, or the full content where there is one, as HTML or as it was written."""
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Feed:
    """A channel and its entries in the publisher's order."""

    title: str | None = None
    link: str | None = None
    """The page the feed belongs to."""
    items: tuple[FeedItem, ...] = ()


def read_feed(data: bytes) -> Feed:
    """The feed in these bytes; anything else is a named error."""
    if _PAGE.search(data[:_LOOKED_AT]):
        raise WrongContentError("an HTML page where a feed was expected")
    root = _without_namespace(xml.read(_cleaned(data), "rss", "RDF", "feed"))
    channel = _first(root, "channel")
    head = root if channel is None else channel
    link = _link(head, None)
    # RSS 1.0 puts the items beside the channel, the others inside it.
    entries = [*_all(head, "item", "entry"), *(_all(root, "item") if head is not root else ())]
    return Feed(title=_title(head), link=link, items=tuple(_item(entry, link) for entry in entries))


def read_date(text: str | None) -> datetime | None:
    """The moment a feed names in RFC 822 or ISO 8601; None where it names none.

    The four American clocks are taken by the wall: `EST` in July is daylight time. Without a zone
    the clock is Washington's.
    """
    line = " ".join((text or "").split())
    if not line:
        return None
    try:
        return _iso(line) or _rfc_822(line)
    except (ValueError, OverflowError):
        return None


def text_only(text: str | None) -> str | None:
    """The visible text of a text that may contain HTML: one line, unescaped as far as needed."""
    if text is None:
        return None
    visible = text if _TAG.search(text) else _unescaped(text)
    if _TAG.search(visible):
        visible = _unescaped(_without_tags(visible))
    return " ".join(visible.split()) or None


def to_params(item: FeedItem) -> dict[str, Any]:
    """An entry as the JSON that a task carries to `parse`; absent fields are left out."""
    fields = asdict(item) | {"published": item.published and item.published.isoformat()}
    return {
        name: list(value) if name == "categories" else value
        for name, value in fields.items()
        if value
    }


def from_params(params: Mapping[str, Any]) -> FeedItem:
    """The entry that `to_params` wrote."""
    published = params.get("published")
    return FeedItem(
        **{
            **params,
            "published": datetime.fromisoformat(published) if published else None,
            "categories": tuple(params.get("categories", ())),
        }
    )


def newest(items: Iterable[FeedItem]) -> str | None:
    """The moment of the newest entry, as a watermark; None where no entry has a date."""
    times = [item.published.astimezone(UTC) for item in items if item.published]
    return max(times).isoformat() if times else None


def check_reach(items: Iterable[FeedItem], previous_key: str | None, feed: str) -> None:
    """Raise for a feed that no longer reaches back to the newest entry of the run before."""
    times = [item.published for item in items if item.published]
    if previous_key and times and datetime.fromisoformat(previous_key) < min(times):
        raise SuspiciousYieldError(
            f"everything in {feed} is newer than what the last run saw, of {previous_key}; entries "
            "in between may have been missed: run this source more often"
        )


# Entries ----------------------------------------------------------------------------------


def _item(entry: Any, base: str | None) -> FeedItem:
    short = _markup(_first(entry, "description", "summary"))
    full = _markup(_first(entry, "encoded", within=(_CONTENT,))) or _markup(
        _first(entry, "content", within=(_ATOM, _OLD_ATOM))
    )
    return FeedItem(
        title=_title(entry),
        link=_link(entry, base),
        guid=_guid(entry),
        published=_published(entry),
        description=text_only(short or full),
        html=full or short,
        categories=tuple(dict.fromkeys(_categories(entry))),
    )


def _title(element: Any) -> str | None:
    title = _first(element, "title")
    if title is None:
        title = _first(element, "title", within=(_DUBLIN_CORE,))
    return text_only(_markup(title))


def _link(element: Any, base: str | None) -> str | None:
    stated = next(_addresses(element), None)
    if stated is None:
        guid = _first(element, "guid")
        guid_text = _markup(guid)
        is_address = guid is not None and (guid.get("isPermaLink") or "true").lower() == "true"
        stated = guid_text if guid_text and is_address and "://" in guid_text else None
    if stated is None:
        return None
    address = quote(_unescaped(stated), safe="%/:=&?~#+!$,;'@()*[]|")
    return joined(base, address) if base else address


def _addresses(element: Any) -> Iterator[str]:
    for link in _all(element, "link"):
        # Atom: <link rel="alternate" href="…"/>; RSS: <link>…</link>.
        address = link.get("href") or xml.whole_text(link)
        if address and (link.get("rel") or "alternate") == "alternate":
            yield address.strip()


def _guid(entry: Any) -> str | None:
    guid = _first(entry, "guid", "id")
    return (xml.whole_text(guid) if guid is not None else None) or entry.get(_ABOUT)


def _published(entry: Any) -> datetime | None:
    names = (("pubdate", _OWN), ("published", _OWN), ("issued", _OWN), ("date", (_DUBLIN_CORE,)))
    later = (("created", (_TERMS,)), ("updated", _OWN), ("modified", _OWN))
    elements = (_first(entry, name, within=within) for name, within in (*names, *later))
    times = (read_date(xml.whole_text(element)) for element in elements if element is not None)
    return next((time for time in times if time), None)


def _categories(entry: Any) -> Iterator[str]:
    for category in (*_all(entry, "category"), *_all(entry, "subject", within=(_DUBLIN_CORE,))):
        name = text_only(category.get("label") or category.get("term") or xml.whole_text(category))
        if name:
            yield name


def _first(element: Any, *names: str, within: Iterable[str] = _OWN) -> Any | None:
    return next(_all(element, *names, within=within), None)


def _all(element: Any, *names: str, within: Iterable[str] = _OWN) -> Iterator[Any]:
    # Extensions repeat the plain names (media:title, atom:link): the namespace decides.
    for child in element.iterchildren(etree.Element):
        name = etree.QName(child)
        if name.localname.lower() in names and (name.namespace or "") in within:
            yield child


def _markup(element: Any | None) -> str | None:
    """The content of an element, its own tags included."""
    if element is None:
        return None
    inner = [html.escape(element.text or "", quote=False) if len(element) else element.text or ""]
    inner += [etree.tostring(child, encoding="unicode") for child in element]
    return "".join(inner).strip() or None


# Texts ------------------------------------------------------------------------------------


def _cleaned(data: bytes) -> bytes:
    if data.startswith(_UTF_16):
        return data
    return data.translate(None, _CONTROLS).removeprefix(b"\xef\xbb\xbf").lstrip()


def _without_namespace(root: Any) -> Any:
    """The same tree; a few publishers give RSS 2.0, which has no namespace, one of their own."""
    own = etree.QName(root).namespace
    if xml.local_name(root) == "rss" and own:
        for element in root.iter(f"{{{own}}}*"):
            element.tag = xml.local_name(element)
    return root


def _unescaped(text: str) -> str:
    """The text without a second layer of escapes.

    That there is one is proven when every ampersand begins a character reference: a text that
    was escaped once may hold `&amp;` as its own words, but then its other ampersands are bare.
    """
    for _ in range(_MAX_ESCAPES):
        references = _REFERENCE.findall(text)
        if not references or len(references) != text.count("&"):
            break
        text = _REFERENCE.sub(lambda match: html.unescape(match[0]), text)
    return text


def _without_tags(markup: str) -> str:
    # A NUL would end the text early for the parser underneath.
    root = etree.fromstring(
        f"<div>{markup}</div>".replace("\0", ""),
        etree.HTMLParser(no_network=True, remove_comments=True, remove_pis=True, huge_tree=True),
    )
    if root is None:
        return ""
    etree.strip_elements(root, *_SILENT, with_tail=False)
    return text_of(root) or ""


# Dates ------------------------------------------------------------------------------------


def _iso(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=WASHINGTON)


def _rfc_822(text: str) -> datetime | None:
    parts = parsedate_tz(text if ":" in text else f"{text} 00:00:00")
    if parts is None:
        return None
    return datetime(*parts[:6], tzinfo=_zone(text, parts[9] or 0))


def _zone(text: str, offset: int) -> tzinfo:
    match = _ZONE.search(text)
    if match is None:
        return WASHINGTON
    # The standard library takes `EST` by the book, five hours behind even in July.
    return _CLOCKS.get(match[1].upper()) or timezone(timedelta(seconds=offset))
