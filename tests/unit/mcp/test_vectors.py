"""A library with vectors: search by meaning works on a database that cannot be written to."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.mcp.conftest import call, text_of
from tests.unit.mcp.small import OWNED, SECTION, small_library

from fonds.embed.worker import embed_waiting
from fonds.library import Library, open_library
from fonds.mcp.server import open_for_reading
from fonds.settings import read_settings

QUESTION = "how soon must a request for a record be answered?"


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    home = tmp_path_factory.mktemp("embedded") / "library"
    # The raw files stay where they are; nothing is made of them here.
    home.mkdir()
    shutil.copy(Path(small_library()) / "fonds.db", home)
    with open_library(home, embedder="hashing") as library:
        embed_waiting(library.database, library.seams, library.settings)
    with open_for_reading(read_settings({"home": home}, environ={})) as opened:
        yield opened


@pytest.mark.parametrize("mode", ["semantic", "hybrid", None])
def test_search_by_meaning_finds_and_keeps_uploads_apart(
    embedded: Library, mode: str | None
) -> None:
    result = call(embedded, "search", {"query": QUESTION, "mode": mode, "limit": 50})
    assert not result.is_error, text_of(result)
    assert isinstance(result.structured_content, dict)
    found = [one["id"] for one in result.structured_content["results"]]
    assert SECTION in found
    assert OWNED not in found


def test_coverage_says_that_vectors_are_complete(embedded: Library) -> None:
    result = call(embedded, "list_sources", {})
    assert isinstance(result.structured_content, dict)
    vectors = result.structured_content["vectors"]
    assert vectors["complete"]
    assert vectors["waiting"] == 0
    assert f"Vectors ({vectors['model']}) are complete." in text_of(result)


def test_search_by_meaning_without_vectors_is_refused(library: Library) -> None:
    result = call(library, "search", {"query": QUESTION, "mode": "semantic"})
    assert isinstance(result.structured_content, dict)
    assert result.structured_content["error"]["code"] == "bad_request"
