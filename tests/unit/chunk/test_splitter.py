from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from fonds.chunk.chunker import CHUNKER_NAME, CHUNKER_VERSION, Chunker, whole_document_chunk
from fonds.chunk.tokens import count
from fonds.errors import SettingsError
from fonds.model import Chunk, Heading, NormalizedBody, PageMark
from fonds.stores.passages import chunk_meta

SENTENCES = [f"Sentence number {number} says that the agency agrees." for number in range(60)]


def chunks_of(markdown: str, max_tokens: int = 512, overlap_tokens: int = 0) -> list[Chunk]:
    chunker = Chunker(max_tokens=max_tokens, overlap_tokens=overlap_tokens)
    return chunker.chunk(NormalizedBody(markdown=markdown))


def texts_of(markdown: str, max_tokens: int = 512, overlap_tokens: int = 0) -> list[str]:
    return [chunk.text for chunk in chunks_of(markdown, max_tokens, overlap_tokens)]


def test_recipe_has_a_name_and_a_version() -> None:
    assert (CHUNKER_NAME, CHUNKER_VERSION) == ("headings", "1.1.0")


def test_short_section_is_one_chunk_with_its_place() -> None:
    markdown = "# Rule\n\n## II. *Background*\n\nFirst paragraph.\n\nSecond one.\n"
    text = "First paragraph.\n\nSecond one."
    assert chunks_of(markdown) == [
        Chunk(
            ordinal=0,
            text=text,
            start=markdown.index(text),
            end=len(markdown) - 1,
            tokens=count(text),
            heading_path=("Rule", "II. Background"),
        )
    ]


def test_sections_are_never_joined() -> None:
    assert texts_of("a\n# A\nb\n# B\nc") == ["a", "b", "c"]


def test_reserved_section_can_be_found() -> None:
    (chunk,) = chunks_of("# Part 60\n\n## § 60.5 [Reserved]\n")
    assert chunk.text == "§ 60.5 [Reserved]"
    assert chunk.heading_path == ("Part 60", "§ 60.5 [Reserved]")


def test_empty_body_has_no_chunks() -> None:
    assert chunks_of("") == []
    assert chunks_of("\n \r\n\f") == []


def test_labels_come_from_the_body_and_headings_from_its_text() -> None:
    markdown = "# One\na\n## Two\nb\n"
    body = NormalizedBody(
        markdown=markdown,
        headings=(
            Heading(level=3, text="Another text", offset=0, section="I"),
            Heading(level=1, text="No such heading", offset=6, section="IX"),
        ),
    )
    first, second = Chunker().chunk(body)
    assert (first.heading_path, first.section) == (("One",), "I")
    assert (second.heading_path, second.section) == (("One", "Two"), "I")


def test_page_is_the_one_in_force_where_the_chunk_begins() -> None:
    markdown = "# A\na\n# B\n\nb\n# C\nc\n"
    marks = (
        PageMark(offset=markdown.index("# B"), page="101"),
        PageMark(offset=markdown.index("\nb"), page="102"),
        PageMark(offset=markdown.index("c\n") + 1, page="103"),
    )
    chunks = Chunker().chunk(NormalizedBody(markdown=markdown, pages=marks))
    assert [chunk.page for chunk in chunks] == [None, "102", "102"]


def test_page_mark_at_the_first_character_counts() -> None:
    body = NormalizedBody(markdown="a", pages=(PageMark(offset=0, page="7"),))
    assert [chunk.page for chunk in Chunker().chunk(body)] == ["7"]


def test_the_number_in_the_pdf_stands_beside_the_printed_one() -> None:
    body = NormalizedBody(markdown="a", pages=(PageMark(offset=0, page="7", pdf_page=9),))
    (chunk,) = Chunker().chunk(body)
    assert (chunk.page, chunk.pdf_page) == ("7", 9)
    assert chunk_meta(chunk)["locator"] == {"heading_path": [], "page": "7", "pdf_page": 9}


def test_long_section_is_cut_between_paragraphs() -> None:
    paragraphs = [" ".join(SENTENCES[start : start + 3]) for start in range(0, 60, 3)]
    texts = texts_of("\n\n".join(paragraphs), 100)
    assert len(texts) > 5
    assert "\n\n".join(texts).split("\n\n") == paragraphs


def test_paragraph_over_the_cap_is_cut_between_sentences() -> None:
    texts = texts_of(" ".join(SENTENCES), 64)
    assert len(texts) > 5
    assert " ".join(texts) == " ".join(SENTENCES)
    assert all(text.startswith("Sentence") and text.endswith(".") for text in texts)


def test_hard_wrapped_prose_is_cut_between_sentences_not_lines() -> None:
    wrapped = " ".join(SENTENCES).replace(" agency", "\nagency")
    texts = texts_of(wrapped, 64)
    assert len(texts) > 5
    assert all(text.startswith("Sentence") for text in texts)


def test_list_is_cut_between_items() -> None:
    items = [f"- item {number}\n  which goes on" for number in range(40)]
    texts = texts_of("\n".join(items), 48)
    assert len(texts) > 5
    assert "\n".join(texts) == "\n".join(items)
    assert all(text.startswith("- item") and text.endswith("goes on") for text in texts)


def test_table_is_cut_between_rows() -> None:
    rows = [f"| {number} | First. Second. Third. |" for number in range(40)]
    table = "\n".join(["| No | Text |", "|---|---|", *rows])
    texts = texts_of(table, 64)
    assert len(texts) > 5
    assert "\n".join(texts) == table
    assert all(text.startswith("|") and text.endswith("|") for text in texts)


def test_fenced_block_is_cut_between_lines() -> None:
    code = ["```", *[f"call({number}). Then again." for number in range(40)], "```"]
    texts = texts_of("\n".join(code), 48)
    assert len(texts) > 5
    assert "\n".join(texts) == "\n".join(code)


def test_text_of_a_long_paragraph_fills_the_chunk_of_a_short_one() -> None:
    texts = texts_of("Short.\n\n" + " ".join(SENTENCES), 64)
    assert texts[0].startswith("Short.\n\nSentence number 0")


def test_passages_are_filled_as_far_as_they_go() -> None:
    chunks = chunks_of(" ".join(SENTENCES), 64)
    for chunk, following in pairwise(chunks):
        first_sentence = following.text.partition(". ")[0]
        assert count(f"{chunk.text} {first_sentence}.") > 64


def test_sentence_over_the_cap_is_cut_between_words() -> None:
    words = [f"word{number}" for number in range(200)]
    texts = texts_of(" ".join(words), 32)
    assert " ".join(texts).split(" ") == words
    assert max(map(count, texts)) > 25


def test_numbers_parted_by_spaces_fill_the_cap_without_passing_it() -> None:
    text = " ".join(str(number % 10) for number in range(2000))
    texts = texts_of(text)
    assert " ".join(texts) == text
    assert [count(part) >= 510 for part in texts[:-1]] == [True] * (len(texts) - 1)
    assert max(map(count, texts)) <= 512


def test_endless_word_is_cut_by_characters() -> None:
    word = "漢字" * 500
    chunks = chunks_of(word, 64)
    assert "".join(chunk.text for chunk in chunks) == word
    assert max(chunk.tokens for chunk in chunks) <= 64


def test_heading_over_the_cap_is_cut_like_a_section() -> None:
    texts = texts_of("# " + " ".join(SENTENCES), 64)
    assert " ".join(texts) == " ".join(SENTENCES)


def test_blank_stretch_over_the_cap_parts_chunks() -> None:
    assert texts_of("a" + "\n \t" * 5000 + "b", 64) == ["a", "b"]


def test_next_chunk_repeats_the_last_sentences() -> None:
    chunks = chunks_of(" ".join(SENTENCES), 64, 25)
    for chunk, following in pairwise(chunks):
        repeated = chunk.text[following.start - chunk.start :]
        assert 10 <= count(repeated) <= 25
        assert following.text.startswith(repeated)
        assert repeated.startswith("Sentence number")


def test_next_chunk_repeats_the_last_rows() -> None:
    rows = [f"| {number} | cell |" for number in range(60)]
    chunks = chunks_of("\n".join(rows), 64, 16)
    for chunk, following in pairwise(chunks):
        repeated = chunk.text[following.start - chunk.start :]
        assert repeated.count("\n") >= 1
        assert repeated.startswith("|")


def test_paragraph_is_repeated_only_by_its_last_sentences() -> None:
    first, second = " ".join(SENTENCES[:5]), " ".join(SENTENCES[5:10])
    assert texts_of(f"{first}\n\n{second}", 80, 12) == [first, f"{SENTENCES[4]}\n\n{second}"]


def test_units_larger_than_the_overlap_are_not_repeated() -> None:
    assert texts_of(" ".join(SENTENCES), 64, 5) == texts_of(" ".join(SENTENCES), 64, 0)


def test_words_of_a_cut_sentence_are_not_repeated() -> None:
    text = " ".join(f"word{number}" for number in range(200))
    assert texts_of(text, 64, 32) == texts_of(text, 64, 0)


def test_overlap_gives_way_to_a_unit_that_needs_the_room() -> None:
    large = " ".join(SENTENCES[:6])
    text = f"{SENTENCES[7]} {SENTENCES[8]}\n\n{large}"
    assert texts_of(text, count(large), 16) == [f"{SENTENCES[7]} {SENTENCES[8]}", large]


def test_overlap_stays_inside_its_section() -> None:
    section = " ".join(SENTENCES[:20])
    chunks = chunks_of(f"# A\n{section}\n# B\n{section}", 64, 25)
    first_of_second = next(chunk for chunk in chunks if chunk.heading_path == ("B",))
    assert first_of_second.text.startswith("Sentence number 0 ")


@pytest.mark.parametrize(
    ("max_tokens", "overlap_tokens", "named"),
    [
        (0, 0, "chunk_tokens"),
        (-5, 0, "chunk_tokens"),
        (15, 0, "chunk_tokens"),
        (64, -1, "chunk_overlap"),
        (64, 33, "chunk_overlap"),
        (64, 64, "chunk_overlap"),
        (64, 1000, "chunk_overlap"),
    ],
)
def test_senseless_sizes_are_refused(max_tokens: int, overlap_tokens: int, named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        Chunker(max_tokens=max_tokens, overlap_tokens=overlap_tokens)


def test_smallest_cap_with_largest_overlap_comes_to_an_end() -> None:
    chunks = chunks_of("\U0001f469\u200d\U0001f467 Yes. No! " * 50, 16, 8)
    assert max(chunk.tokens for chunk in chunks) <= 16


def test_document_without_body_is_found_by_title_and_summary() -> None:
    chunk = whole_document_chunk(" A title ", "What it says.\n")
    text = "A title\n\nWhat it says."
    assert chunk == Chunk(ordinal=0, text=text, start=0, end=len(text), tokens=count(text))
    assert whole_document_chunk("A title").text == "A title"
    assert whole_document_chunk("A title", " ").text == "A title"


@pytest.mark.parametrize("title", ["Annual report 2024", "令和６年分 収支報告書", "half \ud83d"])
def test_stopgap_has_no_fewer_tokens_than_it_would_be_counted_with(title: str) -> None:
    exact, stopgap = whole_document_chunk(title), whole_document_chunk(title, is_stopgap=True)
    assert stopgap.tokens >= exact.tokens
    assert replace(stopgap, tokens=exact.tokens) == exact
