"""PDFs whose structure can be followed by hand: from the end to the table, the catalog, the pages.

For the others (encrypted, updated, with a compressed table, damaged) a library is needed that
opens any PDF. It has to run in a process of its own, which takes more time and memory than all
else that is done about a small file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

_TAIL: Final = 1024
_MOST_OBJECTS: Final = 100_000
_LONGEST: Final = 4096
"""Bytes of a dictionary, or of the trailer."""
_ENTRY: Final = 20
_INNER: Final = rb"<[0-9A-Fa-f]*>|<<[^<>()%#]*>>|\([^()<>%#\\]*\)"
_DICTIONARY: Final = rb"\s*<<((?:[^<>()%%#]|%b)*)>>\s*" % _INNER
_NESTED: Final = re.compile(_INNER)

_END: Final = re.compile(rb"startxref\r?\n(\d{1,12})\r?\n%%EOF[\r\n]*\Z")
_TABLE: Final = re.compile(rb"xref\r?\n0 (\d{1,9})\r?\n")
_ENTRIES: Final = re.compile(
    rb"0{10} 65535 f(?: \n| \r|\r\n)(?:\d{10} \d{5} [nf](?: \n| \r|\r\n))+"
)
_TRAILER: Final = re.compile(rb"trailer%bstartxref\s" % _DICTIONARY)
_OBJECT: Final = re.compile(rb"(\d{1,9}) 0 obj%bendobj\s" % _DICTIONARY)
_REFERENCE: Final = re.compile(rb"(\d{1,9}) 0 R")
_NUMBER: Final = re.compile(rb"\d{1,9}")
_MORE: Final = (b"/Prev", b"/XRefStm", b"/Encrypt")


_Read = Callable[[int, int], bytes]
"""So many bytes, from a place on."""


def is_plain_pdf(data: bytes | Path) -> bool:
    """Whether this is beyond doubt a PDF that opens and has pages; False says nothing."""
    if isinstance(data, bytes):
        return _is_plain(lambda count, at: data[at : at + count], len(data))
    handle = os.open(data, os.O_RDONLY)
    try:
        return _is_plain(partial(os.pread, handle), os.fstat(handle).st_size)
    finally:
        os.close(handle)


def _is_plain(read: _Read, size: int) -> bool:
    table = _table(read, size)
    if table is None:
        return False
    catalog = table.dictionary(_value(table.trailer, b"/Root"))
    pages = table.dictionary(_value(catalog, b"/Pages"))
    kinds = _value(catalog, b"/Type"), _value(pages, b"/Type")
    return kinds == (b"/Catalog", b"/Pages") and _number(_value(pages, b"/Count")) > 0


@dataclass(frozen=True, slots=True)
class _ObjectTable:
    """Where the objects of a file are."""

    read: _Read
    entries: bytes
    trailer: bytes

    def dictionary(self, reference: bytes) -> bytes:
        """What stands in the dictionary that is referred to; nothing, if that is not clear."""
        found = _REFERENCE.fullmatch(reference)
        number = int(found[1]) if found else 0
        entry = self.entries[number * _ENTRY : (number + 1) * _ENTRY]
        if number == 0 or entry[11:18] != b"00000 n":
            return b""
        held = _OBJECT.match(self.read(_LONGEST, int(entry[:10])))
        return _NESTED.sub(b" ", held[2]) if held and int(held[1]) == number else b""


def _table(read: _Read, size: int) -> _ObjectTable | None:
    end = _END.search(read(_TAIL, max(0, size - _TAIL)))
    if end is None or read(5, 0) != b"%PDF-":
        return None
    start = int(end[1])
    head = _TABLE.match(read(32, start))
    objects = int(head[1]) if head else 0
    if head is None or not 1 < objects < _MOST_OBJECTS:
        return None
    held = read(objects * _ENTRY + _LONGEST, start + head.end())
    entries = held[: objects * _ENTRY]
    trailer = _TRAILER.match(held, objects * _ENTRY)
    if trailer is None or not _ENTRIES.fullmatch(entries):
        return None
    told = _NESTED.sub(b" ", trailer[1])
    is_all = _number(_value(told, b"/Size")) == objects and not any(m in told for m in _MORE)
    return _ObjectTable(read, entries, told) if is_all else None


def _value(dictionary: bytes, key: bytes) -> bytes:
    """What follows a key, up to the next; nothing where the key stands twice."""
    _, found, after = dictionary.partition(key)
    if not found or key in after or after[:1].isalnum():
        return b""
    name, _, rest = after.strip().partition(b"/")
    return name.strip() or b"/" + rest.partition(b"/")[0].strip()


def _number(value: bytes) -> int:
    return int(value) if _NUMBER.fullmatch(value) else 0
