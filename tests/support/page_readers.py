"""Reader processes for pages, with little time for each."""

from __future__ import annotations

from typing import Final

from fonds.engine.readers import ReaderPool

SECONDS: Final = 2.0
_MODULES: Final = ("fonds.sites.structure_advisor", "fonds.sites.llm_advisor")


def hasty_readers(seconds: float = SECONDS) -> ReaderPool:
    """One process, which has loaded its modules before its time counts."""
    return ReaderPool(workers=1, seconds=seconds, memory_mib=1024, preload=_MODULES)
