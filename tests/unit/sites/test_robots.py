"""What a robots.txt lets us ask, and how often."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.zoo import serve
from tests.zoo.site import Answer, Ask, ZooSite

from fonds.errors import FetchError, RobotsForbiddenError
from fonds.fetch.client import Fetcher
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.sites.robots import (
    MARGIN,
    MAX_DELAY,
    MAX_DOWNLOAD,
    MAX_LINES,
    PACE,
    Robots,
    Rules,
    agent_of,
    read_rules,
)

HOST = "https://example.org"


def rules(*lines: str) -> Rules:
    return read_rules("\n".join(lines).encode(), "fonds")


def test_what_is_forbidden_to_all_is_forbidden_to_us_unless_we_are_named() -> None:
    all_but_us = rules("User-agent: *", "Disallow: /", "", "User-agent: fonds", "Disallow: /inner/")
    assert all_but_us.allows(f"{HOST}/reports/a.pdf")
    assert not all_but_us.allows(f"{HOST}/inner/a.pdf")
    with pytest.raises(RobotsForbiddenError, match=r"/inner/a\.pdf"):
        all_but_us.require(f"{HOST}/inner/a.pdf")


def test_wildcards_and_longer_rules_decide() -> None:
    some = rules("User-agent: *", "Disallow: /*.pdf$", "Allow: /reports/*.pdf$")
    assert some.allows(f"{HOST}/reports/a.pdf")
    assert not some.allows(f"{HOST}/other/a.pdf")
    assert some.allows(f"{HOST}/other/a.pdf?page=2")


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("", 1 / PACE.per_second),
        ("Crawl-delay: 10", 10.0 * MARGIN),
        ("Crawl-delay: 0.1", 1 / PACE.per_second),
        ("Crawl-delay: 86400", MAX_DELAY * MARGIN),
        ("Crawl-delay: soon", 1 / PACE.per_second),
        ("Request-rate: 1/5", 5.0 * MARGIN),
    ],
)
def test_a_host_is_asked_as_seldom_as_it_wants_and_never_more_often_than_we_do(
    line: str, seconds: float
) -> None:
    assert 1 / rules("User-agent: *", line).pace.per_second == pytest.approx(seconds)


def test_sitemaps_are_told() -> None:
    assert rules(f"Sitemap: {HOST}/one.xml", f"sitemap:{HOST}/two.xml").sitemaps == [
        f"{HOST}/one.xml",
        f"{HOST}/two.xml",
    ]


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\xfe\x00", b"<html>404</html>", b"Disallow: /", b"\x00" * 100, b"User-agent"],
)
def test_what_cannot_be_understood_forbids_nothing(data: bytes) -> None:
    read = read_rules(data, "fonds")
    assert read.allows(f"{HOST}/a.pdf")
    assert read.pace == replace(PACE)


def test_an_address_that_cannot_be_taken_apart_is_not_asked() -> None:
    assert not rules("User-agent: *", "Disallow: /x").allows("http://[half")


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        ("fonds/0.1 (+https://x)", "fonds"),
        ("Newsroom bot/2", "Newsroom bot"),
        ("", "fonds"),
    ],
)
def test_the_name_that_a_file_may_speak_of_is_the_first_of_our_introduction(
    user_agent: str, name: str
) -> None:
    assert agent_of(user_agent) == name


def test_real_files_never_break_anything(corpus: Callable[[str], Path]) -> None:
    files = sorted(corpus("sites/robots").rglob("*.txt"))
    assert len(files) > 100
    for file in files:
        read = read_rules(file.read_bytes(), "fonds")
        read.allows(f"{HOST}/reports/a.pdf")
        assert 1 / (MAX_DELAY * MARGIN) <= read.pace.per_second <= PACE.per_second
        assert all(isinstance(url, str) for url in read.sitemaps)


# Asking -----------------------------------------------------------------------------------


def answering(answer: Answer) -> ZooSite:
    def gate(ask: Ask) -> Answer:
        assert ask.path == "/robots.txt"
        return answer

    return ZooSite(id="host", name="Host", listed=(), pages={}, gate=gate)


@contextmanager
def asked(answer: Answer, folder: Path) -> Iterator[tuple[Robots, str, list[str]]]:
    settings = Settings(home=folder, allow_private=True, rate_factor=0, retries=1)
    with serve([answering(answer)]) as zoo:
        fetcher = Fetcher(settings, seams=Seams(), folder=folder / "tmp")
        robots = Robots(fetcher, source="site-host", agent="fonds")
        yield robots, zoo.base("host"), (paths := [])
        paths += [one.path for one in zoo.requests]


def ask(robots: Robots, *urls: str) -> list[Rules]:
    async def all_of_them() -> list[Rules]:
        async with robots._fetcher:
            return list(await asyncio.gather(*map(robots.rules, urls)))

    return asyncio.run(all_of_them())


def test_a_host_is_asked_for_its_rules_once(tmp_path: Path) -> None:
    body = b"User-agent: *\nDisallow: /no/"
    with asked(Answer(body=body, media="text/plain"), tmp_path) as (robots, base, paths):
        found = ask(robots, *(f"{base}/{number}" for number in range(20)))
    assert paths == ["/robots.txt"]
    assert {one.allows(f"{base}/no/a.pdf") for one in found} == {False}


@pytest.mark.parametrize("status", [404, 410, 403, 401])
def test_a_host_without_rules_allows_everything(tmp_path: Path, status: int) -> None:
    with asked(Answer(status=status), tmp_path) as (robots, base, _):
        (found,) = ask(robots, f"{base}/a.pdf")
    assert found.allows(f"{base}/a.pdf")


def test_a_host_whose_rules_cannot_be_had_is_not_asked(tmp_path: Path) -> None:
    with (
        asked(Answer(status=503), tmp_path) as (robots, base, _),
        pytest.raises(FetchError, match=r"robots\.txt cannot be read"),
    ):
        ask(robots, f"{base}/a.pdf")


@pytest.mark.parametrize(
    "body",
    [
        b"User-agent: *\n" + b"Disallow: /a*b$\n" * MAX_LINES,
        b"#" * (MAX_DOWNLOAD + 1),
    ],
    ids=["many rules", "endless"],
)
def test_a_host_with_hostile_rules_is_not_asked(tmp_path: Path, body: bytes) -> None:
    # 26,000 rules needed seconds to read, and a third of a second for each address.
    with (
        asked(Answer(body=body, media="text/plain"), tmp_path) as (robots, base, _),
        pytest.raises(FetchError, match=r"so nothing is requested: .*(5,000 lines|16 MiB)"),
    ):
        ask(robots, f"{base}/a.pdf")
