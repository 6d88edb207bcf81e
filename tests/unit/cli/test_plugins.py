"""A broken plugin is named in one line, and everything else works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support import servers

GROUPS = ("fonds.sources", "fonds.normalizers", "fonds.embedders")


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder with an installed package, each of whose plugins raises when it is imported."""
    info = tmp_path / "packages" / "harbour_tools-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: harbour-tools\nVersion: 1.0\n")
    points = "".join(f"[{group}]\nharbour_{group[6:]} = harbour:it\n" for group in GROUPS)
    (info / "entry_points.txt").write_text(points)
    (info.parent / "harbour.py").write_text("raise RuntimeError('no harbour\\nhere')\n")
    return info.parent


@pytest.fixture
def home(tmp_path: Path) -> Path:
    servers.sqlite_database(tmp_path / "fonds.db")
    return tmp_path


def run(home: Path, packages: Path, *arguments: str, **variables: str) -> Any:
    inherited = {n: value for n, value in os.environ.items() if not n.startswith("FONDS_")}
    return subprocess.run(
        [sys.executable, "-m", "fonds", "--home", home, *arguments],
        env={**inherited, **variables, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_broken_plugin_is_named_in_one_line_and_all_else_works(home: Path, packages: Path) -> None:
    done = run(home, packages, "status", "--json")
    assert done.returncode == 0
    assert "federal_register" in {row["source"] for row in json.loads(done.stdout)}
    (line,) = done.stderr.splitlines()
    assert line.endswith(
        "the plugin harbour_sources of harbour-tools (fonds.sources) is left out: "
        "RuntimeError: no harbour here; update or remove the package"
    )


def test_broken_plugin_is_listed_by_sources(home: Path, packages: Path) -> None:
    listed = json.loads(run(home, packages, "sources", "--json").stdout)
    assert listed[-1]["name"] == "harbour_sources"
    assert listed[-1]["reason"] == "RuntimeError: no harbour here"


def test_doctor_warns_of_broken_plugins_of_each_group(home: Path, packages: Path) -> None:
    done = run(home, packages, "doctor", "--json")
    warned = [each for each in json.loads(done.stdout) if each["check"] == "plugins"]
    assert [each["status"] for each in warned] == ["warn"] * len(GROUPS)
    for group, finding in zip(GROUPS, warned, strict=True):
        assert group in finding["found"]
        assert finding["advice"] == "update or remove the package harbour-tools"


@pytest.mark.long  # two processes that import everything
def test_broken_embedder_or_normalizer_ends_only_what_needs_it(home: Path, packages: Path) -> None:
    assert run(home, packages, "renormalize").returncode == 0
    done = run(home, packages, "embed", FONDS_EMBEDDER="harbour_embedders")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "error: the plugin harbour_embedders of harbour-tools" in done.stderr
