"""The pages tell the truth: what they say is typed is typed, and prints what they show.

`docs/index.md` states the convention. The publishers are stood in for by the bundled upstream. A
page begins in an empty folder, or with what `make demo` leaves behind if it speaks of that. The
commands of `README.md` are processes of their own; those of the other pages begin after their
imports.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support import servers
from tests.support.libraries.demo import FONDS, copy_demo_library

from fonds.demo.bundle import StaticFiles, bundled_sites
from fonds.demo.http import Handler
from fonds.demo.server import DemoUpstream
from fonds.schema import HEAD

ROOT: Final = Path(__file__).resolve().parents[2]

_BLOCK: Final = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXPORT: Final = re.compile(r"export (\w+)=(\S+|\$\((.*)\))")
_BEGUN: Final = ("serving ", "working ")
"""What commands say that go on beside others, once they can be used."""
_PATIENCE: Final = 60.0
_LONGEST: Final = 600.0
"""Seconds that a command of a page may take, on a machine that has much else to do."""
_RUNNABLE: Final = re.compile(r"(?:FONDS_\w+=\S+ )*(?:fonds|python|cp|rm|scripts/renew) ")
ADDING: Final = "docs/how-to/add-a-source.md"
"""The page that adds a source to this repository: it is followed in a copy."""
COPIED: Final = ("src", "scripts", "tests", "docs", "README.md", "pyproject.toml")


@dataclass(frozen=True, kw_only=True)
class Block:
    language: str
    file: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    found = _BLOCK.findall(page.read_text("utf-8"))
    return [Block(language=language, file=file, text=text) for language, file, text in found]


def _tested_pages() -> list[str]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        str(page.relative_to(ROOT))
        for page in pages
        if any(block.language in {"console", "python"} for block in blocks_of(page))
    ]


class Reader:
    """Somebody who follows a page to the letter."""

    def __init__(self, folder: Path, upstream: DemoUpstream, fonds: Path) -> None:
        self.folder = folder
        self.beside: list[subprocess.Popen[bytes]] = []
        commands = [str(fonds.parent), str(FONDS.parent), os.environ["PATH"]]
        self.variables = {
            **{name: value for name, value in os.environ.items() if not _is_ours(name)},
            "PATH": os.pathsep.join(commands),
            "PYTHONPATH": str(folder),
            "COLUMNS": "160",
            "FONDS_HOSTS": upstream.hosts_variable,
            "FONDS_ALLOW_PRIVATE": "1",
        }

    def use_copy(self) -> None:
        """Let commands import the copy of this repository in the folder."""
        self.variables |= {"PYTHONPATH": str(self.folder / "src"), "PYTHON": sys.executable}

    def follow(self, blocks: Sequence[Block]) -> None:
        """Write the files, type the commands, run the programs."""
        for block, after in pairwise([*blocks, Block(language="", file="", text="")]):
            if block.file:
                self.write(block)
            elif block.language == "console":
                self.type(block.text)
            elif block.language == "python":
                printed = self.run([sys.executable, "-c", block.text])
                if after.language == "output":
                    assert_shown(after.text, printed)

    def write(self, block: Block) -> None:
        path = self.folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, "utf-8")
        if block.file == "pyproject.toml":
            self._install(tomllib.loads(block.text)["project"])

    def type(self, text: str) -> None:
        for command, shown in _exchanges(text):
            if export := _EXPORT.fullmatch(command):
                printed = self.run(["bash", "-c", export[3]], alone=True) if export[3] else ""
                self.variables[export[1]] = printed.strip() or export[2]
                continue
            typed = _what_make_runs(command)
            assert _RUNNABLE.match(typed), f"cannot be tested in a console block: {typed}"
            if typed.endswith(" &"):
                self.begin(typed.removesuffix(" &"))
            else:
                assert_shown(shown, self.run(["bash", "-c", typed]))

    def begin(self, typed: str) -> None:
        """Start what goes on while the page does, and wait until it says that it has begun."""
        log = self.folder / f"beside-{len(self.beside)}.log"
        with log.open("wb") as said:
            begun = subprocess.Popen(
                ["bash", "-c", f"exec {typed}"],
                cwd=self.folder,
                env=self.variables,
                stdout=said,
                stderr=said,
            )
        self.beside.append(begun)
        deadline = time.monotonic() + _PATIENCE
        while not any(line.startswith(_BEGUN) for line in log.read_text().splitlines()):
            assert begun.poll() is None, log.read_text()
            assert time.monotonic() < deadline, f"{typed} says nothing: {log.read_text()}"
            time.sleep(0.05)

    def close(self) -> None:
        """End what still goes on."""
        for begun in self.beside:
            begun.terminate()
            begun.wait(_PATIENCE)

    def run(self, arguments: Sequence[str], *, alone: bool = False) -> str:
        """What a command prints, without what it says about it if `alone`."""
        done = subprocess.run(
            arguments,
            cwd=self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if alone else subprocess.STDOUT,
            timeout=_LONGEST,
            check=False,
        )
        printed = done.stdout.decode()
        assert done.returncode == 0, f"{arguments[-1]}\n{printed}"
        return printed

    def _install(self, project: dict[str, dict[str, dict[str, str]]]) -> None:
        """What pip would leave beside the module for others to find it by."""
        info = self.folder / f"{project['name']}-{project['version']}.dist-info"
        info.mkdir()
        lines = [f"Name: {project['name']}", f"Version: {project['version']}"]
        (info / "METADATA").write_text("Metadata-Version: 2.1\n" + "\n".join(lines) + "\n")
        points = "".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
            for group, entries in project["entry-points"].items()
        )
        (info / "entry_points.txt").write_text(points)


def _is_ours(name: str) -> bool:
    return name.startswith(("FONDS_", "PYTEST_"))


def _exchanges(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block with what is shown below it."""
    for exchange in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = exchange.partition("\n")
        yield command, shown


def _what_make_runs(command: str) -> str:
    if command != "make demo":
        return command
    recipe = re.search(
        r"^demo:.*\n\t\$\(BIN\)/(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert recipe is not None
    return recipe[1]


def assert_shown(shown: str, printed: str) -> None:
    """Fail unless all that was printed is shown, but for what `…` stands for and blank lines."""
    wanted = [line.rstrip() for line in shown.splitlines() if line.strip()]
    lines = [line.rstrip() for line in printed.splitlines() if line.strip()]
    pattern = "".join(
        r"(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in wanted
    )
    output = "".join(f"{line}\n" for line in lines)
    # Nothing shown promises nothing: the command only has to succeed.
    assert not wanted or re.fullmatch(pattern, output), f"{shown}\n-- but printed was --\n{output}"


@pytest.fixture
def reader(page: str, tmp_path: Path) -> Iterator[Reader]:
    # The source that a page builds is served the files which that page shows.
    files = "tests/sources/harbour_notices/files" if page == ADDING else ""
    sites: dict[str, Handler] = {"harbour.example": StaticFiles(tmp_path / files)}
    with DemoUpstream(bundled_sites() | sites) as upstream:
        fonds = FONDS if page in {"README.md", ADDING} else servers.fonds_command()
        with closing(Reader(tmp_path, upstream, fonds)) as reading:
            yield reading


def _followed_pages() -> list[Any]:
    marks = {"README.md": [pytest.mark.smoke]}
    pages = [page for page in _tested_pages() if page != ADDING]
    return [pytest.param(page, marks=marks.get(page, []), id=page) for page in pages]


@pytest.mark.parametrize("page", _followed_pages())
def test_page_can_be_followed_to_the_letter(page: str, reader: Reader) -> None:
    (reader.folder / "src").symlink_to(ROOT / "src")
    blocks = blocks_of(ROOT / page)
    if page != "docs/tutorial.md" and any("demo-library" in block.text for block in blocks):
        copy_demo_library(reader.folder)
    reader.follow(blocks)


@pytest.mark.long
@pytest.mark.parametrize("page", [ADDING])
def test_source_is_added_with_a_module_its_tests_and_one_command(page: str, reader: Reader) -> None:
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, reader.folder / name)
    reader.use_copy()
    before = _contents(reader.folder)
    reader.follow(blocks_of(ROOT / page))
    after = _contents(reader.folder)
    assert {name for name in before | after if before.get(name) != after.get(name)} == {
        "src/fonds/sources/harbour_notices.py",
        "tests/sources/harbour_notices/files/notices.xml",
        "tests/sources/harbour_notices/files/notices/12.html",
        "tests/sources/harbour_notices/golden/12.jsonl",
        "tests/sources/harbour_notices/test_harbour_notices.py",
        # Written by scripts/renew:
        "README.md",
        "docs/reference/sources.md",
        "docs/reference/tables.md",
        f"src/fonds/stores/migrations/versions/{int(HEAD) + 1:04d}_add_harbour_notices.py",
        "src/fonds/schema.py",
        "tests/public_surface.json",
    }


def _contents(folder: Path) -> dict[str, str]:
    """The hashes of the files of a copy of this repository, by their paths."""
    paths = [path for name in COPIED for path in [folder / name, *(folder / name).rglob("*")]]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
        if path.is_file() and path.suffix != ".pyc"
    }


def test_readme_and_tutorial_are_among_the_pages_that_are_followed() -> None:
    assert {"README.md", "docs/tutorial.md", ADDING} <= set(_tested_pages())


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("one\n", "one\ntwo\n"),
        ("two\n", "one\ntwo\n"),
        ("one …\n", "ones\n"),
        ("one\nthree\n", "one\ntwo\nthree\n"),
    ],
)
def test_output_that_differs_from_what_is_shown_is_noticed(shown: str, printed: str) -> None:
    with pytest.raises(AssertionError):
        assert_shown(shown, printed)
