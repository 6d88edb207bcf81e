"""Programs that get signals to stop: at once, in time, and a second time."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pytest

PROGRAM: Final = """
import asyncio, contextlib, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
from fonds.cli import process
from fonds.errors import DatabaseUnavailableError
from fonds.stores.outages import STOP
process.STOP_SECONDS = {seconds}

def wait(stop=None):
    print("waiting", flush=True)
    (stop or threading.Event()).wait()

async def cancelled():
    try:
        print("waiting", flush=True)
        await asyncio.sleep(60)
    finally:
        print("cancelled", flush=True)

async def endless():
    try:
        await cancelled()
    finally:
        await asyncio.to_thread(threading.Event().wait)

async def blocked():
    wait()

def event(seconds, ignoring):
    with process.stoppable(seconds, exit_code=7) as stop:
        wait(None if ignoring else stop)
    print("ended", flush=True)

@contextlib.contextmanager
def server_that_is_away():
    print("waiting", flush=True)
    while not STOP.is_set():
        with contextlib.suppress(KeyboardInterrupt):  # as in a callback
            time.sleep(0.05)
    raise DatabaseUnavailableError("it is away")
    yield

def opening():
    try:
        with contextlib.ExitStack() as stack:
            process.enter_until_stopped(server_that_is_away(), stack)
    except KeyboardInterrupt:
        print("interrupted", flush=True)

def importing():
    from fonds.cli import main
    main.import_module = lambda _name: wait()
    main.commands_of("crawl")

{call}
"""
BOTH: Final = (signal.SIGINT, signal.SIGTERM)
FOREVER: Final = 600.0


@contextmanager
def running(call: str, seconds: float) -> Iterator[subprocess.Popen[str]]:
    program = PROGRAM.format(call=call, seconds=seconds)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], text=True, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == "waiting\n"
        try:
            yield process
        finally:
            process.kill()


def ended(call: str, signals: Sequence[signal.Signals], seconds: float) -> tuple[int, str]:
    """The exit code of a program that got signals, and what it printed after them."""
    with running(call, seconds) as process:
        process.send_signal(signals[0])
        printed = ""
        for number in signals[1:]:
            printed += process.stdout.readline() if process.stdout else ""
            process.send_signal(number)
        out, _ = process.communicate(timeout=30)
        return process.returncode, printed + out


@pytest.mark.parametrize("number", BOTH)
def test_work_that_ends_when_it_is_stopped_ends_by_itself(number: signal.Signals) -> None:
    assert ended("event(600, False)", [number], FOREVER) == (0, "ended\n")
    code, out = ended("process.run_until_stopped(cancelled())", [number], FOREVER)
    assert (code, out) == (130, "cancelled\n")


@pytest.mark.parametrize("number", BOTH)
@pytest.mark.parametrize(
    ("call", "code", "out"),
    [
        ("event(0.2, True)", 7, ""),
        ("process.run_until_stopped(endless())", 130, "cancelled\n"),
        ("process.run_until_stopped(blocked())", 130, ""),
    ],
    ids=["event", "endless", "blocked"],
)
def test_work_that_does_not_stop_ends_with_its_process(
    call: str, code: int, out: str, number: signal.Signals
) -> None:
    assert ended(call, [number], 0.2) == (code, out)


def test_a_second_signal_ends_the_process_at_once() -> None:
    call = "process.run_until_stopped(endless(), exit_code=9)"
    assert ended(call, [signal.SIGINT, signal.SIGINT], FOREVER) == (9, "cancelled\n")


def test_threads_that_are_left_do_not_keep_a_stopped_process() -> None:
    call = "threading.Thread(target=threading.Event().wait).start(); event(0.2, False)"
    assert ended(call, [signal.SIGTERM], 0.2) == (7, "ended\n")


def test_ctrl_c_while_a_command_is_imported_ends_the_process_at_once_and_quietly() -> None:
    # Python would raise KeyboardInterrupt in the import, and take itself apart for seconds.
    with running("importing()", FOREVER) as process:
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=30)
    assert (process.returncode, out, errors) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("number", BOTH)
def test_wait_for_a_server_ends_even_if_the_exception_of_ctrl_c_is_lost(
    number: signal.Signals,
) -> None:
    assert ended("opening()", [number], FOREVER) == (0, "interrupted\n")
