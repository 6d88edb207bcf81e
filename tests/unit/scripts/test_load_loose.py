"""scripts/load-loose: files of a folder arrive in a library as those of their publisher."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import fonds

ROOT: Final = Path(__file__).parents[3]
FILES: Final = ROOT / "tests" / "sources" / "cbo" / "files"


def test_loose_files_become_documents(tmp_path: Path) -> None:
    folder = tmp_path / "loose" / "cbo" / "lists of estimates"
    folder.mkdir(parents=True)
    for path in FILES.glob("*.xml"):
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / ".hidden.xml").write_bytes(b"<response/>")
    (folder / "empty.xml").touch()
    home = tmp_path / "library"
    script = ROOT / "scripts" / "load-loose"
    command = [sys.executable, str(script), str(home), str(tmp_path / "loose"), "cbo,gao"]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    cbo, gao = done.stdout.splitlines()
    assert cbo.startswith("cbo: 2 files, success, ")
    assert gao == "gao: no files"
    with fonds.open(home) as library:
        assert library.document("cbo:61240")["source"] == "cbo"
