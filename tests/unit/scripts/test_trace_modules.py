"""scripts/trace-modules: a module counts when its functions run, wherever they do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Final

import pytest

SCRIPT: Final = Path(__file__).parents[3] / "scripts" / "trace-modules"

MODULES: Final = {
    "__init__.py": "",
    "cli.py": """
        import asyncio
        import subprocess
        import sys
        import threading
        from importlib import import_module

        from fonds import declared, decorated, merely_imported, records, threaded
        from fonds.fetch.client import Client

        def main():
            if "init" in sys.argv:
                return
            from fonds import constants, package
            import_module("fonds.by_computed_name")
            records.Record(1)
            thread = threading.Thread(target=threaded.function)
            thread.start()
            thread.join()
            subprocess.run([sys.executable, "-c", "import fonds.child as c; c.function()"])
            asyncio.run(Client().get())
        """,
    "merely_imported.py": "def function(): ...",
    "declared.py": """
        class Declared:
            attribute = 1
        """,
    "decorated.py": """
        def decorator(function):
            return function

        @decorator
        def function(): ...
        """,
    "records.py": """
        from dataclasses import dataclass

        @dataclass
        class Record:
            number: int
        """,
    "threaded.py": "def function(): ...",
    "child.py": "def function(): ...",
    "constants.py": "ANSWER = 42",
    "package/__init__.py": '"""Holds modules, and no code."""',
    "by_computed_name.py": "ANSWER = 42",
    "fetch/__init__.py": "",
    "fetch/client.py": """
        from fonds.fetch import opening, transport

        class Client:
            def __init__(self):
                opening.function()

            async def get(self):
                transport.function()
        """,
    "fetch/opening.py": "def function(): ...",
    "fetch/transport.py": "def function(): ...",
    "demo/__init__.py": "",
    "demo/server.py": """
        import time

        print("FONDS_HOSTS=", flush=True)
        time.sleep(600)
        """,
}


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    tree = tmp_path_factory.mktemp("tree")
    for name, text in MODULES.items():
        path = tree / "src" / "fonds" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    (tree / "pyproject.toml").write_text('[project]\nscripts = { fonds = "fonds.cli:main" }\n')
    command = [sys.executable, str(SCRIPT), "--tree", str(tree), "anything"]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_modules_whose_functions_run_are_counted(lines: list[str]) -> None:
    # Functions that run while modules are imported, and modules without any, do not count.
    assert lines[0] == "(root) 5: child cli constants records threaded"
    assert lines[2] == "8 modules, 1 of them only imported by a function"


def test_modules_of_a_request_are_those_below_a_coroutine_of_the_client(lines: list[str]) -> None:
    assert lines[1] == "fetch 3: client opening transport"
    assert lines[3] == "2 modules of fonds.fetch for a GET: client transport"
