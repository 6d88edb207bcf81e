"""Documents put on the shelves of a library as loading writes them, with no source behind them."""

from __future__ import annotations

from hashlib import sha256
from typing import Any
from uuid import UUID

from sqlalchemy import insert

from fonds.library import Library
from fonds.model import Archived, Body, Document, NormalizedBody, PageMark, ParsedRecord
from fonds.normalize.registry import get_normalizer
from fonds.runs.normalization import passages_of, prepare_write
from fonds.stores.documents import write_documents
from fonds.stores.tables import code_units

TEXT = get_normalizer("text_v1")


def hold(library: Library, document_id: str, text: str | None = None, **said: Any) -> None:
    """Load a document whose body is plain text, archived under a key of its own."""
    archived = archive(library, f"corpus/held/{document_id}", text or "no text")
    body = None
    if text is not None:
        normalized = said.pop("normalized", None) or TEXT.to_markdown(text.encode())
        body = Body(archived=archived, format="text", normalizer=TEXT.label, normalized=normalized)
    _write(library, _document(document_id, archived, body, said))


def hold_edition(
    library: Library, edition: str, name: str, text: str, *, published: str, **said: Any
) -> str:
    """Load a section of an edition of a code, and say its id."""
    unit = f"code/{edition}/root/title-1"
    library_holds_unit(library, unit, edition, published)
    document_id = f"{unit}/section-{name}"
    year = published[:4]
    given = {
        "aliases": (f"1 USC {name}",),
        "citation_string": f"1 U.S.C. § {name} ({year}).",
        "unit": unit,
        "edition": edition,
        "published_at": published,
        "source": "code",
        "kind": "section",
        **said,
    }
    hold(library, document_id, text, **given)
    return document_id


def library_holds_unit(library: Library, unit: str, edition: str, published: str) -> None:
    """Note an edition, the newest there is, unless it is noted."""
    row = {
        "id": unit,
        "source": "code",
        "version": edition,
        "unit": "title-1",
        "label": "Title 1",
        "published_at": published,
        "plan_key": "plan",
        "input_sha256": "0" * 64,
        "nodes": 1,
        "shards": 1,
        "bytes": 1,
        "state": "complete",
        "is_newest": True,
        "planned_at": library.seams.clock.now(),
    }
    with library.database.write() as connection:
        if connection.scalar(code_units.select().where(code_units.c.id == unit)) is None:
            connection.execute(code_units.update().values(is_newest=False))
            connection.execute(insert(code_units), [row])


def archive(library: Library, key: str, text: str) -> Archived:
    """Put bytes into the archive, beside those that have the key."""
    data = text.encode()
    digest = sha256(data).hexdigest()
    if library.blobs.head(key) is not None and library.blobs.get(key) != data:
        key = f"{key}@{digest[:8]}"
    library.blobs.put(key, data)
    return Archived(
        url=f"https://held.example/{key}",
        key=key,
        sha256=digest,
        size=len(data),
        retrieved_at=library.seams.clock.now(),
    )


def _document(
    document_id: str, archived: Archived, body: Body | None, said: dict[str, Any]
) -> Document:
    owner: UUID | None = said.pop("owner", None)
    given = {
        "source": "held",
        "kind": "note",
        "title": f"About {document_id}",
        "source_url": f"https://held.example/{document_id}",
        "source_org": "The Office",
        "citation_string": f"Held, {document_id}.",
        **said,
    }
    return Document(
        id=document_id, raw=archived, body=body, owner=str(owner) if owner else None, **given
    )


def _write(library: Library, document: Document) -> None:
    record = ParsedRecord(
        source=document.source,
        table="nodes",
        key=document.id,
        payload={"id": document.id},
        document=document,
    )
    chunker = library.context.chunker
    with library.database.write() as connection:
        write_documents(
            connection,
            library.database.fulltext,
            [prepare_write(record, document.id, chunker)],
            library.seams.clock.now(),
            derive=lambda each: passages_of(each, chunker),
        )


def labelled(markdown: str, *, pages: tuple[tuple[int, str], ...] = ()) -> NormalizedBody:
    """A body with the pages it is printed on."""
    marks = tuple(PageMark(offset=offset, page=page) for offset, page in pages)
    return NormalizedBody(markdown=markdown, pages=marks)
