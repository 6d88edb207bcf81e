"""Codes from the top down: codes, their editions, and the tree of each."""

from __future__ import annotations

from collections.abc import Sequence

from fonds import ids
from fonds.catalog.tree import Code, Node, Place, code, codes, place
from fonds.codes.outline import EditionHeld
from fonds.errors import UnknownDocumentError
from fonds.library import Library
from fonds.mcp.answers import CodeListing, CodeNode
from fonds.mcp.problems import RefusedError


def browse(library: Library, path: str | None, offset: int, limit: int) -> CodeListing:
    """What stands below a code, an edition or a node; without a path, the codes."""
    asked = (path or "").strip("/")
    if not asked:
        return _listing(None, (), [_code(one) for one in codes(library.database)], offset, limit)
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
        known = code(library.database, name)
    except UnknownDocumentError:
        hint = "browse_code without a path lists them."
        raise RefusedError("not_found", f"no code {name!r} is held", hint=hint) from None
    version = below.partition("/")[0]
    if version and all(_edition_node(one).id != f"{name}/{version}" for one in known.editions):
        held = ", ".join(one.version for one in reversed(known.editions))
        message = f"of {name} there is no edition {version!r}"
        raise RefusedError("not_found", message, hint=f"The editions held are: {held}.")
    return known


def _below(found: Place, edition: CodeNode, known: Code) -> CodeListing:
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
