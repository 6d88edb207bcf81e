"""Keys go to the host they are for, over TLS, and nowhere else."""

from __future__ import annotations

import pytest

from fonds.fetch.customs import headers_for
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
    assert headers_for(SETTINGS, url) == {"Accept": "*/*", **headers}


def test_without_a_key_nothing_is_sent() -> None:
    assert headers_for(Settings(), "https://api.congress.gov/v3/bill") == {"Accept": "*/*"}


def test_listings_that_insist_on_json_are_asked_for_it() -> None:
    listing = "https://www.govinfo.gov/bulkdata/json/BILLSTATUS/119/hr"
    assert headers_for(Settings(), listing) == {"Accept": "application/json"}
