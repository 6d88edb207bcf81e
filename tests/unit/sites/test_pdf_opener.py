"""Whether a file is a PDF that opens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.zoo import pdf

from fonds.errors import WrongContentError
from fonds.sites import pdf_opener
from fonds.sites.pdf_opener import PdfOpener


@pytest.fixture(scope="module")
def opener() -> Iterator[PdfOpener]:
    made = PdfOpener()
    yield made
    made.close()


def file(folder: Path, data: bytes) -> Path:
    path = folder / "file.pdf"
    path.write_bytes(data)
    return path


def test_a_pdf_opens(opener: PdfOpener, tmp_path: Path) -> None:
    opener.check(file(tmp_path, pdf("A report")))


def test_a_pdf_may_begin_a_little_late(opener: PdfOpener, tmp_path: Path) -> None:
    opener.check(file(tmp_path, b"\r\n\r\n" + pdf("A report")))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "empty"),
        (b"<!DOCTYPE html><html><h1>Not found</h1></html>", "a web page"),
        (b"PK\x03\x04" + bytes(100), "not a PDF"),
        (b"%PDF-1.4\nnothing that follows makes sense", "cannot be opened"),
    ],
)
def test_what_is_no_pdf_is_refused_by_name(
    opener: PdfOpener, tmp_path: Path, data: bytes, told: str
) -> None:
    with pytest.raises(WrongContentError, match=told):
        opener.check(file(tmp_path, data))


def test_a_file_that_kills_its_reader_takes_nothing_with_it(
    opener: PdfOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf_opener, "open_pdf", _deadly)
    with pytest.raises(WrongContentError, match="the worker ended"):
        opener.check(file(tmp_path, b"\r\n" + pdf("A report")))
    monkeypatch.undo()
    opener.check(file(tmp_path, b"\r\n" + pdf("A report")))


def _deadly(_file: str) -> None:
    import os  # noqa: PLC0415 — this runs in another process
    import signal  # noqa: PLC0415 — as above

    os.kill(os.getpid(), signal.SIGSEGV)
