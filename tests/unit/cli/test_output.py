from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, date, datetime
from uuid import UUID

import pytest
from rich.console import Console

from fonds.cli import output
from fonds.cli.output import harmless, print_table, safe, to_json_value
from fonds.model import Counts
from fonds.runs.state import RunStatus


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], io.StringIO]:
    def open_console(width: int) -> io.StringIO:
        file = io.StringIO()
        console = Console(file=file, width=width, highlight=False, soft_wrap=True)
        monkeypatch.setattr(output, "out", console)
        return file

    return open_console


ROWS = [("federal_register", 1234567, None), ("legislators", 14, datetime(2026, 1, 2, tzinfo=UTC))]


def test_table_sets_numbers_flush_right(printed: Callable[[int], io.StringIO]) -> None:
    file = printed(80)
    print_table(["source", "documents", "checked"], ROWS)
    assert [line.rstrip() for line in file.getvalue().splitlines()] == [
        "source            documents  checked",
        "federal_register  1,234,567  –",
        "legislators              14  2026-01-02 00:00",
    ]


def test_table_that_is_too_wide_becomes_a_list(printed: Callable[[int], io.StringIO]) -> None:
    file = printed(30)
    print_table(["source", "documents", "checked"], ROWS, title="all")
    assert file.getvalue().splitlines() == [
        "all",
        "source     federal_register",
        "documents  1,234,567",
        "checked    –",
        "",
        "source     legislators",
        "documents  14",
        "checked    2026-01-02 00:00",
        "",
    ]


def test_prose_wraps_inside_its_column(printed: Callable[[int], io.StringIO]) -> None:
    file = printed(30)
    print_table(["task", "cause"], [("fr:1", "one two three four five six")], prose=["cause"])
    assert [line.rstrip() for line in file.getvalue().splitlines()] == [
        "task  cause",
        "fr:1  one two three four five",
        "      six",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain – text § 1\n\ttab", "plain – text § 1\n\ttab"),
        ("令和\u30006年\u00a0の\u2009報告", "令和\u30006年\u00a0の\u2009報告"),
        ("a\u00adb 👩\u200d🔬", "a\u00adb 👩\u200d🔬"),
        ("\x1b[31mred\x1b[0m", "\ufffd[31mred\ufffd[0m"),
        ("a\rb\x08\x07\x9b\x7f", "a\ufffdb\ufffd\ufffd\ufffd\ufffd"),
        ("abc\u202edef\u2066", "abc\ufffddef\ufffd"),
        ("\ud800", "\ufffd"),
    ],
)
def test_text_from_elsewhere_keeps_its_letters_and_loses_its_powers(text: str, shown: str) -> None:
    assert harmless(text) == shown


@pytest.mark.parametrize("text", ["[red]x[/red]", "[/bold]", "back\\", "\\[x]", "[1] [", "a[b]c"])
def test_text_from_elsewhere_is_printed_as_it_is_also_inside_a_style(
    printed: Callable[[int], io.StringIO], text: str
) -> None:
    file = printed(80)
    output.out.print(f"[bold]{safe(text)}[/bold]")
    assert file.getvalue() == f"{text}\n"


def test_everything_handed_out_becomes_json_values() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    value = {
        1: (moment, date(2026, 1, 2)),
        "counts": Counts(inserted=2),
        "id": UUID(int=1),
        "status": RunStatus.PARTIAL,
        "none": None,
    }
    shown = to_json_value(value)
    assert shown["1"][1] == "2026-01-02"
    assert datetime.fromisoformat(shown["1"][0]) == moment
    assert shown["counts"]["inserted"] == 2
    assert (shown["id"], shown["status"]) == (str(UUID(int=1)), "partial")


def test_counts_are_told_in_words_without_zeros() -> None:
    assert Counts(discovered=1200, inserted=3).summary() == "1,200 found, 3 new"
    assert Counts().summary() == "nothing yet"
