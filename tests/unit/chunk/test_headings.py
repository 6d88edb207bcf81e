from __future__ import annotations

import pytest

from fonds.chunk.headings import HeadingSection, Sections, read_outline, text_only


def found(markdown: str) -> list[tuple[int, str]]:
    return [
        (line.level, text_only(markdown[line.text_start : line.text_end]))
        for line in read_outline(markdown).headings
    ]


def sections(markdown: str) -> list[tuple[str, tuple[str, ...]]]:
    every = Sections(markdown, read_outline(markdown))
    return [(markdown[part.start : part.end], part.heading_path) for part in every]


def test_offset_points_at_the_first_hash() -> None:
    markdown = "Preface.\n\n  ## *One* ##\n\nText.\n# Two"
    assert found(markdown) == [(2, "One"), (1, "Two")]
    offsets = [line.offset for line in read_outline(markdown).headings]
    assert offsets == [12, markdown.index("# Two")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("# a", [(1, "a")]),
        ("###### a", [(6, "a")]),
        ("#\ta", [(1, "a")]),
        ("   # a", [(1, "a")]),
        ("# a #", [(1, "a")]),
        ("# a ####  ", [(1, "a")]),
        ("# a#", [(1, "a#")]),
        (r"# a \#", [(1, "a #")]),
        ("#", [(1, "")]),
        ("## ##", [(2, "")]),
        ("####### a", []),
        ("#a", []),
        (r"\# a", []),
        ("    # a", []),
        ("\t# a", []),
        ("> # a", []),
        ("- # a", []),
        ("text # a", []),
    ],
)
def test_hashes(line: str, expected: list[tuple[int, str]]) -> None:
    assert found(line) == expected
    assert found(f"Text.\n\n{line}\n\nText.\n") == expected
    assert found(f"Text.\r\n\r\n{line}\r\n\r\nText.\r\n") == expected


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_every_line_ending_ends_a_heading(ending: str) -> None:
    markdown = ending.join(["# One", "text", "Two", "===", "text"])
    assert found(markdown) == [(1, "One")]
    markdown = ending.join(["# One", "", "Two", "===", "text"])
    assert found(markdown) == [(1, "One"), (1, "Two")]
    assert sections(markdown) == [("One", ("One",)), ("text", ("Two",))]


def test_form_feed_does_not_end_a_line() -> None:
    assert found("text\f# not a heading") == []


@pytest.mark.parametrize(
    "block",
    [
        "```\n# no\n```",
        "~~~ text\n# no\n~~~",
        "````\n```\n# no\n```\n````",
        "   ```python\n# no\n   ```",
        "```\n# no\n~~~\n# no\n``` x\n# no\n`````",
    ],
)
def test_fenced_lines_are_no_headings(block: str) -> None:
    assert found(f"# One\n\n{block}\n# Two\n") == [(1, "One"), (1, "Two")]


def test_fence_that_is_never_closed_runs_to_the_end() -> None:
    assert found("# One\n\n```\n# no\n\n# no\n") == [(1, "One")]


def test_backticks_around_a_word_open_no_fence() -> None:
    assert found("```word``` in a line\n\n# One\n") == [(1, "One")]


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("Title\n=====\n\ntext", [(1, "Title")]),
        ("Title\n---\ntext", [(2, "Title")]),
        ("text\n\n*Title* here  \n  ---  \n", [(2, "Title here")]),
        ("# One\nTwo\n---", [(1, "One"), (2, "Two")]),
    ],
)
def test_underlined_lines_are_headings(markdown: str, expected: list[tuple[int, str]]) -> None:
    assert found(markdown) == expected


@pytest.mark.parametrize(
    "markdown",
    [
        "text\n\n---\n\ntext",
        "---\ntitle: x\n---\n",
        "two lines\nof text\n---\n",
        "- item\n---\n",
        "1. item\n---\n",
        "> quote\n---\n",
        "| a | b |\n---\n",
        "    code\n---\n",
        "* * *\n---\n",
        "Title\n--- x\n",
        "===\n",
    ],
)
def test_rules_below_anything_else_make_no_heading(markdown: str) -> None:
    assert found(markdown) == []


def test_sections_know_the_headings_they_stand_under() -> None:
    markdown = "Preface.\n# A\na\n### B\nb\n## C\nc\n# D\nd\n"
    assert sections(markdown) == [
        ("Preface.", ()),
        ("a", ("A",)),
        ("b", ("A", "B")),
        ("c", ("A", "C")),
        ("d", ("D",)),
    ]


def test_heading_without_text_or_subsections_is_its_own_section() -> None:
    assert sections("# A\n\n## B [Reserved]\n\n## C\nc\n# *D* #\n") == [
        ("B [Reserved]", ("A", "B [Reserved]")),
        ("c", ("A", "C")),
        ("*D*", ("D",)),
    ]


def test_heading_above_an_empty_heading_is_not_lost() -> None:
    assert sections("# A\n##\n") == [("A", ("A",))]
    assert sections("# A\n##\ntext") == [("text", ("A",))]
    assert sections("#\n") == []


def test_labels_are_found_by_offset_and_inherited() -> None:
    markdown = "# A\na\n## B\nb\n### C\nc\n## D\nd"
    labels = {0: "I", markdown.index("## B"): "I.B", markdown.index("## D") + 1: "wrong"}
    every = Sections(markdown, read_outline(markdown), labels)
    assert [section.label for section in every] == ["I", "I.B", "I.B", "I"]


def test_blank_text_has_no_sections() -> None:
    assert sections("") == []
    assert sections(" \n\f\r\n\u00a0") == []


def test_section_has_no_white_space_at_its_ends() -> None:
    markdown = "# A\r\n\r\n \u00a0 a b \f\r\n"
    every = Sections(markdown, read_outline(markdown))
    start = markdown.index("a b")
    assert list(every) == [HeadingSection(start, start + 3, ("A",), None)]
