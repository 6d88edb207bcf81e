"""A redline loses no text, and has whole words and no noise."""

from __future__ import annotations

import random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fonds.codes.diff.redline import Op, Redline, as_markdown, excerpt, redline
from fonds.codes.diff.words import normalized_words

PIECES = ["the", "Secretary", "shall", "may", "60", "days.", "##", "#", ">", "> ", "第", "三", "条"]
SPACES = [" ", "  ", "\n", "\n\n", "\n> ", "\n### ", "\t", "\u00ad", "\u00a0", ""]
texts = st.lists(st.sampled_from(PIECES + SPACES), max_size=40).map("".join)


def edited(words: list[str], seed: int, edits: int) -> list[str]:
    chance = random.Random(seed)
    changed = list(words)
    for number in range(edits):
        changed[chance.randrange(len(changed))] = f"amended{number}"
    return changed


def long_text(seed: int, words: int) -> list[str]:
    chance = random.Random(seed)
    return [
        f"w{chance.randrange(3000)}" + ("\n\n" if chance.random() < 0.02 else "")
        for _ in range(words)
    ]


def shown(before: str, after: str) -> list[Op]:
    return list(redline(before, after).visible_ops())


@given(texts, texts)
@example("x\n> y", "x > y")
@example("\u00ad# x", "# x")
@settings(max_examples=300)
def test_both_texts_can_be_restored(before: str, after: str) -> None:
    result = redline(before, after)
    assert result.before == before
    assert result.after == after
    assert all(op.text for op in result)
    assert all(one.op != other.op for one, other in zip(result, list(result)[1:], strict=False))


@given(texts, texts)
@example("a\nb\na b\n", "a b\na\nb\n")
@example("the第the第##", "the\n##第the第##")
@example("\u00a0", "\u00a0##")
@example("##三", "##\u00ad")
@settings(max_examples=300)
def test_it_is_a_change_exactly_if_words_differ(before: str, after: str) -> None:
    assert redline(before, after).is_change == (normalized_words(before) != normalized_words(after))


@given(st.integers(0, 50), st.integers(0, 30))
@settings(max_examples=20)
def test_long_texts_lose_nothing_either(seed: int, edits: int) -> None:
    words = long_text(seed, 3000)
    before, after = " ".join(words), " ".join(edited(words, seed, edits))
    result = redline(before, after)
    assert (result.before, result.after) == (before, after)
    assert sum(len(text.split()) for op, text in result if op == "delete") <= edits * 9


def test_one_word_of_a_sentence_is_replaced() -> None:
    assert list(redline("within 60 days of receipt", "within 90 days of receipt")) == [
        Op("keep", "within "),
        Op("delete", "60"),
        Op("insert", "90"),
        Op("keep", " days of receipt"),
    ]


def test_equal_texts_are_one_operation() -> None:
    assert list(redline("(a) In general.\n", "(a) In general.\n")) == [
        Op("keep", "(a) In general.\n")
    ]


def test_empty_texts_have_no_operation() -> None:
    assert redline("", "") == Redline(())


def test_coincidental_words_between_rewritten_ones_are_not_kept() -> None:
    before = "A person who wilfully damages the property of a public library is liable."
    after = "Any individual responsible for the loss of books must compensate their owner in full."
    assert [op for op, _ in redline(before, after)] == ["delete", "insert"]


def test_paragraph_inserted_between_others_is_the_only_change() -> None:
    before, after = "(a) One.\n\n(c) Three.\n", "(a) One.\n\n(b) Two.\n\n(c) Three.\n"
    changes = [op for op in redline(before, after) if op.op != "keep"]
    assert changes == [Op("insert", "(b) Two.\n\n")]


def test_changed_paragraphs_are_compared_in_pairs() -> None:
    changes = [
        text
        for op, text in shown("Fee: ten.\n\nTerm: one.\n", "Fee: two.\n\nTerm: six.\n")
        if op != "keep"
    ]
    assert changes == ["ten.", "two.", "one.", "six."]


def test_deeper_headings_and_reflowed_lines_are_not_shown() -> None:
    result = redline("## Notes\n\nOne two\nthree.", "### Notes\n\nOne  two three.")
    assert not result.is_change
    assert list(result.visible_ops()) == [Op("keep", "### Notes\n\nOne  two three.")]
    assert as_markdown(result) == ""


def test_soft_hyphens_are_not_shown() -> None:
    assert not redline("copy\u00adright notice", "copyright notice").is_change


def test_sign_within_a_line_is_a_word() -> None:
    assert redline("if x > 5", "if x 5").is_change


def test_text_without_spaces_is_compared_by_character() -> None:
    changes = [
        text for op, text in redline("第二条の規定による", "第三条の規定による") if op != "keep"
    ]
    assert changes == ["二", "三"]


def test_unrelated_texts_replace_each_other() -> None:
    before = " ".join(f"a{number % 700}" for number in range(20_000))
    after = " ".join(f"b{number % 700}" for number in range(20_000))
    assert list(redline(before, after)) == [Op("delete", before), Op("insert", after)]


def test_alignment_of_many_repetitions_is_bounded() -> None:
    before, after = "a b " * 30_000, "b a c " * 20_000
    result = redline(before, after)
    assert (result.before, result.after) == (before, after)


def test_markdown_strikes_deleted_and_emboldens_inserted_words() -> None:
    before = "# § 5. Fees\n\nThe fee is **ten** dollars a year."
    after = "# § 5. Fees\n\nThe fee is **twelve** dollars a half year."
    assert as_markdown(redline(before, after)) == (
        "# § 5. Fees\n\nThe fee is ~~ten~~ **twelve** dollars a **half** year."
    )


def test_markdown_skips_text_far_from_any_change() -> None:
    filler = " ".join(f"word{number}" for number in range(40))
    before, after = f"old {filler} end", f"new {filler} end"
    assert as_markdown(redline(before, after), context=2) == "~~old~~ **new** word0 word1 …"


def test_markdown_shows_a_gap_between_paragraphs_as_a_paragraph() -> None:
    filler = "\n\n".join(f"Paragraph {number} is as it was." for number in range(9))
    before, after = f"old text\n\n{filler}\n\nlast 1", f"new text\n\n{filler}\n\nlast 2"
    written = as_markdown(redline(before, after), context=3)
    assert written == ("~~old~~ **new** text\n\nParagraph 0\n\n…\n\nit was.\n\nlast ~~1~~ **2**")


def test_marks_never_span_lines_or_contain_line_markers() -> None:
    written = as_markdown(redline("One.\n", "One.\n\n## Notes\n\n> Quoted words.\n"))
    assert written == "One.\n\n## **Notes**\n\n> **Quoted words.**"


def test_excerpt_contains_every_change_and_marks_skipped_text() -> None:
    words = [f"w{number}" for number in range(500)]
    result = redline(" ".join(words), " ".join(edited(words, 3, 4)))
    passages = list(excerpt(result, context=5))
    assert "".join(text for op, text in passages if op != "delete") == result.after
    changes = [(op, text) for op, text in passages if op in {"delete", "insert"}]
    assert changes == [(op, text) for op, text in result if op != "keep"]
    assert any(op == "skip" for op, _ in passages)
