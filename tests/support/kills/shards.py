"""Writers and compilers of an index, to be killed; see fonds/selftest/child.py."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from tests.support.indexes import record

from fonds.errors import StoreError
from fonds.seams import Seams
from fonds.selftest.child import serve
from fonds.shards.compiler import Compiler
from fonds.shards.inbox import put
from fonds.shards.index import DOMAINS, Index, open_index
from fonds.shards.lookup import Lookup
from fonds.shards.schema import Value, rank
from fonds.stores.blobs import open_blobs
from fonds.testing import Saboteur


def compile_once(*, address: str, name: str, lifetime: float, kill_at: int | None) -> None:
    """One round, that may be killed at a durable operation."""
    blobs = open_blobs(address, seams=Seams(durable=Saboteur(kill_at=kill_at)))
    Compiler(open_index(blobs, name), seams=Seams(), lifetime=timedelta(seconds=lifetime)).run()


def compile_on(*, address: str, name: str, lifetime: float) -> None:
    """Round after round, whatever the store does, until killed."""
    index = _patiently(lambda: open_index(open_blobs(address, seams=Seams()), name))
    compiler = Compiler(
        index, seams=Seams(), workers=2, page=7, lifetime=timedelta(seconds=lifetime)
    )
    while True:
        with suppress(StoreError):
            damaged = compiler.run().damaged
            assert not damaged, damaged
        time.sleep(0.05)


def write(
    *, address: str, name: str, journal: str, keys: Sequence[str], records: int, seed: int
) -> None:
    """Note records in no order of time; what is acknowledged goes into the journal."""
    chance = random.Random(seed)
    index = _patiently(lambda: open_index(open_blobs(address, seams=Seams()), name))
    with Path(journal).open("ab", buffering=0) as file:
        for number in range(records):
            # Few moments and many writers: ties are usual.
            noted = record(chance.choice(keys), chance.randrange(12), f"{seed}\x1f\n{number}")
            _patiently(partial(put, index, noted))
            file.write(DOMAINS.encode(noted))
            _check_found(index, noted)


def _check_found(index: Index, noted: Mapping[str, Value]) -> None:
    """What is acknowledged is found at once, unless something newer is."""
    found = _patiently(lambda: Lookup(index).find(str(noted["domain"])))
    assert found is not None, noted
    assert rank(DOMAINS.encode(found)) >= rank(DOMAINS.encode(noted)), (noted, found)


def _patiently(ask: Callable[[], Any]) -> Any:
    for attempt in count():
        try:
            return ask()
        except StoreError:
            if attempt == 100:
                raise
    return None


if __name__ == "__main__":
    serve({work.__name__: work for work in (compile_once, compile_on, write)})
