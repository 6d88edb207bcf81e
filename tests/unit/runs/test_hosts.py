"""Hosts are noted before anything is loaded that makes it needless to ask them again."""

from __future__ import annotations

from pathlib import Path

from tests.support.libraries.notes import NoteOffice, ingest, note_library
from tests.support.upstreams.misbehaving import MisbehavingServer

from fonds.runs.hosts import INDEX
from fonds.seams import Seams
from fonds.shards.index import open_index
from fonds.shards.lookup import Lookup
from fonds.testing import FAKE_HOST, Saboteur


def test_a_host_is_noted_before_what_came_from_it_is_loaded(tmp_path: Path) -> None:
    saboteur = Saboteur()
    with MisbehavingServer() as server:
        NoteOffice(server, 3)
        with note_library(tmp_path, server, seams=Seams(durable=saboteur)) as library:
            ingest(library)
            assert Lookup(open_index(library.blobs, INDEX)).find(FAKE_HOST)
    operations = saboteur.operations
    archived = max(at for at, (_, subject) in enumerate(operations) if "/notes/" in subject)
    noted = [at for at, (_, subject) in enumerate(operations) if "indexes/" in subject]
    loaded = operations.index(("commit", "sqlite"), archived)
    assert archived < noted[0] < loaded


def test_a_host_that_is_known_is_not_noted_again(tmp_path: Path) -> None:
    saboteur = Saboteur()
    with MisbehavingServer() as server:
        office = NoteOffice(server, 3)
        with note_library(tmp_path, server, seams=Seams(durable=saboteur)) as library:
            ingest(library)
            saboteur.operations.clear()
            office.change(2, text="# Matter\n\nAnother one.")
            ingest(library)
    assert not [subject for _, subject in saboteur.operations if "indexes/" in subject]
