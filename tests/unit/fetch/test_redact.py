from __future__ import annotations

import pytest

from fonds.fetch.redact import (
    HIDDEN,
    Redaction,
    matching_url,
    recorded_request_headers,
    recorded_response_headers,
)
from fonds.settings import Settings

SECRETS = Settings(
    data_gov_key="DEMO/KEY+1234",
    database="postgresql://fonds:p%40ssword@db.example/fonds",
    webhook_secrets=("first-secret", "second-secret"),
    token="abc",
)


@pytest.mark.parametrize(
    "text",
    [
        "asked with DEMO/KEY+1234 in vain",
        "asked with DEMO%2FKEY%2B1234 in vain",
        "connecting with p@ssword failed",
        "signed by first-secret, not second-secret",
        "https://api.example/x?a=1&api_key=whatever&b=2",
        "https://api.example/x?x-amz-signature=0123abcd",
        "s3://bucket/prefix?secret_access_key=0123abcd",
        "https://somebody:whatever@api.example/x",
        "Authorization: Bearer 0123.abcd-ef",
        "the token fonds_0123456789abcdef is revoked",
    ],
)
def test_secret_is_hidden_in_a_text(text: str) -> None:
    told = Redaction(SECRETS)(text)
    assert HIDDEN in told
    for secret in ("KEY", "ssword", "-secret", "whatever", "0123"):
        assert secret not in told


@pytest.mark.parametrize(
    "text",
    [
        "fr:2026-00101: broken XML at line 7",
        "https://www.federalregister.gov/api/v1/documents.json?page=2&per_page=1000",
        "the keyword argument abc is a token of esteem",
        "corpus/usc/119-36/packs/1/title-53",
        "12:30 at https://host.example:8080/path",
    ],
)
def test_harmless_text_stays_as_it_is(text: str) -> None:
    assert Redaction(SECRETS)(text) == text


def test_values_are_hidden_by_their_name_and_at_any_depth() -> None:
    told = Redaction(SECRETS).values(
        {
            "Authorization": "anything",
            "api_key": 7,
            "cookie": "",
            "task": "fr:1",
            "headers": {"X-Api-Key": "x", "Accept": "text/html"},
            "tried": ["first-secret", 3, None],
        }
    )
    assert told == {
        "Authorization": HIDDEN,
        "api_key": HIDDEN,
        "cookie": "",
        "task": "fr:1",
        "headers": {"X-Api-Key": HIDDEN, "Accept": "text/html"},
        "tried": [HIDDEN, 3, None],
    }


def test_addresses_match_whatever_their_order_and_key() -> None:
    one = matching_url("https://A.gov?b=2&api_key=one&a=1")
    two = matching_url("https://a.gov/?a=1&b=2&api_key=two#top")
    assert one == two
    assert one != matching_url("https://a.gov/?a=1&b=3")
    assert one != matching_url("https://a.gov/?a=1")


def test_only_harmless_request_headers_are_recorded() -> None:
    sent = [("Host", "a.gov"), ("X-Api-Key", "S"), ("Cookie", "S"), ("X-Own-Idea", "S")]
    assert recorded_request_headers(sent) == [("Host", "a.gov")]


def test_secrets_in_responses_are_not_recorded() -> None:
    link = '<https://a.gov/?page=2&api_key=S>; rel="next", <https://a.gov/?token=S>; rel="last"'
    recorded = recorded_response_headers(
        [
            ("Set-Cookie", "id=S"),
            ("Location", "https://a.gov/é?api_key=S&x=1"),
            ("Link", link),
            ("ETag", '"e"'),
        ]
    )
    assert recorded == [
        ("Location", "https://a.gov/%C3%A9?x=1"),
        ("Link", link.replace("=S", "=")),
        ("ETag", '"e"'),
    ]
