"""Documents and passages by their names, in bounded pieces.

Codes from the top down: codes, their editions, and the tree of each.

What is held and as of when, so that an agent knows what a missing answer means.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, Select, func, select

from fonds import ids
from fonds.catalog.codes import Code, CodePosition, EditionHeld, Node, code, codes, editions, place
from fonds.errors import UnknownDocumentError
from fonds.library import Library
from fonds.mcp.answers import (
    CodeListing,
    CodeNode,
    Coverage,
    DocumentHead,
    DocumentSlice,
    EditionCoverage,
    Passage,
    PassageAnswer,
    RefusalError,
    SourceCoverage,
    VectorCoverage,
    as_day,
)
from fonds.results import ChunkLocator, Resolution
from fonds.sources.base import Registered
from fonds.stores.documents import visible_to
from fonds.stores.fulltext import visible_text
from fonds.stores.tables import (
    code_units,
    document_chunk_buffer,
    documents,
    ingestion_embedding_queue,
    ingestion_normalization_queue,
    ingestion_source_state,
    ingestion_tasks,
)
from fonds.stores.vectors import current_generation

LONGEST_PASSAGE: Final = 20_000
"""Characters; a passage made with the default settings is a tenth of it."""
_MOST_RIVALS: Final = 10
_LAST_ORDINAL: Final = 2**31 - 1


def document_slice(
    library: Library, name: str, offset: int, length: int, owner: UUID | None
) -> DocumentSlice:
    """A document's head, and its text from an offset on."""
    row = find(library, name, owner)
    text = row["body_text"] or row["summary"] or ""
    if offset > len(text):
        message = f"the text of {row['id']} has {len(text)} characters, none at {offset}"
        raise RefusalError("bad_request", message, hint="Begin at offset 0.")
    end = min(len(text), offset + length)
    with library.database.read() as connection:
        return DocumentSlice(
            document=DocumentHead.of(row, _edition(connection, row["unit"])),
            text=text[offset:end],
            offset=offset,
            total_characters=len(text),
            next_offset=end if end < len(text) else None,
            passages=_passage_count(connection, row["uid"]),
        )


def passages_around(library: Library, name: str, around: int, owner: UUID | None) -> PassageAnswer:
    """A passage by `ID#n` or its UUID, with so many neighbours on each side."""
    row, ordinal = _named_passage(library, name, owner)
    chunk = document_chunk_buffer.c
    near = select(document_chunk_buffer).where(
        chunk.document_id == row["uid"],
        chunk.chunk_ord.between(ordinal - around, min(ordinal + around, _LAST_ORDINAL)),
    )
    with library.database.read() as connection:
        found = connection.execute(near.order_by(chunk.chunk_ord)).all()
        total = _passage_count(connection, row["uid"])
        head = DocumentHead.of(row, _edition(connection, row["unit"]))
    if all(one.chunk_ord != ordinal for one in found):
        message = f"{row['id']} has {total} passages, none with the number {ordinal}"
        raise RefusalError("not_found", message, hint="Passages are numbered from 0.")
    return PassageAnswer(
        document=head,
        asked=passage_name(head.id, ordinal),
        passages=[_passage(head, one) for one in found],
        total_passages=total,
    )


def find(library: Library, name: str, owner: UUID | None) -> dict[str, Any]:
    """A document by its id, any other name, or a citation somebody typed."""
    try:
        return library.document(name, owner=owner)
    except UnknownDocumentError:
        resolution = library.resolve(name, owner=owner)
        if resolution.document is not None:
            return library.document(resolution.document.id, owner=owner)
        refuse_if_ambiguous(resolution)
        raise


def refuse_if_ambiguous(resolution: Resolution) -> None:
    """Name the documents that a citation may mean, if there are several."""
    if resolution.problem != "ambiguous":
        return
    rivals = ", ".join(one.id for one in resolution.candidates[:_MOST_RIVALS])
    message = f"{resolution.citation!r} may mean several documents: {rivals}"
    raise RefusalError("ambiguous", message, hint="Ask for one of these ids.") from None


def passage_name(document_id: str, ordinal: int) -> str:
    """What a passage is called: `fr:2026-00101#3`."""
    return f"{document_id}#{ordinal}"


def _named_passage(library: Library, name: str, owner: UUID | None) -> tuple[dict[str, Any], int]:
    document, mark, number = name.rpartition("#")
    if mark and number.isascii() and number.isdecimal():
        ordinal = int(number[:10])
        return find(library, document, owner), min(ordinal, _LAST_ORDINAL)
    try:
        chunk_id = UUID(name)
    except ValueError:
        message = f"{name!r} names no passage"
        hint = "Passages are named by document and number, fr:2026-00101#3, or by a UUID."
        raise RefusalError("bad_request", message, hint=hint) from None
    with library.database.read() as connection:
        found = connection.execute(_by_uuid(chunk_id, owner)).one_or_none()
    if found is None:
        raise RefusalError("not_found", f"there is no passage {name}", hint="Search again.")
    return library.document(found.id, owner=owner), found.chunk_ord


def _by_uuid(chunk_id: UUID, owner: UUID | None) -> Select[Any]:
    chunk = document_chunk_buffer.c
    return (
        select(documents.c.id, chunk.chunk_ord)
        .join(documents, documents.c.uid == chunk.document_id)
        .where(chunk.chunk_id == chunk_id, visible_to(owner))
    )


def _passage(head: DocumentHead, row: Any) -> Passage:
    text = visible_text(row.text)
    locator = ChunkLocator(passage=row.chunk_ord, **row.meta["locator"])
    return Passage(
        id=passage_name(head.id, row.chunk_ord),
        chunk_id=str(row.chunk_id),
        text=text[:LONGEST_PASSAGE],
        is_cut=len(text) > LONGEST_PASSAGE,
        start=row.meta["start"],
        end=row.meta["end"],
        citation=head.citation.model_copy(update={"locator": locator}),
    )


def _passage_count(connection: Connection, uid: UUID) -> int:
    chunk = document_chunk_buffer.c
    return connection.scalar(select(func.count()).where(chunk.document_id == uid)) or 0


def _edition(connection: Connection, unit: str | None) -> tuple[str, bool] | None:
    if unit is None:
        return None
    query = select(code_units.c.version, code_units.c.is_newest).where(code_units.c.id == unit)
    row = connection.execute(query).one_or_none()
    return None if row is None else (row.version, row.is_newest)


def browse(library: Library, path: str | None, offset: int, limit: int) -> CodeListing:
    """What stands below a code, an edition or a node; without a path, the codes."""
    asked = (path or "").strip("/")
    if not asked:
        return _listing(
            None,
            (),
            [_code(one) for one in codes(library.database, library.sources)],
            offset,
            limit,
        )
    known = _known(library, asked)
    name, _, below = asked.partition("/")
    if not below:
        mine = [_edition_node(one) for one in reversed(known.editions)]
        return _listing(_code(known), (), mine, offset, limit)
    found = place(library.database, asked, limit=limit, offset=offset)
    edition = f"{name}/{below.partition('/')[0]}"
    held = next(one for one in map(_edition_node, known.editions) if one.id == edition)
    return _below(found, held, known)


def _known(library: Library, path: str) -> Code:
    """The code that a path begins with; of an edition that is not held, those that are."""
    name, _, below = path.partition("/")
    try:
        known = code(library.database, library.sources, name)
    except UnknownDocumentError:
        hint = "browse_code without a path lists them."
        raise RefusalError("not_found", f"no code {name!r} is held", hint=hint) from None
    version = below.partition("/")[0]
    if version and all(_edition_node(one).id != f"{name}/{version}" for one in known.editions):
        held = ", ".join(one.version for one in reversed(known.editions))
        message = f"of {name} there is no edition {version!r}"
        raise RefusalError("not_found", message, hint=f"The editions held are: {held}.")
    return known


def _below(found: CodePosition, edition: CodeNode, known: Code) -> CodeListing:
    above = [known.name, edition.id, *(one.id for one in found.above)]
    return CodeListing(
        node=_node(found.node) if found.node else edition,
        above=above if found.node else [known.name],
        children=[_node(one) for one in found.children.items],
        total_children=found.children.total or 0,
        next_offset=found.children.next_offset,
    )


def _listing(
    node: CodeNode | None,
    above: Sequence[str],
    children: Sequence[CodeNode],
    offset: int,
    limit: int,
) -> CodeListing:
    return CodeListing(
        node=node,
        above=list(above),
        children=list(children[offset : offset + limit]),
        total_children=len(children),
        next_offset=_next(offset, limit, len(children)),
    )


def _next(offset: int, limit: int, total: int) -> int | None:
    return offset + limit if offset + limit < total else None


def _code(one: Code) -> CodeNode:
    return CodeNode(id=one.name, kind="code", label=one.title, status=None, is_leaf=False)


def _edition_node(one: EditionHeld) -> CodeNode:
    whole = f"{one.complete} of {one.units} units complete, {one.sections} sections"
    return CodeNode(
        id=ids.tree_root(one.source, one.version).removesuffix("/root"),
        kind="edition",
        label=f"{one.version}: {whole}",
        status="newest" if one.is_newest else None,
        is_leaf=False,
    )


def _node(one: Node) -> CodeNode:
    return CodeNode(
        id=one.id, kind=one.kind, label=one.label, status=one.status, is_leaf=one.is_leaf
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _SourceStates:
    """What is known of all sources, by name."""

    held: Mapping[str, Sequence[Row[Any]]]
    successes: Mapping[str, datetime | None]
    errors: Mapping[str, int]
    textless: Mapping[str, int]
    editions: Mapping[str, Sequence[EditionHeld]] = field(default_factory=dict)


def coverage(library: Library, owner: UUID | None) -> Coverage:
    """Every source with something held or tried, and how far it is whole."""
    by_code: dict[str, list[EditionHeld]] = defaultdict(list)
    for one in editions(library.database):
        by_code[one.source].append(one)
    with library.database.read() as connection:
        standing = _standing(connection, by_code, visible_to(owner))
        vectors = _vectors(connection)
    known = library.sources
    touched = {*standing.held, *standing.errors, *by_code}
    sources = [_source(name, known.get(name), standing) for name in sorted(touched)]
    return Coverage(
        as_of=library.seams.clock.now(),
        documents=sum(one.documents for one in sources),
        sources=sources,
        not_held=sorted(set(known) - touched),
        vectors=vectors,
    )


def _standing(
    connection: Connection,
    by_code: Mapping[str, Sequence[EditionHeld]],
    visible: ColumnElement[bool],
) -> _SourceStates:
    table, state, tasks = documents.c, ingestion_source_state.c, ingestion_tasks.c
    held = select(
        table.source,
        table.kind,
        func.count().label("documents"),
        func.count(table.gone_at).label("withdrawn"),
        func.min(table.published_at).label("first"),
        func.max(table.published_at).label("last"),
        func.max(table.retrieved_at).label("retrieved"),
    )
    by_source: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in connection.execute(held.where(visible).group_by(table.source, table.kind)):
        by_source[row.source].append(row)
    open_errors = select(tasks.source, func.count()).where(
        tasks.stage == "errored", tasks.resolved_at.is_(None)
    )
    queued = ingestion_normalization_queue.c
    same = (queued.table_name == "documents") & (queued.record_id == table.id)
    waiting = (
        select(table.source, func.count())
        .select_from(ingestion_normalization_queue)
        .join(documents, same)
        .where(visible)
    )
    return _SourceStates(
        held=by_source,
        successes=_pairs(connection, select(state.source, state.last_success_at)),
        errors=_pairs(connection, open_errors.group_by(tasks.source)),
        textless=_pairs(connection, waiting.group_by(table.source)),
        editions=by_code,
    )


def _pairs(connection: Connection, query: Any) -> dict[str, Any]:
    return {row[0]: row[1] for row in connection.execute(query)}


def _source(name: str, known: Registered | None, standing: _SourceStates) -> SourceCoverage:
    rows = standing.held.get(name, ())
    firsts = [row.first for row in rows if row.first]
    lasts = [row.last for row in rows if row.last]
    return SourceCoverage(
        source=name,
        title=known.info.title if known else name,
        organization=known.info.organisation if known else "",
        documents=sum(row.documents for row in rows),
        withdrawn=sum(row.withdrawn for row in rows),
        kinds={row.kind: row.documents for row in rows},
        first_published=as_day(min(firsts, default=None)),
        last_published=as_day(max(lasts, default=None)),
        last_retrieved_at=max((row.retrieved for row in rows), default=None),
        last_success_at=standing.successes.get(name),
        open_errors=standing.errors.get(name, 0),
        waiting_for_text=standing.textless.get(name, 0),
        editions=[_edition_coverage(one) for one in standing.editions.get(name, ())],
    )


def _edition_coverage(one: EditionHeld) -> EditionCoverage:
    return EditionCoverage(
        edition=one.version,
        units=one.units,
        complete_units=one.complete,
        sections=one.sections,
        is_newest=one.is_newest,
    )


def _vectors(connection: Connection) -> VectorCoverage:
    generation = current_generation(connection)
    waiting = connection.scalar(select(func.count()).select_from(ingestion_embedding_queue)) or 0
    return VectorCoverage(
        model=generation.name if generation else None,
        # Whatever lacks a vector of the model in use waits in the queue, failures included.
        complete=generation is not None and not waiting,
        waiting=waiting,
    )
