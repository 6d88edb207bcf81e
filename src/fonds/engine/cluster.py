"""This process's one connection to a Ray cluster, shared by all its engines."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any, Final

from fonds.errors import SettingsError

THIS_MACHINE: Final = "auto"
"""The cluster that was started on this machine, or that it joined."""
_PATIENCE: Final = 5.0

_lock: Final = threading.Lock()
_joined: Final[list[str]] = []
"""The address, once for each engine."""


def join(address: str) -> Any:
    """The module `ray`, connected to a cluster."""
    with _lock:
        if _joined and address != _joined[0]:
            raise SettingsError(f"this process already works with the cluster at {_joined[0]}")
        ray = _imported()
        if not _joined:
            _connect(ray, address)
        _joined.append(address)
        return ray


def leave() -> None:
    """Let go; the connection ends with the last engine that uses it."""
    with _lock:
        _joined.pop()
        if not _joined:
            _imported().shutdown()


def _imported() -> Any:
    # Read when it is imported; what runs here is nobody else's business.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray  # noqa: PLC0415 — an extra, and slow to load
    except ImportError as error:
        raise SettingsError("a Ray cluster needs: pip install 'fonds[ray]'") from error
    return ray


def _connect(ray: Any, address: str) -> None:
    if address != THIS_MACHINE:
        _require_listener(address)
    # It tells of lost nodes on standard output, whatever it is told about logs; results go there.
    vars(ray._private.worker)["print_to_stdstream"] = _pass_over  # noqa: SLF001 — no setting does
    with _own_signals():
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except ConnectionError as error:
            raise SettingsError(
                "this machine belongs to no Ray cluster: run `ray start --head`, or"
                " `ray start --address=HOST:PORT` to join one; or set FONDS_ENGINE=local"
            ) from error


def _require_listener(address: str) -> None:
    """Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"no Ray cluster answers at {address}: {error}; set FONDS_ENGINE to ray:HOST:PORT as"
            " `ray start --head` names them"
        ) from error


def _pass_over(*_: object, **__: object) -> None:
    return


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Ray ends a process at once that is asked to end; ours have something to finish first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
