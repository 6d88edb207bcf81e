"""Reviewed output: what a parser makes of a captured input, looked at once by a person."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pytest

from fonds.model import FetchTask, ParsedRecord

_IF_ANY: Final = {"above", "unit", "edition", "uncertain", "report", "pdf_page", "left_out"}


def assert_golden(actual: str, golden: Path) -> None:
    """Fail unless the reviewed file says the same; a missing one is written, and fails too."""
    if not golden.exists():
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(actual, encoding="utf-8")
        pytest.fail(f"{golden} was missing and is written; look at it, then run again")
    assert actual == golden.read_text(encoding="utf-8")


def json_lines(records: Iterable[ParsedRecord | FetchTask]) -> str:
    """Records as text that a person can review: one JSON object a line."""
    return "".join(
        json.dumps(_told(asdict(record)), ensure_ascii=False, default=str, sort_keys=True) + "\n"
        for record in records
    )


def _told(value: Any) -> Any:
    """The values without those of codes and files that this record has none of."""
    if isinstance(value, dict):
        return {k: _told(v) for k, v in value.items() if v or k not in _IF_ANY}
    return [_told(item) for item in value] if isinstance(value, list | tuple) else value
