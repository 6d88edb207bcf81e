from __future__ import annotations

import pytest

from fonds.fetch.hosts import is_this_machine, map_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.gov/x/y.xml?b=2&a=1", "http://127.0.0.1:8000/x/y.xml?b=2&a=1"),
        ("https://A.GOV/x", "http://127.0.0.1:8000/x"),
        ("https://a.gov", "http://127.0.0.1:8000/"),
        ("https://a.gov:8443/x", "https://mirror.org/eight/x"),
        ("https://b.gov/x#part", "https://mirror.org/b/gov/x"),
        ("https://user:key@b.gov/x", "https://mirror.org/b/gov/x"),
        ("https://b.gov/a%2Fb/%C3%A9", "https://mirror.org/b/gov/a%2Fb/%C3%A9"),
        ("https://www.a.gov/x?y#z", "https://www.a.gov/x?y#z"),
    ],
)
def test_a_stand_in_answers_for_its_host_only(url: str, expected: str) -> None:
    hosts = {
        "a.gov": "http://127.0.0.1:8000",
        "a.gov:8443": "https://mirror.org/eight",
        "b.gov": "https://mirror.org/b/gov/",
    }
    assert map_url(url, hosts) == expected


def test_without_stand_ins_nothing_is_touched() -> None:
    assert map_url("https://a.gov", {}) == "https://a.gov"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8000/", True),
        ("http://127.9.9.9/", True),
        ("http://[::1]:8000/", True),
        ("http://localhost/", True),
        ("http://fr.localhost:1/", True),
        ("http://10.0.0.1/", False),
        ("http://localhost.example.org/", False),
    ],
)
def test_this_machine_is_known_by_its_address(url: str, *, expected: bool) -> None:
    assert is_this_machine(url) is expected
