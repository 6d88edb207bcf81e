"""A record is compared with its tables before it is loaded."""

from __future__ import annotations

from typing import Any

import pytest

from fonds.errors import MalformedError
from fonds.model import ParsedRecord
from fonds.stores.records import check_record
from fonds.testing import fake_note_tags, fake_notes


def record(**payload: Any) -> ParsedRecord:
    values = {"id": "fake:1", "number": 1, "published": "2026-01-02", **payload}
    return ParsedRecord(source="fake", table=fake_notes.name, key="fake:1", payload=values)


def test_record_that_fits_its_table_passes() -> None:
    check_record(record())


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"number": "one"}, "number does not take the str 'one'"),
        ({"number": True}, "number does not take the bool True"),
        ({"number": 1 << 31}, "number does not take the int 2147483648"),
        ({"published": 2026}, "published does not take the int 2026"),
        ({"number": None}, "number has no value"),
        ({"colour": "red"}, "has no column 'colour'"),
    ],
)
def test_value_that_does_not_fit_its_column_is_named(payload: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedError, match=message):
        check_record(record(**payload))


def test_rows_below_a_record_are_checked_too() -> None:
    tag = ParsedRecord(source="fake", table=fake_note_tags.name, key="t", payload={"size": 3})
    parent = record()
    with pytest.raises(MalformedError, match="has no column 'size'"):
        check_record(
            ParsedRecord(
                source="fake",
                table=parent.table,
                key=parent.key,
                payload=parent.payload,
                children=(tag,),
            )
        )
