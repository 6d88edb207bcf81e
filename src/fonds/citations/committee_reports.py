"""How a report of a committee is cited."""

from __future__ import annotations

from typing import Final

_SERIES: Final = {
    "HRPT": "H.R. Rep. No.",
    "SRPT": "S. Rep. No.",
    "ERPT": "S. Exec. Rep. No.",
}


def cite_committee_reports(
    *,
    series: str | None,
    number: str,
    part: str | None = None,
    year: str | None = None,
    is_conference: bool = False,
) -> str:
    """The citation of a report, `H.R. Rep. No. 119-100, pt. 2 (2025).`, ready to paste.

    `number` carries the Congress. A report of a conference says so behind the year.
    """
    cited = report_number(series=series, number=number, part=part)
    if year:
        cited += f" ({year})"
    return f"{cited} (Conf. Rep.)." if is_conference else f"{cited}."


def report_number(*, series: str | None, number: str, part: str | None = None) -> str:
    """What a brief calls the report once it is known: `S. Rep. No. 119-12`."""
    named = f"{_SERIES.get(series or '', 'Cong. Rep. No.')} {number}"
    return f"{named}, pt. {part}" if part else named
