"""Public documents in, cited answers out.

    import fonds

    with fonds.open("library") as library:
        library.run("federal_register", since="2026-01-01")
        for hit in library.search("overtime salary threshold", limit=3):
            print(hit.citation.citation_string, hit.snippet)

This module has all public names; each is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fonds.errors import FondsError
    from fonds.library import Library
    from fonds.library import open_library as open  # noqa: A004 — reads as fonds.open
    from fonds.model import (
        Document,
        FetchTask,
        Listing,
        ParsedRecord,
        Part,
        Raw,
        SourceState,
        Watermark,
    )
    from fonds.results import ChunkLocator, Citation, RetrievalResult
    from fonds.runs.state import RunReport, RunRequest
    from fonds.settings import Settings
    from fonds.sources.base import Ask, Source, SourceInfo

_MODULES = {
    "Ask": "fonds.sources.base",
    "ChunkLocator": "fonds.results",
    "Citation": "fonds.results",
    "Document": "fonds.model",
    "FetchTask": "fonds.model",
    "FondsError": "fonds.errors",
    "Library": "fonds.library",
    "Listing": "fonds.model",
    "ParsedRecord": "fonds.model",
    "Part": "fonds.model",
    "Raw": "fonds.model",
    "RetrievalResult": "fonds.results",
    "RunReport": "fonds.runs.state",
    "RunRequest": "fonds.runs.state",
    "Settings": "fonds.settings",
    "Source": "fonds.sources.base",
    "SourceInfo": "fonds.sources.base",
    "SourceState": "fonds.model",
    "Watermark": "fonds.model",
    "open": "fonds.library",
}

__all__ = [
    "Ask",
    "ChunkLocator",
    "Citation",
    "Document",
    "FetchTask",
    "FondsError",
    "Library",
    "Listing",
    "ParsedRecord",
    "Part",
    "Raw",
    "RetrievalResult",
    "RunReport",
    "RunRequest",
    "Settings",
    "Source",
    "SourceInfo",
    "SourceState",
    "Watermark",
    "open",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'fonds' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), "open_library" if name == "open" else name)
