"""Charts as SVG without text, so that they stretch with the page.

Colours come from the style sheet by class, for light and dark. No meaning depends on colour alone:
worse runs are taller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from markupsafe import Markup

from fonds.runs.overview import DayYield, RunInsight, StageInsight

STRIP_RUNS: Final = 30
"""Runs in a strip; fewer leave space on the left, so that strips line up."""
HEIGHT: Final = 40
WIDTH: Final = 1000

_STEP: Final = 6
_HEIGHTS: Final[Mapping[str, int]] = {
    "success": 10,
    "running": 10,
    "cancelled": 5,
    "partial": 15,
    "failed": 20,
}
_STRIP: Final = max(_HEIGHTS.values())
_KINDS: Final = ("errors", "updated", "inserted")
"""From the bottom up, so that one error among thousands of documents is visible."""
_BAR: Final = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}">{}</rect>')
_TITLE: Final = Markup("<title>{}</title>")
_PICTURE: Final = Markup(
    '<svg class="{}" role="img" aria-label="{}" viewBox="0 0 {} {}"'
    ' preserveAspectRatio="none">{}</svg>'
)


def strip(runs: Sequence[RunInsight], now: datetime) -> Markup:
    """The last runs of a source side by side, oldest first."""
    recent = runs[-STRIP_RUNS:]
    first = STRIP_RUNS - len(recent)
    bars = [_run_bar(run, first + slot, now) for slot, run in enumerate(recent)]
    return _picture("strip", _strip_label(recent), STRIP_RUNS * _STEP, _STRIP, bars)


def _run_bar(run: RunInsight, slot: int, now: datetime) -> Markup:
    height = _HEIGHTS[run.status]
    counts = run.counts
    text = (
        f"{run.status}, {run.started_at:%Y-%m-%d %H:%M} UTC, {run.seconds(now):,.0f} s: "
        f"{counts.inserted:,} new, {counts.updated:,} changed, {counts.error:,} errors"
    )
    title = _TITLE.format(text)
    return _BAR.format(run.status, slot * _STEP, _STRIP - height, _STEP - 1, height, title)


def _strip_label(runs: Sequence[RunInsight]) -> str:
    if not runs:
        return "no run yet"
    counted = [
        f"{count} {status}"
        for status in _HEIGHTS
        if (count := sum(run.status == status for run in runs))
    ]
    return f"last {len(runs)} runs: {', '.join(counted)}; the last: {runs[-1].status}"


@dataclass(frozen=True, kw_only=True, slots=True)
class DayChart:
    """A chart of days with its labels."""

    picture: Markup
    first: date
    last: date
    max_value: int
    """The value of the tallest bar."""
    totals: Mapping[str, int]


def by_day(days: Sequence[DayYield], last: date, span: int) -> DayChart:
    """The results of each of the last days as stacked bars."""
    first = last - timedelta(days=span - 1)
    entries = [(_offset(each, first), _parts(each), each) for each in days]
    visible = [entry for entry in entries if 0 <= entry[0] < span]
    max_value = max((sum(parts.values()) for _, parts, _ in visible), default=0)
    bars = [
        bar
        for offset, parts, each in visible
        for bar in _stack(offset, parts, each, HEIGHT / max_value if max_value else 0.0)
    ]
    totals = {kind: sum(parts[kind] for _, parts, _ in visible) for kind in _KINDS}
    text = ", ".join(f"{count:,} {kind}" for kind, count in totals.items())
    label = f"by day, {first.isoformat()} to {last.isoformat()}: {text}"
    picture = _picture("chart", label, span, HEIGHT, bars)
    return DayChart(picture=picture, first=first, last=last, max_value=max_value, totals=totals)


def _offset(each: DayYield, first: date) -> int:
    return (date.fromisoformat(each.day) - first).days


def _parts(each: DayYield) -> dict[str, int]:
    return {kind: getattr(each, kind) for kind in _KINDS}


def _stack(offset: int, parts: Mapping[str, int], each: DayYield, scale: float) -> list[Markup]:
    text = ", ".join(f"{count:,} {kind}" for kind, count in parts.items())
    title = _TITLE.format(f"{each.day}: {text} in {each.runs:,} runs")
    bars, top = [], float(HEIGHT)
    for kind, count in parts.items():
        height = min(max(count * scale, 1.0) if count else 0.0, top)
        top -= height
        if height:
            bars.append(_BAR.format(kind, offset + 0.1, _number(top), 0.8, _number(height), title))
    return bars


def span(stage: StageInsight, started_at: datetime, ended_at: datetime) -> Markup:
    """The time of a stage within that of its run."""
    total = max((ended_at - started_at).total_seconds(), 0.001)
    start = min(max((stage.began_at - started_at).total_seconds() / total, 0.0), 1.0) * WIDTH
    end = min(max((stage.ended_at - started_at).total_seconds() / total, 0.0), 1.0) * WIDTH
    width = max(end - start, 4.0)
    start = min(start, WIDTH - width)
    text = f"{stage.stage}: {stage.began_at:%H:%M:%S} to {stage.ended_at:%H:%M:%S} UTC"
    rail = _BAR.format("rail", 0, 4, WIDTH, 2, "")
    bar = _BAR.format("running", _number(start), 0, _number(width), 10, _TITLE.format(text))
    return _picture("span", text, WIDTH, 10, [rail, bar])


def bar(value: int, max_value: int, kind: str) -> Markup:
    """A bar for one of several values, of which `max_value` is the largest."""
    width = min(max(value / max_value if max_value else 0.0, 0.004), 1.0) * WIDTH
    return _picture(
        "share", f"{value:,}", WIDTH, 10, [_BAR.format(kind, 0, 0, _number(width), 10, "")]
    )


def sparkline(values: Sequence[float], label: str) -> Markup:
    """The course of a value, oldest first."""
    max_value = max(values, default=0.0) or 1.0
    step = WIDTH / max(len(values) - 1, 1)
    points = " ".join(
        f"{_number(index * step)},{_number(HEIGHT - 2 - value / max_value * (HEIGHT - 4))}"
        for index, value in enumerate(values)
    )
    line = Markup('<polyline class="line" points="{}"/>').format(points)
    return _picture("spark", label, WIDTH, HEIGHT, [line])


def _picture(kind: str, label: str, width: int, height: int, parts: Sequence[Markup]) -> Markup:
    return _PICTURE.format(kind, label, width, height, Markup().join(parts))


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
