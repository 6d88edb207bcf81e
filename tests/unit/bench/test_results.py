"""What all benches found is kept, and the page is what is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from bench.__main__ import KEPT, PAGE
from bench.curves import Curve
from bench.figures import Figure, within
from bench.results import Machine, Result, Results, page

MACHINE: Final = Machine(
    processor="Abacus 3000",
    cores=2,
    memory_gib=8,
    system="Linux 6",
    python="3.11.9",
    sqlite="3.53.0",
    peers={"scrapy": "2.19.0"},
)
LOAD: Final = Result(
    bench="load",
    question="How much is left?",
    date="2026-01-02",
    sizes="documents 2,000",
    seconds=12.3,
    figures=(
        Figure(
            what="records loaded",
            ours=100.0,
            theirs=250.0,
            unit="documents/s",
            peer="bare inserts",
            better="more",
            remark="ours also hashes",
        ),
    ),
)
GROWTH: Final = Result(
    bench="growth",
    question="How does it grow?",
    date="2026-01-03",
    sizes="documents 100",
    seconds=60.0,
    figures=(within("exponent of the time to ingest", 0.9, 1.1),),
    curves=(
        Curve(
            what="ingest",
            sizes=(100, 1000, 10_000),
            seconds=(0.5, 5.0, 50.0),
            mib=(90.0, 90.0, 90.0),
        ),
    ),
)
FOUND: Final = Results(machine=MACHINE, results=[LOAD, GROWTH])


def test_results_come_back_from_their_file(tmp_path: Path) -> None:
    FOUND.write(tmp_path / "results.json")
    assert Results.read(tmp_path / "results.json") == FOUND
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_a_bench_that_ran_again_takes_its_old_place() -> None:
    found = Results(machine=MACHINE, results=[LOAD, GROWTH])
    again = replace(LOAD, seconds=9.9)
    found.put(again, ["load", "crawl", "growth"])
    assert found.results == [again, GROWTH]


def test_the_page_has_the_machine_the_date_and_every_figure() -> None:
    told = page(FOUND)
    assert "2026-01-02 to 2026-01-03" in told
    assert "Abacus 3000" in told
    assert "scrapy 2.19.0" in told
    row = "| `load` | records loaded | 100 documents/s | 250 documents/s | bare inserts |"
    assert f"{row} 2.5 × worse |" in told
    assert "| `growth` | How does it grow? | documents 100 | 60 | 2026-01-03 |" in told


def test_the_page_says_where_ours_is_worse_and_why() -> None:
    _, _, told = page(FOUND).partition("## Where ours is worse")
    lost, *_ = told.partition("##")
    assert "records loaded: 2.5 × worse, beside bare inserts: ours also hashes." in lost
    assert "exponent" not in lost


def test_the_page_has_curves_with_their_exponents() -> None:
    row = "| ingest | 100, 1,000, 10,000 | 0.5, 5, 50 | 1 | 90, 90, 90 | 0 | linearly |"
    assert row in page(FOUND)


def test_the_page_in_the_docs_is_what_was_kept() -> None:
    assert KEPT.exists() == PAGE.exists()
    if KEPT.exists():
        assert PAGE.read_text("utf-8") == page(Results.read(KEPT)), "run python -m bench --page"
