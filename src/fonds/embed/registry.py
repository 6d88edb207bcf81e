"""The registry of embedders by name, and embedders that run in processes of an engine.

Installed packages add theirs in the entry-point group `fonds.embedders`: the first part of a name,
and a function that opens the embedder from the rest of the name and the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from fonds.embed.base import Embedded, Embedder, EmbeddingModel, Purpose
from fonds.engine.base import Engine
from fonds.engine.opening import LOCAL, open_engine
from fonds.errors import (
    ModelMissingError,
    PluginError,
    RetryableEmbedError,
    UsageError,
    WorkerDiedError,
)
from fonds.plugins import load_plugin
from fonds.settings import Settings

GROUP: Final = "fonds.embedders"

_NAMES: Final = ("wordllama", "minilm", "onnx:FOLDER", "openai:MODEL", "hashing", "hashing:DIMS")

# Only the module of the embedder that is used is imported: models take long to import.
_MODELS: Final = {
    "wordllama": "fonds.embed.wordllama:WordLlamaEmbedder",
    "minilm": "fonds.embed.onnx:minilm",
}
_FAMILIES: Final = {
    "onnx": "fonds.embed.onnx:open_onnx",
    "openai": "fonds.embed.openai:open_openai",
    "hashing": "fonds.embed.hashing:open_hashing",
}
"""Embedders whose name continues after a colon; opened as those of installed packages are."""


def embedder_names() -> tuple[str, ...]:
    """The forms that the setting `embedder` may have."""
    return (*_NAMES, *sorted(entry.name for entry in entry_points(group=GROUP)))


def open_embedder(spec: str, settings: Settings) -> Embedder:
    """The embedder of a name such as `wordllama` or `openai:text-embedding-3-small`."""
    kind, _, rest = spec.strip().partition(":")
    if kind in _MODELS and not rest:
        return _load(kind, _MODELS[kind])()
    if kind in _FAMILIES:
        return _load(kind, _FAMILIES[kind])(rest, settings)
    for entry in entry_points(group=GROUP, name=kind):
        try:
            open_plugin = load_plugin(entry, EntryPoint.load)
        except PluginError as error:
            raise ModelMissingError(str(error)) from error
        embedder = open_plugin(rest, settings)
        if not isinstance(embedder, Embedder):
            raise UsageError(f"the entry point {kind} of {GROUP} did not return an embedder")
        return embedder
    raise UsageError(f"no embedder is called {spec!r}; there are: {', '.join(embedder_names())}")


def _load(kind: str, address: str) -> Callable[..., Embedder]:
    opener: Callable[..., Embedder] = EntryPoint(kind, address, GROUP).load()
    return opener


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
