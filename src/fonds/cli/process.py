"""The process of a command: what it logs, and how it stops when it is told to."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Coroutine, Iterator, MutableMapping
from contextlib import contextmanager
from threading import Event
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
    """Log as the settings say; lines name the run, source, task or job they come from."""
    level = _chosen(_LEVELS, "log_level", settings.log_level)
    shown = _chosen(
        {"text": _text(), "json": structlog.processors.JSONRenderer()},
        "log_format",
        settings.log_format,
    )
    known: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # As text before anything is left out: a traceback may quote what nobody is to read, and one
    # with the values of variables would.
    plain: Processor = structlog.processors.format_exc_info
    last: list[Processor] = [plain, _redacting(settings), shown]
    structlog.configure(
        processors=[*known, *last],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # Bound late, so that a test's capture is respected.
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    # What the standard library's loggers say, ours and the server's, reads the same.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=[*known, structlog.stdlib.ExtraAdder()],
            processors=[ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    ours = logging.getLogger("fonds")
    ours.handlers = [handler]
    ours.setLevel(level)


def _chosen(known: dict[str, Any], setting: str, value: str) -> Any:
    if value not in known:
        raise SettingsError(f"{setting} is {value!r}; possible are {', '.join(known)}")
    return known[value]


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
    """An event that SIGTERM and Ctrl-C set; a second Ctrl-C does not wait for batches in flight."""
    stop = Event()

    def ask(number: int, _frame: Any) -> None:
        stop.set()
        signal.signal(number, signal.default_int_handler)

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_until_stopped(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; SIGTERM and Ctrl-C cancel, and what is loaded stays loaded."""

    async def guarded() -> T:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        return await task

    return asyncio.run(guarded())
