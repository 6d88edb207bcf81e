"""The same row is written the same way, and only that way is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.bundles import document

from fonds.errors import BundleError
from fonds.exchange.bundle.contents import DOCUMENTS, PASSAGES, canonical, line_of, read_line

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def shuffled(value: Any) -> Any:
    """An equal value that was put together in another order."""
    if isinstance(value, dict):
        return {name: shuffled(value[name]) for name in reversed(list(value))}
    return [shuffled(each) for each in value] if isinstance(value, list) else value


@given(VALUES)
def test_equal_values_have_one_text_whatever_order_they_were_made_in(value: Any) -> None:
    text = canonical(value)
    assert canonical(shuffled(value)) == text
    assert json.loads(text) == value


@given(TEXTS, TEXTS, st.dictionaries(TEXTS, VALUES, max_size=3))
def test_a_row_is_one_line_and_is_read_back(title: str, text: str, places: dict[str, Any]) -> None:
    row = document("held:1", text, title=title, body_map=places)[DOCUMENTS]
    line = line_of(row)
    assert line.splitlines(keepends=True) == [line]
    assert read_line(DOCUMENTS, line) == row


LINE = line_of(document("held:1")[PASSAGES])


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\n", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"9" * 5000 + b"\n", "not JSON"),
        (b"[]\n", "not in the canonical form"),
        (b"NaN\n", "not in the canonical form"),
        (b'{"a":NaN}\n', "not JSON"),
        (b'{"a":"\\ud800"}\n', "not JSON"),
        (LINE.rstrip(), "not in the canonical form"),
        (LINE.replace(b",", b", ", 1), "not in the canonical form"),
        (LINE.replace(b'"ord":0', b'"ord":0,"ord":0'), "not in the canonical form"),
        (LINE.replace(b"Some", b"\\u0053ome"), "not in the canonical form"),
        (LINE.replace(b'"ord":0,', b""), "other fields"),
        (LINE.replace(b'"ord":0', b'"ord":"0"'), "ord that is not of type integer"),
        (LINE.replace(b'"ord":0', b'"ord":false'), "ord that is not of type integer"),
        (LINE.replace(b'"ord":0', b'"ord":0.0'), "ord that is not of type integer"),
        (LINE.replace(b'"ord":0', b'"ord":null'), "has no ord"),
        (LINE.replace(b'{"heading_path":[]}', b"[]"), "locator that is not of type object"),
    ],
)
def test_what_is_not_such_a_line_is_refused(line: bytes, fault: str) -> None:
    with pytest.raises(BundleError, match=fault):
        read_line(PASSAGES, line)
