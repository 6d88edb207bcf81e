"""The wheel and the source distribution: what is in them, and that they work where nothing else is.

To build and to install them needs a package index; what is installed is what the tests run with.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from email.message import Message
from email.parser import BytesParser
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple

import pytest

pytestmark = pytest.mark.long

ROOT: Final = Path(__file__).parents[2]
CONSTRAINTS: Final = ROOT / "constraints.txt"
NAME: Final = f"fonds-{version('fonds')}"
KINDS_OF_DATA: Final = {
    "fonds/demo/data/www.federalregister.gov/2026-01-12/2026-00101.xml",
    "fonds/py.typed",
    "fonds/stores/migrations/env.py",
    "fonds/stores/migrations/script.py.mako",
    "fonds/web/static/fonds.css",
    "fonds/web/templates/search.html",
}
"""One file of each kind that is no module of ours, or is found by its path."""


class Distributions(NamedTuple):
    """What was built from the working tree."""

    wheel: Path
    source: Path
    python: Path
    """Of the environment that can build them."""


def run(command: Sequence[str | Path], folder: Path) -> str:
    """Where nothing says where our modules are, nor what a library is like."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FONDS_", "PYTHON", "VIRTUAL_ENV"))
    }
    done = subprocess.run(
        command, cwd=folder, env=inherited, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def make_environment(folder: Path) -> Path:
    """The Python of an environment in which nothing is installed, not even pip."""
    run([sys.executable, "-m", "venv", "--without-pip", folder], folder.parent)
    return folder / "bin" / "python"


def pip(python: Path, *arguments: str | Path) -> None:
    options = ("--python", python, "--quiet", "--disable-pip-version-check")
    run([sys.executable, "-m", "pip", *options, *arguments], python.parent)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    folder = tmp_path_factory.mktemp("built")
    python = make_environment(folder / "environment")
    pip(python, "install", "hatchling")
    run([python, "-m", "hatchling", "build", "-d", folder / "dist"], ROOT)
    (wheel,) = folder.glob("dist/*.whl")
    (source,) = folder.glob("dist/*.tar.gz")
    return Distributions(wheel, source, python)


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def package_files() -> set[str]:
    """The files of the package that git tracks, or would."""
    listed = run(["git", "ls-files", "-z", "-co", "--exclude-standard", "src/fonds"], ROOT)
    names = filter(None, listed.split("\0"))
    return {name.removeprefix("src/") for name in names if (ROOT / name).exists()}


def test_the_wheel_holds_all_files_of_the_package_and_nothing_else(built: Distributions) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("what is tracked is known to git alone")
    about = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    expected = package_files() | {f"{NAME}.dist-info/{name}" for name in about}
    assert set(contents(built.wheel)) == expected
    assert expected >= KINDS_OF_DATA


def test_the_source_distribution_builds_the_same_wheel_and_holds_no_tests(
    built: Distributions, tmp_path: Path
) -> None:
    pip(
        built.python,
        *("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, built.source),
    )
    (again,) = tmp_path.glob("*.whl")
    assert contents(again) == contents(built.wheel)
    with tarfile.open(built.source) as archive:
        names = {name.removeprefix(f"{NAME}/") for name in archive.getnames()}
    beside = {name for name in names if not name.startswith("src/fonds/")}
    assert beside == {
        *(".gitignore", "PKG-INFO", "pyproject.toml"),
        *("CHANGELOG.md", "LICENSE", "README.md", "constraints.txt"),
    }


def test_the_metadata_say_what_a_registry_shows(built: Distributions) -> None:
    metadata = _metadata(built.wheel)
    assert metadata["Summary"]
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload(decode=True) == (ROOT / "README.md").read_bytes()
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert metadata["Keywords"]
    classifiers = metadata.get_all("Classifier", [])
    assert "Typing :: Typed" in classifiers
    assert not any(each.startswith("License ::") for each in classifiers)


def _metadata(wheel: Path) -> Message:
    return BytesParser().parsebytes(contents(wheel)[f"{NAME}.dist-info/METADATA"])


def test_the_wheel_works_in_an_empty_environment(built: Distributions, tmp_path: Path) -> None:
    python = make_environment(tmp_path / "environment")
    pip(python, "install", "--constraint", CONSTRAINTS, built.wheel)
    pip(python, "check")
    fonds = python.with_name("fonds")
    for command in ([fonds], [python, "-m", "fonds"]):
        assert run([*command, "--version"], tmp_path) == f"fonds {version('fonds')}\n"
    shown = run([fonds, "--home", "library", "demo"], tmp_path)
    assert "fonds --home library serve" in shown
    found = run(
        [fonds, "--home", "library", "search", "which pipes does lead come from?"], tmp_path
    )
    assert "91 Fed. Reg. 1209 (Jan. 12, 2026)." in found
