"""What is taken out of everything that is logged: keys, tokens and passwords."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from fonds.settings import Settings

HIDDEN: Final = "[hidden]"

_SHORTEST: Final = 6
"""Characters; a shorter secret is also an ordinary word."""
_NAMES: Final = re.compile(
    r"(?i)authori[sz]ation|cookie|credential|passw(or)?d|secret|signature|token\b|api[-_]?key"
)
_PATTERNS: Final = (
    # In an address, or in a form: any name that speaks of a secret, and its value.
    (
        re.compile(
            r"(?i)([?&;](?:[\w.-]*(?:key|secret|token|passw|signature|credential)[\w.-]*|auth|sig)=)"
            r"[^&#>\s\"';,]+"
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(://)[^/@\s:]*:[^/@\s]+@"), rf"\1{HIDDEN}@"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"), rf"\1 {HIDDEN}"),
    (re.compile(r"\bfonds_[\w-]{8,}"), HIDDEN),
)


class Redaction:
    """Hides secrets by their looks, and those that are set by their value."""

    def __init__(self, settings: Settings | None = None) -> None:
        values = sorted(set(_secrets(settings)) if settings else (), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, values))) if values else None

    def __call__(self, text: str) -> str:
        """The text without the secrets in it."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        for pattern, instead in _PATTERNS:
            text = pattern.sub(instead, text)
        return text

    def values(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Named values without secrets, be it by their name."""
        return {
            name: HIDDEN if value and _NAMES.search(name) else self._value(value)
            for name, value in told.items()
        }

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            return self.values({str(name): each for name, each in value.items()})
        if isinstance(value, list | tuple | set | frozenset):
            return [self._value(each) for each in value]
        plain = value is None or isinstance(value, bool | int | float)
        return value if plain else self(str(value))


def _secrets(settings: Settings) -> Iterator[str]:
    for entry in fields(settings):
        if entry.metadata["secret"]:
            value = getattr(settings, entry.name)
            for text in [value] if isinstance(value, str) else value:
                yield from _forms(_password(text) if "://" in text else text)


def _password(address: str) -> str:
    """An address is no secret but for what stands before the host."""
    try:
        return unquote(urlsplit(address).password or "")
    except ValueError:
        return address


def _forms(secret: str) -> Iterator[str]:
    if len(secret) >= _SHORTEST:
        yield secret
        yield quote(secret, safe="")
