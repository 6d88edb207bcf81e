"""Where elements stand in an XML file of any size: byte ranges, found in one streaming pass.

lxml does not tell byte positions; expat does, and holds nothing in memory but the piece it reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import IO, Final, Protocol
from xml.parsers import expat

from fonds.errors import MalformedError

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
