from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.support.upstreams.misbehaving import MisbehavingServer
from tests.support.upstreams.redirecting_loop import RedirectingLoop

from fonds.fetch.client import Download, Fetcher
from fonds.fetch.rates import Pace, Sleep
from fonds.fetch.transport import Transport
from fonds.seams import Seams
from fonds.settings import Settings


class Fetch(Protocol):
    """Download one file with a fetcher of its own."""

    def __call__(self, url: str, **options: Any) -> Download | None: ...


@pytest.fixture
def upstream() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as server:
        yield server


@pytest.fixture
def settings() -> Settings:
    return Settings(
        allow_private=True,
        timeout=5.0,
        retries=3,
        retry_wait=0.001,
        retry_wait_max=0.01,
        max_file_mib=1,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "downloads"


@pytest.fixture
def fetch(settings: Settings, folder: Path) -> Fetch:
    def download(
        url: str,
        *,
        settings: Settings = settings,
        seams: Seams | None = None,
        transport: Transport | None = None,
        loop: RedirectingLoop | None = None,
        sleep: Sleep = asyncio.sleep,
        deadline: float | None = None,
        **options: Any,
    ) -> Download | None:
        async def run() -> Download | None:
            opened = Fetcher(
                settings,
                seams=seams or Seams(),
                folder=folder,
                transport=transport,
                sleep=sleep,
                deadline=deadline,
            )
            async with opened as fetcher:
                pace = Pace(per_second=1000, burst=1000)
                return await fetcher.download(url, source="test", pace=pace, **options)

        return loop.run(run()) if loop else asyncio.run(run())

    return download
