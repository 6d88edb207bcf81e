"""Queries of the tools: document slices, passages, code navigation, and coverage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, Select, func, select

from fonds import ids
from fonds.catalog.codes import (
    Code,
    CodePosition,
    Node,
    StoredEdition,
    code,
    code_position,
    codes,
    editions,
)
from fonds.errors import UnknownDocumentError
from fonds.library import Library
from fonds.mcp.schemas import (
    CodeListing,
    CodeNode,
    Coverage,
    DocumentHead,
    DocumentSlice,
    EditionCoverage,
    InvalidCallError,
    Passage,
    PassageResult,
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

MAX_PASSAGE_LENGTH: Final = 20_000
"""Characters; ten times a passage with default settings."""
_MAX_CANDIDATES: Final = 10
_MAX_ORDINAL: Final = 2**31 - 1


def document_slice(
    library: Library, name: str, offset: int, length: int, owner: UUID | None
) -> DocumentSlice:
    """The head of a document and a slice of its text."""
    row = find(library, name, owner)
    text = row["body_text"] or row["summary"] or ""
    if offset > len(text):
        message = (
            f"the text of {row['id']} has {len(text)} characters; offset {offset} is beyond its end"
        )
        raise InvalidCallError("bad_request", message, hint="Start at offset 0.")
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


def passages_around(library: Library, name: str, around: int, owner: UUID | None) -> PassageResult:
    """A passage by `ID#n` or UUID, with its neighbours on each side."""
    row, ordinal = _passage_by_name(library, name, owner)
    chunk = document_chunk_buffer.c
    nearby = select(document_chunk_buffer).where(
        chunk.document_id == row["uid"],
        chunk.chunk_ord.between(ordinal - around, min(ordinal + around, _MAX_ORDINAL)),
    )
    with library.database.read() as connection:
        rows = connection.execute(nearby.order_by(chunk.chunk_ord)).all()
        total = _passage_count(connection, row["uid"])
        head = DocumentHead.of(row, _edition(connection, row["unit"]))
    if all(row.chunk_ord != ordinal for row in rows):
        message = f"{row['id']} has {total} passages; none has the number {ordinal}"
        raise InvalidCallError("not_found", message, hint="Passages are numbered from 0.")
    return PassageResult(
        document=head,
        asked=passage_name(head.id, ordinal),
        passages=[_passage(head, row) for row in rows],
        total_passages=total,
    )


def find(library: Library, name: str, owner: UUID | None) -> dict[str, Any]:
    """A document by its id, another name, or a citation."""
    try:
        return library.document(name, owner=owner)
    except UnknownDocumentError:
        resolution = library.resolve(name, owner=owner)
        if resolution.document is not None:
            return library.document(resolution.document.id, owner=owner)
        refuse_if_ambiguous(resolution)
        raise


def refuse_if_ambiguous(resolution: Resolution) -> None:
    """Raise an error that lists the candidates if a citation matches several documents."""
    if resolution.problem != "ambiguous":
        return
    candidates = ", ".join(candidate.id for candidate in resolution.candidates[:_MAX_CANDIDATES])
    message = f"{resolution.citation!r} matches several documents: {candidates}"
    raise InvalidCallError("ambiguous", message, hint="Use one of these ids.") from None


def passage_name(document_id: str, ordinal: int) -> str:
    """The name of a passage, such as `fr:2026-00101#3`."""
    return f"{document_id}#{ordinal}"


def _passage_by_name(library: Library, name: str, owner: UUID | None) -> tuple[dict[str, Any], int]:
    document, separator, number = name.rpartition("#")
    if separator and number.isascii() and number.isdecimal():
        ordinal = int(number[:10])
        return find(library, document, owner), min(ordinal, _MAX_ORDINAL)
    try:
        chunk_id = UUID(name)
    except ValueError:
        message = f"{name!r} is not the name of a passage"
        hint = "The name of a passage is document and number, fr:2026-00101#3, or a UUID."
        raise InvalidCallError("bad_request", message, hint=hint) from None
    with library.database.read() as connection:
        row = connection.execute(_by_uuid(chunk_id, owner)).one_or_none()
    if row is None:
        raise InvalidCallError("not_found", f"there is no passage {name}", hint="Search again.")
    return library.document(row.id, owner=owner), row.chunk_ord


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
        text=text[:MAX_PASSAGE_LENGTH],
        is_cut=len(text) > MAX_PASSAGE_LENGTH,
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
    """The children of a code, an edition or a node; without a path, all codes."""
    clean = (path or "").strip("/")
    if not clean:
        return _listing(
            None,
            (),
            [_code(each) for each in codes(library.database, library.sources)],
            offset,
            limit,
        )
    selected = _find_code(library, clean)
    name, _, below = clean.partition("/")
    if not below:
        nodes = [_edition_node(edition) for edition in reversed(selected.editions)]
        return _listing(_code(selected), (), nodes, offset, limit)
    position = code_position(library.database, clean, limit=limit, offset=offset)
    edition_id = f"{name}/{below.partition('/')[0]}"
    edition = next(node for node in map(_edition_node, selected.editions) if node.id == edition_id)
    return _position_listing(position, edition, selected)


def _find_code(library: Library, path: str) -> Code:
    """The code at the start of a path, whose edition must be in the library."""
    name, _, below = path.partition("/")
    try:
        result = code(library.database, library.sources, name)
    except UnknownDocumentError:
        hint = "browse_code without a path lists them."
        raise InvalidCallError(
            "not_found", f"the library has no code {name!r}", hint=hint
        ) from None
    version = below.partition("/")[0]
    if version and all(_edition_node(each).id != f"{name}/{version}" for each in result.editions):
        versions = ", ".join(edition.version for edition in reversed(result.editions))
        message = f"the library has no edition {version!r} of {name}"
        raise InvalidCallError("not_found", message, hint=f"Its editions are: {versions}.")
    return result


def _position_listing(position: CodePosition, edition: CodeNode, parent: Code) -> CodeListing:
    above = [parent.name, edition.id, *(node.id for node in position.above)]
    return CodeListing(
        node=_node(position.node) if position.node else edition,
        above=above if position.node else [parent.name],
        children=[_node(child) for child in position.children.items],
        total_children=position.children.total or 0,
        next_offset=position.children.next_offset,
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


def _code(code: Code) -> CodeNode:
    return CodeNode(id=code.name, kind="code", label=code.title, status=None, is_leaf=False)


def _edition_node(edition: StoredEdition) -> CodeNode:
    whole = f"{edition.complete} of {edition.units} units complete, {edition.sections} sections"
    return CodeNode(
        id=ids.tree_root(edition.source, edition.version).removesuffix("/root"),
        kind="edition",
        label=f"{edition.version}: {whole}",
        status="newest" if edition.is_newest else None,
        is_leaf=False,
    )


def _node(node: Node) -> CodeNode:
    return CodeNode(
        id=node.id, kind=node.kind, label=node.label, status=node.status, is_leaf=node.is_leaf
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _SourceStates:
    """Query results for all sources, by name."""

    rows: Mapping[str, Sequence[Row[Any]]]
    successes: Mapping[str, datetime | None]
    errors: Mapping[str, int]
    without_text: Mapping[str, int]
    editions: Mapping[str, Sequence[StoredEdition]] = field(default_factory=dict)


def coverage(library: Library, owner: UUID | None) -> Coverage:
    """The coverage of every source that has documents or open errors."""
    by_code: dict[str, list[StoredEdition]] = defaultdict(list)
    for edition in editions(library.database):
        by_code[edition.source].append(edition)
    with library.database.read() as connection:
        states = _source_states(connection, by_code, visible_to(owner))
        vectors = _vectors(connection)
    registry = library.sources
    present = {*states.rows, *states.errors, *by_code}
    sources = [_source(name, registry.get(name), states) for name in sorted(present)]
    return Coverage(
        as_of=library.seams.clock.now(),
        documents=sum(source.documents for source in sources),
        sources=sources,
        not_held=sorted(set(registry) - present),
        vectors=vectors,
    )


def _source_states(
    connection: Connection,
    by_code: Mapping[str, Sequence[StoredEdition]],
    visible: ColumnElement[bool],
) -> _SourceStates:
    table, state, tasks = documents.c, ingestion_source_state.c, ingestion_tasks.c
    counts = select(
        table.source,
        table.kind,
        func.count().label("documents"),
        func.count(table.gone_at).label("withdrawn"),
        func.min(table.published_at).label("first"),
        func.max(table.published_at).label("last"),
        func.max(table.retrieved_at).label("retrieved"),
    )
    by_source: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in connection.execute(counts.where(visible).group_by(table.source, table.kind)):
        by_source[row.source].append(row)
    open_errors = select(tasks.source, func.count()).where(
        tasks.stage == "errored", tasks.resolved_at.is_(None)
    )
    queued = ingestion_normalization_queue.c
    is_queued = (queued.table_name == "documents") & (queued.record_id == table.id)
    waiting = (
        select(table.source, func.count())
        .select_from(ingestion_normalization_queue)
        .join(documents, is_queued)
        .where(visible)
    )
    return _SourceStates(
        rows=by_source,
        successes=_pairs(connection, select(state.source, state.last_success_at)),
        errors=_pairs(connection, open_errors.group_by(tasks.source)),
        without_text=_pairs(connection, waiting.group_by(table.source)),
        editions=by_code,
    )


def _pairs(connection: Connection, query: Any) -> dict[str, Any]:
    return {row[0]: row[1] for row in connection.execute(query)}


def _source(name: str, source: Registered | None, states: _SourceStates) -> SourceCoverage:
    rows = states.rows.get(name, ())
    firsts = [row.first for row in rows if row.first]
    lasts = [row.last for row in rows if row.last]
    return SourceCoverage(
        source=name,
        title=source.info.title if source else name,
        organization=source.info.organisation if source else "",
        documents=sum(row.documents for row in rows),
        withdrawn=sum(row.withdrawn for row in rows),
        kinds={row.kind: row.documents for row in rows},
        first_published=as_day(min(firsts, default=None)),
        last_published=as_day(max(lasts, default=None)),
        last_retrieved_at=max((row.retrieved for row in rows), default=None),
        last_success_at=states.successes.get(name),
        open_errors=states.errors.get(name, 0),
        waiting_for_text=states.without_text.get(name, 0),
        editions=[_edition_coverage(edition) for edition in states.editions.get(name, ())],
    )


def _edition_coverage(edition: StoredEdition) -> EditionCoverage:
    return EditionCoverage(
        edition=edition.version,
        units=edition.units,
        complete_units=edition.complete,
        sections=edition.sections,
        is_newest=edition.is_newest,
    )


def _vectors(connection: Connection) -> VectorCoverage:
    generation = current_generation(connection)
    waiting = connection.scalar(select(func.count()).select_from(ingestion_embedding_queue)) or 0
    return VectorCoverage(
        model=generation.name if generation else None,
        # All documents without vectors are in the queue, including failed ones.
        complete=generation is not None and not waiting,
        waiting=waiting,
    )
