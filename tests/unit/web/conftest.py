"""A library in a folder, and its site."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.libraries.uploads import upload_library
from tests.unit.web.visiting import Visit, visiting

from fonds.library import Library
from fonds.seams import Seams
from fonds.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def library(tmp_path: Path, clock: ManualClock) -> Iterator[Library]:
    with upload_library(tmp_path, seams=Seams(clock=clock), max_file_mib=1) as library:
        yield library


@pytest.fixture
def here(library: Library) -> Iterator[Visit]:
    """On a machine that nobody else reaches."""
    with visiting(library) as visit:
        yield visit


@pytest.fixture
def elsewhere(library: Library) -> Iterator[Visit]:
    """At a server that everybody reaches."""
    with visiting(library, is_exposed=True) as visit:
        yield visit
