"""Checks before and after a run: keys at hand; and a walled, capped or shrunken feed is no news."""

from __future__ import annotations

from typing import Final

from fonds.errors import MissingKeyError, SuspiciousYieldError
from fonds.settings import Settings
from fonds.sources.base import SourceInfo

LOSS_ALLOWED: Final = 0.2
"""Share of what was there before that may be missing at once."""
LOSS_IGNORED: Final = 5
"""So few missing records are never suspicious."""


def check_loss(what: str, before: int, missing: int) -> None:
    """Refuse a list that lost more than publishers withdraw in one go."""
    if missing > max(LOSS_IGNORED, before * LOSS_ALLOWED):
        raise SuspiciousYieldError(
            f"{what} shrank: {missing} of {before} records are missing. Nothing was marked as "
            "withdrawn; if the loss is real, run again with --accept-loss"
        )


def check_yield(source: str, records: int, at_least: int) -> None:
    """Refuse a run that saw fewer records than the source can possibly have."""
    if records < at_least:
        raise SuspiciousYieldError(
            f"{source} gave {records} records where at least {at_least} are expected; "
            "is the upstream down, or its answer walled?"
        )


def require_key(info: SourceInfo, settings: Settings) -> None:
    """Refuse to run a source whose upstream would only say that a key is missing."""
    key = info.key
    if key is not None and key.required and not getattr(settings, key.setting):
        raise MissingKeyError(
            f"{info.name} needs a key: set {key.setting} in fonds.toml or FONDS_"
            f"{key.setting.upper()}; get one at {key.signup}"
        )
