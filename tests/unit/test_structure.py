"""The shape of the code: nothing too long, nothing unused, the story on one screen."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
import vulture

ROOT: Final = Path(__file__).parents[2]
MOST_LINES_OF_A_FUNCTION: Final = 80
MOST_LINES_OF_A_MODULE: Final = 700
MOST_LINES_OF_A_SUITE: Final = 800
"""Tests of one thing stay together."""
LONG_MODULES: Final = {"src/fonds/stores/tables.py"}
"""Longer ones that are one noun: a table after the other."""
ONE_SCREEN: Final = 125
DEFINITIONS: Final = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
CODE: Final = ("src", "tests", "bench", "scripts")


def modules() -> list[Path]:
    """Every file of Python that is ours, scripts without a suffix included."""
    found = [path for folder in CODE for path in (ROOT / folder).rglob("*.py")]
    return found + [path for path in (ROOT / "scripts").iterdir() if _is_python(path)]


def _is_python(path: Path) -> bool:
    return path.suffix == "" and path.is_file() and "python" in path.read_text().split("\n", 1)[0]


@cache
def definitions(path: Path) -> list[ast.stmt]:
    """The classes and functions of a file; they stand in statements, never in expressions."""
    found: list[ast.stmt] = []
    waiting: list[ast.AST] = [ast.parse(path.read_bytes())]
    while waiting:
        parts = [each for each in ast.iter_child_nodes(waiting.pop()) if _has_statements(each)]
        found += [part for part in parts if isinstance(part, DEFINITIONS)]
        waiting += parts
    return found


def _has_statements(node: ast.AST) -> bool:
    return isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case)


def test_no_function_is_longer_than_a_page() -> None:
    long = [
        f"{path}:{node.lineno} {node.name}"
        for path in modules()
        for node in definitions(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > MOST_LINES_OF_A_FUNCTION
    ]
    assert long == []


def test_no_module_is_too_long_to_read() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in modules()}
    allowed = {"src": MOST_LINES_OF_A_MODULE, "bench": MOST_LINES_OF_A_MODULE}
    long = {
        str(path)
        for path, length in lengths.items()
        if length > allowed.get(path.parts[0], MOST_LINES_OF_A_SUITE)
    }
    assert long - LONG_MODULES == set()


def test_pipeline_tells_the_whole_story_on_one_screen() -> None:
    assert len((ROOT / "src/fonds/pipeline.py").read_text().splitlines()) <= ONE_SCREEN


def test_nothing_is_unused() -> None:
    assert [_told(item) for item in _unused(list(map(str, modules())))] == []


def test_what_is_unused_is_found(tmp_path: Path) -> None:
    (module := tmp_path / "module.py").write_text(
        "class Kept:\n    field: int\n\n    def forgotten(self): ...\n\n\nKept()\n"
    )
    assert [item.name for item in _unused([str(module)])] == ["forgotten"]


@pytest.mark.parametrize("name", ["ignore_names", "ignore_decorators"])
def test_no_exception_is_made_twice(name: str) -> None:
    exceptions = _settings()[name]
    assert len(exceptions) == len(set(exceptions))


def _unused(paths: list[str]) -> list[vulture.core.Item]:
    """What nothing refers to; fields are data, for whoever reads the answer or the table."""
    finder = vulture.Vulture(**_settings())
    finder.scavenge(paths)
    fields = {path: set(_fields(Path(path))) for path in paths}
    return [
        item
        for item in finder.get_unused_code()
        if item.typ != "variable" or item.first_lineno not in fields[str(item.filename)]
    ]


def _settings() -> dict[str, list[str]]:
    settings: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
        "vulture"
    ]
    return settings


def _fields(path: Path) -> Iterator[int]:
    for node in definitions(path):
        if isinstance(node, ast.ClassDef):
            yield from (part.lineno for part in node.body if isinstance(part, ast.AnnAssign))


def _told(item: vulture.core.Item) -> str:
    return f"{item.filename.relative_to(ROOT)}:{item.first_lineno} {item.typ} {item.name}"
