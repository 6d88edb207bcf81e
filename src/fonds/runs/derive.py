"""What is computed from a parsed record before it is written: identity of content, passages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fonds import ids
from fonds.chunk.splitter import CHUNKER_NAME, CHUNKER_VERSION, Chunker, whole_document_chunk
from fonds.citations.forms import may_be_citation
from fonds.model import Chunk, Document, NormalizedBody, ParsedRecord
from fonds.stores.documents import Writing
from fonds.stores.passages import Passages


def writing_of(record: ParsedRecord, task_key: str, chunker: Chunker) -> Writing:
    """The document of a record, with the hash over all the record says."""
    assert record.document is not None
    document = _with_citable_names(record.document)
    body = document.body
    text = body.normalized if body else None
    text_sha256 = ids.text_sha256(text.markdown) if text else None
    # A body that is still to be normalized is known by its bytes.
    body_sha256 = text_sha256 or (body.archived.sha256 if body else None)
    content = [_record_content(record), _document_content(document), body_sha256]
    return Writing(
        document=document,
        content_sha256=ids.json_sha256(content),
        body_text_sha256=text_sha256,
        recipe=recipe_of(body.normalizer if body else None, chunker),
        task_key=task_key,
    )


def _with_citable_names(document: Document) -> Document:
    """The document, also called as citations of it are compared: `42 USC 1396a`."""
    names = list(filter(may_be_citation, (*document.aliases, document.citation_string)))
    if not names:
        return document
    from fonds.citations.extract import canonical_form  # noqa: PLC0415 — many patterns

    forms = filter(None, map(canonical_form, names))
    return replace(document, aliases=tuple(dict.fromkeys((*document.aliases, *forms))))


def passages_of(document: Document, chunker: Chunker) -> Passages:
    """The document's passages; title and summary where it has no text, or none yet."""
    if document.body is not None and document.body.normalized is None:
        stopgap = whole_document_chunk(document.title, document.summary, is_stopgap=True)
        return _passages(document.id, document.title, [stopgap])
    text = document.body.normalized if document.body else None
    return passages_of_text(document.id, document.title, document.summary, text, chunker)


def passages_of_text(
    document_id: str,
    title: str,
    summary: str | None,
    text: NormalizedBody | None,
    chunker: Chunker,
) -> Passages:
    """The passages of a text that belongs to a document."""
    chunks = chunker.chunk(text) if text else []
    return _passages(document_id, title, chunks or [whole_document_chunk(title, summary)])


def _passages(document_id: str, title: str, chunks: list[Chunk]) -> Passages:
    return Passages(
        document_uid=ids.document_uid(document_id),
        title=title,
        chunks=chunks,
        chunker_name=CHUNKER_NAME,
        chunker_version=CHUNKER_VERSION,
    )


def recipe_of(normalizer: str | None, chunker: Chunker) -> str:
    """What derived a document's text and passages."""
    return f"{normalizer or '-'} {chunker_label(chunker)}"


def chunker_label(chunker: Chunker) -> str:
    """Name, version and sizes: everything that decides where passages begin and end."""
    sizes = f"{chunker.max_tokens}/{chunker.overlap_tokens}"
    return f"{CHUNKER_NAME}@{CHUNKER_VERSION}:{sizes}"


def _record_content(record: ParsedRecord) -> list[Any]:
    children = [_record_content(child) for child in record.children]
    return [record.table, record.key, dict(record.payload), children]


def _document_content(document: Document) -> list[Any]:
    """What the publisher says; when and from where we got it is no part of it."""
    return [
        document.kind,
        document.title,
        document.summary,
        document.source_url,
        document.source_org,
        document.published_at,
        document.citation_string,
        sorted(document.aliases),
    ]
