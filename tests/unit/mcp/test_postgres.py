"""The same tools on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import InternalError
from tests.support import servers
from tests.support.libraries.notes import NoteOffice, ingest, note_library
from tests.support.upstreams.misbehaving import MisbehavingServer
from tests.unit.mcp.conftest import call, text_of

from fonds.library import Library
from fonds.mcp.server import open_for_reading
from fonds.settings import read_settings
from fonds.testing import note


@pytest.fixture(scope="module")
def library(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    home: Path = tmp_path_factory.mktemp("library")
    with ExitStack() as stack:
        address = stack.enter_context(servers.postgres_database(postgres_url))
        office = NoteOffice(stack.enter_context(MisbehavingServer()), 0)
        office.notes[1] = note(1, "# Matter\n\nThe regulation of trout.", published="2026-01-05")
        office.publish()
        with note_library(home, office.server, database=address) as filled:
            ingest(filled)
        settings = read_settings({"home": home, "database": address}, environ={})
        yield stack.enter_context(open_for_reading(settings))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search", {"query": "trout"}),
        ("get_document", {"document": "fake:1"}),
        ("get_passage", {"passage": "fake:1#0", "around": 5}),
        ("browse_code", {}),
        ("resolve_citation", {"citation": "fake:1"}),
        ("check_quote", {"cite": "fake:1", "text": "regulation of trout"}),
        ("list_sources", {}),
    ],
)
def test_tool_answers(library: Library, tool: str, arguments: dict[str, Any]) -> None:
    result = call(library, tool, arguments)
    assert not result.is_error, text_of(result)


def test_coverage_counts(library: Library) -> None:
    result = call(library, "list_sources", {})
    assert isinstance(result.structured_content, dict)
    (source,) = result.structured_content["sources"]
    assert (source["documents"], source["first_published"]) == (1, "2026-01-05")


def test_reading_cannot_write(library: Library) -> None:
    with (
        pytest.raises(InternalError, match="read-only transaction"),
        library.database.read() as connection,
    ):
        connection.execute(text("DELETE FROM documents"))
