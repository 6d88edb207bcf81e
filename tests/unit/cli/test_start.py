"""What is in memory when a command runs."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import atexit, gc, json, sys
from fonds.cli.start import main

sys.argv = ["fonds", "--version"]
atexit.register(lambda: print(json.dumps({"modules": list(sys.modules), "looks": gc.isenabled()})))
main()
"""


def test_a_command_loads_no_lexers_and_no_attrs_and_looks_for_cycles() -> None:
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
    )
    version, state = told.stdout.splitlines()
    assert version.startswith("fonds ")
    found = json.loads(state)
    assert found["looks"]
    assert {"structlog", "rich.console"} <= set(found["modules"])
    assert not {"pygments", "attr", "rich.traceback", "rich.progress"} & set(found["modules"])
