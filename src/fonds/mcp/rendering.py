"""Answers as short texts, for clients that show an agent no structured content."""

from __future__ import annotations

from functools import singledispatch

from pydantic import BaseModel

from fonds.mcp.answers import (
    CodeListing,
    CodeNode,
    Coverage,
    DocumentHead,
    DocumentSlice,
    Hit,
    PassageAnswer,
    SearchAnswer,
    SourceCoverage,
)
from fonds.mcp.reading import passage_name
from fonds.results import ChunkLocator, QuoteCheck, Resolution


@singledispatch
def render(answer: BaseModel) -> str:
    """The answer in words."""
    return answer.model_dump_json(indent=1, exclude_none=True)


@render.register
def _(answer: SearchAnswer) -> str:
    blocks = [_hit(number, hit) for number, hit in enumerate(answer.results, start=1)]
    more = f"More from offset {answer.next_offset}." if answer.next_offset is not None else ""
    return _blocks(*blocks, answer.note, more)


@render.register
def _(answer: DocumentSlice) -> str:
    end = answer.offset + len(answer.text)
    where = f"Characters {answer.offset}–{end} of {answer.total_characters}"
    more = f"; more from offset {answer.next_offset}" if answer.next_offset is not None else ""
    return _blocks(_head(answer.document), f"{where}{more}.", answer.text)


@render.register
def _(answer: PassageAnswer) -> str:
    texts = [
        _lines(f"[{one.id}] {_place(one.citation.locator)}".strip(), one.text)
        for one in answer.passages
    ]
    return _blocks(_head(answer.document), *texts)


@render.register
def _(answer: CodeListing) -> str:
    above = " › ".join([*answer.above, answer.node.id]) if answer.node else "Codes held"
    more = f"More from offset {answer.next_offset}." if answer.next_offset is not None else ""
    if answer.node and answer.node.is_leaf:
        more = f"This is a text: get_document {answer.node.id}"
    label = _node(answer.node) if answer.node else ""
    children = [f"- {_node(child)} [{child.id}]" for child in answer.children]
    return _lines(above, label, *children, more)


@render.register
def _(answer: Coverage) -> str:
    vectors = answer.vectors
    meaning = (
        "Nothing is embedded: search goes by words alone."
        if vectors.model is None
        else f"Vectors ({vectors.model}) are complete."
        if vectors.complete
        else f"Vectors ({vectors.model}) are missing for some passages."
    )
    absent = f"Not held: {', '.join(answer.not_held)}." if answer.not_held else ""
    title = f"{answer.documents} documents as of {answer.as_of:%Y-%m-%d %H:%M} UTC."
    return _lines(title, *map(_source, answer.sources), absent, meaning)


@render.register
def _(answer: Resolution) -> str:
    lines = [answer.message]
    if answer.document:
        lines.append(f"Cite: {answer.document.citation_string} {answer.document.url}")
        lines.append(_at(answer.document.id, answer.passage, answer.locator))
    if answer.editions:
        lines.append(f"Editions held: {', '.join(one.edition or '' for one in answer.editions)}.")
    lines += [f"- {one.title} [{one.id}]" for one in answer.candidates]
    return _lines(*lines)


@render.register
def _(answer: QuoteCheck) -> str:
    where = answer.found_in or answer.document
    lines = [
        f"{answer.verdict}: {answer.message}",
        f"Cite: {where.citation_string} {where.url}",
        _at(where.id, answer.passage, answer.locator),
    ]
    if answer.closest:
        lines.append(f"Closest: {answer.closest.text}")
    return _lines(*lines)


def _at(document_id: str, passage: int | None, locator: ChunkLocator | None) -> str:
    if passage is None:
        return f"Document: {document_id}"
    return f"Passage: {passage_name(document_id, passage)} {_place(locator)}".strip()


def _hit(number: int, hit: Hit) -> str:
    citation = hit.citation
    return _lines(
        f"{number}. {citation.title}",
        _place(citation.locator),
        hit.snippet,
        f"Cite: {citation.citation_string} {citation.url}",
        f"Passage: {hit.passage}" if hit.passage else f"Document: {hit.id}",
    )


def _head(head: DocumentHead) -> str:
    citation = head.citation
    older = " (not the newest held)" if head.is_newest_edition is False else ""
    return _lines(
        citation.title,
        f"Document: {head.id} ({head.kind}, {citation.organization})",
        f"Edition: {head.edition}{older}" if head.edition else "",
        f"Withdrawn by its publisher, as seen {head.withdrawn_at:%Y-%m-%d}."
        if head.withdrawn_at
        else "",
        f"Cite: {citation.citation_string} {citation.url}",
        f"Retrieved {head.retrieved_at:%Y-%m-%d}, sha256 {head.raw_sha256}",
    )


def _place(locator: ChunkLocator | None) -> str:
    if locator is None:
        return ""
    page = [f"page {locator.page}"] if locator.page else []
    return " › ".join([*locator.heading_path, *locator.enumeration, *page])


def _node(node: CodeNode) -> str:
    return f"{node.label} ({node.status})" if node.status else node.label


def _source(one: SourceCoverage) -> str:
    days = f", published {one.first_published} to {one.last_published}"
    facts = [
        f"- {one.source} ({one.title}): {one.documents} documents",
        days if one.first_published else "",
        f", up to date as of {one.last_success_at:%Y-%m-%d}" if one.last_success_at else "",
        f", editions {', '.join(each.edition for each in one.editions)}" if one.editions else "",
        f"; {one.open_errors} items could not be loaded" if one.open_errors else "",
        f"; {one.waiting_for_text} texts still to be made" if one.waiting_for_text else "",
    ]
    return "".join(facts)


def _lines(*lines: str) -> str:
    return "\n".join(line for line in lines if line)


def _blocks(*blocks: str) -> str:
    return "\n\n".join(block for block in blocks if block)
