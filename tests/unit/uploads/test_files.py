"""Which files are taken in: names, claims, and what the bytes say."""

from __future__ import annotations

import random
import unicodedata
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tests.unit.normalize.written_docx import document, paragraph, word_file, zipped

from fonds.errors import UploadRefusedError
from fonds.normalize.registry import get_normalizer
from fonds.uploads.files import (
    FORMATS,
    MAX_NAME_LENGTH,
    check_claim,
    check_content,
    claimed_format,
    clean_name,
    sniff_format,
)

PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< >>\nendobj\n"
PAGE = b"<!DOCTYPE html><html><body><p>Sorry, try again later.</p></body></html>"
OLD = bytes.fromhex("D0CF11E0A1B11AE1") + bytes(512)
GARBAGE = random.Random(7).randbytes(9_000)
WORD = word_file(paragraph("Fire and flood."))
SHEET = zipped({"[Content_Types].xml": "<Types/>", "xl/workbook.xml": "<workbook/>"})
HASH = "0123456789abcdef" * 4


def refusal(path: Path, data: bytes, claimed: str) -> tuple[str, str] | None:
    """Kind and message of the refusal of a file with these bytes; None: it is taken in."""
    file = path / "file"
    file.write_bytes(data)
    try:
        check_content(file, claimed)
    except UploadRefusedError as error:
        return error.kind, str(error)
    return None


# Names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Policy 2026.pdf", "Policy 2026.pdf"),
        ("../../etc/passwd.txt", "passwd.txt"),
        ("C:\\Users\\me\\Policy.docx", "Policy.docx"),
        ("a/b\\c/d.pdf", "d.pdf"),
        ("  two \t words\n.pdf ", "two words .pdf"),
        ("Police\u0301.pdf", "Policé.pdf"),
        ("a\0b.pdf", "a b.pdf"),
        ("bill\u202efdp.exe.pdf", "bill fdp.exe.pdf"),
        ("\ufeff\u200bx.md", "x.md"),
        ("…/保険証券.pdf", "保険証券.pdf"),
    ],
)
def test_a_name_is_shown_without_folders_and_tricks(name: str, shown: str) -> None:
    assert clean_name(name) == shown


def test_a_long_name_keeps_its_ending() -> None:
    name = clean_name("x" * 400 + ".docx")
    assert len(name) == MAX_NAME_LENGTH
    assert name.endswith("x.docx")
    assert clean_name("y" * 400) == "y" * MAX_NAME_LENGTH


@pytest.mark.parametrize(
    "name", ["", " ", ".", "..", "...", "a/", "\\", "../", "\0", "\u202e", ". ."]
)
def test_no_name_is_refused(name: str) -> None:
    with pytest.raises(UploadRefusedError) as raised:
        clean_name(name)
    assert raised.value.kind == "bad-name"


@settings(max_examples=150)
@given(st.text(max_size=300))
@example("\x85/..\\\u2028.\u0301.pdf")
@example("e\u200d\u0301" * 120 + ".pdf")
@example("a" * 250 + " " * 20 + ".pdf")
def test_a_shown_name_is_safe_and_stays_the_same(name: str) -> None:
    try:
        shown = clean_name(name)
    except UploadRefusedError:
        assume(condition=False)
    assert not set(shown) & set("/\\\0")
    assert not any(unicodedata.category(one) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for one in shown)
    assert shown == shown.strip() == unicodedata.normalize("NFC", shown)
    assert 0 < len(shown) <= MAX_NAME_LENGTH
    assert shown.strip(".")
    assert clean_name(shown) == shown


@settings(max_examples=50)
@given(st.text(min_size=1, max_size=400), st.sampled_from(sorted(FORMATS)))
def test_a_shown_name_claims_what_the_name_claimed(stem: str, claimed: str) -> None:
    for ending in FORMATS[claimed].endings:
        assert claimed_format(clean_name(f"x{stem}{ending}")) == claimed


# Claims -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "claimed"),
    [
        ("a.pdf", "pdf"),
        ("A.PDF", "pdf"),
        ("a.docx", "docx"),
        ("a.html", "html"),
        ("a.Htm", "html"),
        ("a.md", "markdown"),
        ("a.markdown", "markdown"),
        ("a.tar.txt", "text"),
    ],
)
def test_a_name_claims_a_format_by_its_ending(name: str, claimed: str) -> None:
    assert claimed_format(name) == claimed


@pytest.mark.parametrize("name", ["a", "a.doc", "a.exe", "a.pdf.zip", "pdf", "a.pdf.", "a.docm"])
def test_other_endings_are_refused_with_a_list_of_those_accepted(name: str) -> None:
    with pytest.raises(UploadRefusedError, match=r"\.pdf, \.docx, \.html, .*\.txt") as raised:
        claimed_format(name)
    assert raised.value.kind == "type-unknown"


@pytest.mark.parametrize(
    ("size", "sha256", "kind"),
    [
        (0, HASH, "empty"),
        (-1, HASH, "empty"),
        (101, HASH, "too-large"),
        (2 * 2**30, HASH, "too-large"),
        (5, HASH[:-1], "bad-hash"),
        (5, HASH + "0", "bad-hash"),
        (5, "g" * 64, "bad-hash"),
        (5, "", "bad-hash"),
        (5, HASH[:-1] + "\n", "bad-hash"),
        (5, "٣" * 64, "bad-hash"),
    ],
)
def test_an_impossible_claim_is_refused_by_name(size: int, sha256: str, kind: str) -> None:
    with pytest.raises(UploadRefusedError) as raised:
        check_claim(size, sha256, limit=100)
    assert raised.value.kind == kind


def test_a_possible_claim_passes_up_to_the_limit() -> None:
    check_claim(1, HASH, limit=100)
    check_claim(100, HASH.upper(), limit=100)


def test_every_format_has_its_normalizer_and_the_raw_format_that_reads() -> None:
    for one in FORMATS.values():
        assert get_normalizer(one.normalizer).accepts_format == one.body_format
        assert f".{one.extension}" in one.endings


# Contents -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claimed", "data"),
    [
        ("pdf", PDF),
        ("pdf", b"\xef\xbb\xbf\r\n" + PDF),
        ("pdf", b"printed by X\r\n" + PDF),
        ("docx", WORD),
        ("html", PAGE),
        ("html", b"<?xml version='1.0'?>\n<!-- saved -->\n<html xmlns='x'><p>Hi</p></html>"),
        ("html", PAGE.decode().encode("utf-16")),
        ("html", b"<h1>Part</h1><p>of a page</p>"),
        ("text", b"Fire and flood.\n"),
        ("text", b"Use <b>tags</b> in text, or %PDF- in a line.\n"),
        ("text", "Größe – 保険".encode()),
        ("text", "Größe – 保険".encode("utf-16")),
        ("text", "損害保険の約款をここに定める。".encode("cp932")),
        ("text", b"fire \0 flood" * 100),
        ("text", b"page one\x0cpage two\x1a"),
        ("text", ("a" + "保" * 40_000).encode()),
        ("markdown", b"# Fire\n\n<div>flood</div>\n"),
        ("markdown", b"plain words"),
    ],
)
def test_files_that_are_what_they_claim_pass(tmp_path: Path, claimed: str, data: bytes) -> None:
    assert refusal(tmp_path, data, claimed) is None


@pytest.mark.parametrize(
    ("claimed", "data", "called"),
    [
        ("pdf", PAGE, "an HTML page"),
        ("pdf", b"<html>\n%PDF-1.7\n</html>", "an HTML page"),
        ("pdf", b"words", "plain text"),
        ("pdf", WORD, "a Word file"),
        ("text", PDF, "a PDF"),
        ("text", PAGE, "an HTML page"),
        ("markdown", b"\n\n<HTML lang='en'><p>x</p></HTML>", "an HTML page"),
        ("text", GARBAGE, "neither text"),
        ("markdown", b"\xff\xfe" + GARBAGE, "neither text"),
        ("html", GARBAGE, "neither text"),
        ("html", b"no tag at all", "plain text"),
        ("html", PDF, "a PDF"),
        ("text", bytes(2_000), "neither text"),
        ("text", b"\x89PNG\r\n\x1a\n" + GARBAGE, "a picture"),
        ("text", b"{\\rtf1 words}", "an RTF file"),
        ("text", WORD, "a Word file"),
        ("docx", SHEET, "a ZIP archive, and not a Word file"),
        ("docx", PDF, "a PDF"),
        ("docx", OLD, "locked with a password: save it as .docx"),
        ("docx", b"words", "plain text"),
        ("docx", WORD[: len(WORD) // 2], "cut off or damaged"),
        ("text", b"\x7fELF" + GARBAGE, "a program"),
        ("pdf", b"\x1f\x8b" + GARBAGE, "a packed archive"),
    ],
)
def test_files_that_are_something_else_are_refused_and_named(
    tmp_path: Path, claimed: str, data: bytes, called: str
) -> None:
    refused = refusal(tmp_path, data, claimed)
    assert refused is not None
    assert refused[0] == "type-mismatch"
    assert called in refused[1]


def test_no_bytes_are_refused_as_empty(tmp_path: Path) -> None:
    for claimed in FORMATS:
        assert refusal(tmp_path, b"", claimed) == ("empty", "the file is empty")


def test_a_word_bomb_is_refused_as_one(tmp_path: Path) -> None:
    steep = word_file("", {"word/document.xml": document(" " * (3 * 2**20))})
    many = word_file(paragraph("x"), {f"word/media/{n}": b"" for n in range(4_100)})
    for bomb in (steep, many):
        refused = refusal(tmp_path, bomb, "docx")
        assert refused is not None
        assert refused[0] == "archive-bomb"


def test_an_archive_is_a_word_file_only_if_all_of_it_tells_so() -> None:
    assert sniff_format(WORD[:100]) == "zip"


def test_whatever_passes_as_text_can_be_read_by_its_normalizer(tmp_path: Path) -> None:
    for data in (b"fire \0 flood", "Größe".encode("utf-16"), b"a <b>c</b>"):
        for claimed in ("text", "markdown"):
            assert refusal(tmp_path, data, claimed) is None
            assert get_normalizer(FORMATS[claimed].normalizer).to_markdown(data).markdown.strip()
