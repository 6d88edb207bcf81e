"""Schemas: typed values come back as they were, and what does not fit is named."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.indexes import EVERY

from fonds.errors import RecordError, ShardError, UsageError
from fonds.shards.index import DOMAINS, SHIPPED
from fonds.shards.schema import MAX_RECORD_SIZE, Record, Value, rank, schema_of

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
moments = st.datetimes(
    min_value=datetime(1, 1, 3),  # noqa: DTZ001 — hypothesis adds the zone
    max_value=datetime(9999, 12, 29),  # noqa: DTZ001 — likewise
    timezones=st.builds(
        lambda minutes: timezone(timedelta(minutes=minutes)), st.integers(-1439, 1439)
    ),
)
records = st.fixed_dictionaries(
    {"key": st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60),
     "updated_at": moments},
    optional={
        "text": st.none() | texts,
        "whole": st.none() | st.integers(-(2**63) + 1, 2**63 - 1),
        "part": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "flag": st.none() | st.booleans(),
        "day": st.none() | st.dates(),
        "moment": st.none() | moments,
    },
)  # fmt: skip


@given(records)
def test_any_record_comes_back(record: dict[str, Value]) -> None:
    line = EVERY.encode(record)
    back = EVERY.decode(line[:-1])
    assert back == {field.name: record.get(field.name) for field in EVERY.fields}
    assert EVERY.encode(back) == line
    assert {name: type(value) for name, value in back.items() if value is not None} == {
        name: type(value) for name, value in record.items() if value is not None
    }


@given(moments, moments)
def test_records_rank_by_their_times_whatever_the_zone(one: datetime, other: datetime) -> None:
    first, second = (EVERY.encode({"key": "k", "updated_at": time}) for time in (one, other))
    assert (rank(first) < rank(second)) == (one < other)


@given(records, records)
def test_different_records_never_rank_equal(one: dict[str, Value], other: dict[str, Value]) -> None:
    first, second = EVERY.encode(one), EVERY.encode(other)
    assert (rank(first) == rank(second)) == (first == second)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", 5),
        ("whole", "5"),
        ("whole", 5.0),
        ("whole", True),
        ("whole", 2**63),
        ("whole", -(2**63)),
        ("part", "5"),
        ("part", float("nan")),
        ("part", float("inf")),
        ("part", 10**400),
        ("part", True),
        ("flag", 1),
        ("flag", "true"),
        ("day", "2026-03-04"),
        ("day", NOON),
        ("moment", date(2026, 3, 4)),
        ("moment", datetime(2026, 3, 4)),  # noqa: DTZ001 — that is what is refused
    ],
)
def test_a_value_of_another_type_is_refused_by_the_name_of_its_field(
    name: str, value: Value
) -> None:
    with pytest.raises(RecordError, match=f"^{name} must be "):
        EVERY.encode({"key": "k", "updated_at": NOON, name: value})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("whole", "5.0"),
        ("whole", str(2**63)),
        ("part", "nan"),
        ("part", "1e999"),
        ("flag", "True"),
        ("flag", "1"),
        ("day", "yesterday"),
        ("moment", "noon"),
    ],
)
def test_a_text_that_is_no_value_of_its_field_is_refused(name: str, text: str) -> None:
    with pytest.raises(RecordError, match=f"^{name} must be "):
        EVERY.parse({name: text})


def test_typed_texts_become_values() -> None:
    typed: dict[str, str | None] = {
        "text": "", "whole": "-7", "part": "1e3", "flag": "true", "day": "2026-03-04",
        "moment": "2026-03-04T13:00:00+01:00", "key": None,
    }  # fmt: skip
    assert EVERY.parse(typed) == {
        "text": "", "whole": -7, "part": 1000.0, "flag": True, "day": date(2026, 3, 4),
        "moment": NOON, "key": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"key": "k"}, "updated_at is missing"),
        ({"updated_at": NOON}, "needs a key"),
        ({"key": "", "updated_at": NOON}, "needs a key"),
        ({"key": "é" * 129, "updated_at": NOON}, "longer than 256 bytes"),
        ({"key": "k", "updated_at": NOON, "colour": "red"}, "no field 'colour'"),
        ({"key": "\ud800", "updated_at": NOON}, "surrogate"),
        (
            {"key": "k", "updated_at": NOON, "text": "\n" * (MAX_RECORD_SIZE // 2)},
            "of 'k' is longer",
        ),
    ],
)
def test_what_cannot_be_a_record_is_refused_with_its_reason(record: Record, said: str) -> None:
    with pytest.raises(RecordError, match=said):
        EVERY.encode(record)


def test_a_record_just_short_enough_is_taken() -> None:
    rest = len(EVERY.encode({"key": "k", "updated_at": NOON, "text": ""}))
    line = EVERY.encode({"key": "k", "updated_at": NOON, "text": "x" * (MAX_RECORD_SIZE - rest)})
    assert len(line) == MAX_RECORD_SIZE
    with pytest.raises(RecordError, match="longer than 1,048,576 bytes"):
        EVERY.encode({"key": "k", "updated_at": NOON, "text": "x" * (MAX_RECORD_SIZE - rest + 1)})


def test_a_line_with_too_few_fields_or_a_bad_one_is_no_record() -> None:
    with pytest.raises(ShardError, match="3 fields, not 4"):
        DOMAINS.decode(b"a.gov\x1fA\x1f1")
    with pytest.raises(ShardError, match="scraper_version must be a whole number"):
        DOMAINS.decode(b"a.gov\x1fA\x1fone\x1f2026-03-04T12:00:00.000000Z")


@pytest.mark.parametrize(
    "columns",
    [
        [("key", "string")],
        [("key", "integer"), ("updated_at", "datetime")],
        [("key", "string"), ("updated_at", "date")],
        [("key", "string"), ("KEY", "string"), ("updated_at", "datetime")],
        [("key", "string"), ("two words", "string"), ("updated_at", "datetime")],
        [("key", "string"), ('x"', "string"), ("updated_at", "datetime")],
        [("key", "string"), ("größe", "string"), ("updated_at", "datetime")],
        [("key", "string"), ("colour", "geopoint"), ("updated_at", "datetime")],
    ],
)
def test_fields_that_make_no_index_are_refused(columns: list[tuple[str, str]]) -> None:
    with pytest.raises(UsageError):
        schema_of(columns)


def test_the_shipped_index_has_the_fields_of_its_specification() -> None:
    assert [(field.name, field.type) for field in SHIPPED["domains"].fields] == [
        ("domain", "string"),
        ("company_name", "string"),
        ("scraper_version", "integer"),
        ("updated_at", "datetime"),
    ]
