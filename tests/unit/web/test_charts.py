"""Charts say what they show, to eyes and to those who listen, and hold no style of their own."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from uuid import UUID
from xml.etree import ElementTree as ET

import pytest
from markupsafe import Markup

from fonds.model import Counts
from fonds.runs.overview import DayYield, RunInsight, StageInsight
from fonds.runs.state import RunStatus
from fonds.web import charts

NOW: Final = datetime(2026, 3, 4, 12, tzinfo=UTC)


def read(picture: Markup) -> ET.Element:
    root = ET.fromstring(picture)
    assert root.get("role") == "img"
    assert root.get("aria-label")
    assert all(each.get("style") is None for each in root.iter())
    return root


def bars(picture: Markup) -> list[dict[str, Any]]:
    return [
        {"kind": each.get("class"), **{n: float(each.get(n, "")) for n in ("x", "y", "height")}}
        for each in read(picture).iter("rect")
    ]


def run_of(status: RunStatus, **counts: int) -> RunInsight:
    return RunInsight(
        id=UUID(int=1),
        source="fake",
        mode="incremental",
        status=status,
        started_at=NOW - timedelta(hours=1),
        finished_at=None if status is RunStatus.RUNNING else NOW,
        counts=Counts(**counts),
        config={},
        error_summary=None,
    )


def day_of(day: str, **sums: int) -> DayYield:
    return DayYield(**{"day": day, "runs": 1, "inserted": 0, "updated": 0, "errors": 0, **sums})  # type: ignore[arg-type]  # numbers, but for the day


def test_strip_shows_the_last_thirty_runs_at_the_right() -> None:
    runs = [run_of(RunStatus.FAILED), *(run_of(RunStatus.SUCCESS) for _ in range(30))]
    shown = bars(charts.strip(runs, NOW))
    assert [each["kind"] for each in shown] == ["success"] * 30
    (only,) = bars(charts.strip(runs[:1], NOW))
    assert only["x"] == shown[-1]["x"]


def test_worse_runs_are_taller() -> None:
    order = (RunStatus.CANCELLED, RunStatus.SUCCESS, RunStatus.PARTIAL, RunStatus.FAILED)
    heights = [each["height"] for each in bars(charts.strip([run_of(s) for s in order], NOW))]
    assert heights == sorted(set(heights))


def test_strip_tells_in_words_what_it_shows() -> None:
    runs = [run_of(RunStatus.SUCCESS, inserted=1200), run_of(RunStatus.RUNNING)]
    picture = read(charts.strip(runs, NOW))
    assert picture.get("aria-label") == "last 2 runs: 1 success, 1 running; the last: running"
    titles = [each.text or "" for each in picture.iter("title")]
    assert titles[0].startswith("success, 2026-03-04 11:00 UTC, 3,600 s: 1,200 new")
    assert read(charts.strip([], NOW)).get("aria-label") == "no run yet"


def test_days_stand_where_they_belong_and_others_are_left_out() -> None:
    days = [
        day_of("2026-02-01", inserted=9),
        day_of("2026-03-01", inserted=3),
        day_of("2026-03-04", inserted=6),
    ]
    chart = charts.by_day(days, date(2026, 3, 4), 10)
    assert (chart.first, chart.last, chart.max_value) == (date(2026, 2, 23), date(2026, 3, 4), 6)
    assert chart.totals == {"errors": 0, "updated": 0, "inserted": 9}
    assert [int(each["x"]) for each in bars(chart.picture)] == [6, 9]
    assert [each["height"] for each in bars(chart.picture)] == [charts.HEIGHT / 2, charts.HEIGHT]


def test_one_error_among_thousands_is_seen() -> None:
    chart = charts.by_day([day_of("2026-03-04", inserted=9999, errors=1)], date(2026, 3, 4), 5)
    error, inserted = bars(chart.picture)
    assert (error["kind"], error["height"]) == ("errors", 1.0)
    assert inserted["y"] == 0
    assert error["y"] + error["height"] == charts.HEIGHT


def test_chart_of_nothing_is_drawn() -> None:
    chart = charts.by_day([day_of("2026-03-04")], date(2026, 3, 4), 5)
    assert (bars(chart.picture), chart.max_value) == ([], 0)


@pytest.mark.parametrize(
    ("began", "ended", "at"),
    [(0, 50, (0, 500)), (25, 75, (250, 500)), (100, 100, (996, 4)), (-9, 500, (0, 1000))],
)
def test_stage_lies_within_its_run(began: int, ended: int, at: tuple[float, float]) -> None:
    stage = StageInsight(
        stage="fetch",
        began_at=NOW + timedelta(seconds=began),
        ended_at=NOW + timedelta(seconds=ended),
        items=1,
        seconds=1.0,
        waited_seconds=0.0,
        retries=0,
    )
    picture = read(charts.span(stage, NOW, NOW + timedelta(seconds=100)))
    rail, bar = picture.iter("rect")
    assert rail.get("class") == "rail"
    assert (float(bar.get("x", "")), float(bar.get("width", ""))) == at


def test_sparkline_rises_with_its_values() -> None:
    (line,) = read(charts.sparkline([1, 2, 4], "seconds")).iter("polyline")
    points = [tuple(map(float, each.split(","))) for each in line.get("points", "").split()]
    assert [x for x, _ in points] == [0, 500, 1000]
    heights = [y for _, y in points]
    assert heights == sorted(heights, reverse=True)


@pytest.mark.parametrize(("value", "wide"), [(5, 500), (10, 1000), (0, 4)])
def test_share_is_as_wide_as_its_part_of_the_largest(value: int, wide: float) -> None:
    (bar,) = read(charts.bar(value, 10, "failed")).iter("rect")
    assert (bar.get("class"), float(bar.get("width", ""))) == ("failed", wide)


def test_words_of_others_stay_words() -> None:
    label = '"><script>alert(1)</script>'
    assert read(charts.sparkline([1.0], label)).get("aria-label") == label
