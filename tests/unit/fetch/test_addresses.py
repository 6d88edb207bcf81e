from __future__ import annotations

import httpx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fonds.fetch import addresses
from fonds.fetch.addresses import Address, read_address

PLAIN = st.from_regex(addresses._PLAIN, fullmatch=True)


def by_httpx(url: str) -> Address | None:
    try:
        return addresses._any(url)
    except ValueError:
        return None


@given(PLAIN)
def test_a_plain_address_is_what_httpx_takes_it_for(url: str) -> None:
    expected = by_httpx(url)
    assume(expected is not None)
    assert read_address(url) == expected


@given(st.text() | PLAIN.flatmap(lambda url: st.sampled_from([f"{url}#a", f" {url}", url.upper()])))
def test_any_text_is_an_address_or_a_value_error(text: str) -> None:
    try:
        address = read_address(text)
    except ValueError:
        return
    assert address.target.startswith(b"/")
    assert address.target.isascii()
    assert address.host.isascii()
    assert address.scheme in {"http", "https"}


@pytest.mark.parametrize(
    ("url", "host", "name", "target", "netloc"),
    [
        ("http://a.gov", "a.gov", "a.gov", b"/", "a.gov"),
        ("https://a.gov:443/x?y=1", "a.gov", "a.gov", b"/x?y=1", "a.gov"),
        ("https://A.gov:8443/x#y", "a.gov", "a.gov", b"/x", "a.gov:8443"),
        ("http://bücher.example/ü", "xn--bcher-kva.example", "bücher.example", b"/%C3%BC", None),
        ("http://me:secret@a.gov/x", "a.gov", "a.gov", b"/x", "a.gov"),
        ("http://a.gov/b/../c d", "a.gov", "a.gov", b"/c%20d", "a.gov"),
        ("http://[::1]:81/", "::1", "::1", b"/", "[::1]:81"),
    ],
)
def test_addresses_are_taken_apart(
    url: str, host: str, name: str, target: bytes, netloc: str | None
) -> None:
    address = read_address(url)
    assert (address.host, address.name, address.target) == (host, name, target)
    assert address.netloc == (netloc or host)


@pytest.mark.parametrize(
    "url", ["ftp://a.gov/", "http:///x", "http://a.gov:0/", "nothing", "http://1.2.3.444/"]
)
def test_what_cannot_be_asked_is_a_value_error(url: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_address(url)


def test_the_pattern_and_httpx_speak_of_the_same_query() -> None:
    url = "http://a.gov/x?q=a+b&r=%2F"
    assert read_address(url).target == httpx.URL(url).raw_path
