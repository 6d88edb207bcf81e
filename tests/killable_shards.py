"""Writers and compilers of an index that may be killed: forks of a process that has imported all.

python -m tests.killable_shards

Each line on stdin asks for one thing: `{"start": "write", …}` for a process, whose id is the
answer; `{"poll": 123}` or `{"wait": 123}` for the code with which it ended, or null.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import structlog

from fonds.errors import StoreError
from fonds.seams import Seams
from fonds.shards.compiler import Compiler
from fonds.shards.domains import DOMAINS
from fonds.shards.inbox import put
from fonds.shards.index import Index, open_index
from fonds.shards.lookup import Lookup
from fonds.shards.schema import Value, rank
from fonds.stores.blobs import open_blobs
from fonds.testing import Saboteur
from tests.sharding import record

# What the processes do ----------------------------------------------------------------------


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


_WORKS: Final[Mapping[str, Callable[..., None]]] = {
    "compile_once": compile_once,
    "compile_on": compile_on,
    "write": write,
}


# The process they are forks of --------------------------------------------------------------


def main() -> None:
    """Do what stdin asks for, until it ends; nobody outlives it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    gc.freeze()
    children: set[int] = set()
    for line in sys.stdin:
        question = json.loads(line)
        sys.stdout.write(f"{json.dumps(_answer(question, children))}\n")
        sys.stdout.flush()
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _answer(question: dict[str, Any], children: set[int]) -> int | None:
    if work := question.pop("start", None):
        child = _fork(_WORKS[work], question)
        children.add(child)
        return child
    ((kind, pid),) = question.items()
    found, status = os.waitpid(pid, os.WNOHANG if kind == "poll" else 0)
    if not found:
        return None
    children.discard(pid)
    return os.waitstatus_to_exitcode(status)


def _fork(work: Callable[..., None], options: Mapping[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    os.dup2(2, 1)  # answers are the parent's alone
    try:
        work(**options)
    except BaseException:  # noqa: BLE001 — nothing may come back to where the fork was made
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


class Nursery:
    """Starts processes between `with` and the end of the block, which none of them outlives."""

    def start(self, work: Callable[..., None], **options: Any) -> int:
        """The id of a process that does this."""
        pid: int = self._ask({"start": work.__name__, **options})
        return pid

    def poll(self, pid: int) -> int | None:
        """The code with which a process ended, or None while it runs."""
        code: int | None = self._ask({"poll": pid})
        return code

    def wait(self, pid: int) -> int:
        """The code with which a process ends."""
        code: int = self._ask({"wait": pid})
        return code

    def kill(self, pid: int) -> None:
        """End a process at once."""
        os.kill(pid, signal.SIGKILL)
        assert self.wait(pid) == -signal.SIGKILL

    def _ask(self, question: Mapping[str, Any]) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{json.dumps(question)}\n".encode())
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.killable_shards"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parent.parent,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()


if __name__ == "__main__":
    main()
