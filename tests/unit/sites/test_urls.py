from __future__ import annotations

import pytest

from fonds.sites.pages.urls import canonical, file_name, is_trap, looks_like_pdf, same_site


@pytest.mark.parametrize(
    ("written", "canonical_form"),
    [
        ("HTTP://Example.GOV:80/a/../b?z=1&a=2#top", "http://example.gov/b?a=2&z=1"),
        ("https://example.gov:443", "https://example.gov/"),
        ("https://example.gov/x?utm_source=n&gclid=1&id=7", "https://example.gov/x?id=7"),
        ("https://example.gov/l;jsessionid=0A1B?y=2", "https://example.gov/l?y=2"),
        ("https://example.gov/l?PHPSESSID=abc&y=2", "https://example.gov/l?y=2"),
        ("https://example.gov/l?sid=4f3a9c0d1e2b3c4d5e6f", "https://example.gov/l"),
        ("https://example.gov/l?sid=12", "https://example.gov/l?sid=12"),
        ("https://user:secret@example.gov/", "https://example.gov/"),
        (
            "https://example.gov/報告 書.pdf",
            "https://example.gov/%E5%A0%B1%E5%91%8A%20%E6%9B%B8.pdf",
        ),
    ],
)
def test_an_address_has_one_form(written: str, canonical_form: str) -> None:
    assert canonical(written) == canonical_form
    assert canonical(canonical_form) == canonical_form


@pytest.mark.parametrize(
    "written",
    [
        "",
        "mailto:a@b.c",
        "ftp://x/y",
        "javascript:void(0)",
        "http://",
        "https://[::1",
        "/only/a/path",
    ],
)
def test_what_is_no_web_address_has_none(written: str) -> None:
    assert canonical(written) is None


def test_an_address_of_many_thousand_characters_is_refused() -> None:
    assert canonical("https://example.gov/" + "a" * 9000) is None


def test_the_query_of_a_japanese_page_is_written_in_its_own_encoding() -> None:
    url = canonical("https://example.jp/l?q=党", encoding="cp932")
    assert url == "https://example.jp/l?q=%93%7D"


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://e.gov/a/b.PDF", ""),
        ("https://e.gov/get.php?file=b.pdf", ""),
        ("https://e.gov/report?format=pdf", ""),
        ("https://e.gov/download/123", ""),
        ("https://e.gov/bitstream/10/2/1", ""),
        ("https://e.gov/FileHandler.ashx?id=4", ""),
        ("https://e.gov/node/88", "Annual return [PDF]"),
        ("https://e.gov/s/x.pdf/view", ""),
    ],
)
def test_an_address_may_promise_a_pdf(url: str, text: str) -> None:
    assert looks_like_pdf(url, text)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://e.gov/downloads/", "Downloads"),
        ("https://e.gov/a.html", "Our PDF"),
        ("https://e.gov/a.xlsx", "PDF and Excel"),
        ("https://e.gov/reader", "Get Adobe Reader for PDF"),
        ("https://e.gov/2024/parties", "Parties"),
        ("https://e.gov/", "PDF"),
    ],
)
def test_other_addresses_promise_none(url: str, text: str) -> None:
    assert not looks_like_pdf(url, text)


@pytest.mark.parametrize(
    "url",
    [
        "https://e.gov/events/2026/02/",
        "https://e.gov/calendar?day=3",
        "https://e.gov/x?month=2024-05",
        "https://e.gov/archive/2099/05/",
        "https://e.gov/a/b/a/b/a/b/",
        "https://e.gov/" + "x/" * 30,
        "https://e.gov/?q=" + "y" * 2000,
    ],
)
def test_spaces_without_end_are_known(url: str) -> None:
    assert is_trap(url, this_year=2026)


@pytest.mark.parametrize(
    "url",
    [
        "https://e.gov/reports/2024/05/",
        "https://e.gov/list?year=2024&month=5",
        "https://e.gov/list?page=12",
        "https://e.gov/a/2024/a.html",
        "https://e.gov/wp-content/uploads/2019/08/",
    ],
)
def test_archives_by_date_are_no_traps(url: str) -> None:
    assert not is_trap(url, this_year=2026)


def test_a_file_is_named_by_path_or_query() -> None:
    assert file_name("https://e.gov/a/b%20c.pdf?x=1") == "b c.pdf"
    assert file_name("https://e.gov/get?f=dir/r6.pdf") == "r6.pdf"


def test_a_site_is_a_host_with_or_without_www() -> None:
    assert same_site("https://www.e.gov/a", "https://e.gov/b")
    assert not same_site("https://e.gov:8080/", "https://e.gov/")
    assert not same_site("https://x.e.gov/", "https://e.gov/")
