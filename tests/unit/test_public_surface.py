"""What commands, programs, queries and stored data rely on changes only where it is meant to."""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from pydantic import BaseModel, create_model

ROOT: Final = Path(__file__).resolve().parents[2]


@cache
def _script() -> Any:
    return SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "make-surface")))


def test_public_surface_is_the_one_on_file() -> None:
    script = _script()
    changed = script.differences()
    assert changed == [], f"if you meant to change this, run {script.COMMAND}"


def test_differences_name_the_lines(tmp_path: Path) -> None:
    script = _script()
    lines = script.rendered().splitlines()
    missing = next(line for line in lines if line.startswith('  "fonds search --limit"'))
    (stale := tmp_path / "surface.json").write_text(
        "\n".join(line if line != missing else '  "fonds search --many": {},' for line in lines)
    )
    assert script.differences(stale) == ['-  "fonds search --many": {},', f"+{missing}"]


def test_names_of_models_are_not_part_of_it() -> None:
    def facts(name: str) -> list[Any]:
        inner: type[BaseModel] = create_model(f"{name}Part", text=(str, ...))
        outer: Any = create_model(name, parts=(list[inner], ...), next=(inner | None, None))
        schema = outer.model_json_schema()
        return list(_script().schema_facts(schema, schema["$defs"], ""))

    assert facts("Before") == facts("After")
    assert ".next.text" in dict(facts("Before"))


def test_models_that_contain_themselves_end() -> None:
    class Node(BaseModel):
        children: list[Node]

    Node.model_rebuild()
    schema = Node.model_json_schema()
    names = [name for name, _ in _script().schema_facts(schema, schema["$defs"], "")]
    assert names == ["", ".children", ".children[]"]
