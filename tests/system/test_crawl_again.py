"""Crawls that follow others of the same website: resumed after failures, or a new one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.crawls import crawl, crawler, seen, told
from tests.zoo import SITES, Answer, Ask, Zoo, ZooSite, serve

from fonds.cli.progress import exit_code
from fonds.library import Library
from fonds.runs.state import RunReport, RunStatus
from fonds.sites.models import PdfState
from fonds.sites.session import CrawlLimits

pytestmark = pytest.mark.smoke

BY_ID = {site.id: site for site in SITES}
DOWN = Answer(status=500, body=b"down")


class Office:
    """A website of the zoo, some of whose addresses have answers that a test gives them."""

    def __init__(self, site: ZooSite, folder: Path) -> None:
        self.answers: dict[str, Answer] = {}
        self.folder = folder
        self.site = replace(site, gate=self._gate)
        self.zoo: Zoo
        self.library: Library

    def _gate(self, ask: Ask) -> Answer | None:
        return self.answers.get(ask.target)

    def crawl(self, **options: Any) -> RunReport:
        self.zoo.reset()
        (report,) = crawl(self.library, self.zoo, self.folder / "output", **options)
        return report

    def nothing_to_resume(self) -> bool:
        return crawl(self.library, self.zoo, self.folder / "output", resume=True) == []

    def paths(self) -> list[str]:
        return [one.path for one in self.zoo.requests]

    def states(self) -> dict[str, str]:
        base = self.zoo.base(self.site)
        rows = seen(self.library).get(self.site.id, [])
        return {row.url.removeprefix(base): row.state for row in rows}


@contextmanager
def office(folder: Path, site: str) -> Iterator[Office]:
    opened = Office(BY_ID[site], folder)
    with serve([opened.site]) as opened.zoo, crawler(folder) as opened.library:
        yield opened


# Resumed ----------------------------------------------------------------------------------


def test_failed_pdfs_are_fetched_when_a_crawl_is_resumed_until_none_is_left(
    tmp_path: Path,
) -> None:
    with office(tmp_path, "register-table") as registry:
        paths = [truth.path for truth in registry.site.listed]
        registry.answers = dict.fromkeys(paths[:3], DOWN)
        assert registry.crawl().status is RunStatus.PARTIAL
        del registry.answers[paths[0]]
        again = registry.crawl(resume=True)
        requested = {path for path in registry.paths() if path in paths}
        metadata = told(tmp_path / "output")
        assert exit_code([again]) == 3
        assert requested == set(paths[:3])
        assert metadata.websites_crawled == 1
        assert (metadata.total_pdfs_downloaded, metadata.total_pdfs_failed) == (len(paths) - 2, 2)
        registry.answers.clear()
        assert registry.crawl(resume=True).status is RunStatus.SUCCESS
        assert registry.nothing_to_resume()
        assert set(registry.states().values()) == {PdfState.INDEXED}
    metadata = told(tmp_path / "output")
    assert (metadata.total_pdfs_downloaded, metadata.total_pdfs_failed) == (len(paths), 0)
    assert metadata.total_pdfs_discovered == len(paths)


def test_pages_that_failed_are_visited_when_a_crawl_is_resumed(tmp_path: Path) -> None:
    with office(tmp_path, "disclosure-pages") as accounts:
        accounts.answers = {"/reports/page/3/": DOWN}
        first = accounts.crawl()
        failed_again = accounts.crawl(resume=True)
        accounts.answers.clear()
        last = accounts.crawl(resume=True)
        assert len(accounts.states()) == len(accounts.site.listed)
        assert accounts.nothing_to_resume()
    assert (first.status, failed_again.status) == (RunStatus.PARTIAL, RunStatus.PARTIAL)
    assert "/reports/page/3/" in (failed_again.error_summary or "")
    assert last.status is RunStatus.SUCCESS


def test_a_first_page_that_fails_again_is_named_as_the_cause(tmp_path: Path) -> None:
    with office(tmp_path, "register-table") as registry:
        registry.answers = {registry.site.start: Answer(status=404)}
        assert registry.crawl().status is RunStatus.FAILED
        again = registry.crawl(resume=True)
        registry.answers.clear()
        last = registry.crawl(resume=True)
    assert again.status is RunStatus.FAILED
    assert "404" in (again.error_summary or "")
    assert (last.status, last.counts.inserted) == (RunStatus.SUCCESS, len(registry.site.listed))


@pytest.mark.parametrize("limits", [{"max_files": 7}, {"max_pages": 2}, {"max_depth": 0}])
def test_a_crawl_that_reached_a_limit_is_resumed_with_a_higher_one(
    tmp_path: Path, limits: dict[str, int]
) -> None:
    name = "biuro-form" if "max_depth" in limits else "disclosure-pages"
    with office(tmp_path, name) as accounts:
        first = accounts.crawl(limits=CrawlLimits(**limits))
        again = accounts.crawl(resume=True, limits=CrawlLimits(**limits))
        last = accounts.crawl(resume=True, limits=CrawlLimits())
        assert {truth.path for truth in accounts.site.listed} <= set(accounts.states())
    assert first.status is again.status is RunStatus.PARTIAL
    assert last.status is RunStatus.SUCCESS, last.error_summary
    discovered = told(tmp_path / "output").total_pdfs_discovered
    assert discovered == len(accounts.site.listed)


def test_resuming_reads_no_sitemap_that_the_crawl_did_not_need(tmp_path: Path) -> None:
    with office(tmp_path, "register-table") as registry:
        registry.answers = {registry.site.listed[0].path: DOWN}
        registry.crawl()
        registry.crawl(resume=True)
        assert "/sitemap.xml" not in registry.paths()


def test_unchanged_pdfs_of_one_website_are_not_taken_for_new_ones_of_another(
    tmp_path: Path,
) -> None:
    register, list_of_offices = BY_ID["register-table"], Office(BY_ID["kitaura-list"], tmp_path)
    output = tmp_path / "output"
    with serve([register, list_of_offices.site]) as zoo, crawler(tmp_path) as library:
        crawl(library, zoo, output)
        list_of_offices.answers = {list_of_offices.site.start: DOWN}
        crawl(library, zoo, output)
        assert told(output).total_pdfs_discovered == len(register.listed)
        list_of_offices.answers.clear()
        crawl(library, zoo, output, resume=True)
    listed = len(register.listed) + len(list_of_offices.site.listed)
    assert told(output).total_pdfs_discovered == listed
