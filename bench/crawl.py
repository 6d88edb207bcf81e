"""How fast is a crawl, and with how much memory, beside Scrapy with its FilesPipeline?

One website on this machine, served by a process of its own: by default 2,000 pages that list 5,000
PDFs. Both crawlers are started anew for each round, in turn, with as many requests at once, and
with politeness off. Ours archives and checks every PDF, stores it under its name, notes it in a
journal and makes it a document; Scrapy writes it to a folder under a hash of its address. Time
counts from the start of the process to its end; memory is that of the process and its children, at
its peak. Then ours crawls with politeness on, and the server tells at which rate it was asked.

    python bench/crawl.py [--pages 2000] [--pdfs 5000] [--size 20000] [--rounds 3] [--json]
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
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

import httpx
import psutil

ROOT: Final = Path(__file__).resolve().parent.parent
AT_LEAST: Final = 1.0
POLITE_SECONDS: Final = 10
POLITE_RATE: Final = 2.0
"""Requests a second that a website is asked, if its robots.txt says nothing."""

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
    begun = time.perf_counter()
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
    return {"seconds": time.perf_counter() - begun, "processor": spent, "mib": peak / 2**20}


def ours(address: str, folder: Path, at_once: int, **settings: str) -> dict[str, float]:
    """`fonds crawl`, into a new library and a new folder."""
    config = folder / "sites.json"
    site = {"id": "registry", "name": "Registry", "base_url": address}
    config.write_text(json.dumps({"version": "1.0", "websites": [site]}))
    fonds = str(Path(sys.executable).with_name("fonds"))
    command = [fonds, "crawl", str(config), "--output", str(folder / "output")]
    command += ["--parallelism", str(at_once), "--max-pages", "100000", "--json"]
    environment = {"FONDS_HOME": str(folder / "library"), "FONDS_ALLOW_PRIVATE": "1", **settings}
    return measured(command, environment)


def theirs(address: str, folder: Path, at_once: int) -> dict[str, float]:
    """Scrapy, into a new folder."""
    script = folder / "spider.py"
    script.write_text(SPIDER)
    command = [sys.executable, str(script), address, str(folder / "files"), str(at_once)]
    return measured(command, {})


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Both in turn, several times.

    All that they write is kept until the end: for about a minute, ext4 takes several times as long
    to make a file where others were deleted, and the second would pay for what the first has left.
    """
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
    figures = {
        name: {kind: median(one[kind] for one in all_of) for kind in all_of[0]}
        for name, all_of in rounds.items()
    }
    ratio = {kind: figures["scrapy"][kind] / figures["fonds"][kind] for kind in figures["fonds"]}
    return {"rounds": rounds, "median": figures, "scrapy / fonds": ratio}


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
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--pdfs", type=int, default=5000)
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--parallelism", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = compare(options)
    polite = politeness(options)
    if options.json:
        print(json.dumps({**found, "politeness": polite}, indent=2))
    else:
        report(found, polite)
    faster = found["scrapy / fonds"]["seconds"] >= AT_LEAST
    leaner = found["scrapy / fonds"]["mib"] >= AT_LEAST
    slow_enough = polite["a_second"] <= POLITE_RATE
    sys.exit(0 if faster and leaner and slow_enough else 1)


def report(found: dict[str, Any], polite: dict[str, float]) -> None:
    """The figures, for people."""
    for name, figures in found["median"].items():
        told = "  ".join(f"{kind} {value:8.1f}" for kind, value in figures.items())
        print(f"{name:8} {told}")
    for kind, ratio in found["scrapy / fonds"].items():
        print(f"scrapy / fonds, {kind}: {ratio:.2f}")
    print(
        f"politely: {polite['requests']:.0f} requests at {polite['a_second']:.2f} a second, "
        f"{polite['allowed']:.0f} allowed; never closer than {polite['shortest_pause']:.3f} s"
    )


if __name__ == "__main__":
    main()
