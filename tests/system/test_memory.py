"""Memory does not grow with the number of documents."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "memory.py"


@pytest.mark.long
def test_fifty_thousand_documents_fit_into_400_mib() -> None:
    command = [sys.executable, str(BENCH), "--documents", "50000", "--words", "60", "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures = json.loads(done.stdout)
    assert figures["large_peak_mib"] < figures["limit_mib"]
