"""Charts as SVG: drawn without text, so that they stretch with the page; words stand beside them.

Nothing here has a colour of its own. Classes name what is shown, and the sheet of styles knows
how that looks in light and dark. No kind is told by colour alone: worse runs are taller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from markupsafe import Markup

from fonds.runs.overview import DayYield, RunInsight, StageInsight

SLOTS: Final = 30
"""Runs in a strip; fewer leave room on the left, so that strips line up."""
TALL: Final = 40
WIDE: Final = 1000

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
"""From the bottom up: one error among thousands of documents must be seen."""
_BAR: Final = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}">{}</rect>')
_TITLE: Final = Markup("<title>{}</title>")
_PICTURE: Final = Markup(
    '<svg class="{}" role="img" aria-label="{}" viewBox="0 0 {} {}"'
    ' preserveAspectRatio="none">{}</svg>'
)


def strip(runs: Sequence[RunInsight], now: datetime) -> Markup:
    """The last runs of a source side by side, the oldest first; each says what came of it."""
    shown = runs[-SLOTS:]
    first = SLOTS - len(shown)
    bars = [_run_bar(run, first + place, now) for place, run in enumerate(shown)]
    return _picture("strip", _strip_label(shown), SLOTS * _STEP, _STRIP, bars)


def _run_bar(run: RunInsight, place: int, now: datetime) -> Markup:
    tall = _HEIGHTS[run.status]
    counts = run.counts
    told = (
        f"{run.status}, {run.started_at:%Y-%m-%d %H:%M} UTC, {run.seconds(now):,.0f} s: "
        f"{counts.inserted:,} new, {counts.updated:,} changed, {counts.error:,} errors"
    )
    title = _TITLE.format(told)
    return _BAR.format(run.status, place * _STEP, _STRIP - tall, _STEP - 1, tall, title)


def _strip_label(runs: Sequence[RunInsight]) -> str:
    if not runs:
        return "no run yet"
    counted = [
        f"{many} {status}"
        for status in _HEIGHTS
        if (many := sum(run.status == status for run in runs))
    ]
    return f"last {len(runs)} runs: {', '.join(counted)}; the last: {runs[-1].status}"


@dataclass(frozen=True, kw_only=True, slots=True)
class DayChart:
    """A chart of days, and the words around it."""

    picture: Markup
    first: date
    last: date
    most: int
    """What the tallest bar stands for."""
    totals: Mapping[str, int]


def by_day(days: Sequence[DayYield], last: date, span: int) -> DayChart:
    """What each of the last days brought, as a stack; days without a run stay empty."""
    first = last - timedelta(days=span - 1)
    sums = [(_place(each, first), _parts(each), each) for each in days]
    inside = [entry for entry in sums if 0 <= entry[0] < span]
    most = max((sum(parts.values()) for _, parts, _ in inside), default=0)
    bars = [
        bar
        for place, parts, each in inside
        for bar in _stack(place, parts, each, TALL / most if most else 0.0)
    ]
    totals = {kind: sum(parts[kind] for _, parts, _ in inside) for kind in _KINDS}
    told = ", ".join(f"{count:,} {kind}" for kind, count in totals.items())
    label = f"by day, {first.isoformat()} to {last.isoformat()}: {told}"
    picture = _picture("chart", label, span, TALL, bars)
    return DayChart(picture=picture, first=first, last=last, most=most, totals=totals)


def _place(each: DayYield, first: date) -> int:
    return (date.fromisoformat(each.day) - first).days


def _parts(each: DayYield) -> dict[str, int]:
    return {kind: getattr(each, kind) for kind in _KINDS}


def _stack(place: int, parts: Mapping[str, int], each: DayYield, scale: float) -> list[Markup]:
    told = ", ".join(f"{count:,} {kind}" for kind, count in parts.items())
    title = _TITLE.format(f"{each.day}: {told} in {each.runs:,} runs")
    bars, top = [], float(TALL)
    for kind, count in parts.items():
        tall = min(max(count * scale, 1.0) if count else 0.0, top)
        top -= tall
        if tall:
            bars.append(_BAR.format(kind, place + 0.1, _short(top), 0.8, _short(tall), title))
    return bars


def span(stage: StageInsight, began: datetime, ended: datetime) -> Markup:
    """When a stage was at work, within the time of its run."""
    whole = max((ended - began).total_seconds(), 0.001)
    start = min(max((stage.began_at - began).total_seconds() / whole, 0.0), 1.0) * WIDE
    end = min(max((stage.ended_at - began).total_seconds() / whole, 0.0), 1.0) * WIDE
    wide = max(end - start, 4.0)
    start = min(start, WIDE - wide)
    told = f"{stage.stage}: {stage.began_at:%H:%M:%S} to {stage.ended_at:%H:%M:%S} UTC"
    rail = _BAR.format("rail", 0, 4, WIDE, 2, "")
    bar = _BAR.format("running", _short(start), 0, _short(wide), 10, _TITLE.format(told))
    return _picture("span", told, WIDE, 10, [rail, bar])


def share(value: int, most: int, kind: str) -> Markup:
    """One figure beside others, of which `most` is the largest."""
    wide = min(max(value / most if most else 0.0, 0.004), 1.0) * WIDE
    return _picture(
        "share", f"{value:,}", WIDE, 10, [_BAR.format(kind, 0, 0, _short(wide), 10, "")]
    )


def sparkline(values: Sequence[float], label: str) -> Markup:
    """How a figure went, oldest first."""
    most = max(values, default=0.0) or 1.0
    step = WIDE / max(len(values) - 1, 1)
    points = " ".join(
        f"{_short(place * step)},{_short(TALL - 2 - value / most * (TALL - 4))}"
        for place, value in enumerate(values)
    )
    line = Markup('<polyline class="line" points="{}"/>').format(points)
    return _picture("spark", label, WIDE, TALL, [line])


def _picture(kind: str, label: str, wide: int, tall: int, parts: Sequence[Markup]) -> Markup:
    return _PICTURE.format(kind, label, wide, tall, Markup().join(parts))


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
