"""Counting tokens of the cl100k_base vocabulary: exact, offline, loaded on first use."""

from __future__ import annotations

from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any, Final

_COMPILED: Final = "bpe_openai._bindings"


def count(text: str) -> int:
    """The number of tokens of a text, special tokens read as ordinary words."""
    try:
        return int(_tokenizer().count(text))
    except UnicodeEncodeError:
        return int(_tokenizer().count(_encodable(text)))


def count_within(text: str, limit: int) -> int | None:
    """The number of tokens of a text, or None as soon as it is known to be above the limit."""
    try:
        found: int | None = _tokenizer().count_till_limit(text, limit)
    except UnicodeEncodeError:
        found = _tokenizer().count_till_limit(_encodable(text), limit)
    return found


@cache
def _tokenizer() -> Any:
    # Only the compiled module of the package is loaded: its Python front cannot count, and
    # importing it reads three vocabularies (0.8 s) through a deprecated call.
    package = find_spec("bpe_openai")
    places = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec(_COMPILED, places)
    if spec is None or spec.loader is None:
        raise ImportError(f"{_COMPILED} is missing; install fonds again with its dependencies.")
    compiled = module_from_spec(spec)
    spec.loader.exec_module(compiled)
    return compiled.tokenizer_for_encoding("cl100k_base")


def _encodable(text: str) -> str:
    # Damaged feeds hold lone surrogates, which have no UTF-8 form.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
