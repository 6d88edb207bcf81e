"""Shards compiled on an engine: each by a process that opens the index itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from fonds.engine.base import Engine
from fonds.engine.opening import LOCAL, open_engine
from fonds.errors import EngineError, SettingsError
from fonds.seams import Seams
from fonds.shards.compiler import Compiled, Compiler, Elsewhere
from fonds.shards.index import Index, open_index
from fonds.stores.blobs import open_blobs

SECONDS: Final = 600.0
"""For a shard; its lock runs out before."""

_log: Final = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardOrder:
    """A shard to be compiled, as a process gets it."""

    root: str
    """The address of the store."""
    index: str
    digits: int
    """By which the shard was named; an index that was divided meanwhile has others."""
    shard: str
    paths: Sequence[str]
    """Of the records that wait for it."""


def compile_shard(order: ShardOrder) -> Compiled:
    """Compile a shard in a process of an engine, unless another does."""
    if "://" not in order.root and not Path(order.root).is_dir():
        raise SettingsError(
            f"{order.root} is not on every machine of the cluster: an index that several compile"
            " must be on an object store, or FONDS_ENGINE=local"
        )
    index = open_index(open_blobs(order.root, seams=Seams()), order.index)
    if index.layout.digits != order.digits:
        return Compiled(busy=1)
    return Compiler(index, seams=Seams()).compile(order.shard, order.paths)


@contextmanager
def compiling_on(address: str, root: str) -> Iterator[Callable[[Index], Elsewhere | None]]:
    """How shards of an index below `root` are compiled: here, unless there is a cluster."""
    if address == LOCAL:  # threads do, for a shard is mostly waited for
        yield lambda _: None
        return
    with open_engine(address, seconds=SECONDS) as engine:
        yield partial(on_engine, engine, root)


def on_engine(engine: Engine, root: str, index: Index) -> Elsewhere:
    """Compiles shards of an index on an engine; what is lost with a process waits as before."""
    absolute = root if "://" in root else str(Path(root).absolute())
    name, digits = index.name, index.layout.digits

    def compiled(shards: Iterable[tuple[str, Sequence[str]]]) -> Iterator[Compiled]:
        orders = (
            ShardOrder(root=absolute, index=name, digits=digits, shard=shard, paths=paths)
            for shard, paths in shards
        )
        for outcome in engine.run(compile_shard, orders):
            if isinstance(outcome.error, EngineError):
                _log.warning("shard_failed", index=name, shard=outcome.item.shard)
                yield Compiled(failed=1)
            else:
                yield outcome.unwrap()

    return compiled
