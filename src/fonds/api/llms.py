"""`/llms.txt`: what a language model should know before it uses this library."""

from __future__ import annotations

import re
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse

from fonds.api.answers import problems
from fonds.api.desk import Desk, desk_of
from fonds.catalog.shelves import SourceHeld, sources_held
from fonds.catalog.tree import Code, codes

_ROUTES: Final = (
    ("Search", "/api/search?q={words}", "the best passages, each with a citation to paste"),
    ("Document", "/api/documents/{id}?text=true", "a document as Markdown, with its provenance"),
    ("Links", "/api/documents/{id}/links", "what it cites; `direction=cited-by` for what cites it"),
    ("Editions", "/api/documents/{id}/editions", "earlier versions, and other editions"),
    ("Codes", "/api/codes/{path}", "statutes and regulations from the top, one level at a time"),
    ("Resolve", "/api/resolve?citation={citation}", "what a citation leads to"),
    ("Cite", "/api/cite?id={id}&style=bluebook", "how to cite it; also `csl` and `bibtex`"),
    ("Compare", "/api/compare?from={id}&to={id}", "two texts, word by word"),
    ("Changes", "/api/changes?since={day}", "what was added, changed and withdrawn"),
)
_SUMMARY: Final = (
    "A library of public documents. Every answer carries the publisher, the address and a citation;"
    " quote only what a passage says, and cite it as its citation string does."
)
_RULES: Final = (
    "Ask in plain words; words in quotation marks must occur, words behind a minus sign must not."
    " A citation alone, such as 42 USC 1396a, leads straight to its document. What is not listed"
    " under Held cannot be found or ruled out here. Ids contain slashes; passages are named by"
    " document and number: fr:2026-00101#3."
)
_SPACE: Final = re.compile(r"\s+")

llms_router: Final = APIRouter(tags=["changes"])


@llms_router.get(
    "/llms.txt",
    response_class=PlainTextResponse,
    responses={200: {"description": "In the form of llms.txt."}, **problems(503)},
)
def llms(request: Request) -> PlainTextResponse:
    """What the library holds, and how to search and cite it."""
    desk = desk_of(request)
    held = sources_held(desk.library.database)
    return PlainTextResponse(
        "\n".join(_lines(desk, request, held, codes(desk.library.database))),
        headers={"Cache-Control": "max-age=300"},
    )


def _lines(desk: Desk, request: Request, held: list[SourceHeld], found: list[Code]) -> list[str]:
    def at(path: str) -> str:
        return desk.address(request, path)

    return [
        "# fonds",
        "",
        f"> {_SUMMARY}",
        "",
        _RULES,
        "",
        "## How to ask",
        "",
        *(f"- [{name}]({at(path)}): {what}" for name, path, what in _ROUTES),
        f"- [OpenAPI]({at('/openapi.json')}): every route with its answers",
        "",
        "## Held",
        "",
        *(
            f"- [{_plain(one.title)}]({at(f'/feeds/{one.name}.atom')}): {_about(one)}"
            for one in held
        ),
        *(["", "## Codes", ""] if found else []),
        *(
            f"- [{_plain(one.title)}]({at(f'/api/codes/{one.name}')}): {_editions(one)}"
            for one in found
        ),
        "",
    ]


def _about(one: SourceHeld) -> str:
    span = f", {one.first} to {one.last}" if one.first else ""
    return f"`source={one.name}`, published by {_plain(one.organisation)}{span}"


def _editions(one: Code) -> str:
    shown = ", ".join(each.version for each in one.editions)
    return f"editions {shown}" if len(one.editions) > 1 else f"edition {shown}"


def _plain(text: str) -> str:
    """On one line, and unable to end a link."""
    return _SPACE.sub(" ", text).replace("[", "(").replace("]", ")")
