"""XML records, read strictly: a page of HTML, another root or a broken file is a named error.

Where elements stand in an XML file of any size: byte ranges, found in one streaming pass.

lxml does not tell byte positions; expat does, and holds nothing in memory but the piece it reads.
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
    found = element.find(path)
    return None if found is None else whole_text(found)


def required(element: Any, path: str) -> str:
    """The text at a path that must be there."""
    found = text(element, path)
    if found is None:
        raise MalformedError(f"<{local_name(element)}> has no {path}")
    return found


def texts(element: Any, path: str) -> list[str]:
    """The texts of all elements at a path, without blank ones."""
    return [found for item in element.findall(path) if (found := whole_text(item))]


def whole(element: Any, path: str) -> int | None:
    """The whole number at a path; None where blank."""
    found = text(element, path)
    if found is None:
        return None
    if not re.fullmatch(r"[-+]?[0-9]{1,15}", found):
        raise MalformedError(f"{path} should be a whole number and is {found[:60]!r}")
    return int(found)


def required_whole(element: Any, path: str) -> int:
    """The whole number at a path that must be there."""
    found = whole(element, path)
    if found is None:
        raise MalformedError(f"<{local_name(element)}> has no {path}")
    return found


def whole_text(element: Any) -> str | None:
    """All text below an element, white space folded; None where there is none."""
    return " ".join("".join(_pieces(element)).split()) or None


def _pieces(element: Any) -> Iterator[str]:
    return (str(piece) for piece in element.itertext(etree.Element))


def _as_utf_8(data: bytes) -> bytes:
    """Some publishers serve UTF-16, and some say so while they do not."""
    if not data.startswith(_UTF_16):
        return data
    try:
        decoded = data.decode("utf-16")
    except UnicodeDecodeError as error:
        raise MalformedError(f"not UTF-16: {error.reason}") from error
    return _DECLARATION.sub("", decoded).encode()


_PIECE: Final = 1 << 16
_TAG: Final = re.compile(rb"""<(?:[^"'>]++|"[^"]*+"|'[^']*+')*+>""")


class Listener(Protocol):
    """Told of a file's elements in order. Names are without prefixes."""

    def start(self, name: str, attributes: Mapping[str, str], offset: int) -> None:
        """An element begins; `offset` is that of its `<`."""
        ...

    def end(self, name: str, offset: int) -> None:
        """An element ends; `offset` is that of the byte after its `>`."""
        ...

    def text(self, data: str) -> None:
        """Some of the text of the element that is open; it may come in pieces."""
        ...


def listen(stream: IO[bytes], listener: Listener) -> None:
    """Read a file once, from beginning to end, telling the listener what stands where."""
    for _ in portions(stream, listener):
        pass


def portions(stream: IO[bytes], listener: Listener) -> Iterator[None]:
    """The same, a portion of the file at a time, so that what was heard can be taken away."""
    return _Reading(listener).run(stream)


class _Reading:
    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._window = bytearray()
        self._before_window = 0
        self._last = 0
        self._just_begun = False
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = listener.text
        parser.EntityDeclHandler = _refuse_entity

    def run(self, stream: IO[bytes]) -> Iterator[None]:
        try:
            while piece := stream.read(_PIECE):
                self._feed(piece)
                yield
            self._parser.Parse(b"", True)
            yield
        except expat.ExpatError as error:
            cause = expat.ErrorString(error.code)
            raise MalformedError(f"not well-formed XML: {cause} in line {error.lineno}") from None
        except (LookupError, ValueError) as error:  # of encodings that Python or expat cannot read
            raise MalformedError(f"not readable as XML: {error}") from None

    def _feed(self, piece: bytes) -> None:
        # A tag may be reported long after its bytes were fed; it never begins before the last one.
        del self._window[: self._last - self._before_window]
        self._before_window = self._last
        self._window += piece
        self._parser.Parse(piece)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._last = offset = self._parser.CurrentByteIndex
        self._just_begun = True
        self._listener.start(name.rpartition(":")[2], attributes, offset)

    def _end(self, name: str) -> None:
        offset = self._parser.CurrentByteIndex
        position = offset - self._before_window
        # Of an empty element expat says where it ends, of any other where its end tag begins.
        if not (self._just_begun and self._is_tag_until(position)):
            offset = self._before_window + self._window.index(b">", position) + 1
        self._last, self._just_begun = offset, False
        self._listener.end(name.rpartition(":")[2], offset)

    def _is_tag_until(self, position: int) -> bool:
        """Whether the last tag ends here, closing itself; text may also end with `/>`."""
        if not self._window.endswith(b"/>", 0, position):
            return False
        tag = _TAG.match(self._window, self._last - self._before_window)
        return tag is not None and tag.end() == position


def _refuse_entity(name: str, is_parameter: bool, *_rest: object) -> None:  # noqa: FBT001 — expat
    del is_parameter
    raise MalformedError(f"declares an entity of its own ({name}); refused, since they can explode")
