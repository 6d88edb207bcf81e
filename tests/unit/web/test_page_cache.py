"""The cache of rendered pages: what it keeps, for how long, and how much."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from http import HTTPStatus

import pytest
from starlette.responses import RedirectResponse, Response

from fonds.testing import ManualClock
from fonds.web.rendering import CACHE_SECONDS, PageCache


def test_page_is_made_once_while_it_is_recent() -> None:
    clock = ManualClock()
    cache, made = PageCache(clock), []

    def make() -> Response:
        made.append(clock.monotonic())
        return Response(b"a page")

    assert cache.get("key", make).body == cache.get("key", make).body == b"a page"
    assert len(made) == 1
    clock.move(seconds=CACHE_SECONDS)
    cache.get("key", make)
    assert len(made) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: RedirectResponse("/d/elsewhere"),
        lambda: Response(b"not found", HTTPStatus.NOT_FOUND),
        lambda: Response(b"an error", HTTPStatus.INTERNAL_SERVER_ERROR),
    ],
    ids=["redirect", "not found", "error"],
)
def test_page_cache_keeps_neither_redirects_nor_errors(make: Callable[[], Response]) -> None:
    cache = PageCache(ManualClock())
    assert cache.get("key", make).body == make().body
    assert cache.size == 0
    assert cache.get("key", lambda: Response(b"a page")).body == b"a page"


def test_page_cache_counts_all_that_it_holds() -> None:
    # Bodies alone were counted: 100,000 pages without one would have been kept.
    cache = PageCache(ManualClock(), max_bytes=1_000_000)
    tracemalloc.start()
    for number in range(5_000):
        cache.get(f"{number}{'x' * 400}", Response)
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 500_000 < cache.size <= 1_000_000
    assert taken < 2 * cache.size


def test_page_larger_than_the_cache_is_sent_and_not_kept() -> None:
    cache = PageCache(ManualClock(), max_bytes=10_000)
    assert len(cache.get("large", lambda: Response(b"x" * 20_000)).body) == 20_000
    assert cache.size == 0
