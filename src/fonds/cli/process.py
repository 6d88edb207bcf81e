"""The process of a command: its logging, and how signals stop it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Coroutine, Iterator, MutableMapping
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Final, TypeVar

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.typing import Processor

from fonds.errors import SettingsError
from fonds.fetch.redact import Redaction
from fonds.settings import Settings

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def set_up_logging(settings: Settings) -> None:
    """Configure logging by the settings; lines name the run, source, task or job."""
    level = _look_up(_LEVELS, "log_level", settings.log_level)
    renderer = _look_up(
        {"text": _text(), "json": structlog.processors.JSONRenderer()},
        "log_format",
        settings.log_format,
    )
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # Tracebacks become text before secrets are redacted, since they may quote one.
    format_traceback: Processor = structlog.processors.format_exc_info
    last: list[Processor] = [format_traceback, _redacting(settings), renderer]
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # sys.stderr is looked up now, so that tests can capture it.
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    # Lines of the standard library's loggers, those of the server included, look the same.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
            processors=[ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    logger = logging.getLogger("fonds")
    logger.handlers = [handler]
    logger.setLevel(level)


def _look_up(choices: dict[str, Any], setting: str, value: str) -> Any:
    if value not in choices:
        raise SettingsError(f"invalid {setting} {value!r}: choose one of {', '.join(choices)}")
    return choices[value]


def _text() -> Processor:
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())


def _redacting(settings: Settings) -> Processor:
    redact = Redaction(settings)

    def redacted(
        _logger: Any, _method: str, line: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        return redact.values(line)

    return redacted


T = TypeVar("T")


@contextmanager
def stoppable() -> Iterator[Event]:
    """An event that SIGTERM and Ctrl-C set; a second Ctrl-C interrupts batches in progress."""
    stop = Event()

    def request_stop(number: int, _frame: Any) -> None:
        stop.set()
        signal.signal(number, signal.default_int_handler)

    previous = {
        number: signal.signal(number, request_stop) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


STOP_SECONDS: Final = 4.0
"""How long work that can be repeated may continue after the signal to stop."""


@contextmanager
def ended_in_time(stop: Event) -> Iterator[None]:
    """End the process if the block still runs some seconds after `stop` was set.

    Only for work of which nothing is lost if the process is killed.
    """
    is_over = Event()

    def watch() -> None:
        stop.wait()
        if not is_over.wait(STOP_SECONDS):
            os._exit(0)

    Thread(target=watch, name="fonds-stop", daemon=True).start()
    try:
        yield
    finally:
        is_over.set()
        stop.set()


def run_until_stopped(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end, or until SIGTERM or Ctrl-C cancels; loaded batches stay."""

    async def guarded() -> T:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        return await task

    return asyncio.run(guarded())
