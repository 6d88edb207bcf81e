"""Merging: the newest record of each key, in one order, whatever order they came in."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fonds.errors import ShardError
from fonds.shards import usv
from fonds.shards.manifest import find, key_of, lines_of, merge
from fonds.shards.schema import rank, schema_of

SCHEMA = schema_of([("key", "string"), ("text", "string"), ("updated_at", "datetime")])
FIELDS = 3
START = datetime(2026, 3, 4, tzinfo=UTC)

# Few keys, many of them the beginning of another, so that they meet.
keys = st.sampled_from(
    ["a", "ab", "a.b", "a\x1f", "a\x1b", "a\n", "b", "\0", "é", "🦊", "\x1f", " "]
)
texts = st.none() | st.sampled_from(["", "x", "y", "\n", "\x1f", "a\x1fb", usv.NULL])
times = st.integers(0, 3).map(lambda hours: START + timedelta(hours=hours))
lines = st.builds(
    lambda key, text, time: SCHEMA.encode({"key": key, "text": text, "updated_at": time})[:-1],
    keys, texts, times,
)  # fmt: skip
many = st.lists(lines, max_size=12)


def naive(records: list[bytes]) -> bytes:
    newest: dict[object, bytes] = {}
    for line in sorted(records, key=rank):
        newest[SCHEMA.decode(line)["key"]] = line
    return b"".join(line + b"\n" for line in sorted(newest.values()))


@given(many, many)
def test_a_merge_keeps_the_newest_of_each_key_and_no_other(
    held: list[bytes], new: list[bytes]
) -> None:
    assert merge(naive(held), new, FIELDS) == naive(held + new)


@given(many, st.randoms(use_true_random=False), st.integers(0, 12))
def test_any_order_and_any_division_give_the_same_bytes(
    records: list[bytes], chance: random.Random, cut: int
) -> None:
    once = merge(b"", records, FIELDS)
    shuffled = list(records)
    chance.shuffle(shuffled)
    assert merge(merge(b"", shuffled[:cut], FIELDS), shuffled[cut:], FIELDS) == once


@given(many, many)
def test_what_is_merged_already_changes_nothing(held: list[bytes], new: list[bytes]) -> None:
    once = merge(naive(held), new, FIELDS)
    assert merge(once, new, FIELDS) == once
    assert merge(once, held, FIELDS) == once
    assert merge(once, [], FIELDS) == once


@given(many)
def test_keys_stand_once_and_in_order(records: list[bytes]) -> None:
    merged = [key_of(line) for line in lines_of(merge(b"", records, FIELDS), FIELDS)]
    assert merged == sorted(set(merged))


@given(many, keys)
def test_a_key_is_found_if_and_only_if_it_is_there(records: list[bytes], key: str) -> None:
    data = naive(records)
    wanted = [line for line in data.split(b"\n")[:-1] if SCHEMA.decode(line)["key"] == key]
    assert find(data, usv.encode([key, ""])[:-1]) == (wanted[0] if wanted else None)


@given(many)
def test_a_shard_that_is_cut_inside_a_record_is_refused_at_every_byte(records: list[bytes]) -> None:
    data = naive(records)
    for cut in range(1, len(data)):
        if data[cut - 1 : cut] == b"\n":
            assert lines_of(data[:cut], FIELDS) == data[: cut - 1].split(b"\n")
            continue
        with pytest.raises(ShardError):
            lines_of(data[:cut], FIELDS)
        with pytest.raises(ShardError):
            merge(data[:cut], [], FIELDS)
        with pytest.raises(ShardError):
            find(data[:cut], b"a\x1f")


@pytest.mark.parametrize("data", [b"a\x1fb\n", b"a\x1fb\x1fc\x1fd\n", b"\n", b"a\x1fb\x1fc\n\n"])
def test_a_shard_with_too_many_or_too_few_fields_is_refused(data: bytes) -> None:
    with pytest.raises(ShardError, match="too many or too few"):
        lines_of(data, FIELDS)


def test_an_older_record_never_replaces_a_newer_one() -> None:
    old, new = (
        SCHEMA.encode(
            {"key": "k", "text": text, "updated_at": START + timedelta(microseconds=after)}
        )
        for text, after in (("z", 0), ("a", 1))
    )
    assert merge(new, [old[:-1]], FIELDS) == new
    assert merge(old, [new[:-1]], FIELDS) == new
