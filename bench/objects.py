"""How fast are objects written, read and listed through our store, beside boto3?

A real S3 server on this machine (SeaweedFS) takes and gives many small objects, as many at once
from either side, in turn; each side has a prefix of its own. Seconds are those on the wall, the
server's included, and beside them the processor's seconds of this process alone.

    python -m bench.objects [--objects 5000] [--size 4096] [--at-once 16] [--rounds 3] [--json]
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import boto3
from bench.figures import NO_WORSE, Figure, asking, tell
from botocore.config import Config
from tests.support import servers

from fonds.seams import Seams
from fonds.stores.blobs import Blobs, open_blobs

ACTS = ("written", "read", "listed")


class Side(Protocol):
    """One way to an object store."""

    def put(self, key: str, data: bytes) -> None:
        """Store an object."""

    def get(self, key: str) -> bytes:
        """Its bytes."""
        ...

    def count(self, prefix: str) -> int:
        """How many objects there are."""
        ...


class Ours:
    """The store that a library has."""

    def __init__(self, address: str) -> None:
        self._blobs: Blobs = open_blobs(address, seams=Seams())

    def put(self, key: str, data: bytes) -> None:
        """Store an object."""
        self._blobs.put(key, data)

    def get(self, key: str) -> bytes:
        """Its bytes."""
        return self._blobs.get(key)

    def count(self, prefix: str) -> int:
        """How many objects there are."""
        return sum(1 for _ in self._blobs.list(f"{prefix}/"))


class Boto:
    """boto3's client, with a connection for each thread."""

    def __init__(self, address: str, at_once: int) -> None:
        parts = urlsplit(address)
        given = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self._bucket, self._prefix = parts.netloc, parts.path.strip("/")
        self._client: Any = boto3.client(
            "s3",
            endpoint_url=given["endpoint"],
            region_name=given["region"],
            aws_access_key_id=given["access_key_id"],
            aws_secret_access_key=given["secret_access_key"],
            config=Config(max_pool_connections=at_once),
        )

    def put(self, key: str, data: bytes) -> None:
        """Store an object."""
        self._client.put_object(Bucket=self._bucket, Key=f"{self._prefix}/{key}", Body=data)

    def get(self, key: str) -> bytes:
        """Its bytes."""
        answer = self._client.get_object(Bucket=self._bucket, Key=f"{self._prefix}/{key}")
        data: bytes = answer["Body"].read()
        return data

    def count(self, prefix: str) -> int:
        """How many objects there are."""
        pages = self._client.get_paginator("list_objects_v2")
        where = {"Bucket": self._bucket, "Prefix": f"{self._prefix}/{prefix}/"}
        return sum(len(page.get("Contents", ())) for page in pages.paginate(**where))


def measure(
    side: Side, pool: ThreadPoolExecutor, prefix: str, bodies: Sequence[bytes]
) -> Iterator[tuple[float, float]]:
    """Seconds on the wall and of the processor: to write all, to read all, to list all."""
    keys = [f"{prefix}/{number:06}" for number in range(len(bodies))]
    yield timed(lambda: list(pool.map(side.put, keys, bodies)))
    yield timed(lambda: check(list(pool.map(side.get, keys)) == list(bodies)))
    yield timed(lambda: check(side.count(prefix) == len(keys)))


def check(is_right: bool) -> None:  # noqa: FBT001 — nothing but a question
    """What is incomplete is no figure."""
    if not is_right:
        raise SystemExit("the store gave back something else than was put there")


def timed(act: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the wall and of the processor."""
    begun, before = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - begun, time.process_time() - before


def best(rounds: Sequence[Sequence[tuple[float, float]]]) -> list[tuple[float, float]]:
    """The shortest of some rounds, for each act."""
    return [
        (min(wall for wall, _ in each), min(spent for _, spent in each))
        for each in zip(*rounds, strict=True)
    ]


def figures(
    ours: Sequence[tuple[float, float]], theirs: Sequence[tuple[float, float]], count: int
) -> Iterator[Figure]:
    """Objects a second, and processor time for a thousand."""
    for act, one, other in zip(ACTS, ours, theirs, strict=True):
        told = partial(Figure, peer="boto3", least=NO_WORSE)
        yield told(
            what=f"objects {act}",
            ours=count / one[0],
            theirs=count / other[0],
            unit="objects/s",
            better="more",
        )
        yield told(
            what=f"processor time of 1,000 {act}",
            ours=1000 * one[1] / count,
            theirs=1000 * other[1] / count,
            unit="CPU s",
            better="less",
        )


def main() -> None:
    """Print the figures; end with 1 where ours is worse."""
    parser = asking(__doc__)
    parser.add_argument("--objects", type=int, default=5000)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    bodies = [os.urandom(options.size) for _ in range(options.objects)]
    servers.open_run()
    try:
        address = servers.s3()
        sides: dict[str, Side] = {"ours": Ours(address), "theirs": Boto(address, options.at_once)}
        with ThreadPoolExecutor(options.at_once) as pool:
            for name, side in sides.items():
                list(measure(side, pool, f"warm-{name}", bodies[: options.at_once]))
            rounds = [
                {
                    name: list(measure(side, pool, f"{name}-{number}", bodies))
                    for name, side in sides.items()
                }
                for number in range(options.rounds)
            ]
    finally:
        servers.close_run()
    ours, theirs = (best([one[name] for one in rounds]) for name in sides)
    tell(options, list(figures(ours, theirs, options.objects)))


if __name__ == "__main__":
    main()
