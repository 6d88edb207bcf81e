"""The tools: what an agent may ask. Their docstrings are what it reads of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import AfterValidator, Field
from sqlalchemy import select

from fonds.errors import UnknownDocumentError
from fonds.library import Library
from fonds.mcp.answers import (
    CodeListing,
    Coverage,
    DocumentSlice,
    Hit,
    PassageAnswer,
    SearchResult,
)
from fonds.mcp.reading import (
    browse,
    coverage,
    document_slice,
    passage_name,
    passages_around,
    refuse_if_ambiguous,
)
from fonds.results import QuoteCheck, Resolution, RetrievalResult
from fonds.search.filters import require_source
from fonds.search.retrieve import MOST_RESULTS as RANKED
from fonds.stores.sqlite import select_in
from fonds.stores.tables import documents

MOST_RESULTS: Final = 50
MOST_CHARACTERS: Final = 50_000
MOST_NODES: Final = 200
MOST_NEIGHBOURS: Final = 5
LONGEST_QUERY: Final = 2000
LONGEST_NAME: Final = 500
LONGEST_QUOTE: Final = 20_000
_FURTHEST: Final = RANKED - MOST_RESULTS - 1
"""An agent that pages further should narrow its question down."""
_LAST_CHARACTER: Final = 2**31 - 1


def _without_nul(text: str) -> str:
    # PostgreSQL refuses it in any text, and no document holds one.
    if "\0" in text:
        raise ValueError("must not hold NUL characters")
    return text


_Plain = AfterValidator(_without_nul)
_Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), _Plain]
_Names = Annotated[tuple[_Name, ...], Field(max_length=50)]
_Mode = Literal["hybrid", "lexical", "semantic"]
_Day = Annotated[date | None, Field(description="YYYY-MM-DD")]


class Tools:
    """All tools over one library; each call is independent of all others.

    `whose` tells for each of them whose uploads may be seen beside what is public.
    """

    def __init__(self, library: Library, whose: Callable[[], UUID | None]) -> None:
        self._library = library
        self._whose = whose

    def search(
        self,
        query: Annotated[str, Field(min_length=1, max_length=LONGEST_QUERY), _Plain],
        *,
        sources: Annotated[_Names, Field(description="As list_sources names them.")] = (),
        kinds: Annotated[_Names, Field(description="As list_sources names them.")] = (),
        organizations: Annotated[_Names, Field(description="Parts of issuers' names.")] = (),
        since: Annotated[_Day, Field(description="First day of publication.")] = None,
        until: Annotated[_Day, Field(description="Last day of publication.")] = None,
        under: Annotated[
            _Name | None, Field(description="Only below this node: usc/2024/root/title-42.")
        ] = None,
        edition: Annotated[
            _Name | None, Field(description="Sections of this edition of codes, not the newest.")
        ] = None,
        mode: Annotated[
            _Mode | None,
            Field(description="By words, by meaning, or by both (the default)."),
        ] = None,
        limit: Annotated[int, Field(ge=1, le=MOST_RESULTS)] = 10,
        offset: Annotated[int, Field(ge=0, le=_FURTHEST)] = 0,
    ) -> SearchResult:
        """Find passages for a question, one for each document, best first.

        Begin here unless you have a citation (resolve_citation) or look for a place in a code
        (browse_code). Ask in plain words; "quoted phrases" must occur, -words must not. A citation
        typed as the query finds its document. Each result has a snippet, the passage's name for
        get_passage, and a citation: give `citation_string` and `url` for whatever you take from
        it. Read the passage before you quote it, for snippets are shortened. Nothing found means
        that the library does not hold it: list_sources says what is held, and as of when.
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
            "owner": self._whose(),
        }
        found = _found(
            self._library, query, filters=filters, mode=mode, limit=limit + 1, offset=offset
        )
        hits = _hits(self._library, found[:limit])
        return SearchResult(
            results=hits,
            next_offset=offset + limit if len(found) > limit else None,
            note="" if found else "Nothing found; list_sources says what is held.",
        )

    def get_document(
        self,
        document: Annotated[_Name, Field(description="Its id, or another name: 91 FR 1201.")],
        offset: Annotated[int, Field(ge=0, le=_LAST_CHARACTER)] = 0,
        length: Annotated[int, Field(ge=1, le=MOST_CHARACTERS)] = 20_000,
    ) -> DocumentSlice:
        """Read a document: what it is, how to cite it, and its text as Markdown.

        Long texts come in slices: ask again with `next_offset` until it is null. If you need only
        what surrounds a search result, get_passage is shorter.
        """
        return document_slice(self._library, document, offset, length, self._whose())

    def get_passage(
        self,
        passage: Annotated[_Name, Field(description="fr:2026-00101#3, or the passage's UUID.")],
        around: Annotated[
            int, Field(ge=0, le=MOST_NEIGHBOURS, description="Neighbours on each side.")
        ] = 0,
    ) -> PassageAnswer:
        """Read one passage in full, as a search result names it, with neighbours if you like.

        Quote from here, and cite with `citation_string`, `url` and the locator (section, headings,
        page). `retrieved_at` and `raw_sha256` say which bytes of the publisher it was made from.
        """
        return passages_around(self._library, passage, around, self._whose())

    def browse_code(
        self,
        path: Annotated[
            _Name | None, Field(description="A code, an edition or a node; left out: all codes.")
        ] = None,
        offset: Annotated[int, Field(ge=0, le=_LAST_CHARACTER)] = 0,
        limit: Annotated[int, Field(ge=1, le=MOST_NODES)] = 100,
    ) -> CodeListing:
        """Walk statutes and regulations from the top: codes, editions, titles, chapters, sections.

        Without a path it lists the codes that are held; give any `id` it shows to go down. A leaf
        is a text: read it with get_document. Use it to see what stands beside a section, or to
        find an id for the `under` of search.
        """
        return browse(self._library, path, offset, limit)

    def resolve_citation(
        self,
        citation: Annotated[_Name, Field(description="42 U.S.C. § 1396a(a)(10), 91 FR 1201, …")],
        as_of: Annotated[
            _Day, Field(description="Of several editions, the one of that day.")
        ] = None,
    ) -> Resolution:
        """Find what a citation names: a section, a page of the register, a bill, a law, a report.

        Takes a citation as people write it, an id, or any other name. The answer has the document,
        its edition and all editions held, and the passage that a pinpoint such as (a)(10) leads to.
        `found` is false if nothing held fits (`problem` and `message` say why) or if several do:
        then choose among `candidates`. Read the text with get_document or get_passage (`ID#n`).
        """
        return self._library.resolve(citation, as_of=as_of, owner=self._whose())

    def check_quote(
        self,
        cite: Annotated[_Name, Field(description="Where the words are said to stand.")],
        text: Annotated[
            str,
            Field(min_length=1, max_length=LONGEST_QUOTE, description="The words quoted."),
            _Plain,
        ],
        as_of: Annotated[
            _Day, Field(description="Of several editions, the one of that day.")
        ] = None,
    ) -> QuoteCheck:
        """Check that a document says what is quoted from it; do so before you quote.

        `exact`: the words stand there, at `start` to `end`. `changed`: they stand in another
        edition or an earlier version, and `changed_in` or `changed_at` says since when they no
        longer do. `not_found`: they stand nowhere; `closest` is what comes nearest, with a redline.
        An ellipsis stands for words left out, and [brackets] for what was altered.
        """
        owner = self._whose()
        try:
            return self._library.check_quote(cite, text, as_of=as_of, owner=owner)
        except UnknownDocumentError:
            refuse_if_ambiguous(self._library.resolve(cite, as_of=as_of, owner=owner))
            raise

    def list_sources(self) -> Coverage:
        """Say what the library holds: documents of each source, from when to when, how complete.

        Ask before you conclude that something does not exist: what is not held cannot be found.
        `last_success_at` says as of when a source is up to date, `open_errors` what is known to be
        missing, `editions` which editions of a code are held.
        """
        return coverage(self._library, self._whose())


def _found(
    library: Library,
    query: str,
    *,
    filters: dict[str, Any],
    mode: _Mode | None,
    limit: int,
    offset: int,
) -> list[RetrievalResult]:
    return library.search(query, **filters, mode=mode, limit=limit, offset=offset)


def _hits(library: Library, found: list[RetrievalResult]) -> list[Hit]:
    table = documents.c
    query = select(table.id, table.retrieved_at, table.raw_sha256)
    with library.database.read() as connection:
        wanted = [result.id for result in found]
        heads = {row.id: row for row in select_in(connection, query, table.id, wanted)}
    return [
        Hit(
            id=result.id,
            snippet=result.snippet,
            citation=result.citation,
            passage=_passage(result),
            retrieved_at=heads[result.id].retrieved_at,
            raw_sha256=heads[result.id].raw_sha256,
        )
        for result in found
        if result.id in heads
    ]


def _passage(result: RetrievalResult) -> str | None:
    locator = result.citation.locator
    if locator is None or locator.passage is None:
        return None
    return passage_name(result.id, locator.passage)
