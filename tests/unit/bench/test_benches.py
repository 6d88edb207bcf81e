"""Every bench answers a question with figures, and is run by `make bench`."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest
from bench.__main__ import BENCHES, CORPUS, Bench, BenchFailedError, run

ROOT: Final = Path(__file__).parents[3]
SHARED: Final = {"__main__", "curves", "figures", "results"}
FILES: Final = [path for path in sorted((ROOT / "bench").glob("*.py")) if path.stem not in SHARED]


def test_every_bench_is_run() -> None:
    assert sorted(bench.name for bench in BENCHES) == [path.stem for path in FILES]


@pytest.mark.parametrize("bench", BENCHES, ids=lambda bench: bench.name)
def test_a_bench_begins_with_its_question(bench: Bench) -> None:
    assert bench.question.endswith("?")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_bench_tells_figures_in_the_common_way(path: Path) -> None:
    source = path.read_text("utf-8")
    used = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    assert {"asking", "tell"} <= used
    assert f"python -m bench.{path.stem}" in source


def test_a_bench_is_run_in_a_process_of_its_own() -> None:
    result = run(Bench(name="chunk", quick="--size 20000 --repeats 1"), is_full=False)
    assert result.sizes == "size 20,000, repeats 1"
    assert {figure.unit for figure in result.figures} == {"MB/s"}
    assert result.seconds > 0


def test_a_bench_that_fails_says_why() -> None:
    with pytest.raises(
        BenchFailedError, match=r"ended with 2: .*unrecognized arguments: --nonsense"
    ):
        run(Bench(name="chunk", quick="--nonsense"), is_full=False)


def test_without_real_documents_a_bench_that_needs_them_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(CORPUS, raising=False)
    assert not Bench(name="codes", quick="", needs_corpus=True).can_run
    monkeypatch.setenv(CORPUS, "documents")
    assert Bench(name="codes", quick="", needs_corpus=True).can_run
