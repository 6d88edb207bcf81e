"""A library on servers: PostgreSQL for rows, an object store for raw files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.libraries.notes import NoteOffice, ingest, note_library
from tests.support.upstreams.misbehaving import MisbehavingServer

from fonds.runs.state import RunStatus
from fonds.selftest.state import rows_of


@pytest.mark.parametrize("blobs", ["s3_address", "azure_address"])
def test_library_on_servers_equals_the_one_in_a_folder(
    tmp_path: Path, request: pytest.FixtureRequest, postgres_database: str, blobs: str
) -> None:
    address = request.getfixturevalue(blobs)
    with MisbehavingServer() as server:
        office = NoteOffice(server, 20)
        with note_library(tmp_path / "folder", server) as library:
            ingest(library)
            expected = rows_of(library)
        on_servers = {"database": postgres_database, "blobs": address}
        with note_library(tmp_path / "servers", server, **on_servers) as library:
            assert ingest(library).status is RunStatus.SUCCESS
            assert rows_of(library) == expected
            office.change(3, title="Changed", text="# Matter\n\nOther words.")
            assert ingest(library).counts.updated == 1
            kept = library.document("fake:3")
            assert b"Other words" in library.blobs.get(kept["raw_path"])
            assert ingest(library).counts.skipped == 20
