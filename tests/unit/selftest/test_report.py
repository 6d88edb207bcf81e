"""What people and programs are told of a selftest."""

from __future__ import annotations

import pytest

from fonds.cli.selftest import print_report, report_fields
from fonds.selftest.report import SelftestReport, Violation


def report_of(*violations: Violation) -> SelftestReport:
    report = SelftestReport(seed=7, planned=3, tried=3, seconds=61.3)
    report.count("chaos", "index", "commit", "before")
    report.count("chaos", "feeds", "commit", "during", 2)
    report.count("chaos", "feeds", "commit", "resumed", 2)
    report.count("exhaustive", "code", "blob.put", "failed", 2)
    report.count("exhaustive", "code", "blob.put", "resumed", 2)
    report.count("faults", "disk full", "", "tried")
    report.count("faults", "disk full", "", "recovered")
    for violation in violations:
        report.add(violation)
    return report


def lost(number: int) -> Violation:
    return Violation(
        case=f"lineage {number}",
        says=[f"blobs: missing: {each}" for each in range(20)],
        history=["kill commit sqlite, number 1 of index"],
        replay=f"fonds selftest --chaos 3 --seed {number}",
        folder="scratch/lineage",
    )


def test_people_are_told_in_the_order_of_the_steps_and_then_the_verdict(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_report(report_of())
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "step killed at before during resumed violations",
        "feeds commit 0 2 2 0",
        "index commit 1 0 0 0",
        "",
        "step failed at killed failed resumed violations",
        "code blob.put 0 2 2 0",
        "",
        "fault tried refused recovered violations",
        "disk full 1 0 1 0",
        "",
        "Nothing was lost: every library equals the undisturbed one.",
        "3 kills, 2 failed operations, 1 fault, 0 violations, seed 7, 61 s",
    ]


def test_people_are_told_what_was_lost_and_how_to_lose_it_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_report(report_of(lost(7)))
    text = capsys.readouterr().out
    assert "VIOLATION lineage 7\n  kill commit sqlite, number 1 of index\n  → blobs: miss" in text
    assert "  → 8 more\n  replay: fonds selftest --chaos 3 --seed 7\n  library: scratch/" in text
    assert "1 of 3 libraries differ from the undisturbed one" in text
    assert "Nothing was lost" not in text


def test_programs_are_told_all_of_it() -> None:
    fields = report_fields(report_of(lost(7)))
    assert fields["faults"] == [
        {"fault": "disk full", "tried": 1, "refused": 0, "recovered": 1, "violations": 0}
    ]
    assert {(row["step"], row["operation"]) for row in fields["chaos"]} == {
        ("feeds", "commit"),
        ("index", "commit"),
    }
    (violation,) = fields["violations"]
    assert len(violation["says"]) == 20
    assert (fields["seed"], fields["seconds"], fields["libraries"]) == (7, 61.3, 3)
