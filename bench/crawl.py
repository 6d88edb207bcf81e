"""How fast is a crawl, and with how much memory, beside Scrapy with its FilesPipeline?

One website on this machine, served by a process of its own: by default 2,000 pages that list 5,000
PDFs. Both crawlers are started again for each round, in turn, with as many concurrent requests, and
with politeness off. Ours archives every PDF, opens it in a reader process, stores it under its
name, records it in a journal and makes it a document; Scrapy writes it to a folder under a hash of
its address. Time is from the start of the process to its end; memory is that of the process and its
children, at its peak. Each finds no other packages than those it requires: both import what is
installed. First the disk rests: for a minute after files were deleted, ext4 takes up to twenty
times as long to create one, and ours creates twice as many. At the end ours crawls with politeness
on, and the server reports the rate of requests.

A crawl once was 1.2 times as fast as Scrapy, with a PDF parser of its own and one thread that
stored PDFs in batches. Both made it hard to read; every PDF is opened by pdfium now, and stored by
itself. So it may take 1.5 times as long as then, which is 1.25 times as long as Scrapy. Pages and
PDFs are read in two processes, which with their copies take some 125 MiB, pages that they share
counted twice: so memory may be 2.8 times that of Scrapy.

    python -m bench.crawl [--pages 2000] [--pdfs 5000] [--size 20000] [--rounds 3] [--rest 65]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import distribution, packages_distributions
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

import httpx
import psutil
from bench.figures import Figure, asking, tell, within
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).resolve().parent.parent
UNITS: Final = {"seconds": "s", "processor": "CPU s", "mib": "MiB"}
MIN_RATIOS: Final = {"seconds": 1 / 1.25, "mib": 1 / 2.8}
"""By the reasons above; processor time has no limit."""
REST: Final = 65
"""Seconds; ext4 goes around inodes for 60 after they were freed, and for 300 if that is not
written out, and looks through all of them for every new file."""
POLITE_SECONDS: Final = 10
POLITE_RATE: Final = 2.0
"""Requests a second that a website is asked, if its robots.txt says nothing."""

OURS: Final = """
from fonds.cli.main import main

main()
"""

SPIDER: Final = """
import sys
import scrapy
from scrapy.crawler import CrawlerProcess

class Spider(scrapy.Spider):
    name = "registry"
    start_urls = [sys.argv[1]]

    def parse(self, response):
        links = response.css("a::attr(href)").getall()
        files = [response.urljoin(link) for link in links if link.endswith(".pdf")]
        if files:
            yield {"file_urls": files}
        for link in links:
            if not link.endswith(".pdf"):
                yield response.follow(link)

process = CrawlerProcess({
    "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
    "FILES_STORE": sys.argv[2],
    "CONCURRENT_REQUESTS": int(sys.argv[3]),
    "CONCURRENT_REQUESTS_PER_DOMAIN": int(sys.argv[3]),
    "DOWNLOAD_DELAY": 0,
    "ROBOTSTXT_OBEY": True,
    "LOG_LEVEL": "ERROR",
    "TELNETCONSOLE_ENABLED": False,
})
process.crawl(Spider)
process.start()
"""


ALONE: Final = "import sys; sys.modules.update(dict.fromkeys({hidden!r}))\n"
"""What makes names seem not to be installed."""


def alone(program: str, distribution: str) -> str:
    """A program that finds no more than a distribution and all that it requires."""
    needed = requirements(distribution, set())
    hidden = [
        name
        for name, owners in packages_distributions().items()
        if needed.isdisjoint(map(canonicalize_name, owners))
    ]
    return ALONE.format(hidden=sorted(hidden)) + program


def requirements(name: str, found: set[str]) -> set[str]:
    """A distribution and all that it requires here, without what is optional."""
    if canonicalize_name(name) not in found:
        found.add(canonicalize_name(name))
        for each in map(Requirement, distribution(name).requires or ()):
            if each.marker is None or each.marker.evaluate({"extra": ""}):
                requirements(each.name, found)
    return found


@contextmanager
def website(pages: int, pdfs: int, size: int) -> Iterator[str]:
    """A website in a process of its own."""
    numbers = ("--pages", str(pages), "--pdfs", str(pdfs), "--size", str(size), "--port", "0")
    command = [sys.executable, "-m", "tests.zoo.large", *numbers]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def measured(command: Sequence[str], environment: Mapping[str, str]) -> dict[str, float]:
    """Seconds, processor seconds and peak memory of a command and its children."""
    started = time.perf_counter()
    process = psutil.Popen(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
    peak = spent = 0.0
    while process.poll() is None:
        try:
            family = [process, *process.children(recursive=True)]
            peak = max(peak, sum(one.memory_info().rss for one in family))
            spent = sum(sum(one.cpu_times()[:2]) for one in family)
        except psutil.NoSuchProcess:
            pass
        time.sleep(0.05)
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    return {"seconds": time.perf_counter() - started, "processor": spent, "mib": peak / 2**20}


def ours(address: str, folder: Path, at_once: int, **settings: str) -> dict[str, float]:
    """`fonds crawl`, into a new library and a new folder."""
    config = folder / "sites.json"
    site = {"id": "registry", "name": "Registry", "base_url": address}
    config.write_text(json.dumps({"version": "1.0", "websites": [site]}))
    command = [sys.executable, "-c", alone(OURS, "fonds"), "crawl", str(config)]
    command += ["--output", str(folder / "output")]
    command += ["--parallelism", str(at_once), "--max-pages", "100000", "--json"]
    environment = {"FONDS_HOME": str(folder / "library"), "FONDS_ALLOW_PRIVATE": "1", **settings}
    return measured(command, environment)


def theirs(address: str, folder: Path, at_once: int) -> dict[str, float]:
    """Scrapy, into a new folder."""
    script = folder / "spider.py"
    script.write_text(alone(SPIDER, "scrapy"))
    command = [sys.executable, str(script), address, str(folder / "files"), str(at_once)]
    return measured(command, {})


def compare(options: argparse.Namespace) -> dict[str, list[dict[str, float]]]:
    """Both in turn, several times; all that they write is kept until the end."""
    os.sync()
    time.sleep(options.rest)
    rounds: dict[str, list[dict[str, float]]] = {"fonds": [], "scrapy": []}
    with (
        website(options.pages, options.pdfs, options.size) as address,
        tempfile.TemporaryDirectory() as name,
    ):
        for number in range(options.rounds):
            folder = Path(name, f"scrapy-{number}")
            folder.mkdir()
            rounds["scrapy"].append(theirs(address, folder, options.parallelism))
            fetched = len(list(Path(folder, "files").rglob("*.pdf")))
            check("scrapy", fetched, options.pdfs)
            folder = Path(name, f"fonds-{number}")
            folder.mkdir()
            switched_off = {"FONDS_RATE_FACTOR": "0"}
            rounds["fonds"].append(ours(address, folder, options.parallelism, **switched_off))
            fetched = len(list(Path(folder, "output/pdfs").iterdir()))
            check("fonds", fetched, options.pdfs)
    return rounds


def check(name: str, fetched: int, wanted: int) -> None:
    """A crawl that is not complete is no figure."""
    if fetched != wanted:
        raise SystemExit(f"{name} fetched {fetched} of {wanted}")


def politeness(options: argparse.Namespace) -> dict[str, float]:
    """The most requests that the server saw within one second and within five."""
    pages, pdfs = 5, int(POLITE_RATE * POLITE_SECONDS)
    with website(pages, pdfs, options.size) as address, tempfile.TemporaryDirectory() as name:
        ours(address, Path(name), options.parallelism)
        times = sorted(row[0] for row in httpx.get(f"{address}/requests.json").json())
    spans = [later - earlier for earlier, later in pairwise(times)]
    return {
        "requests": len(times),
        "shortest_pause": min(spans),
        "a_second": (len(times) - 1) / (times[-1] - times[0]),
        "allowed": POLITE_RATE,
    }


def main() -> None:
    """Measure, print, and fail where a bar is missed."""
    parser = asking(__doc__)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--pdfs", type=int, default=5000)
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--parallelism", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rest", type=int, default=REST, help="seconds before the first round")
    options = parser.parse_args()
    rounds = compare(options)
    polite = politeness(options)
    slowly = within("requests a second, politely", polite["a_second"], polite["allowed"])
    tell(options, [*figures(rounds), slowly], rounds=rounds, politeness=polite)


def figures(rounds: Mapping[str, Sequence[Mapping[str, float]]]) -> Iterator[Figure]:
    """Medians of all rounds."""
    for kind, unit in UNITS.items():
        yield Figure(
            what=f"a whole crawl, {kind if kind != 'mib' else 'memory at its peak'}",
            ours=median(one[kind] for one in rounds["fonds"]),
            theirs=median(one[kind] for one in rounds["scrapy"]),
            unit=unit,
            peer="Scrapy with its FilesPipeline",
            better="less",
            least=MIN_RATIOS.get(kind),
        )


if __name__ == "__main__":
    main()
