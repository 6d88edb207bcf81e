from __future__ import annotations

import pytest

from fonds.fetch.secrecy import (
    matching_url,
    public_url,
    recorded_answer_headers,
    recorded_request_headers,
)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.gov/x?api_key=S&page=2", "https://a.gov/x?page=2"),
        ("https://a.gov/x?page=2&TOKEN=S", "https://a.gov/x?page=2"),
        ("https://a.gov/x?key=S", "https://a.gov/x"),
        ("https://a.gov/x?api%5Fkey=S&q=1", "https://a.gov/x?q=1"),
        ("https://user:S@a.gov:8443/x?q=a+b", "https://a.gov:8443/x?q=a+b"),
        ("https://a.gov/x?X-Amz-Signature=S", "https://a.gov/x"),
        ("https://a.gov/%e9?q=%C3%A9&&keyword=k#top", "https://a.gov/%e9?q=%C3%A9&&keyword=k#top"),
        ("http://[S", "an address that cannot be read"),
    ],
)
def test_addresses_lose_their_secrets_and_nothing_else(url: str, expected: str) -> None:
    assert public_url(url) == expected


def test_addresses_match_whatever_their_order_and_key() -> None:
    one = matching_url("https://A.gov?b=2&api_key=one&a=1")
    two = matching_url("https://a.gov/?a=1&b=2&api_key=two#top")
    assert one == two
    assert one != matching_url("https://a.gov/?a=1&b=3")
    assert one != matching_url("https://a.gov/?a=1")


def test_only_harmless_request_headers_are_recorded() -> None:
    sent = [("Host", "a.gov"), ("X-Api-Key", "S"), ("Cookie", "S"), ("X-Own-Idea", "S")]
    assert recorded_request_headers(sent) == [("Host", "a.gov")]


def test_secrets_in_answers_are_not_recorded() -> None:
    link = '<https://a.gov/?page=2&api_key=S>; rel="next", <https://a.gov/?token=S>; rel="last"'
    kept = recorded_answer_headers(
        [
            ("Set-Cookie", "id=S"),
            ("Location", "https://a.gov/é?api_key=S&x=1"),
            ("Link", link),
            ("ETag", '"e"'),
        ]
    )
    assert kept == [
        ("Location", "https://a.gov/%C3%A9?x=1"),
        ("Link", link.replace("=S", "=")),
        ("ETag", '"e"'),
    ]
