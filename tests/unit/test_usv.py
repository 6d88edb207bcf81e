"""Records as unit-separated values: every text survives, and damage is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fonds.errors import RecordError, ShardError
from fonds.shards import usv

SPECIAL = "".join(usv.ESCAPES) + "-fJ?[@\\\"'\u2028\x85\U00010000é"
texts = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(SPECIAL))
fields = st.lists(st.none() | texts, min_size=1, max_size=6)


@given(fields)
def test_any_fields_come_back(values: list[str | None]) -> None:
    assert usv.decode(usv.encode(values)[:-1]) == values


@given(fields)
def test_a_record_holds_no_control_character_but_its_separators(values: list[str | None]) -> None:
    record = usv.encode(values)
    assert record.endswith(b"\n")
    assert record.count(b"\n") == 1
    assert record.count(b"\x1f") == len(values) - 1
    assert not set(record[:-1]) & (set(range(32)) - {0x1B, 0x1F} | {0x7F})
    assert b"\xef\xbb\xbf" not in record


@given(fields, fields)
def test_different_fields_are_written_differently(
    one: list[str | None], other: list[str | None]
) -> None:
    assert (usv.encode(one) == usv.encode(other)) == (one == other)


@given(texts)
def test_escapes_taken_back_in_any_order_but_their_own_last_give_the_text(text: str) -> None:
    written = usv.encode([text])[:-1].decode()
    for character, escape in reversed(list(usv.ESCAPES.items())):
        if character != usv.ESCAPE:
            written = written.replace(escape, character)
    assert written.replace(usv.ESCAPES[usv.ESCAPE], usv.ESCAPE) == text


def test_no_value_an_empty_text_and_a_text_that_looks_like_none_are_three_things() -> None:
    written = [usv.encode([value]) for value in (None, "", usv.NULL, "-")]
    assert written == [b"\x1b-\n", b"\n", b"\x1b[-\n", b"-\n"]


def test_a_newline_is_written_as_a_terminal_shows_it() -> None:
    assert usv.encode(["a\nb", "c\x1fd"]) == b"a\x1bJb\x1fc\x1b_d\n"


def test_half_a_character_is_refused() -> None:
    with pytest.raises(RecordError, match="surrogate"):
        usv.encode(["\ud800"])


@pytest.mark.parametrize("record", [b"\xff", b"\xc3", b"\xed\xa0\x80"])
def test_bytes_that_are_no_text_are_refused(record: bytes) -> None:
    with pytest.raises(ShardError, match="UTF-8"):
        usv.decode(record)


@pytest.mark.parametrize(
    "record", [b"\x1b", b"a\x1b", b"\x1bx", b"\x1b-a", b"a\x1b-", b"\x1b\x1b["]
)
def test_an_escape_that_nobody_writes_is_refused(record: bytes) -> None:
    with pytest.raises(ShardError, match="unknown escape"):
        usv.decode(record)


@given(st.lists(fields, max_size=5), st.integers(1, 9))
def test_a_stream_gives_its_records_however_it_is_cut_into_pieces(
    rows: list[list[str | None]], size: int
) -> None:
    data = b"".join(map(usv.encode, rows))
    assert [usv.decode(record) for record in usv.records(pieces(data, size))] == rows


@given(st.lists(fields, min_size=1, max_size=3), st.data())
def test_a_stream_that_ends_inside_a_record_is_refused(
    rows: list[list[str | None]], data: st.DataObject
) -> None:
    written = b"".join(map(usv.encode, rows))
    cut = data.draw(st.integers(0, len(written)))
    if cut == 0 or written[:cut].endswith(b"\n"):
        assert len(list(usv.records([written[:cut]]))) == written[:cut].count(b"\n")
    else:
        with pytest.raises(ShardError, match="inside a record"):
            list(usv.records([written[:cut]]))


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))
