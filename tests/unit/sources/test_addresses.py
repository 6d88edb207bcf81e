from __future__ import annotations

import pytest

from fonds.sources.formats.html import joined, parts_of


def test_an_address_is_split_and_joined() -> None:
    assert parts_of("https://x.example/a.pdf?b=1").path == "/a.pdf"
    assert joined("https://x.example/a/", "b.html") == "https://x.example/a/b.html"


@pytest.mark.parametrize("address", ["http://[x", "http://x.example:port/", "//[::1"])
def test_what_cannot_be_read_has_no_host_and_is_no_failure(address: str) -> None:
    assert parts_of(address).hostname is None
    assert joined("https://x.example/", "//[") is None
