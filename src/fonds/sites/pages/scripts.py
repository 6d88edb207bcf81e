"""Addresses that stand in scripts: data that a page carries, literals in its handlers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

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
