"""Reading sitemaps."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fonds.errors import WrongContentError
from fonds.sites.sitemaps import MAX_ADDRESSES, MAX_SIZE, read_sitemap

SPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


def urlset(*urls: str, space: str = SPACE) -> bytes:
    listed = "".join(f"<url><loc>{url}</loc><lastmod>2026-01-02</lastmod></url>" for url in urls)
    return f'<?xml version="1.0"?><urlset xmlns="{space}">{listed}</urlset>'.encode()


def test_pages_are_listed_once_and_in_order() -> None:
    data = urlset(" https://x.org/b \n", "https://x.org/a", "https://x.org/b")
    assert read_sitemap(data).pages == ("https://x.org/b", "https://x.org/a")


@pytest.mark.parametrize("space", ["", "http://www.google.com/schemas/sitemap/0.84"])
def test_any_namespace_will_do(space: str) -> None:
    assert read_sitemap(urlset("https://x.org/a", space=space)).pages == ("https://x.org/a",)


def test_an_index_leads_to_further_sitemaps() -> None:
    data = (
        f'<sitemapindex xmlns="{SPACE}"><sitemap><loc>https://x.org/1.xml.gz</loc></sitemap>'
        "<sitemap><loc>https://x.org/2.xml</loc></sitemap></sitemapindex>"
    )
    found = read_sitemap(data.encode())
    assert (found.pages, found.sitemaps) == ((), ("https://x.org/1.xml.gz", "https://x.org/2.xml"))


def test_packed_and_plain_ones_are_read() -> None:
    assert read_sitemap(gzip.compress(urlset("https://x.org/a"))).pages == ("https://x.org/a",)
    assert read_sitemap(b"\xef\xbb\xbfhttps://x.org/a\nhttps://x.org/b\n").pages == (
        "https://x.org/a",
        "https://x.org/b",
    )


def test_what_is_no_web_address_is_left_out() -> None:
    assert read_sitemap(urlset("file:///etc/passwd", "javascript:x", "https://x.org/a")).pages == (
        "https://x.org/a",
    )


def test_one_that_breaks_off_gives_what_came_before() -> None:
    data = urlset("https://x.org/a", "https://x.org/b")
    assert read_sitemap(data[: data.index(b"/b")]).pages == ("https://x.org/a",)


def test_no_more_is_read_than_a_sitemap_may_hold() -> None:
    data = urlset(*(f"https://x.org/{number}" for number in range(MAX_ADDRESSES + 10)))
    sitemap = read_sitemap(data)
    assert len(sitemap.pages) == MAX_ADDRESSES
    assert sitemap.error == "it lists more than 50,000 addresses, and was read up to there"
    text = b"".join(b"https://x.org/%d\n" % number for number in range(MAX_ADDRESSES + 1))
    assert read_sitemap(text).error == sitemap.error
    assert read_sitemap(text[: text.rindex(b"https")]).error == ""


def test_one_that_expands_beyond_the_limit_is_read_up_to_there_and_no_further(
    tmp_path: Path,
) -> None:
    bomb = tmp_path / "sitemap.xml.gz"
    with gzip.open(bomb, "wb", 1) as file:
        file.write(urlset("https://x.org/a").removesuffix(b"</urlset>"))
        for _ in range(200):
            file.write(b" " * 1_000_000)
    tracemalloc.start()
    sitemap = read_sitemap(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sitemap.pages == ("https://x.org/a",)
    assert "more than 50 MiB decompressed" in sitemap.error
    assert peak < 4 * MAX_SIZE


def test_elements_that_are_nested_too_deeply_end_it_with_an_error() -> None:
    data = urlset("https://x.org/a").replace(b"</urlset>", b"<x>" * 100_000)
    sitemap = read_sitemap(data)
    assert sitemap.pages == ("https://x.org/a",)
    assert "nested too deeply" in sitemap.error


@pytest.mark.parametrize("entity", ['SYSTEM "file:///etc/hostname"', '"secret"'])
def test_entities_are_not_resolved(entity: str) -> None:
    data = (
        f"<!DOCTYPE urlset [<!ENTITY x {entity}>]>"
        "<urlset><url><loc>https://x.org/&x;a</loc></url></urlset>"
    )
    assert read_sitemap(data.encode()).pages == ("https://x.org/",)


@pytest.mark.parametrize(
    "data", [b"<html><body>404</body>", b"<", gzip.compress(b"<x>", mtime=0)[:20]]
)
def test_what_is_no_sitemap_is_refused_or_empty(data: bytes) -> None:
    try:
        found = read_sitemap(data)
    except WrongContentError:
        return
    assert (found.pages, found.sitemaps) == ((), ())


@given(st.binary(max_size=300))
def test_bytes_never_break_it(data: bytes) -> None:
    try:
        read_sitemap(data)
    except WrongContentError:
        return
