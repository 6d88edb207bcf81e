"""constraints.txt: exact versions of all that pyproject.toml declares, as a script writes them."""

from __future__ import annotations

import re
import runpy
import tomllib
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parents[2]
CONSTRAINTS: Final = (ROOT / "constraints.txt").read_text("utf-8")
PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS: Final[dict[str, list[str]]] = PROJECT["project"]["optional-dependencies"]
DECLARED: Final = sorted(
    {
        *PROJECT["build-system"]["requires"],
        *PROJECT["project"]["dependencies"],
        *chain.from_iterable(EXTRAS.values()),
    }
)
SCRIPT: Final = runpy.run_path(str(ROOT / "scripts" / "renew-constraints"), run_name="script")
PINS: Final = [line.split("==") for line in CONSTRAINTS.splitlines()[1:]]
VERSIONS: Final = {canonicalize_name(name): version for name, version in PINS}


def test_the_file_holds_a_heading_and_pins_and_each_name_once() -> None:
    heading, *lines = CONSTRAINTS.splitlines()
    assert heading.startswith("# ")
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[0-9][\w.]*", line)] == []
    assert len(VERSIONS) == len(lines)


@pytest.mark.parametrize("declared", DECLARED)
def test_whatever_is_declared_is_pinned_to_a_version_that_it_allows(declared: str) -> None:
    requirement = Requirement(declared)
    pinned = VERSIONS[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(pinned, prereleases=True)


def test_the_script_installs_every_extra_and_what_the_package_is_built_with() -> None:
    project, *built_with = SCRIPT["wanted"](PROJECT)
    assert Requirement(f"fonds{project.removeprefix(str(ROOT))}").extras == set(EXTRAS)
    assert built_with == PROJECT["build-system"]["requires"]


def test_the_script_writes_the_file_from_what_is_installed_but_for_the_project() -> None:
    pins: Callable[..., str] = SCRIPT["pins"]
    listed = [{"name": name, "version": version} for name, version in reversed(PINS)]
    assert pins([*listed, {"name": "fonds", "version": "0.1.0"}], but="fonds") == CONSTRAINTS
