"""What holds for every text and every setting."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.chunk.chunker import Chunker
from fonds.chunk.headings import read_outline, text_only
from fonds.chunk.tokens import count
from fonds.model import Chunk, NormalizedBody, PageMark

WORDS = st.sampled_from(
    [
        "agency", "rule.", "Sec.", "U.S.", "12,345", "§ 60.112b", "漢字。", "日本語の文", "naïve",
        "e\u0301\u0301", "\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd", "*bold*", "`x`",
        "#", "\\#", "|", "---", "...", "x" * 90, "長い" * 40, "\ud800", "\u00a0", "<|endoftext|>",
    ]
)  # fmt: skip
LINES = st.lists(WORDS, min_size=1, max_size=25).map(" ".join)
BLOCKS = st.one_of(
    LINES,
    st.lists(LINES, min_size=1, max_size=5).map("\n".join),
    st.tuples(st.integers(1, 7), LINES).map(lambda pair: f"{'#' * pair[0]} {pair[1]}"),
    st.sampled_from(["#", "## ##", "   # Indented #", "    # code", "---", "\f", " \t"]),
    st.tuples(LINES, st.sampled_from(["===", "---", "-"])).map("\n".join),
    st.lists(LINES, min_size=1, max_size=6).map(lambda rows: "- " + "\n- ".join(rows)),
    st.lists(LINES, min_size=1, max_size=6).map(
        lambda rows: "| a | b |\n|---|---|\n" + "\n".join(f"| {row} |" for row in rows)
    ),
    st.tuples(st.sampled_from(["```", "~~~~", "  ```"]), LINES, LINES).map(
        lambda parts: f"{parts[0]}\n# {parts[1]}\n\n{parts[2]}\n{parts[0]}"
    ),
    st.just("```\nnever closed"),
)
GAPS = st.sampled_from(["\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "\n\f\n", "\n \n"])
DOCUMENTS = st.lists(st.tuples(BLOCKS, GAPS), max_size=12).map(
    lambda parts: "".join(block + gap for block, gap in parts)
)
CHUNKERS = st.integers(16, 120).flatmap(
    lambda cap: st.builds(Chunker, max_tokens=st.just(cap), overlap_tokens=st.integers(0, cap // 2))
)
EVERYTHING = given(markdown=DOCUMENTS, chunker=CHUNKERS)
MODESTLY = settings(max_examples=60)


def chunks_of(markdown: str, chunker: Chunker) -> list[Chunk]:
    return chunker.chunk(NormalizedBody(markdown=markdown))


def section_of(markdown: str, chunk: Chunk) -> int:
    """The number of headings that begin at or before the chunk."""
    return sum(line.start <= chunk.start for line in read_outline(markdown).headings)


def outside_headings(markdown: str) -> set[int]:
    inside: set[int] = set()
    for line in read_outline(markdown).headings:
        inside.update(range(line.start, line.end))
    return set(range(len(markdown))) - inside


@MODESTLY
@EVERYTHING
def test_chunks_are_exact_slices_in_order(markdown: str, chunker: Chunker) -> None:
    chunks = chunks_of(markdown, chunker)
    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
    for chunk in chunks:
        assert chunk.text == markdown[chunk.start : chunk.end]
        assert chunk.text == chunk.text.strip() != ""
    for before, after in pairwise(chunks):
        assert before.start < after.start
        assert before.end < after.end


@MODESTLY
@EVERYTHING
def test_no_text_is_lost(markdown: str, chunker: Chunker) -> None:
    covered: set[int] = set()
    for chunk in chunks_of(markdown, chunker):
        covered.update(range(chunk.start, chunk.end))
    lost = [place for place in outside_headings(markdown) - covered if markdown[place].strip()]
    assert lost == []


@MODESTLY
@EVERYTHING
def test_cap_and_counts_are_exact(markdown: str, chunker: Chunker) -> None:
    for chunk in chunks_of(markdown, chunker):
        assert chunk.tokens == count(chunk.text) <= chunker.max_tokens


@MODESTLY
@EVERYTHING
def test_no_chunk_crosses_a_heading(markdown: str, chunker: Chunker) -> None:
    headings = read_outline(markdown).headings
    for chunk in chunks_of(markdown, chunker):
        for line in headings:
            own_text = line.text_start <= chunk.start and chunk.end <= line.text_end
            assert own_text or chunk.end <= line.start or line.end <= chunk.start


@MODESTLY
@EVERYTHING
def test_section_under_the_cap_is_one_chunk(markdown: str, chunker: Chunker) -> None:
    whole = Chunker(max_tokens=1_000_000, overlap_tokens=0)
    small = [
        (section.start, section.end)
        for section in chunks_of(markdown, whole)
        if section.tokens <= chunker.max_tokens
    ]
    spans = [(chunk.start, chunk.end) for chunk in chunks_of(markdown, chunker)]
    assert set(small) <= set(spans)


@MODESTLY
@EVERYTHING
def test_every_heading_is_in_a_path(markdown: str, chunker: Chunker) -> None:
    chunks = chunks_of(markdown, chunker)
    for line in read_outline(markdown).headings:
        if text := text_only(markdown[line.text_start : line.text_end]):
            nearest = next(chunk for chunk in chunks if chunk.start >= line.text_start)
            assert text in nearest.heading_path


@MODESTLY
@EVERYTHING
def test_overlap_is_confined(markdown: str, chunker: Chunker) -> None:
    chunks = chunks_of(markdown, chunker)
    for before, after in pairwise(chunks):
        if after.start < before.end:
            assert section_of(markdown, before) == section_of(markdown, after)
            assert count(markdown[after.start : before.end]) <= chunker.overlap_tokens
    for first, third in zip(chunks, chunks[2:], strict=False):
        assert first.end <= third.start


@MODESTLY
@EVERYTHING
def test_same_text_gives_same_chunks(markdown: str, chunker: Chunker) -> None:
    assert chunks_of(markdown, chunker) == chunks_of(markdown, chunker)


@MODESTLY
@given(markdown=DOCUMENTS, chunker=CHUNKERS, offsets=st.lists(st.integers(0, 500)).map(sorted))
def test_page_is_the_last_mark_not_after_the_start(
    markdown: str, chunker: Chunker, offsets: list[int]
) -> None:
    marks = tuple(PageMark(offset=offset, page=str(i)) for i, offset in enumerate(offsets))
    for chunk in chunker.chunk(NormalizedBody(markdown=markdown, pages=marks)):
        passed = [mark.page for mark in marks if mark.offset <= chunk.start]
        assert chunk.page == (passed[-1] if passed else None)
