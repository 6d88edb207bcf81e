"""Strict reading of YAML that people edit by hand, and of the same data published as JSON.

Scalars stay as they were written: `00136` keeps its zeros, `2025-01-03` is not a date, `NO` is not
a truth value. Only an empty, `~` or `null` plain scalar means nothing. `fields` converts the texts
for columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

import yaml

from fonds.errors import DuplicateKeyError, MalformedError, WrongContentError
from fonds.sources.formats.fields import describe

_BOM: Final = b"\xef\xbb\xbf"
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_MAX_DEPTH: Final = 100
_SLICE_BYTES: Final = 64 * 1024

_DOCUMENT_START: Final = re.compile(rb"\A(?:[ ]*(?:#[^\n]*)?\r?\n)*---[ ]*\r?\n")
_ITEM: Final = re.compile(rb"^-(?=[ \r\n])", re.MULTILINE)
# A line that cannot be in a block sequence at the left margin: flow style, a mapping, a tab,
# a directive, a second document. The slices below are only made where there is none.
_OTHER_LINE: Final = re.compile(rb"^(?![ #\r\n]|-[ \r\n])[^\n]", re.MULTILINE)


def load(data: bytes) -> Any:
    """The list or mapping a YAML or JSON file holds."""
    data = _checked(data)
    if data.lstrip()[:1] in (b"[", b"{"):
        return _load_json(data)
    return _container(_build(_decode(data)))


def items(data: bytes) -> Iterator[Any]:
    """The items of the top-level list, one after another, in memory for a few items only."""
    data = _checked(data)
    start = _list_start(data)
    if start is None:
        whole_list = load(data)
        if not isinstance(whole_list, list):
            raise WrongContentError(f"expected a list, found {describe(whole_list)}")
        yield from whole_list
        return
    yield from _sliced_items(data, start)


# Bytes ------------------------------------------------------------------------------------


def _checked(data: bytes) -> bytes:
    data = data.removeprefix(_BOM)
    head = data[:1024].lstrip()
    if not head and not data.strip():
        raise WrongContentError("the file is empty")
    if head.startswith(b"<"):
        page = "an HTML page" if b"<html" in head.lower() or b"<!doctype" in head.lower() else "XML"
        raise WrongContentError(f"expected YAML or JSON, found {page}")
    if b"\0" in head:
        raise WrongContentError("expected YAML or JSON in UTF-8, found binary data")
    return data


def _decode(data: bytes, first_line: int = 1) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        raise MalformedError(f"not UTF-8 at line {line}: {error.reason}") from error


def _list_start(data: bytes) -> int | None:
    head = _DOCUMENT_START.match(data)
    start = head.end() if head else 0
    return start if not _OTHER_LINE.search(data, start) and _ITEM.search(data, start) else None


def _sliced_items(data: bytes, start: int) -> Iterator[Any]:
    # A block sequence cut before any of its `-` at the left margin is two block sequences:
    # scalars of an item are indented deeper, and a quotation left open fails in its slice.
    line = 1 + data.count(b"\n", 0, start)
    while start < len(data):
        following = _ITEM.search(data, start + _SLICE_BYTES)
        end = following.start() if following else len(data)
        part = data[start:end]
        yield from _build(_decode(part, line), line) or ()
        line += part.count(b"\n")
        start = end


# JSON -------------------------------------------------------------------------------------


def _load_json(data: bytes) -> Any:
    text_form = _decode(data)
    try:
        return json.loads(text_form, object_pairs_hook=_unique_pairs)
    except RecursionError as error:
        raise MalformedError(f"nested deeper than {_MAX_DEPTH} levels") from error
    except ValueError as error:
        return _load_flow_yaml(text_form, error)


def _load_flow_yaml(text_form: str, json_error: ValueError) -> Any:
    # `{a: 1}` is YAML's flow style; what is neither was most likely meant as JSON.
    try:
        return _container(_build(text_form))
    except MalformedError:
        raise MalformedError(f"broken JSON: {json_error}") from json_error


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise DuplicateKeyError(f"the key {repeated!r} appears twice in one JSON object")
    return mapping


# YAML -------------------------------------------------------------------------------------


def _build(text_form: str, first_line: int = 1) -> Any:
    builder = _Builder(first_line)
    try:
        for event in yaml.parse(text_form, Loader=yaml.CSafeLoader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        line = first_line + (error.problem_mark.line if error.problem_mark else 0)
        raise MalformedError(f"broken YAML at line {line}: {error.problem}") from error
    except yaml.YAMLError as error:
        raise MalformedError(f"broken YAML after line {first_line}: {error}") from error
    return builder.documents[0] if builder.documents else None


def _container(value: Any) -> Any:
    if value is None:
        raise WrongContentError("the file is empty")
    if not isinstance(value, dict | list):
        raise WrongContentError(f"expected a list or a mapping, found {describe(value)}")
    return value


class _Builder:
    """Values out of parser events, by a stack: depth, aliases and tags cannot surprise it.

    PyYAML's own constructor takes the last of two equal keys, expands aliases, reads `00136`
    as octal and spends four times as long.
    """

    def __init__(self, first_line: int) -> None:
        self.documents: list[Any] = []
        self._first_line = first_line
        self._open: list[dict[str, Any] | list[Any]] = [self.documents]
        self._keys: list[str | None] = [None]
        self._handlers: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._mapping,
            yaml.SequenceStartEvent: self._sequence,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }

    def take(self, event: Any) -> None:
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)

    def _scalar(self, event: Any) -> None:
        if event.anchor or event.tag:
            self._refuse(event, "anchors and tags are not used in these files")
        value = event.value
        target, key = self._open[-1], self._keys[-1]
        if isinstance(target, dict) and key is None:
            self._start_pair(event, target, value)
            return
        self._add(None if event.implicit[0] and value in _NULLS else value)

    def _start_pair(self, event: Any, target: dict[str, Any], key: str) -> None:
        if key in target:
            line = self._line(event)
            raise DuplicateKeyError(f"the key {key!r} appears twice in one mapping, line {line}")
        self._keys[-1] = key

    def _add(self, value: Any) -> None:
        target, key = self._open[-1], self._keys[-1]
        if isinstance(target, list):
            target.append(value)
        elif key is not None:
            target[key] = value
            self._keys[-1] = None

    def _mapping(self, event: Any) -> None:
        self._start(event, {})

    def _sequence(self, event: Any) -> None:
        self._start(event, [])

    def _start(self, event: Any, value: dict[str, Any] | list[Any]) -> None:
        if event.anchor or event.tag:
            self._refuse(event, "anchors and tags are not used in these files")
        if isinstance(self._open[-1], dict) and self._keys[-1] is None:
            self._refuse(event, "a key must be plain text")
        if len(self._open) > _MAX_DEPTH:
            self._refuse(event, f"nested deeper than {_MAX_DEPTH} levels")
        self._add(value)
        self._open.append(value)
        self._keys.append(None)

    def _end(self, _event: Any) -> None:
        self._open.pop()
        self._keys.pop()

    def _alias(self, event: Any) -> None:
        self._refuse(event, "aliases are not used in these files, and can grow without bound")

    def _document(self, event: Any) -> None:
        if self.documents:
            self._refuse(event, "a second document begins")

    def _refuse(self, event: Any, why: str) -> NoReturn:
        raise MalformedError(f"unexpected YAML at line {self._line(event)}: {why}")

    def _line(self, event: Any) -> int:
        return self._first_line + int(event.start_mark.line)
