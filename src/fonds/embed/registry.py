"""The registry of embedders by name, and embedders that run in processes of an engine.

Installed packages add theirs in the entry-point group `fonds.embedders`: the first part of a name,
and a function that opens the embedder from the rest of the name and the settings.
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
            raise UsageError(f"the entry point {kind} of {GROUP} did not return an embedder")
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
    from fonds.embed.openai import MODELS, OpenAiEmbedder, RemoteModel  # noqa: PLC0415 — likewise

    name, _, query = rest.partition("?")
    if not name:
        raise UsageError(
            "openai needs a model: openai:MODEL, such as openai:text-embedding-3-small"
        )
    options = _options(query)
    listed = MODELS.get(name)
    model = listed or RemoteModel(name=name)
    if "price" in options:
        model = replace(model, price=_price(options["price"]))
    if "max_tokens" in options:
        model = replace(model, max_tokens=_whole("max_tokens", options["max_tokens"]))
    if "dims" in options:
        dims = _whole("dims", options["dims"])
        # Only listed models can be asked for fewer dimensions; others may refuse.
        model = replace(model, dims=dims, shortened=listed is not None and dims != listed.dims)
    return OpenAiEmbedder(model, settings)


def _options(query: str) -> dict[str, str]:
    try:
        options = dict(parse_qsl(query, strict_parsing=bool(query), keep_blank_values=True))
    except ValueError:
        options = {query: ""}
    if unknown := sorted(set(options) - {"price", "dims", "max_tokens"}):
        raise UsageError(f"openai:MODEL?… takes {_OPTIONS}, not {', '.join(unknown)}")
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
"""The memory limit of a process with a model and a batch."""
TIMEOUT_SECONDS: Final = 600.0
"""The time limit of a batch; the first one of a process also loads the model."""

REMOTE_WORKERS: Final = 4
"""Concurrent requests to an endpoint, by default."""


@contextmanager
def open_pool(
    name: str, embedder: Embedder, settings: Settings, workers: int | None
) -> Iterator[tuple[Embedder, int]]:
    """An embedder for many texts, and how many threads should use it at once.

    A local model stays in this process, unless several workers or a cluster are to be used.
    """
    if embedder.is_remote:
        yield embedder, workers or REMOTE_WORKERS
    elif settings.engine == LOCAL and (workers or 1) == 1:
        yield embedder, 1
    else:
        with open_engine(
            settings.engine, workers=workers, memory_mib=MEMORY_MIB, seconds=TIMEOUT_SECONDS
        ) as engine:
            yield PooledEmbedder(name, embedder, engine), workers or engine.workers


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedTexts:
    """A batch of texts for a model in another process."""

    embedder: str
    version: str
    """The required version of the model."""
    texts: Sequence[str]
    purpose: Purpose


class PooledEmbedder:
    """An embedder that runs in processes of an engine, each of which loads the model once."""

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
        embedded: Embedded = outcome.unwrap()
        return embedded


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
