from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import IntegrityError

from fonds.errors import NotFoundError
from fonds.model import Archived, FetchTask, Part
from fonds.runs.tasks import Failure, task_from_json, task_to_json

texts = st.text(max_size=20)
moments = st.datetimes(
    min_value=datetime(1990, 1, 1),  # noqa: DTZ001 — the strategy adds the zone
    max_value=datetime(2100, 1, 1),  # noqa: DTZ001 — the strategy adds the zone
    timezones=st.just(UTC),
).map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
parts = st.builds(
    Part,
    name=texts,
    url=texts,
    path=texts,
    optional=st.booleans(),
    refusable=st.booleans(),
    headers=st.dictionaries(texts, texts, max_size=2),
)
origins = st.builds(
    Archived,
    url=texts,
    key=texts,
    sha256=texts,
    size=st.integers(min_value=0),
    retrieved_at=moments,
    media_type=st.none() | texts,
)
tasks = st.builds(
    FetchTask,
    source=texts,
    key=texts,
    parts=st.lists(parts, max_size=3).map(tuple),
    params=st.dictionaries(texts, json_values, max_size=3),
    fingerprint=st.none() | texts,
    origin=st.none() | origins,
)


@settings(max_examples=60)
@given(tasks)
def test_task_survives_being_kept_but_for_its_headers(task: FetchTask) -> None:
    kept = json.loads(json.dumps(task_to_json(task)))
    bare = tuple(replace(part, headers={}) for part in task.parts)
    assert task_from_json(kept) == replace(task, parts=bare)


def test_key_in_a_header_is_never_kept() -> None:
    part = Part(name="note", url="https://a.gov/1", path="1", headers={"X-Api-Key": "hunter2"})
    kept = task_to_json(FetchTask(source="fake", key="1", parts=(part,)))
    assert "hunter2" not in json.dumps(kept)


def test_our_own_error_speaks_for_itself_and_others_are_named() -> None:
    ours = Failure.of(NotFoundError("a.gov has no such page"), "fetch", "fake:1")
    assert (ours.error, ours.error_type) == ("a.gov has no such page", "NotFoundError")
    other = Failure.of(KeyError("title"), "parse", "fake:1")
    assert (other.error, other.error_type) == ("KeyError: 'title'", "KeyError")


def test_error_of_the_database_is_told_without_its_statement() -> None:
    error = IntegrityError("INSERT INTO notes …", {"secret": 1}, ValueError("NOT NULL failed"))
    failure = Failure.of(error, "load", "fake:1")
    assert failure.error == "IntegrityError: NOT NULL failed"
