"""Whatever is taken for a PDF by hand opens for those who read it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.zoo import pdf

from fonds.sites.downloads import open_pdf
from fonds.sites.plain import is_plain_pdf

REPORT = pdf("A report", padding=200)


def plain(folder: Path, data: bytes) -> bool:
    file = folder / "file.pdf"
    file.write_bytes(data)
    assert is_plain_pdf(file) == is_plain_pdf(data)
    return is_plain_pdf(file)


def test_a_plain_pdf_is_known_as_one(tmp_path: Path) -> None:
    assert plain(tmp_path, REPORT)


def test_dictionaries_may_hold_others_and_strings(tmp_path: Path) -> None:
    trailer = b"/Size 8 /Info << /Trapped false >> /Lang (en) /ID [<00ff> <00FF>] /Root"
    data = REPORT.replace(b"/Size 8 /Root", trailer)
    assert plain(tmp_path, data)
    assert open_pdf(str(tmp_path / "file.pdf")) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"%PDF-", b"\n%PDF-"),
        (b"/Count 1", b"/Count 0"),
        (b"/Size 8", b"/Size 7"),
        (b"/Root 1 0 R", b"/Root 2 0 R"),
        (b"/Root 1 0 R", b"/Root 9 0 R"),
        (b"/Root 1 0 R", b"/Root 0 0 R"),
        (b"/Root 1 0 R", b"/Root 1 0 R /Root 5 0 R"),
        (b"/Root 1 0 R", b"/Root 1 0 R /Encrypt 5 0 R"),
        (b"/Root 1 0 R", b"/Root 1 0 R /Prev 9"),
        (b"/Type /Catalog /Pages 2 0 R", b"/Type /Catalog (/Pages 2 0)"),
        (b"1 0 obj", b"7 0 obj"),
        (b"startxref\n", b"startxref\n1"),
        (b"%%EOF", b"%%EO"),
        (b"00000 n \n", b"00000 f \n"),
        (b"trailer", b"traile "),
    ],
)
def test_what_is_not_plain_is_left_to_others(tmp_path: Path, old: bytes, new: bytes) -> None:
    assert old in REPORT
    assert not plain(tmp_path, REPORT.replace(old, new))


@given(
    changes=st.lists(
        st.tuples(st.integers(0, len(REPORT) - 1), st.integers(0, 255)), min_size=1, max_size=3
    ),
    cut=st.integers(0, 40) | st.just(0),
)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_plain_opens(tmp_path: Path, changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(REPORT)
    for place, byte in changes:
        data[place] = byte
    if plain(tmp_path, bytes(data[: len(data) - cut])):
        assert open_pdf(str(tmp_path / "file.pdf")) is None
