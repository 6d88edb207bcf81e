"""The names promised to users."""

from __future__ import annotations

import subprocess
import sys

import fonds

PROMISED = [
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


def test_promised_names_are_exactly_these() -> None:
    assert fonds.__all__ == PROMISED


def test_every_promised_name_is_there() -> None:
    assert all(getattr(fonds, name) is not None for name in PROMISED)


def test_importing_the_package_loads_nothing_else() -> None:
    check = "import fonds, sys; print(sorted(m for m in sys.modules if m.startswith('fonds')))"
    printed = subprocess.run([sys.executable, "-c", check], capture_output=True, check=True)
    assert printed.stdout.decode().strip() == "['fonds']"
