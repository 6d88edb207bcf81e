"""A library of several owners: what there is, and who asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import pytest
from sqlalchemy import insert, select
from tests.support.libraries.documents import hold

from fonds import ids
from fonds.library import Library
from fonds.stores.tables import document_chunk_buffer, ingestion_embedding_queue
from fonds.uploads.users import create_token

PUBLIC: Final = "note:1"
WORDS: Final = "water in the cellar"


@dataclass(frozen=True, kw_only=True)
class Upload:
    """Something a user has uploaded, with a word for each place that could give it away."""

    word: str
    owner: UUID

    @property
    def uid(self) -> UUID:
        return ids.upload_uid(self.owner, ids.text_sha256(self.text))

    @property
    def id(self) -> str:
        return ids.upload_id(self.uid)

    @property
    def title(self) -> str:
        return f"{self.word}title.pdf"

    @property
    def citation(self) -> str:
        return f"{self.word}cite.pdf (uploaded 2026)."

    @property
    def text(self) -> str:
        return (
            f"# Policy\n\nThere was {WORDS}, and {self.word}body was the cause of it.\n\n"
            f"See 91 FR 1201 about {self.word}body, and 90 FR 55."
        )

    @property
    def names(self) -> list[str]:
        words = [f"{self.word}body", f"{self.word}body {WORDS}", f"title:{self.word}title water"]
        return [self.id, f"{self.id}#0", str(self.uid), self.citation, self.title, *words]


@dataclass(frozen=True, kw_only=True)
class Viewer:
    """Somebody who asks; nobody in particular has no name."""

    name: str | None
    owner: UUID | None
    token: str | None


@dataclass(frozen=True, kw_only=True)
class World:
    """A library with one public document and an upload of each of two users."""

    library: Library
    uploads: Mapping[str, Upload]
    """By their owners' names."""
    passages: Mapping[str, str]
    """The UUID of each one's first passage."""
    viewers: Mapping[str, Viewer]

    @property
    def names(self) -> list[str]:
        """All that can be asked for."""
        shared = [PUBLIC, f"{PUBLIC}#0", "Form 7", "91 FR 1201", "90 FR 55", "90 FR 56"]
        asked = [WORDS, "source:uploads water", "kind:upload water", "org:Upload water"]
        owned = [name for upload in self.uploads.values() for name in upload.names]
        return [*shared, *asked, *owned, *self.passages.values()]

    def few_names(self, viewer: Viewer) -> list[str]:
        """Those by which most could come to light."""
        owned = [upload.id for upload in self.uploads.values()]
        foreign = [uuid for name, uuid in self.passages.items() if name != viewer.name]
        return [PUBLIC, *owned, foreign[-1], "Form 7", WORDS]

    def foreign_marks(self, viewer: Viewer, typed: str) -> list[str]:
        """What must not be shown; what somebody has typed, they know."""
        others = [name for name in self.uploads if name != viewer.name]
        marks = [mark for name in others for mark in self._marks(name)]
        return [mark for mark in marks if mark not in typed]

    def _marks(self, name: str) -> list[str]:
        upload = self.uploads[name]
        words = [f"{upload.word}{place}" for place in ("title", "body", "cite")]
        return [*words, str(upload.uid), self.passages[name]]


def filled(library: Library) -> World:
    viewers = {
        "anna": let_in(library, "anna"),
        "bert": let_in(library, "bert"),
        "nobody": Viewer(name=None, owner=None, token=None),
    }
    words = {"anna": "alder", "bert": "birch"}
    uploads = {
        name: Upload(word=word, owner=viewers[name].owner or pytest.fail("no user"))
        for name, word in words.items()
    }
    text = f"# Notice\n\nHow to report {WORDS}.\n\nThis supersedes 90 FR 55."
    hold(library, PUBLIC, text, aliases=("91 FR 1201", "Form 7"), title="About water")
    for upload in uploads.values():
        hold(
            library,
            upload.id,
            upload.text,
            owner=upload.owner,
            source="uploads",
            kind="upload",
            title=upload.title,
            source_org="Upload",
            source_url=f"/api/documents/{upload.id}/raw",
            citation_string=upload.citation,
            aliases=("Form 7", "90 FR 55"),
        )
    library.extract_citations()
    library.embed()
    for upload in uploads.values():
        fail_to_embed(library, upload)
    passages = {name: first_passage(library, upload.uid) for name, upload in uploads.items()}
    return World(library=library, uploads=uploads, passages=passages, viewers=viewers)


def let_in(library: Library, name: str) -> Viewer:
    with library.database.write() as connection:
        token, secret = create_token(
            connection,
            user=name,
            label="",
            scope="user",
            now=library.seams.clock.now(),
            rng=library.seams.rng,
        )
    return Viewer(name=name, owner=token.user_id, token=secret)


def fail_to_embed(library: Library, upload: Upload) -> None:
    """As an endpoint does that repeats what it refuses."""
    row = {
        "table_name": "documents",
        "record_id": upload.id,
        "input_sha": "0" * 64,
        "enqueued_at": library.seams.clock.now(),
        "attempts": 5,
        "last_error": f"the endpoint refused: {upload.text}",
    }
    with library.database.write() as connection:
        connection.execute(insert(ingestion_embedding_queue), [row])


def first_passage(library: Library, uid: UUID) -> str:
    chunk = document_chunk_buffer.c
    query = select(chunk.chunk_id).where(chunk.document_id == uid, chunk.chunk_ord == 0)
    with library.database.read() as connection:
        return str(connection.scalars(query).one())
