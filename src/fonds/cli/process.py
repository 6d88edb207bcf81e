"""The process of a command: its logging, and how signals stop it."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator, MutableMapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from threading import Event, Thread, current_thread, main_thread
from typing import Any, Final, TypeVar

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.typing import Processor

from fonds.cli.output import EXIT_STOPPED
from fonds.errors import FondsError, SettingsError
from fonds.fetch.redact import Redaction
from fonds.settings import Settings
from fonds.stores.outages import STOP

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

STOP_SECONDS: Final = 3.0
"""Seconds after the first signal in which a command may end by itself."""
_STDERR: Final = 2
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stoppable(
    seconds: float | None = STOP_SECONDS, *, exit_code: int = EXIT_STOPPED
) -> Iterator[Event]:
    """An event that SIGTERM and Ctrl-C set; then the work has so many seconds to end by itself."""
    stop = Event()
    with _calling_on_signal(stop.set, seconds, exit_code):
        yield stop


def enter_until_stopped(opening: AbstractContextManager[T], stack: ExitStack) -> T:
    """Enter a context that may wait for a server; KeyboardInterrupt if a signal ended the wait.

    Python raises the exception of Ctrl-C wherever the main thread is: in a callback, such as that
    of an object which is collected, it is ignored, and the wait would go on.
    """
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_default or current_thread() is not main_thread():
        return stack.enter_context(opening)
    with stoppable() as stop:
        try:
            entered = stack.enter_context(opening)
        except FondsError:
            if stop.is_set():
                raise KeyboardInterrupt from None
            raise
    if stop.is_set():
        raise KeyboardInterrupt
    return entered


def run_until_stopped(work: Coroutine[Any, Any, T], *, exit_code: int = EXIT_STOPPED) -> T:
    """Run to the end, or until SIGTERM or Ctrl-C cancels; loaded batches stay."""

    async def guarded() -> T:
        task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()

        def cancel() -> None:
            with suppress(RuntimeError):  # the loop ended meanwhile
                loop.call_soon_threadsafe(task.cancel)

        with _calling_on_signal(cancel, STOP_SECONDS, exit_code):
            return await task

    return asyncio.run(guarded())


@contextmanager
def _calling_on_signal(
    stop: Callable[[], object], seconds: float | None, exit_code: int
) -> Iterator[None]:
    """Call a function at the first signal; end the process at a second one, or after `seconds`.

    The process ends as if it was killed: what is not finished by then is done by the next run.
    """
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    watch = _SignalWatch(receiver, stop, seconds, exit_code)
    previous_descriptor = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    previous = {number: signal.signal(number, _leave_to_watch) for number in _SIGNALS}
    watch.thread.start()
    try:
        yield
    finally:
        if watch.is_stopping and seconds is not None:
            # The library is still to be closed, and threads to be waited for: in time, too.
            _open_senders.append(sender)
            error = sys.exc_info()[1]
            if isinstance(error, asyncio.CancelledError) or (error is None and exit_code == 0):
                # Taking the interpreter apart may need a second of processor time.
                atexit.register(_end_process, exit_code)
        else:
            for number, handler in previous.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(previous_descriptor)
            sender.close()
            watch.thread.join()
            STOP.clear()


_open_senders: Final[list[socket.socket]] = []


def _end_process(exit_code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(exit_code)


def _leave_to_watch(_number: int, _frame: Any) -> None:
    """Do nothing: the number of the signal is in the descriptor for wake-ups by now."""


class _SignalWatch:
    """Waits for signals, in a thread, so that a main thread which is busy cannot delay it."""

    def __init__(
        self,
        signals: socket.socket,
        stop: Callable[[], object],
        seconds: float | None,
        exit_code: int,
    ) -> None:
        self._signals, self._stop = signals, stop
        self._seconds, self._exit_code = seconds, exit_code
        self.is_stopping = False
        self.thread = Thread(target=self._run, name="fonds-signals", daemon=True)

    def _run(self) -> None:
        """Wait for the first signal, then for the second or the end of the time."""
        with self._signals:
            if not self._signalled():
                return
            self.is_stopping = True
            STOP.set()  # nothing waits for a database or store any more
            self._stop()
            self._signals.settimeout(self._seconds)
            try:
                if not self._signalled():
                    return
            except TimeoutError:
                pass
            _write_if_possible(b"stopped at once; the next run continues from here\n")
            os._exit(self._exit_code)

    def _signalled(self) -> bool:
        """Wait for a signal; False if the work has ended."""
        while number := self._signals.recv(1):
            if number[0] in _SIGNALS:
                return True
        return False


def _write_if_possible(message: bytes) -> None:
    """Write to stderr, past locks that other threads may have, unless no one reads it."""
    with suppress(OSError, ValueError):
        if select.select([], [_STDERR], [], 0)[1]:
            os.write(_STDERR, message)
