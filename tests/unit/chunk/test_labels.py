from __future__ import annotations

import pytest

from fonds.chunk.enumeration import read_labels


def labels_of(text: str) -> list[str]:
    return [label.text for label in read_labels(text, 0, len(text)).labels]


@pytest.mark.parametrize(
    ("paragraph", "labels"),
    [
        ("(a) The owner", ["(a)"]),
        ("(a)(1)(i) The owner", ["(a)", "(1)", "(i)"]),
        ("**(b)** The owner", ["(b)"]),
        ("> “(3) **Exceptions.**—The", ["(3)"]),
        ("- a. The owner", ["a."]),
        ("1\\. The owner", ["1."]),
        ("12. The owner", ["12."]),
        ("a) der Eigentümer", ["a)"]),
        ("(1a) Der Eigentümer", ["(1a)"]),
        ("Article 5. Scope", ["Article 5"]),
        ("一　法人", ["一"]),
        ("１　この法律", ["１"]),
        ("第二条　この法律", ["第二条"]),
        ("(*1*) The fifth level", ["(1)"]),
        ("(b) *Transfer*—(1) *Definition.* The term", ["(b)", "(1)"]),
        ("*Device.* (a) Any explosive", ["(a)"]),
        ("(the owner) shall", []),
        ("(1998) was a year", []),
        ("Section 6(o) of the Act is amended", []),
        ("§ 38.1051 General requirements", []),
        ("e.g. the owner", []),
        ("The owner of (a) shall", []),
        ("(b) *Transfer* under paragraph (3) of", ["(b)"]),
    ],
)
def test_labels_are_those_a_paragraph_begins_with(paragraph: str, labels: list[str]) -> None:
    assert labels_of(paragraph) == labels


def test_words_of_a_label_end_where_the_next_begins() -> None:
    text = "(b) *Transfer*—(1) *Definition.* The term"
    head = read_labels(text, 0, len(text))
    assert [text[slice(*span)] for span in head.spans] == ["*Transfer*—", "*Definition.* The term"]


def test_ambiguous_label_has_both_readings() -> None:
    (label,) = read_labels("(v) The", 0, 7).labels
    assert {(reading.kind, reading.value) for reading in label.readings} == {
        ("round a", 2200),
        ("round a roman", 500),
    }
