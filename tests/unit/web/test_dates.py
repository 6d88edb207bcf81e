"""Days and times at both ends of the calendar, wherever a client may send one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mcp import Client
from tests.support.libraries.uploads import upload_library
from tests.unit.web.visiting import Visit, visiting

from fonds.catalog.changes import utc_time
from fonds.errors import UsageError
from fonds.mcp.server import make_server

ADMIN: Final = "/api/admin/ingestion"
CURSOR: Final = "{}~0~fr:2026-00101"
_DAYS: Final = st.dates().map(str) | st.sampled_from(["0001-01-01", "9999-12-31"])
_TIMES: Final = st.builds(
    "{}T{}{}".format,
    _DAYS,
    st.sampled_from(["00:00:00", "23:59:59", "23:59:59.999999"]),
    st.sampled_from(["", "Z", "+23:59", "-23:59", "+00:01"]),
)
_HTTP_DATES: Final = st.builds(
    "{}, {} Dec {} 23:59:59 {}".format,
    st.sampled_from(["Fri", "Mon"]),
    st.integers(1, 31),
    st.sampled_from([1, 1970, 9999, 99999]),
    st.sampled_from(["GMT", "+2359", "-2359", "+99999999999999", "-9999"]),
)


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    with upload_library(tmp_path_factory.mktemp("dates")) as library, visiting(library) as visit:
        yield visit


@pytest.fixture(scope="module")
def operator(visit: Visit) -> dict[str, str]:
    return {"Authorization": f"Bearer {visit.token('root', 'admin')[1]}"}


@pytest.fixture(scope="module")
def parameters(visit: Visit, operator: dict[str, str]) -> list[tuple[str, str]]:
    """Every route with a query parameter that is a day or a time, with that parameter."""
    paths = visit.client.get("/openapi.json", headers=operator).json()["paths"]
    result = [
        (path, parameter["name"])
        for path, operations in paths.items()
        for parameter in operations.get("get", {}).get("parameters", [])
        if '"format": "date' in json.dumps(parameter["schema"])
    ]
    assert {name for _, name in result} == {"since", "until", "as_of"}
    return result


@settings(max_examples=25)
@given(value=_DAYS | _TIMES)
@example(value="9999-12-31T23:59:59-23:59")
@example(value="0001-01-01T00:00:00+23:59")
def test_no_day_or_time_makes_the_api_fail(
    value: str, visit: Visit, operator: dict[str, str], parameters: list[tuple[str, str]]
) -> None:
    for path, name in parameters:
        query = {"q": "water", "citation": "H.R. 5", "since": "2026-01-01", name: value}
        answer = visit.client.get(path, params=query, headers=operator)
        assert answer.status_code in {200, 422}, (path, name, answer.text)
    changes = {"since": "2026-01-01", "cursor": CURSOR.format(value)}
    assert visit.client.get("/api/changes", params=changes).status_code in {200, 422}
    assert visit.get(f"/?q=water+since:{value}+until:{value}").status_code in {200, 422}


@settings(max_examples=25)
@given(since=_DAYS, until=_DAYS | st.none())
@example(since="9999-12-31", until=None)
def test_no_day_makes_an_order_of_an_operator_fail(
    since: str, until: str | None, visit: Visit, operator: dict[str, str]
) -> None:
    for command in ("backfill", "audit"):
        address = f"{ADMIN}/sources/gao/{command}"
        order = {"since": since, "until": until}
        answer = visit.client.post(address, json=order, headers=operator)
        assert answer.status_code in {202, 422}, answer.text


@settings(max_examples=50)
@given(value=_HTTP_DATES)
@example(value="Fri, 31 Dec 9999 23:59:59 +99999999999999")
def test_no_date_in_a_header_makes_a_feed_fail(value: str, visit: Visit) -> None:
    answer = visit.client.get("/feeds/gao.atom", headers={"If-Modified-Since": value})
    assert answer.status_code in {200, 304}


def test_no_day_makes_a_tool_fail(visit: Visit) -> None:
    days = ["0001-01-01", "9999-12-31", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"]

    async def codes() -> set[str]:
        async with Client(make_server(visit.library)) as client:
            results = [
                await client.call_tool(tool, arguments)
                for day in days
                for tool, arguments in _calls(day)
            ]
        contents = [result.structured_content or {} for result in results]
        return {content["error"]["code"] for content in contents if "error" in content}

    assert asyncio.run(codes()) <= {"not_found", "bad_request"}


def _calls(day: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("search", {"query": "water", "since": day, "until": day}),
        ("resolve_citation", {"citation": "H.R. 5", "as_of": day}),
        ("check_quote", {"cite": "H.R. 5", "text": "water", "as_of": day}),
    ]


def test_time_at_midnight_keeps_its_zone(visit: Visit) -> None:
    # As a day, midnight in Tokyo would be midnight in UTC, and nine hours of changes missing.
    with pytest.raises(UsageError, match="years 1 to 9999"):
        utc_time(datetime.fromisoformat("0001-01-01T00:00:00+23:59"))
    tokyo = datetime.fromisoformat("2026-01-02T00:00:00+09:00")
    assert utc_time(tokyo) == datetime(2026, 1, 1, 15, tzinfo=UTC)
    answer = visit.client.get("/api/changes", params={"since": "0001-01-01T00:00:00+23:59"})
    assert answer.status_code == 422
