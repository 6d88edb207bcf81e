"""An output has one journal: crawls that write to the same one take turns, on every database."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support import servers
from tests.support.crawls import crawler, plan_for, told
from tests.zoo import SITES, serve

from fonds.errors import SourceBusyError
from fonds.library import Library
from fonds.runs.state import RunStatus
from fonds.sites import output
from fonds.sites.session import Plan


@pytest.fixture(params=["sqlite", "postgres"])
def library(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Library]:
    settings = {}
    if request.param == "postgres":
        settings["database"] = request.getfixturevalue("postgres_database")
    else:
        (tmp_path / "library").mkdir()
        servers.sqlite_database(tmp_path / "library" / "fonds.db")
    with crawler(tmp_path, **settings) as opened:
        yield opened


@pytest.fixture
def plans(library: Library, tmp_path: Path) -> Iterator[list[Plan]]:
    """A crawl of each of two websites, into one output."""
    with serve(SITES[:2]) as zoo:
        whole = plan_for(library, zoo, tmp_path / "output")
        yield [replace(whole, websites=[website]) for website in whole.websites]


def test_crawls_of_one_output_wait_for_each_other_and_no_entry_is_lost(
    library: Library, plans: list[Plan], tmp_path: Path
) -> None:
    async def crawl() -> list[RunStatus]:
        ended = await asyncio.gather(*(library.crawl(plan, waits=True) for plan in plans))
        return [report.status for reports in ended for report in reports]

    assert asyncio.run(crawl()) == [RunStatus.SUCCESS] * 2
    entries = told(tmp_path / "output").downloaded_files
    files = [path.name for path in (tmp_path / "output" / "pdfs").iterdir()]
    assert sorted(entry.filename for entry in entries) == sorted(files)
    assert set(Counter(entry.website_id for entry in entries)) == {
        plan.websites[0].id for plan in plans
    }


def test_who_does_not_wait_is_told_that_the_output_is_taken(
    library: Library, plans: list[Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "LEASE_EXPIRY_SECONDS", 0.0)

    async def crawl() -> None:
        async with (
            library.open_context() as context,
            output.lock_output(str(tmp_path / "output"), context, waits=False),
        ):
            await library.crawl(plans[0])

    with pytest.raises(SourceBusyError, match=r"another crawl writes to .*output: wait"):
        asyncio.run(crawl())
    assert not (tmp_path / "output" / "metadata.json").exists()
    (report,) = asyncio.run(library.crawl(plans[0]))
    assert report.status is RunStatus.SUCCESS


def test_outputs_of_their_own_are_written_at_the_same_time(
    library: Library, plans: list[Plan], tmp_path: Path
) -> None:
    async def crawl() -> list[RunStatus]:
        async with (
            library.open_context() as context,
            output.lock_output(str(tmp_path / "elsewhere"), context, waits=False),
        ):
            return [report.status for report in await library.crawl(plans[0])]

    assert asyncio.run(crawl()) == [RunStatus.SUCCESS]
