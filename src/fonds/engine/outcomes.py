"""The two formats in which a worker process returns a result or an error.

`AS_PICKLE` carries any object, and its writer can run code in the process that reads it. Whatever
a hostile file makes a worker write, `AS_JSON` makes data of it, and nothing else.
"""

from __future__ import annotations

import json
import pickle
from typing import Any, Final, Protocol

from fonds import errors
from fonds.errors import FondsError, ItemFailedError, WorkerDiedError

Outcome = tuple[Any, FondsError | None]
"""A result, or None and the error."""


class OutcomeFormat(Protocol):
    """Turns outcomes into bytes and back."""

    def pack(self, outcome: Outcome) -> bytes:
        """The outcome as bytes; ItemFailedError instead of what cannot be sent."""
        ...

    def unpack(self, data: bytes | bytearray) -> Outcome:
        """The outcome in these bytes; an error if they are not one."""
        ...


class _Pickle:
    def pack(self, outcome: Outcome) -> bytes:
        try:
            packed = pickle.dumps(outcome)
            if outcome[1] is not None:
                pickle.loads(packed)  # noqa: S301 — written in the line before
        except Exception as failed:  # noqa: BLE001 — pickling runs the object's own code
            error = outcome[1] or failed
            return pickle.dumps((None, ItemFailedError(f"{type(error).__name__}: {error}")))
        return packed

    def unpack(self, data: bytes | bytearray) -> Outcome:
        try:
            result, error = pickle.loads(data)  # noqa: S301 — of a worker that reads our own data
        except Exception as unread:  # noqa: BLE001 — unpickling runs the result's own code
            return None, ItemFailedError(f"the result cannot be read: {unread}")
        return result, error


class _Json:
    def pack(self, outcome: Outcome) -> bytes:
        result, error = outcome
        if error is not None:
            return json.dumps({"error": _tree_name(error), "message": str(error)}).encode()
        try:
            return json.dumps({"result": result}).encode()
        except (TypeError, ValueError, RecursionError) as unsent:
            message = f"the result is not plain data: {unsent}"
            return json.dumps({"error": ItemFailedError.__name__, "message": message}).encode()

    def unpack(self, data: bytes | bytearray) -> Outcome:
        try:
            outcome = json.loads(data)
            if "error" in outcome:
                return None, _error(str(outcome["error"]), str(outcome["message"]))
            return outcome["result"], None
        except (ValueError, TypeError, KeyError, RecursionError):
            # The process no longer runs our code, and is not used again.
            error = "the worker sent something that is not a result, and was ended"
            return None, WorkerDiedError(error)


AS_PICKLE: Final[OutcomeFormat] = _Pickle()
AS_JSON: Final[OutcomeFormat] = _Json()


def _tree_name(error: FondsError) -> str:
    """The name of its nearest class in the tree of errors."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == errors.__name__)


def _error(name: str, message: str) -> FondsError:
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, FondsError):
        try:
            return kind(message)
        except TypeError:  # it needs more than a message
            return ItemFailedError(f"{name}: {message}")
    return ItemFailedError(f"{name}: {message}")
