"""The MCP tools; their docstrings are the descriptions that agents read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import AfterValidator, Field
from sqlalchemy import select

from fonds.errors import UnknownDocumentError
from fonds.library import Library
from fonds.mcp.reading import (
    browse,
    coverage,
    document_slice,
    passage_name,
    passages_around,
    refuse_if_ambiguous,
)
from fonds.mcp.schemas import (
    CodeListing,
    Coverage,
    DocumentSlice,
    Hit,
    PassageResult,
    SearchResult,
)
from fonds.results import QuoteCheck, Resolution, RetrievalResult
from fonds.search.filters import require_source
from fonds.search.retrieve import MAX_PER_DOCUMENT, PER_DOCUMENT
from fonds.search.retrieve import MAX_RESULTS as MAX_RANKED
from fonds.stores.sqlite import select_in
from fonds.stores.tables import documents

MAX_RESULTS: Final = 50
MAX_CHARACTERS: Final = 50_000
MAX_NODES: Final = 200
MAX_NEIGHBOURS: Final = 5
MAX_QUERY_LENGTH: Final = 2000
MAX_NAME_LENGTH: Final = 500
MAX_QUOTE_LENGTH: Final = 20_000
_MAX_OFFSET: Final = MAX_RANKED - MAX_RESULTS - 1
"""An agent that needs later results should narrow its query."""
_MAX_POSITION: Final = 2**31 - 1


def _without_nul(text: str) -> str:
    # PostgreSQL rejects NUL in text.
    if "\0" in text:
        raise ValueError("must not contain NUL characters")
    return text


_NoNul = AfterValidator(_without_nul)
_Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH), _NoNul]
_Names = Annotated[tuple[_Name, ...], Field(max_length=50)]
_Mode = Literal["hybrid", "lexical", "semantic"]
_Day = Annotated[date | None, Field(description="YYYY-MM-DD")]


class Tools:
    """The tools of one library.

    `current_owner` returns the user of a call, whose uploads are visible to it.
    """

    def __init__(self, library: Library, current_owner: Callable[[], UUID | None]) -> None:
        self._library = library
        self._current_owner = current_owner

    def search(
        self,
        query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_LENGTH), _NoNul],
        *,
        sources: Annotated[_Names, Field(description="Names from list_sources.")] = (),
        kinds: Annotated[_Names, Field(description="Names from list_sources.")] = (),
        organizations: Annotated[
            _Names, Field(description="Parts of names of issuing organizations.")
        ] = (),
        since: Annotated[_Day, Field(description="First day of publication.")] = None,
        until: Annotated[_Day, Field(description="Last day of publication.")] = None,
        under: Annotated[
            _Name | None,
            Field(description="Only documents below this node: usc/2024/root/title-42."),
        ] = None,
        edition: Annotated[
            _Name | None,
            Field(description="Sections of this edition of codes instead of the newest."),
        ] = None,
        document: Annotated[
            _Name | None,
            Field(description="Search inside this document (an id or another name)."),
        ] = None,
        mode: Annotated[
            _Mode | None,
            Field(
                description="Lexical by words, semantic by meaning, hybrid (the default) by both."
            ),
        ] = None,
        limit: Annotated[int, Field(ge=1, le=MAX_RESULTS)] = 10,
        offset: Annotated[int, Field(ge=0, le=_MAX_OFFSET)] = 0,
        per_document: Annotated[
            int, Field(ge=1, le=MAX_PER_DOCUMENT, description="Passages of each document.")
        ] = PER_DOCUMENT,
    ) -> SearchResult:
        """Find the best documents for a query with their best passages, best first.

        Start here unless you have a citation (resolve_citation) or want to navigate a code
        (browse_code). Search in plain words; "quoted phrases" must occur, -words must not. A
        citation as the query returns its document. Each result has a snippet, the name of the
        passage for get_passage, and a citation: give `citation_string` and `url` for everything
        you use. Read the passage before you quote it, since snippets are shortened. Documents
        without a result may exist elsewhere: list_sources shows what this library contains. With
        `document` each result is a passage of it: use this to read long documents.
        """
        names = [require_source(name, self._library.sources) for name in sources]
        filters = {
            "sources": names,
            "kinds": kinds,
            "organizations": organizations,
            "since": since,
            "until": until,
            "under": under,
            "edition": edition,
            "document": document,
            "owner": self._current_owner(),
            "mode": mode,
            "per_document": per_document,
        }
        matches = _search(self._library, query, filters, limit=limit + 1, offset=offset)
        hits = _hits(self._library, matches[:limit])
        return SearchResult(
            results=hits,
            next_offset=offset + limit if len(matches) > limit else None,
            note="" if matches else "No results; list_sources shows what the library contains.",
        )

    def get_document(
        self,
        document: Annotated[_Name, Field(description="An id or another name: 91 FR 1201.")],
        offset: Annotated[int, Field(ge=0, le=_MAX_POSITION)] = 0,
        length: Annotated[int, Field(ge=1, le=MAX_CHARACTERS)] = 20_000,
    ) -> DocumentSlice:
        """Read a document: metadata, citation, and its text as Markdown.

        Long texts are returned in slices: repeat the call with `next_offset` until it is null. For
        the context of a search result, get_passage is shorter.
        """
        return document_slice(self._library, document, offset, length, self._current_owner())

    def get_passage(
        self,
        passage: Annotated[_Name, Field(description="fr:2026-00101#3, or the passage's UUID.")],
        around: Annotated[
            int, Field(ge=0, le=MAX_NEIGHBOURS, description="Neighbours on each side.")
        ] = 0,
    ) -> PassageResult:
        """Read one passage in full by its name in a search result, optionally with neighbours.

        Quote this text, and cite it with `citation_string`, `url` and the locator (section,
        headings, page). `page` is printed on the page, `pdf_page` counts the pages of a PDF from 1;
        where they differ, write "p. 12 (PDF page 14)". `retrieved_at` and `raw_sha256` identify the
        publisher's file.
        """
        return passages_around(self._library, passage, around, self._current_owner())

    def browse_code(
        self,
        path: Annotated[
            _Name | None, Field(description="A code, an edition or a node; without it, all codes.")
        ] = None,
        offset: Annotated[int, Field(ge=0, le=_MAX_POSITION)] = 0,
        limit: Annotated[int, Field(ge=1, le=MAX_NODES)] = 100,
    ) -> CodeListing:
        """Navigate statutes and regulations: codes, editions, titles, chapters, sections.

        Without a path it lists all codes; pass an `id` from the result to go down. A leaf has a
        text: read it with get_document. Use this to see the neighbours of a section, or to find an
        id for `under` in search.
        """
        return browse(self._library, path, offset, limit)

    def resolve_citation(
        self,
        citation: Annotated[_Name, Field(description="42 U.S.C. § 1396a(a)(10), 91 FR 1201, …")],
        as_of: Annotated[
            _Day, Field(description="Of several editions, the one in force on that day.")
        ] = None,
    ) -> Resolution:
        """Look up a citation: a section, a page of the register, a bill, a law, a report.

        Accepts a citation as people write it, an id, or any other name. The result has the
        document, its edition, all editions in the library, and the passage of a pinpoint such as
        (a)(10). `found` is false if no document matches (`problem` and `message` give the reason)
        or if several do: then choose one of `candidates`. Read the text with get_document or
        get_passage (`ID#n`).
        """
        return self._library.resolve(citation, as_of=as_of, owner=self._current_owner())

    def check_quote(
        self,
        cite: Annotated[_Name, Field(description="The citation or id of the quoted document.")],
        text: Annotated[
            str,
            Field(min_length=1, max_length=MAX_QUOTE_LENGTH, description="The quoted words."),
            _NoNul,
        ],
        as_of: Annotated[
            _Day, Field(description="Of several editions, the one in force on that day.")
        ] = None,
    ) -> QuoteCheck:
        """Verify that a document contains a quotation; do this before you quote.

        `exact`: the words are there, from `start` to `end`. `changed`: they are in another edition
        or an earlier version; `changed_in` or `changed_at` tells when they were changed.
        `not_found`: they are in none; `closest` is the most similar text, with a redline. An
        ellipsis marks omitted words, and [brackets] mark altered ones.
        """
        owner = self._current_owner()
        try:
            return self._library.check_quote(cite, text, as_of=as_of, owner=owner)
        except UnknownDocumentError:
            refuse_if_ambiguous(self._library.resolve(cite, as_of=as_of, owner=owner))
            raise

    def list_sources(self) -> Coverage:
        """List the contents of the library: documents, period and completeness of each source.

        Call this before you conclude that something does not exist: documents that were not loaded
        cannot be found. `last_success_at` is the time to which a source is complete, `open_errors`
        counts items known to be missing, and `editions` lists the loaded editions of a code.
        """
        return coverage(self._library, self._current_owner())


def _search(
    library: Library, query: str, options: dict[str, Any], *, limit: int, offset: int
) -> list[RetrievalResult]:
    return library.search(query, **options, limit=limit, offset=offset)


def _hits(library: Library, results: list[RetrievalResult]) -> list[Hit]:
    table = documents.c
    query = select(table.id, table.retrieved_at, table.raw_sha256)
    with library.database.read() as connection:
        result_ids = [result.id for result in results]
        heads = {row.id: row for row in select_in(connection, query, table.id, result_ids)}
    return [
        Hit(
            id=result.id,
            snippet=result.snippet,
            citation=result.citation,
            passages=result.passages,
            more_passages=result.more_passages,
            passage=_passage(result),
            retrieved_at=heads[result.id].retrieved_at,
            raw_sha256=heads[result.id].raw_sha256,
        )
        for result in results
        if result.id in heads
    ]


def _passage(result: RetrievalResult) -> str | None:
    locator = result.citation.locator
    if locator is None or locator.passage is None:
        return None
    return passage_name(result.id, locator.passage)
