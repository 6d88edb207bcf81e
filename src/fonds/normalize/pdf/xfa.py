"""Values of an XFA form: XML beside the pages, which a viewer may draw instead of them.

A static form has a field on a page for each value; what only the XML has is taken from there. A
dynamic form has no such pages: its values are listed with the captions of its template.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lxml import etree

from fonds.errors import ParseError
from fonds.normalize.safe_xml import parse_xml, refuse_unsafe

_INDEX: Final = re.compile(r"\[(\d+)\]$")
_MAX_VALUES: Final = 20_000
_INVISIBLE: Final = frozenset({"hidden", "invisible", "inactive"})

_Path = tuple[tuple[str, int], ...]


@dataclass(slots=True)
class _Value:
    path: _Path
    """Names from the outermost, each with its number among siblings of that name."""
    text: str
    is_taken: bool = False


class XfaValues:
    """The values of a form's data, each given away once."""

    def __init__(self, packets: Mapping[str, bytes]) -> None:
        self._values = list(_values(_root(packets.get("datasets", b""))))
        self._template = _root(packets.get("template", b""))
        self._by_name: defaultdict[str, list[_Value]] = defaultdict(list)
        for value in self._values:
            self._by_name[value.path[-1][0]].append(value)

    def take(self, field_name: str) -> str:
        """The value of a field on a page, by its full name; empty if the data have none."""
        path = _field_path(field_name)
        for value in self._by_name[path[-1][0]] if path else ():
            if not value.is_taken and value.path[-1] == path[-1] and _is_within(value.path, path):
                value.is_taken = True
                return value.text
        return ""

    def others(self) -> list[tuple[str, str]]:
        """The captions and values of visible fields that no page draws; ticks have no caption."""
        left = [value for value in self._values if value.text and not value.is_taken]
        fields: defaultdict[str, list[Any]] = defaultdict(list)
        for name, field in _fields(self._template):
            fields[name].append(field)
        listed = []
        for value in left:
            name, number = value.path[-1]
            if self._template is None:
                listed.append((name, value.text))
            elif fields[name]:
                field = fields[name][min(number, len(fields[name]) - 1)]
                listed += _lines_of(field, name, value.text)
        return listed


def _root(packet: bytes) -> Any:
    try:
        refuse_unsafe(packet)
        return parse_xml(packet)
    except ParseError:
        return None


def _local(element: Any) -> str:
    return str(etree.QName(element).localname) if isinstance(element.tag, str) else ""


def _words(element: Any) -> str:
    return " ".join(" ".join(element.itertext()).split())


def _values(datasets: Any) -> Iterator[_Value]:
    """The leaves of the data, in order."""
    if datasets is None:
        return
    data = next((child for child in datasets if _local(child) == "data"), None)
    waiting: list[tuple[Any, _Path]] = [] if data is None else [(data, ())]
    count = 0
    while waiting and count < _MAX_VALUES:
        element, path = waiting.pop()
        # The paragraphs of a formatted text are XHTML, and no fields.
        children = [child for child in element if _local(child) and not _is_html(child)]
        # Several chosen options.
        if path and all(_local(child) == "value" for child in children):
            count += 1
            yield _Value(path, ", ".join(map(_words, children)) or _words(element))
            continue
        numbers: Counter[str] = Counter()
        below = []
        for child in children:
            name = _local(child)
            below.append((child, (*path, (name, numbers[name]))))
            numbers[name] += 1
        waiting += reversed(below)


def _is_html(element: Any) -> bool:
    return etree.QName(element).namespace == "http://www.w3.org/1999/xhtml"


def _field_path(name: str) -> _Path:
    """`form1[0].#subform[0].Name[2]`: levels without a name of their own are not in the data."""
    steps = [step for step in name.split(".") if step and not step.startswith("#")]
    return tuple(
        (_INDEX.sub("", step), int(index[1]) if (index := _INDEX.search(step)) else 0)
        for step in steps
    )


def _is_within(path: Sequence[Any], longer: Sequence[Any]) -> bool:
    """True if all names of a path are in the longer one, in their order."""
    names = iter(name for name, _ in longer)
    return all(name in names for name, _ in path)


def _fields(template: Any) -> Iterator[tuple[str, Any]]:
    """The visible fields, and groups of fields of which one is chosen, by name."""
    if template is None:
        return
    for element in template.iter():
        if _local(element) not in {"field", "exclGroup"} or not element.get("name"):
            continue
        hidden = (one.get("presence") in _INVISIBLE for one in (element, *element.iterancestors()))
        if not any(hidden):
            yield str(element.get("name")), element


def _lines_of(field: Any, name: str, value: str) -> list[tuple[str, str]]:
    if _local(field) == "exclGroup":
        choices = [child for child in field if _local(child) == "field"]
        return [("", f"{_tick(choice, value)} {_caption(choice)}") for choice in choices]
    caption = _caption(field) or name
    if any(_local(element) == "checkButton" for element in field.iter()):
        return [("", f"{_tick(field, value)} {caption}")]
    return [(caption, value)]


def _tick(field: Any, value: str) -> str:
    items = next((child for child in field if _local(child) == "items"), None)
    on = _words(items[0]) if items is not None and len(items) else "1"
    return "☒" if value == on else "☐"


def _caption(field: Any) -> str:
    captions = (_words(child) for child in field if _local(child) == "caption")
    return next(captions, "").rstrip(": ") or str(field.get("name") or "")
