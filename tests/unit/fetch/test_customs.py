"""Keys go to the host they are for, over TLS, and nowhere else."""

from __future__ import annotations

import pytest

from fonds.fetch.keys import key_headers
from fonds.settings import Settings

SETTINGS = Settings(data_gov_key="d4ta", lda_key="l0bby")


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("https://api.congress.gov/v3/bill", {"X-Api-Key": "d4ta"}),
        ("https://API.govinfo.gov/collections", {"X-Api-Key": "d4ta"}),
        ("https://lda.gov/api/v1/filings/", {"Authorization": "Token l0bby"}),
        ("http://lda.gov/api/v1/filings/", {}),
        ("https://lda.gov.example.org/", {}),
        ("https://www.congress.gov/", {}),
    ],
)
def test_a_key_is_sent_to_its_own_host_over_tls_only(url: str, headers: dict[str, str]) -> None:
    assert key_headers(SETTINGS, url) == headers


def test_without_a_key_nothing_is_sent() -> None:
    assert key_headers(Settings(), "https://api.congress.gov/v3/bill") == {}
