"""Bundles and exports take as much memory for many documents as for few."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GROWTH_MIB = 150


@pytest.mark.long
def test_ten_times_as_many_documents_need_hardly_more_memory() -> None:
    command = [sys.executable, "-m", "bench.exchange", "--documents", "20000", "--rounds", "1"]
    done = subprocess.run([*command, "--json"], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    told = json.loads(done.stdout)
    for name in ("bundle", "diff", "export"):
        few, many = (told[size][name]["peak_mib"] for size in ("small", "large"))
        assert many < few + GROWTH_MIB, name
