"""Markdown that somebody else wrote: what is kept, and where its headings are found."""

from __future__ import annotations

import pytest

from fonds.chunk.chunker import Chunker
from fonds.errors import NoTextError, WrongContentError
from fonds.normalize.markdown_file import MarkdownFile
from fonds.normalize.registry import Normalizer, get_normalizer


def test_it_is_a_normalizer_the_registry_knows() -> None:
    assert isinstance(get_normalizer("markdown_v1"), Normalizer)
    assert MarkdownFile().label == "markdown_v1@1.0.0"


def test_everything_is_kept_as_it_was_written() -> None:
    written = (
        "# Cover\n\n*Fire* and <b onclick='x()'>flood</b>.\n\n\n* one\n* two\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n```\n# no heading\n```\n  trailing  \n\n"
    )
    body = MarkdownFile().to_markdown(written.encode())
    assert body.markdown == written
    assert body.warnings == ()


def test_line_ends_become_one_sign() -> None:
    assert MarkdownFile().to_markdown(b"a\r\nb\rc\n").markdown == "a\nb\nc\n"


def test_nuls_and_other_controls_are_removed_and_counted() -> None:
    body = MarkdownFile().to_markdown(b"# Co\0ver\n\nfi\0re\x07\n")
    assert body.markdown == "# Cover\n\nfire\n"
    assert body.warnings == ("2 NUL characters removed", "1 control characters removed")


def test_other_encodings_are_read_and_told() -> None:
    body = MarkdownFile().to_markdown("# Über\n\nFür alle – fünf §§.".encode("cp1252"))
    assert body.markdown == "# Über\n\nFür alle – fünf §§."
    assert body.warnings == ("no encoding declared: read as cp1252",)
    assert MarkdownFile().to_markdown("\ufeff# é".encode()).markdown == "# é"


def test_headings_are_found_with_their_labels_and_offsets() -> None:
    written = "Title\n=====\n\n## § 12 Fire *risks* ##\n\n```\n# code\n```\n\n   ### Flood\n"
    body = MarkdownFile().to_markdown(written.encode())
    assert [(one.level, one.text, one.section) for one in body.headings] == [
        (1, "Title", None),
        (2, "§ 12 Fire risks", "§ 12"),
        (3, "Flood", None),
    ]
    assert [written[one.offset :][:4] for one in body.headings] == ["Titl", "## §", "### "]


def test_passages_stand_below_their_headings() -> None:
    body = MarkdownFile().to_markdown(b"# Policy\n\n## 2.1 Fire\n\nWe pay.\n")
    (chunk,) = Chunker().chunk(body)
    assert chunk.heading_path == ("Policy", "2.1 Fire")
    assert chunk.section == "2.1"


@pytest.mark.parametrize("empty", [b"", b" \n\t\r\n", b"\0\0", b"# \n\n---\n", b"\xef\xbb\xbf"])
def test_a_file_without_a_word_says_so(empty: bytes) -> None:
    with pytest.raises(NoTextError):
        MarkdownFile().to_markdown(empty)


def test_files_of_other_kinds_are_named() -> None:
    with pytest.raises(WrongContentError, match="a PDF, not Markdown"):
        MarkdownFile().to_markdown(b"%PDF-1.7\n")
