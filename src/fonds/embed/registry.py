"""Embedders by the name a user gives them.

Installed packages add theirs in the entry-point group `fonds.embedders`: the first part of a name,
and what opens the embedder from the rest of it and the settings.

A model of this machine, asked in processes of an engine: here, or on a cluster.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

from fonds.embed.base import Embedded, Embedder, EmbeddingModel, Purpose
from fonds.engine.base import Engine
from fonds.engine.opening import LOCAL, open_engine
from fonds.errors import ModelMissingError, RetryableEmbedError, UsageError, WorkerDiedError
from fonds.settings import Settings

GROUP: Final = "fonds.embedders"

_NAMES: Final = ("wordllama", "minilm", "onnx:FOLDER", "openai:MODEL", "hashing", "hashing:DIMS")
_OPTIONS: Final = "price (USD for a million tokens), dims and max_tokens"


def embedder_names() -> tuple[str, ...]:
    """The forms that the setting `embedder` may have."""
    return (*_NAMES, *sorted(entry.name for entry in entry_points(group=GROUP)))


def open_embedder(spec: str, settings: Settings) -> Embedder:
    """The embedder of a name such as `wordllama` or `openai:text-embedding-3-small`."""
    kind, _, rest = spec.strip().partition(":")
    if kind in _OPENERS:
        return _OPENERS[kind](rest, settings)
    for entry in entry_points(group=GROUP, name=kind):
        embedder = entry.load()(rest, settings)
        if not isinstance(embedder, Embedder):
            raise UsageError(f"the entry point {kind} of {GROUP} opens no embedder")
        return embedder
    raise _unknown(spec)


def _unknown(spec: str) -> UsageError:
    return UsageError(f"no embedder is called {spec!r}; there are: {', '.join(embedder_names())}")


def _wordllama(rest: str, _settings: Settings) -> Embedder:
    if rest:
        raise _unknown(f"wordllama:{rest}")
    from fonds.embed.wordllama import WordLlamaEmbedder  # noqa: PLC0415 — only the one that is used

    return WordLlamaEmbedder()


def _minilm(rest: str, _settings: Settings) -> Embedder:
    if rest:
        raise _unknown(f"minilm:{rest}")
    from fonds.embed.onnx import minilm  # noqa: PLC0415 — only the one that is used

    return minilm()


def _onnx(rest: str, _settings: Settings) -> Embedder:
    if not rest:
        raise UsageError("onnx needs the folder of a model: onnx:FOLDER")
    from fonds.embed.onnx import OnnxEmbedder  # noqa: PLC0415 — only the one that is used

    return OnnxEmbedder.in_folder(Path(rest).expanduser())


def _hashing(rest: str, _settings: Settings) -> Embedder:
    from fonds.embed.hashing import HashingEmbedder  # noqa: PLC0415 — only the one that is used

    return HashingEmbedder(_whole("dimensions", rest)) if rest else HashingEmbedder()


def _openai(rest: str, settings: Settings) -> Embedder:
    from fonds.embed.openai import KNOWN, OpenAiEmbedder, RemoteModel  # noqa: PLC0415 — likewise

    name, _, query = rest.partition("?")
    if not name:
        raise UsageError(
            "openai needs a model: openai:MODEL, such as openai:text-embedding-3-small"
        )
    options = _options(query)
    known = KNOWN.get(name)
    model = known or RemoteModel(name=name)
    if "price" in options:
        model = replace(model, price=_price(options["price"]))
    if "max_tokens" in options:
        model = replace(model, max_tokens=_whole("max_tokens", options["max_tokens"]))
    if "dims" in options:
        dims = _whole("dims", options["dims"])
        # Only models that are known to have more are asked to give fewer; others may refuse.
        model = replace(model, dims=dims, shortened=known is not None and dims != known.dims)
    return OpenAiEmbedder(model, settings)


def _options(query: str) -> dict[str, str]:
    try:
        options = dict(parse_qsl(query, strict_parsing=bool(query), keep_blank_values=True))
    except ValueError:
        options = {query: ""}
    if unknown := sorted(set(options) - {"price", "dims", "max_tokens"}):
        raise UsageError(f"openai:MODEL?… knows {_OPTIONS}, not {', '.join(unknown)}")
    return options


def _price(text: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not 0 <= price < math.inf:
        raise UsageError(f"price must be a number of US dollars, not {text!r}")
    return price


def _whole(name: str, text: str) -> int:
    if not re.fullmatch("[1-9][0-9]{0,7}", text):
        raise UsageError(f"{name} must be a whole number above zero, not {text!r}")
    return int(text)


_OPENERS: Final[Mapping[str, Callable[[str, Settings], Embedder]]] = {
    "wordllama": _wordllama,
    "minilm": _minilm,
    "onnx": _onnx,
    "openai": _openai,
    "hashing": _hashing,
}


MEMORY_MIB: Final = 8192
"""A model with all that it needs for a batch."""
SECONDS: Final = 600.0
"""The first batch of a process also loads the model."""

REMOTE_WORKERS: Final = 4
"""Requests under way at once to an endpoint, unless told otherwise."""


@contextmanager
def at_work(
    name: str, embedder: Embedder, settings: Settings, wanted: int | None
) -> Iterator[tuple[Embedder, int]]:
    """An embedder of that name as it is asked for much, and how many ask it at once.

    A model of this machine stays in this process, unless several are wanted, or a cluster is there.
    """
    if embedder.is_remote:
        yield embedder, wanted or REMOTE_WORKERS
    elif settings.engine == LOCAL and (wanted or 1) == 1:
        yield embedder, 1
    else:
        with open_engine(
            settings.engine, workers=wanted, memory_mib=MEMORY_MIB, seconds=SECONDS
        ) as engine:
            yield EmbedderApart(name, embedder, engine), wanted or engine.workers


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedTexts:
    """Texts for a model, as a process gets them."""

    embedder: str
    version: str
    """Of the model: no other is to answer."""
    texts: Sequence[str]
    purpose: Purpose


class EmbedderApart:
    """The same vectors as those of an embedder here, made in processes that load it once each."""

    is_remote: Final = False

    def __init__(self, name: str, embedder: Embedder, engine: Engine) -> None:
        self._name = name
        self._engine = engine
        self.model: Final[EmbeddingModel] = embedder.model

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Embedded:
        """The vectors of some texts."""
        item = PreparedTexts(
            embedder=self._name, version=self.model.version, texts=list(texts), purpose=purpose
        )
        (outcome,) = self._engine.run(embed_texts, [item])
        if isinstance(outcome.error, WorkerDiedError):
            raise RetryableEmbedError(str(outcome.error)) from outcome.error
        made: Embedded = outcome.unwrap()
        return made


def embed_texts(item: PreparedTexts) -> Embedded:
    """Embed texts in a process of an engine."""
    embedder = _opened(item.embedder)
    if embedder.model.version != item.version:
        raise ModelMissingError(
            f"{item.embedder} is version {embedder.model.version} on a machine of the cluster, and"
            f" {item.version} here: install the same packages on all"
        )
    return embedder.embed(item.texts, item.purpose)


@cache
def _opened(name: str) -> Embedder:
    return open_embedder(name, Settings())
