"""A library in a folder, and its API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.libraries.uploads import upload_library
from tests.unit.api.calling import Api, api_of

from fonds.library import Library
from fonds.seams import Seams
from fonds.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def library(tmp_path: Path, clock: ManualClock) -> Iterator[Library]:
    with upload_library(tmp_path, seams=Seams(clock=clock), max_file_mib=2) as library:
        yield library


@pytest.fixture
def api(library: Library) -> Iterator[Api]:
    with api_of(library) as api:
        yield api
