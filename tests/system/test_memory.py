"""Memory does not grow with the number of documents."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_fifty_thousand_documents_fit_into_400_mib() -> None:
    command = [sys.executable, "-m", "bench.memory", "--documents", "50000", "--words", "60"]
    done = subprocess.run([*command, "--json"], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    peak, *_ = json.loads(done.stdout)["figures"]
    assert peak["ours"] < peak["theirs"]
