from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from structlog.contextvars import bound_contextvars

from fonds.cli.process import set_up_logging
from fonds.errors import SettingsError
from fonds.settings import Settings


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    ours = logging.getLogger("fonds")
    handlers, level = ours.handlers, ours.level
    yield
    ours.handlers, ours.level = handlers, level
    structlog.reset_defaults()


def settings(**given: Any) -> Settings:
    return Settings(data_gov_key="sesame-open", log_format="json", log_level="info", **given)


def test_both_kinds_of_loggers_write_json_lines_with_what_is_bound(
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_up_logging(settings())
    with bound_contextvars(run="r1", source="fake", task="fake:7", job="j1"):
        structlog.get_logger("fonds.api").warning("went_wrong", attempt=2)
        logging.getLogger("fonds.runs").info("run began", extra={"context": {"mode": "manual"}})
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    for line in (first, second):
        assert {name: line[name] for name in ("run", "source", "task", "job")} == {
            "run": "r1",
            "source": "fake",
            "task": "fake:7",
            "job": "j1",
        }
        assert line["timestamp"].endswith("Z")
    assert (first["event"], first["level"], first["attempt"]) == ("went_wrong", "warning", 2)
    assert (second["event"], second["level"]) == ("run began", "info")
    assert second["context"] == {"mode": "manual"}


def test_no_secret_is_written_by_either_kind(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(settings())
    structlog.get_logger("fonds.api").error("asked", url="https://x.example/?api_key=12345678")
    logging.getLogger("fonds.fetch").warning("asked with %s", "sesame-open")
    written = capsys.readouterr().err
    assert written.count("[hidden]") == 2
    assert "12345678" not in written
    assert "sesame" not in written


def test_exception_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(settings())
    try:
        int("it broke")
    except ValueError:
        structlog.get_logger("fonds.api").exception("step_broke")
    (line,) = capsys.readouterr().err.splitlines()
    assert "ValueError: invalid literal" in json.loads(line)["exception"]


def test_lines_below_the_level_are_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(Settings())
    structlog.get_logger("fonds.api").info("asked")
    logging.getLogger("fonds.fetch").info("asked")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("given", [{"log_format": "xml"}, {"log_level": "loud"}])
def test_unknown_format_or_level_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="choose one of"):
        set_up_logging(Settings(**given))
