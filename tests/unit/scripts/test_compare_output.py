"""scripts/compare-output: differences between two checkouts are found, and only those."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[3]
SCRIPT: Final = ROOT / "scripts" / "compare-output"
NAMES: Final[dict[str, Any]] = runpy.run_path(str(SCRIPT), run_name="compare_output")
Row: Final = NAMES["Row"]

# As little of fonds as the script asks for; `{}` is where two checkouts differ.
MODULES: Final = {
    "__init__.py": """
        from fonds.model import FetchTask, Raw
        """,
    "model.py": """
        from dataclasses import dataclass, field
        from datetime import datetime

        @dataclass
        class Archived:
            url: str
            key: str
            sha256: str
            size: int
            retrieved_at: datetime

        @dataclass
        class FetchTask:
            source: str
            key: str
            parts: tuple

        @dataclass
        class RawPart:
            name: str
            archived: Archived
            data: bytes

        @dataclass
        class Raw:
            task: FetchTask
            parts: tuple

        @dataclass
        class Body:
            markdown: str
            headings: tuple = ()
            pages: tuple = ()
            artifacts: tuple = ()
            warnings: tuple = ()
            above: tuple = ()
        """,
    "normalize/__init__.py": "",
    "normalize/registry.py": """
        import os
        from fonds.model import Body

        class Normalizer:
            def to_markdown(self, data, address):
                text = data.decode()
                if text == "broken":
                    raise ValueError("{message}")
                if text == "crash":
                    os.abort()
                return Body(text.{method}(), headings=tuple(text.split()))

        def get_normalizer(name):
            return Normalizer()

        def normalizer_names():
            return ["text_v1", "markdown_v1"]

        def sniff(data):
            return "text_v1"
        """,
    "chunk/__init__.py": "",
    "chunk/{chunker}.py": """
        class Chunker:
            def chunk(self, body):
                return [{{"text": body.headings}}]
        """,
    "citations/__init__.py": "",
    "citations/extract.py": """
        def extract(text):
            return []
        """,
    "cli.py": """
        import sys

        def main():
            print("parsed", sys.argv[2:])
        """,
    "sources/__init__.py": "",
    "sources/feed.py": """
        class Feed:
            def parse(self, raw):
                for part in raw.parts:
                    yield (part.archived.key, part.data.decode())

        source = Feed()
        """,
}


def checkout(
    folder: Path, *, method: str = "upper", message: str = "no text", chunker: str = "splitter"
) -> Path:
    for name, text in MODULES.items():
        path = folder / "src" / "fonds" / name.format(chunker=chunker)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            dedent(text.format(method=method, message=message) if "{" in text else text)
        )
    (folder / "pyproject.toml").write_text('[project]\nscripts = { fonds = "fonds.cli:main" }\n')
    return folder


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    for name, text in {
        "a.txt": "some words",
        "b.md": "WORDS",
        "broken.txt": "broken",
        "crash.txt": "crash",
        "federal/feed/x.json": "{}",
        "federal/feed/x.xml": "<x/>",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def compare_output(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        text=True,
        capture_output=True,
        check=False,
    )


def made(tree: Path, files: Path, *more: object) -> Path:
    to = tree.with_suffix(".tsv")
    done = compare_output(to, "--tree", tree, "--files", files, *more)
    assert done.returncode == 0, done.stderr
    return to


def test_checkouts_that_differ_in_places_only_are_equal(tmp_path: Path, files: Path) -> None:
    old = made(checkout(tmp_path / "old"), files)
    new = checkout(tmp_path / "new", chunker="chunker")
    done = compare_output(tmp_path / "n.tsv", "--tree", new, "--files", files, "--against", old)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith("outputs are equal")


def test_a_change_is_reported_by_stage_and_format(tmp_path: Path, files: Path) -> None:
    old = made(checkout(tmp_path / "old"), files)
    new = checkout(tmp_path / "new", method="lower", message="empty")
    done = compare_output(tmp_path / "n.tsv", "--tree", new, "--files", files, "--against", old)
    assert done.returncode == 1, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    groups = {line: lines[place + 1] for place, line in enumerate(lines) if "  markdown  " in line}
    assert groups == {
        "1  markdown  markdown_v1: other error message": "broken.txt (ValueError: empty)",
        "2  markdown  markdown_v1: other output": "a.txt",
        "1  markdown  text_v1: other error message": "broken.txt (ValueError: empty)",
        "3  markdown  text_v1: other output": "a.txt",
        "1  markdown  xml_v1: other output": "federal/feed/x.xml",
    }
    assert not any("headings" in line or "citations" in line for line in lines)
    assert lines[-1].startswith("8 of ")


def test_only_chosen_files_are_made_and_compared(tmp_path: Path, files: Path) -> None:
    old = made(checkout(tmp_path / "old"), files)
    new = checkout(tmp_path / "new", method="lower")
    to = tmp_path / "n.tsv"
    only = ("--tree", new, "--files", files, "--against", old, "--only", "broken*")
    done = compare_output(to, *only)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {row.path for row in NAMES["read"](to)[1]} == {"broken.txt"}


def test_errors_and_crashes_are_outputs(tmp_path: Path, files: Path) -> None:
    rows = NAMES["read"](made(checkout(tmp_path / "old"), files))[1]
    errors = {(row.path, row.stage, row.error) for row in rows if row.error}
    assert errors == {
        ("broken.txt", "markdown", "ValueError: no text"),
        ("crash.txt", "process", "the process ended with -6"),
    }


def test_files_that_differ_in_their_suffix_are_parsed_together(tmp_path: Path, files: Path) -> None:
    rows = NAMES["read"](made(checkout(tmp_path / "old"), files, "--only", "federal/*"))[1]
    parsed = {(row.path, row.stage) for row in rows if row.format == "feed"}
    path = "federal/feed/x.json + federal/feed/x.xml"
    assert parsed == {(path, "records"), (path, "fonds parse")}


def test_show_prints_the_difference_itself(tmp_path: Path, files: Path) -> None:
    old, new = checkout(tmp_path / "old"), checkout(tmp_path / "new", method="lower")
    trees = ("--tree", old, "--tree", new)
    done = compare_output("--show", "a.txt", *trees, "--files", files)
    assert done.returncode == 1, done.stderr
    assert {"-SOME WORDS", "+some words"} <= set(done.stdout.splitlines())
    assert compare_output("--show", "broken.txt", *trees, "--files", files).returncode == 0


def test_outputs_made_before_an_interruption_are_kept(tmp_path: Path, files: Path) -> None:
    tree = checkout(tmp_path / "old")
    to = made(tree, files)
    rows = NAMES["read"](to)[1]
    partial = to.with_name(f"{to.name}.part")
    kept = '["file a.txt", [["a.txt", "format", "", "0", ""]]]\n'
    partial.write_text(f'{NAMES["code_sha256"](tree)}\n{kept}["file b.md", [[')
    again = NAMES["read"](made(tree, files))[1]
    assert [row for row in again if row.path != "a.txt"] == [
        row for row in rows if row.path != "a.txt"
    ]
    assert [row.sha256 for row in again if row.path == "a.txt"] == ["0"]
    assert not partial.exists()
    partial.write_text(f"other code\n{kept}")
    assert NAMES["read"](made(tree, files))[1] == rows


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (("1", ""), ("2", ""), "other output"),
        (("1", ""), ("", "A: x"), "fails now"),
        (("", "A: x"), ("1", ""), "succeeds now"),
        (("", "A: x"), ("", "A: y"), "other error message"),
        (("", "A: x"), ("", "B: x"), "other error"),
    ],
)
def test_kinds_of_differences(old: tuple[str, str], new: tuple[str, str], kind: str) -> None:
    rows = Row("p", "s", "f", *old), Row("p", "s", "f", *new)
    assert list(NAMES["differences"](rows[:1], rows[1:])) == [(kind, rows[1])]


def test_outputs_of_one_side_only_are_differences() -> None:
    row = Row("p", "s", "f", "1", "")
    assert list(NAMES["differences"]([], [row])) == [("added", row)]
    assert list(NAMES["differences"]([row], [])) == [("missing", row)]


def test_this_checkout_has_all_that_the_script_asks_for(tmp_path: Path) -> None:
    feed = ROOT / "tests" / "sources" / "cbo" / "files" / "publications.xml"
    folder = tmp_path / "files" / "federal" / "cbo"
    folder.mkdir(parents=True)
    (folder / "x.xml").write_bytes(feed.read_bytes())
    (tmp_path / "files" / "note.md").write_text("# A rule\n\nSee 42 U.S.C. 1396a.\n")
    to = tmp_path / "out.tsv"
    done = compare_output(to, "--tree", ROOT, "--files", tmp_path / "files")
    assert done.returncode == 0, done.stderr
    stages = {row.stage for row in NAMES["read"](to)[1] if not row.error}
    assert {"markdown", "headings", "passages", "citations", "records", "fonds parse"} <= stages
