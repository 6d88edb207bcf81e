"""What is logged, to stderr: lines for people, or JSON for machines, and never a secret."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Final

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
