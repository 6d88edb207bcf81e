"""XML records, read strictly: a page of HTML, another root or a broken file is a named error.

Also positions of elements in an XML file of any size: byte ranges, found in one streaming pass.
lxml gives no byte positions; expat does, and keeps only the chunk that it reads in memory.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final, Protocol
from xml.parsers import expat

from lxml import etree

from fonds.errors import MalformedError, WrongContentError
from fonds.normalize.safe_xml import parse_xml, refuse_unsafe

_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_DECLARATION: Final = re.compile(r"\A\s*<\?xml[^>]*\?>")


def read(data: bytes, *roots: str) -> Any:
    """The root element, which must be one of `roots` (local names) where any are given."""
    data = _as_utf_8(data)
    refuse_unsafe(data, outside_entities=True)
    root = parse_xml(data)
    if roots and local_name(root) not in roots:
        raise WrongContentError(f"expected {' or '.join(roots)}, found <{local_name(root)}>")
    return root


def local_name(element: Any) -> str:
    """The name of an element without its namespace."""
    return str(etree.QName(element).localname)


def without_namespaces(root: Any) -> Any:
    """The same tree with plain element names, for formats whose namespace says nothing."""
    for element in root.iter(etree.Element):
        element.tag = local_name(element)
    return root


def text(element: Any, path: str) -> str | None:
    """The text of the first element at a path, its children's included; None where blank."""
    child = element.find(path)
    return None if child is None else whole_text(child)


def required(element: Any, path: str) -> str:
    """The text at a path that must be there."""
    value = text(element, path)
    if value is None:
        raise MalformedError(f"<{local_name(element)}> has no {path}")
    return value


def texts(element: Any, path: str) -> list[str]:
    """The texts of all elements at a path, without blank ones."""
    return [value for item in element.findall(path) if (value := whole_text(item))]


def whole(element: Any, path: str) -> int | None:
    """The whole number at a path; None where blank."""
    value = text(element, path)
    if value is None:
        return None
    if not re.fullmatch(r"[-+]?[0-9]{1,15}", value):
        raise MalformedError(f"{path} should be a whole number and is {value[:60]!r}")
    return int(value)


def required_whole(element: Any, path: str) -> int:
    """The whole number at a path that must be there."""
    value = whole(element, path)
    if value is None:
        raise MalformedError(f"<{local_name(element)}> has no {path}")
    return value


def whole_text(element: Any) -> str | None:
    """All text below an element, white space folded; None where there is none."""
    return " ".join("".join(_strings(element)).split()) or None


def _strings(element: Any) -> Iterator[str]:
    return (str(string) for string in element.itertext(etree.Element))


def _as_utf_8(data: bytes) -> bytes:
    """Some publishers serve UTF-16, and some say so while they do not."""
    if not data.startswith(_UTF_16):
        return data
    try:
        decoded = data.decode("utf-16")
    except UnicodeDecodeError as error:
        raise MalformedError(f"not UTF-16: {error.reason}") from error
    return _DECLARATION.sub("", decoded).encode()


_CHUNK_SIZE: Final = 1 << 16
_TAG: Final = re.compile(rb"""<(?:[^"'>]++|"[^"]*+"|'[^']*+')*+>""")


class XmlHandler(Protocol):
    """Receives the elements of a file in order. Names are without prefixes."""

    def start(self, name: str, attributes: Mapping[str, str], offset: int) -> None:
        """An element begins; `offset` is that of its `<`."""
        ...

    def end(self, name: str, offset: int) -> None:
        """An element ends; `offset` is that of the byte after its `>`."""
        ...

    def text(self, data: str) -> None:
        """Some of the text of the element that is open; it may come in parts."""
        ...


def portions(stream: IO[bytes], handler: XmlHandler) -> Iterator[None]:
    """Read a file once, and yield after each portion, so that the handler can be emptied."""
    return _Reading(handler).run(stream)


class _Reading:
    def __init__(self, handler: XmlHandler) -> None:
        self._handler = handler
        self._window = bytearray()
        self._before_window = 0
        self._last = 0
        self._just_started = False
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = handler.text
        parser.EntityDeclHandler = _refuse_entity

    def run(self, stream: IO[bytes]) -> Iterator[None]:
        try:
            while chunk := stream.read(_CHUNK_SIZE):
                self._feed(chunk)
                yield
            self._parser.Parse(b"", True)
            yield
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise MalformedError(f"not well-formed XML: {reason} in line {error.lineno}") from None
        except (LookupError, ValueError) as error:  # of encodings that Python or expat cannot read
            raise MalformedError(f"not readable as XML: {error}") from None

    def _feed(self, chunk: bytes) -> None:
        # A tag may be reported long after its bytes were fed; it never begins before the last one.
        del self._window[: self._last - self._before_window]
        self._before_window = self._last
        self._window += chunk
        self._parser.Parse(chunk)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._last = offset = self._parser.CurrentByteIndex
        self._just_started = True
        self._handler.start(name.rpartition(":")[2], attributes, offset)

    def _end(self, name: str) -> None:
        offset = self._parser.CurrentByteIndex
        position = offset - self._before_window
        # Of an empty element expat says where it ends, of any other where its end tag begins.
        if not (self._just_started and self._is_tag_until(position)):
            offset = self._before_window + self._window.index(b">", position) + 1
        self._last, self._just_started = offset, False
        self._handler.end(name.rpartition(":")[2], offset)

    def _is_tag_until(self, position: int) -> bool:
        """Whether the last tag ends here, closing itself; text may also end with `/>`."""
        if not self._window.endswith(b"/>", 0, position):
            return False
        tag = _TAG.match(self._window, self._last - self._before_window)
        return tag is not None and tag.end() == position


def _refuse_entity(name: str, is_parameter: bool, *_rest: object) -> None:  # noqa: FBT001 — expat
    del is_parameter
    raise MalformedError(f"declares an entity of its own ({name}); refused, since they can explode")
