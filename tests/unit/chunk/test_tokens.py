from __future__ import annotations

import os
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from fonds.chunk import tokens
from fonds.chunk.tokens import TokenCounter, count

FRAGMENTS = (
    *("a", "The", "10", "123456", "'s", "I'll", "A1", "é", "http://x.y/z"),
    *(" ", " ", " ", "\n", "\n\n", "\t", "\v", "\r\n", "\x1c", "\u00a0"),
    *(".", "(a)", "§", "--", "##", "|", "\\", "*"),
)


def test_counts_are_those_of_cl100k_base() -> None:
    assert count("tiktoken is great!") == 6
    assert count("") == 0
    assert count("2 + 2 = 4") == 7


def test_names_of_special_tokens_are_ordinary_text() -> None:
    assert count("<|endoftext|>") > 1


def test_limit_is_inclusive() -> None:
    tally = TokenCounter("hello world", 0, 11)
    assert tally.count_within(0, 11, 2) == 2
    assert tally.count_within(0, 11, 1) is None


def test_limit_holds_inside_one_endless_word() -> None:
    tally = TokenCounter("-" * 9_000, 0, 9_000)
    assert tally.count_within(0, 9_000, 200) == count("-" * 9_000)
    assert tally.count_within(0, 9_000, 20) is None


def test_lone_surrogates_are_counted_as_replacement_characters() -> None:
    assert count("a \ud800 b") == count("a \ufffd b")
    assert TokenCounter("a \ud800 b", 0, 5).count(0, 5) == count("a \ufffd b")
    assert TokenCounter("\ud800" * 900, 0, 900).count_within(0, 900, 10) is None


def test_million_characters_can_be_counted() -> None:
    assert count("word " * 250_000) > 200_000


def test_importing_the_chunker_does_not_load_the_vocabulary() -> None:
    script = (
        "import sys, fonds.chunk.chunker, fonds.chunk.tokens as t;"
        "assert t._tokenizer.cache_info().currsize == 0;"
        "t.count('x');"
        "assert t._tokenizer.cache_info().currsize == 1;"
        "assert 'bpe_openai' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join))
def test_counting_by_words_is_exact(text: str) -> None:
    assert count(text) == tokens._tokenizer().count(text)


@given(
    st.lists(
        st.sampled_from((*FRAGMENTS, "漢字", "\u3000", "\u2003", " \u2003", "  ", "’")), max_size=14
    ),
    st.integers(0, 40),
    st.integers(0, 40),
)
def test_tally_of_any_span_is_exact(parts: list[str], first: int, length: int) -> None:
    text = "".join(parts).strip()
    span = text[first : first + length]
    start = first + len(span) - len(span.lstrip())
    end = start + len(span.strip())
    if start < end:
        tally = TokenCounter(text, 0, len(text))
        assert tally.count(start, end) == tokens._tokenizer().count(text[start:end])


def test_tally_goes_on_from_stretch_to_stretch() -> None:
    text = "The  agency\n agrees. " * 20_000 + "End"
    tally = TokenCounter(text, 0, len(text))
    assert tally.count(0, len(text)) == count(text)
    assert tally.count(5, 300_003) == count(text[5:300_003])
