"""A model of this machine, asked in processes of an engine: here, or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Final

from fonds.embed.base import Embedded, Embedder, EmbeddingModel, Purpose
from fonds.embed.registry import open_embedder
from fonds.engine.base import Engine
from fonds.engine.opening import LOCAL, open_engine
from fonds.errors import ModelMissingError, RetryableEmbedError, WorkerDiedError
from fonds.settings import Settings

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
class Texts:
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
        item = Texts(
            embedder=self._name, version=self.model.version, texts=list(texts), purpose=purpose
        )
        (outcome,) = self._engine.run(embed_texts, [item])
        if isinstance(outcome.error, WorkerDiedError):
            raise RetryableEmbedError(str(outcome.error)) from outcome.error
        made: Embedded = outcome.unwrap()
        return made


def embed_texts(item: Texts) -> Embedded:
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
