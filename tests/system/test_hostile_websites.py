"""Websites that would hold a crawl: each is an error with its cause, and the crawl goes on."""

from __future__ import annotations

import asyncio
import gzip
import json
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.support.crawls import HASTY, crawl, crawler, told
from tests.support.polling import wait_until
from tests.support.ray_cluster import is_alive
from tests.support.upstreams.misbehaving import MisbehavingServer
from tests.zoo import Truth, Zoo, ZooSite, serve
from tests.zoo.site import Answer, Ask

from fonds.errors import TooLargeError
from fonds.library import Library
from fonds.sites import sitemaps
from fonds.sites.probe import probe
from fonds.sites.structure_advisor import StructureAdvisor
from fonds.sites.website import details

PDFS = 6


def site(attributes: int) -> ZooSite:
    """A site whose first page leads to two lists and to one page that no parser ends with."""
    links = "".join(f"<p><a href=/{name}.html>Reports of 2024: {name}</a>" for name in ("a", "b"))
    tag = " ".join(f"a{number}=1" for number in range(attributes))
    listed = tuple(
        Truth(path=f"/{name}-{number}-2024.pdf", organization=None, period="2024-annual")
        for name in ("a", "b")
        for number in range(PDFS // 2)
    )
    lists = {
        f"/{name}.html": "<ul>"
        + "".join(
            f"<li><a href={truth.path}>Report 2024</a>" for truth in listed if name == truth.path[1]
        )
        + "</ul>"
        for name in ("a", "b")
    }
    return ZooSite(
        id="hostile",
        name="Office",
        listed=listed,
        pages={
            "/": f"<p><a href=/endless.html>Reports of 2024: endless</a>{links}",
            "/endless.html": f"<html><body><p {tag}></p></body></html>",
            **lists,
        },
    )


@pytest.mark.long
def test_a_page_beyond_the_limits_is_a_failed_page_and_the_crawl_goes_on(tmp_path: Path) -> None:
    with serve([site(120_000)]) as zoo, crawler(tmp_path, read_seconds=8.0) as library:
        [report] = crawl(library, zoo, tmp_path / "output")
        _check_all_but_one(library, zoo)
    assert report.status == "partial"
    assert "1 pages could not be read" in (report.error_summary or "")
    assert "longer than 8 s" in (report.error_summary or "")
    assert told(tmp_path / "output").total_pdfs_downloaded == PDFS


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_crawl_that_reads_a_page_of_200000_attributes_ends_when_it_is_stopped(
    tmp_path: Path, number: signal.Signals
) -> None:
    with serve([site(200_000)]) as zoo:
        config = tmp_path / "sites.json"
        config.write_text(json.dumps(zoo.configuration()))
        command = [sys.executable, "-m", "fonds", "crawl", str(config), "--output", "output"]
        settings = {f"FONDS_{name.upper()}": f"{value:g}" for name, value in HASTY.items()}
        variables = {"FONDS_HOME": str(tmp_path / "library"), "PATH": "/usr/bin:/bin", **settings}
        process = subprocess.Popen(command, cwd=tmp_path, env=variables, stdin=subprocess.DEVNULL)
        wait_until(lambda: any(one.path == "/endless.html" for one in zoo.requests))
        wait_until(lambda: sum(one.path.endswith(".pdf") for one in zoo.requests) >= 1)
        readers = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
        assert readers
        process.send_signal(number)
        assert process.wait(30) == 130
        wait_until(lambda: not any(map(is_alive, readers)))
        resumed = [*command, "--resume"]
        assert subprocess.run(resumed, cwd=tmp_path, env=variables, check=False).returncode == 3
        with crawler(tmp_path) as library:
            _check_all_but_one(library, zoo)
    assert told(tmp_path / "output").total_pdfs_downloaded == PDFS


def _check_all_but_one(library: Library, zoo: Zoo) -> None:
    shown = details(library.database, "hostile")
    assert shown["pages"] == {"visited": 3, "failed": 1}
    assert shown["pdfs"] == {"indexed": PDFS}
    [failure] = shown["failures"]
    assert failure["url"] == f"{zoo.base(zoo.sites[0])}/endless.html"
    assert failure["error"].startswith("ItemTimeoutError: ")


@pytest.mark.smoke
def test_a_probe_of_an_endless_page_ends_at_the_limit_of_a_page(tmp_path: Path) -> None:
    async def work(library: Library, url: str) -> None:
        async with library.open_context() as context:
            await probe(url, context, (StructureAdvisor(),))

    with MisbehavingServer() as server, crawler(tmp_path) as library:
        with pytest.raises(TooLargeError, match="/endless is larger than 16 MiB"):
            asyncio.run(work(library, server.url("/endless")))
        assert [seen.target for seen in server.requests] == ["/robots.txt", "/endless"]


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (
            gzip.compress(b"<urlset>" + b" " * sitemaps.MAX_SIZE + b"<url/></urlset>", 1),
            "it has more than 50 MiB decompressed",
        ),
        (
            b"http://x.org/a\n" * (sitemaps.MAX_ADDRESSES + 1),
            "it lists more than 50,000 addresses",
        ),
        (
            b"<urlset><url><loc>http://x.org/a</loc></url>" + b"<x>" * 10_000,
            "its elements are nested too deeply",
        ),
        (
            b"<sitemapindex>%s</sitemapindex>",
            "it is an index below 2 others, which is not followed",
        ),
    ],
    ids=["expanding", "long", "nested", "indexes"],
)
def test_a_sitemap_beyond_a_limit_makes_the_crawl_incomplete_by_name(
    tmp_path: Path, content: bytes, cause: str
) -> None:
    def index(ask: Ask) -> Answer:
        further = f"http://{ask.headers['host']}/sitemap.xml?{ask.number}"
        sitemap = f"<sitemap><loc>{further}</loc></sitemap>"
        return Answer(body=content.replace(b"%s", sitemap.encode()), media="application/xml")

    office = ZooSite(
        id="office",
        name="Office",
        listed=(),
        pages={"/": "<p>We publish nothing here.</p>", "/sitemap.xml": index},
    )
    with serve([office]) as zoo, crawler(tmp_path) as library:
        [report] = crawl(library, zoo, tmp_path / "output")
    assert cause in (report.error_summary or "")
    assert "/sitemap.xml" in (report.error_summary or "")
    assert sum(one.path.startswith("/sitemap.xml") for one in zoo.requests) <= sitemaps.MAX_LEVELS
