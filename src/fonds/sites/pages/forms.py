"""What a form offers that can be asked for by an address alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from typing import Any, Final
from urllib.parse import urlencode, urlsplit, urlunsplit

from fonds.sites.pages.scripts import is_address

_MOST: Final = 200
_FREE: Final = frozenset(
    {
        "",
        "text",
        "search",
        "email",
        "tel",
        "url",
        "number",
        "date",
        "password",
        "file",
        "month",
        "range",
        "datetime-local",
    }
)
_SILENT: Final = frozenset({"button", "reset", "image", "submit"})

Choice = tuple[str, str, str]
"""Name, value, and what a reader sees of it."""


def offered(element: Any, base: str) -> Iterator[tuple[str, str]]:
    """Addresses and their texts: each choice a form leaves, each place a menu jumps to."""
    if element.tag == "select":
        yield from _jumps(element)
    elif (element.get("method") or "get").lower().strip() == "get":
        yield from _asked(element, base)


def _jumps(select: Any) -> Iterator[tuple[str, str]]:
    for option in select.iter("option"):
        value = (option.get("value") or "").strip()
        if is_address(value):
            yield value, option.text_content()


def _asked(form: Any, base: str) -> Iterator[tuple[str, str]]:
    fields = _fields(form)
    if fields is None or not any(len(choices) > 1 for choices in fields):
        return
    parts = urlsplit(form.get("action") or base)
    for chosen in islice(product(*fields), _MOST):
        query = urlencode([(name, value) for name, value, _ in chosen if name])
        told = " ".join(text for _, _, text in chosen if text)
        yield urlunsplit(parts._replace(query=query, fragment="")), told


def _fields(form: Any) -> list[list[Choice]] | None:
    """The choices of each field; None where a reader would have to write something."""
    fields: list[list[Choice]] = []
    radios: dict[str, list[Choice]] = {}
    for control in form.iter("input", "select", "textarea"):
        name = control.get("name") or ""
        kind = (control.get("type") or "").lower() if control.tag == "input" else control.tag
        if kind in _SILENT or not name:
            continue
        if kind in _FREE or kind == "textarea":
            return None
        if kind == "select":
            fields.append(_options(control, name))
        elif kind == "radio":
            radios.setdefault(name, []).append(
                (name, control.get("value") or "on", _label(control))
            )
        elif kind == "hidden" or control.get("checked") is not None:
            fields.append([(name, control.get("value") or "", "")])
    return [choices for choices in (*fields, *radios.values()) if choices]


def _options(select: Any, name: str) -> list[Choice]:
    found = []
    for option in select.iter("option"):
        text = option.text_content().strip()
        value = option.get("value")
        found.append((name, text if value is None else value, text))
    # The empty one says "please choose"; it matters only where it is all there is.
    return [choice for choice in found if choice[1]] or found


def _label(control: Any) -> str:
    around = next(control.iterancestors("label"), None)
    if around is not None:
        return str(around.text_content()).strip()
    return (control.tail or "").strip()
