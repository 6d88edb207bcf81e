"""Whether a file is a PDF that opens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.zoo import pdf

from fonds.engine.readers import ReaderPool
from fonds.errors import WrongContentError
from fonds.sites import pdf_opener
from fonds.sites.pdf_opener import check_pdf


@pytest.fixture(scope="module")
def readers() -> Iterator[ReaderPool]:
    with ReaderPool(workers=1) as made:
        yield made


def file(folder: Path, data: bytes) -> Path:
    path = folder / "file.pdf"
    path.write_bytes(data)
    return path


def test_a_pdf_opens(readers: ReaderPool, tmp_path: Path) -> None:
    check_pdf(file(tmp_path, pdf("A report")), readers)


def test_a_pdf_may_begin_a_little_late(readers: ReaderPool, tmp_path: Path) -> None:
    check_pdf(file(tmp_path, b"\r\n\r\n" + pdf("A report")), readers)


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
    readers: ReaderPool, tmp_path: Path, data: bytes, told: str
) -> None:
    with pytest.raises(WrongContentError, match=told):
        check_pdf(file(tmp_path, data), readers)


def test_a_file_that_kills_its_reader_takes_nothing_with_it(
    readers: ReaderPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf_opener, "open_pdf", _deadly)
    with pytest.raises(WrongContentError, match="the process that read it crashed"):
        check_pdf(file(tmp_path, b"\r\n" + pdf("A report")), readers)
    monkeypatch.undo()
    check_pdf(file(tmp_path, b"\r\n" + pdf("A report")), readers)


def _deadly(_file: str) -> None:
    import os  # noqa: PLC0415 — this runs in another process
    import signal  # noqa: PLC0415 — as above

    os.kill(os.getpid(), signal.SIGSEGV)
