"""Files as they come from broken disks, broken servers and hostile hands."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from lxml import etree

LARGEST: Final = 1_000_000
"""No damaged file is larger, so that one limit of time fits all."""

_TAG: Final = re.compile(rb"<([A-Za-z][\w-]*)")
_DECLARED: Final = re.compile(rb"""(?<=encoding=")[^"]*|(?<=charset=)[\w-]*""")
_ENCODINGS: Final = (b"utf-16", b"shift_jis", b"utf-7", b"euc-jp", b"ebcdic-us", b"x", b"us-ascii")
_CODECS: Final = ("utf-16", "utf-16-be", "utf-32", "cp932", "utf-8-sig", "iso2022_jp", "cp500")
_BOMB: Final = (
    b'<!DOCTYPE a [<!ENTITY a "lol">'
    + b"".join(b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(9))
    + b"]>"
)
_MARKUP: Final = (
    b"<",
    b">",
    b"&",
    b"&#0;",
    b"&#xD800;",
    b"&#x110000;",
    b"&nosuch;",
    b"&a;",
    b"]]>",
    b"<![CDATA[ <b> ]]>",
    b"<!--",
    b"-->",
    b"<?xml version='9'?>",
    b"<?php x ?>",
    b"</P>",
    b"<x:y xmlns:x='urn:x'/>",
    b"<table><tr><td colspan='999999999' rowspan='0'>",
    b'<GPOTABLE COLS="99999999" CDEF="s50,,,"><ROW><ENT A="99">x</ENT></ROW></GPOTABLE>',
    b"<E T='03'>",
    b"<li value='-1'>",
    b"<a href='javascript:x()'>y</a>",
    b"<a href='http://[::1'>y</a>",
    b"<base href='http://[bad'>",
    b"<plaintext>",
    b"<template>",
    b"<nav>",
)
_TYPED: Final = (
    b"\0",
    b"\x1a",
    b"\x0c",
    b"\r",
    b"\xff\xfe",
    b"\xe2\x80",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
    b"\xee\x80\x90",
    b"\xf4\x8f\xbf\xbf",
    b"\xed\xa0\x80",
    b"\\",
    b"``",
    b"|",
    b"[^1]: ",
    b"](",
    b"\n\n# \n",
    b"\n```\n",
    b"\n____\n",
    b"[[Page ]]",
    b"[[Page 9",
    b"<INF>",
    b"</SUP>",
    b"(((((",
    b"....................",
    b"-\n",
    b"\t",
    b"- ",
    b'"',
    "§§".encode(),
)
_PORTABLE: Final = (
    b" /Length -1 ",
    b" /Length 999999999 ",
    b" /Count 999999999 ",
    b" /Kids [2 0 R] ",
    b" /Parent 5 0 R ",
    b" /Contents 1 0 R ",
    b" /Filter /FlateDecode ",
    b" /Filter [/ASCIIHexDecode /ASCII85Decode /LZWDecode] ",
    b" /MediaBox [0 0 1e38 -1e38] ",
    b" /MediaBox [] ",
    b" /Rotate 45 ",
    b" /Encrypt << /Filter /Standard /V 9 >> ",
    b" /Prev 0 ",
    b" /Root 99 0 R ",
    b" /Size -1 ",
    b"\nendstream\n",
    b"\nstream\n",
    b"\nendobj\n",
    b"\n%%EOF\n",
    b"\nstartxref\n-5\n",
    b" << " * 40,
    b" [ " * 40,
    b"( " * 40,
    b" 1e309 0 0 1e309 0 0 cm ",
    b" 0 Tf ",
    b" Tj ",
    b" q " * 40,
    b" BI ID ",
)
HOSTILE: Final = {
    "fr_xml_v1": _MARKUP,
    "uslm_v1": _MARKUP,
    "docx_v1": _MARKUP,
    "ecfr_xml_v1": _MARKUP,
    "billres_v1": _MARKUP,
    "dc_xml_v1": _MARKUP,
    "egov_v1": _MARKUP,
    "gii_v1": _MARKUP,
    "xml_v1": _MARKUP,
    "cga_v1": _MARKUP + _TYPED,
    "html_v1": _MARKUP + _TYPED,
    "markdown_v1": _TYPED + _MARKUP[:12],
    "text_v1": _TYPED + _MARKUP[:12],
    "pdf_v1": _PORTABLE + _TYPED[:8],
}
"""What damage puts into files of each format."""

_ENDLESS: Final = (
    b"< ",
    b"<p>",
    b"<td>x",
    b"<tr><td colspan='1000000' rowspan='1000000'>x</td></tr>",
    b"<h2>x</h2>",
    b"&amp;",
    b"&#120;",
    b"[",
    b"](",
    b"[^1]: x\n",
    b"*",
    b"_",
    b"\\",
    b"` ",
    b"```\n",
    b"|x",
    b"x | y\n",
    b"# x\n",
    b"- ",
    b"-",
    b"/",
    b"a",
    b"word ",
    b"A. ",
    b"1",
    b".",
    b". ",
    b"1. ",
    b"(a) ",
    b"(1)(a)(i)",
    b"\n(a) x;\n",
    b"\n",
    b"x\n",
    b"x\n\n",
    b"x-\n",
    b"x\t",
    b"x....\n",
    b"          X\n\n",
    b"SEC. 1. X\n",
    b"[[Page 1]]\n",
    b"____\n",
    b"\xc2\xa0",
    b"\xe3\x80\x82",
    b"\xff\xfe",
    b"\0",
)
_ENDLESS_PDF: Final = (
    b" q ",
    b" [ ",
    b" << ",
    b" ( ",
    b" BT ET ",
    b" BT /F1 9 Tf 72 700 Td (x) Tj ET ",
    b" 1 0 0 1 0 0 cm ",
    b" 0 0 m 9 9 l S ",
    b"\n7 0 obj\n<< >>\nendobj\n",
    b" 1",
    b"%",
)

Change = Callable[[bytearray, random.Random], None]


@dataclass(frozen=True, kw_only=True)
class Damaged:
    """A file that something happened to."""

    name: str
    """Of the file it was, and which in the series it is."""
    data: bytes


def damaged(
    files: Sequence[tuple[str, bytes]],
    chance: random.Random,
    rounds: int,
    *,
    pieces: Sequence[bytes] = _MARKUP + _TYPED,
    strangers: Sequence[bytes] = (),
) -> Iterator[Damaged]:
    """So many damaged copies of these files; `strangers` lend pieces of other formats."""
    changes: list[Change] = [*_EVERYWHERE, _inserting(pieces)]
    changes.extend(map(_splicing, strangers))
    for number in range(rounds):
        name, whole = chance.choice(files)
        data = bytearray(_rearranged(whole, chance) if chance.random() < 0.5 else whole)
        for _ in range(chance.choice((0, 1, 1, 3, 20)) if data != whole else 1):
            if data:
                chance.choice(changes)(data, chance)
        yield Damaged(name=f"{name} #{number}", data=bytes(data[:LARGEST]))


def endless(name: str, whole: bytes, size: int) -> Iterator[Damaged]:
    """Copies of a file that hold one thing again and again: what a quadratic reader fears."""
    own = {b"<%s>x</%s>" % (tag, tag) for tag in _TAG.findall(whole)}
    inside = whole.find(b">", len(whole) // 2) + 1
    place = whole.find(b"stream") + 7 if name == "pdf_v1" else inside
    for piece in _ENDLESS_PDF if name == "pdf_v1" else (*_ENDLESS, *sorted(own)):
        filling = piece * (size // len(piece))
        yield Damaged(
            name=f"{piece!r} again and again", data=whole[:place] + filling + whole[place:]
        )


# Bytes ------------------------------------------------------------------------------------


def _flip(data: bytearray, chance: random.Random) -> None:
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _delete(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data))
    del data[place : place + chance.choice((1, 5, 50, 500))]


def _cut(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def _behead(data: bytearray, chance: random.Random) -> None:
    del data[: chance.randrange(len(data))]


def _repeat(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data))
    span = data[place : place + chance.choice((1, 10, 200))]
    other = chance.randrange(len(data))
    data[other:other] = span * chance.choice((1, 1, 3, 100, 1000))


def _nest(data: bytearray, chance: random.Random) -> None:
    """Open one of the file's own elements again and again, and sometimes close them all."""
    tag = chance.choice(_TAG.findall(data) or [b"p"])
    depth = chance.choice((30, 300, 3000))
    place = _between_tags(data, chance)
    closing = b"</%s>" % tag * depth if chance.random() < 0.7 else b""
    data[place:place] = b"<%s>" % tag * depth + b"deep" + closing


def _swell(data: bytearray, chance: random.Random) -> None:
    """Give an element an enormous attribute, or very many."""
    tag = chance.choice(_TAG.findall(data) or [b"p"])
    place = _between_tags(data, chance)
    size = chance.choice((1_000, 50_000))
    many = b" ".join(b'a%d="1"' % number for number in range(size // 10))
    huge = b'a="%s"' % (b"x" * size)
    data[place:place] = b"<%s %s/>" % (tag, chance.choice((many, huge)))


def _arm(data: bytearray, chance: random.Random) -> None:
    """Declare entities that grow a thousand million times, and call the last."""
    start = data.find(b"?>") + 2 if data.startswith(b"<?xml") else 0
    data[start:start] = _BOMB
    place = chance.randrange(len(_BOMB), len(data) + 1)
    data[place:place] = b"&j;"


def _redeclare(data: bytearray, chance: random.Random) -> None:
    """Name another encoding than the one the bytes have."""
    encoding = chance.choice(_ENCODINGS)
    found = _DECLARED.search(data)
    if found:
        data[found.start() : found.end()] = encoding
    else:
        data[:0] = b'<?xml version="1.0" encoding="%s"?>\n' % encoding


def _transcode(data: bytearray, chance: random.Random) -> None:
    """Write the bytes in another encoding than the one they name."""
    text = data.decode("utf-8", "replace")
    data[:] = text.encode(chance.choice(_CODECS), "replace")


def _inserting(pieces: Sequence[bytes]) -> Change:
    def insert(data: bytearray, chance: random.Random) -> None:
        place = chance.randrange(len(data) + 1)
        data[place:place] = chance.choice(pieces)

    return insert


def _splicing(stranger: bytes) -> Change:
    def splice(data: bytearray, chance: random.Random) -> None:
        start = chance.randrange(len(stranger))
        place = chance.randrange(len(data) + 1)
        data[place:place] = stranger[start : start + chance.choice((20, 200, 2000))]

    return splice


def _between_tags(data: bytearray, chance: random.Random) -> int:
    """A place behind the end of a tag, so that what is put there may be well-formed."""
    return data.find(b">", chance.randrange(len(data))) + 1


_EVERYWHERE: Final = (
    _flip,
    _flip,
    _delete,
    _cut,
    _behead,
    _repeat,
    _nest,
    _swell,
    _arm,
    _redeclare,
    _transcode,
)


# Trees ------------------------------------------------------------------------------------


def _rearranged(data: bytes, chance: random.Random) -> bytes:
    """The same elements in an order their schema forbids, still well-formed; other files as is."""
    try:
        root = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError:
        return data
    for _ in range(chance.choice((1, 3, 10))):
        elements = [element for element in root.iterdescendants() if isinstance(element.tag, str)]
        if not elements:
            break
        _disturb(chance.choice(elements), chance.choice(elements), chance)
    written: bytes = etree.tostring(root)
    return written


def _disturb(one: Any, other: Any, chance: random.Random) -> None:
    match chance.randrange(7):
        case 0:
            one.tag = other.tag
        case 1 if one not in other.iterancestors() and one is not other:
            other.append(one)
        case 2 if one.getparent() is not None:
            one.getparent().remove(one)
        case 3:
            one.text, other.text, one.tail = other.text, one.text, other.tail
        case 4:
            _forge(one, other, chance)
        case 5:
            one.insert(0, _copied(other))
        case _:
            one.text = None


def _forge(one: Any, other: Any, chance: random.Random) -> None:
    values = ("", "-1", "99999999", "²", "x" * 5_000, "0", " ", "http://[", "/us/usc/t99/s1")
    name = chance.choice([*one.attrib, *other.attrib, "colspan", "rowspan", "id", "href"])
    one.set(name, chance.choice(values))


def _copied(element: Any) -> Any:
    copy = deepcopy(element)
    copy.tail = None
    return copy
