"""Codes from the top down: codes, their editions, and the tree of each."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from fonds import ids
from fonds.codes.outline import Branch, EditionHeld, editions, tree
from fonds.library import Library
from fonds.mcp.answers import CodeListing, CodeNode
from fonds.mcp.problems import RefusedError
from fonds.sources.registry import all_codes
from fonds.stores.batches import select_in
from fonds.stores.tables import nodes


def browse(library: Library, path: str | None, offset: int, limit: int) -> CodeListing:
    """What stands below a code, an edition or a node; without a path, the codes."""
    held = editions(library.database)
    parts = (path or "").strip("/").split("/")
    code, version = parts[0], parts[1] if len(parts) > 1 else ""
    if not code:
        return _listing(None, (), _codes(held), offset, limit)
    mine = [one for one in held if one.source == code]
    if not mine:
        raise RefusedError(
            "not_found", f"no code {code!r} is held", hint="browse_code without a path lists them."
        )
    if not version:
        return _listing(_code(code), (), [*map(_edition, mine)], offset, limit)
    edition = next((one for one in mine if _edition(one).id == f"{code}/{version}"), None)
    if edition is None:
        known = ", ".join(one.version for one in mine)
        message = f"of {code} there is no edition {version!r}"
        raise RefusedError("not_found", message, hint=f"The editions held are: {known}.")
    if parts[2:] in ([], ["root"]):
        tops = tree(library.database, code, version, depth=1)
        return _listing(_edition(edition), (code,), _nodes(library, tops), offset, limit)
    return _below(library, edition, "/".join(parts), offset, limit)


def _below(
    library: Library, edition: EditionHeld, path: str, offset: int, limit: int
) -> CodeListing:
    code, version = edition.source, edition.version
    (branch,) = tree(library.database, code, version, path, depth=1)
    children = branch.children[offset : offset + limit]
    node, *shown = _nodes(library, [branch, *children])
    return CodeListing(
        node=node,
        above=_above(edition, branch.id),
        children=shown,
        total_children=len(branch.children),
        next_offset=_next(offset, limit, len(branch.children)),
    )


def _above(edition: EditionHeld, node_id: str) -> list[str]:
    root = ids.tree_root(edition.source, edition.version)
    between = []
    above = ids.tree_parent(node_id)
    while above is not None and above != root:
        between.append(above)
        above = ids.tree_parent(above)
    return [edition.source, _edition(edition).id, *reversed(between)]


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


def _codes(held: Sequence[EditionHeld]) -> list[CodeNode]:
    return [_code(name) for name in dict.fromkeys(one.source for one in held)]


def _code(name: str) -> CodeNode:
    known = all_codes().get(name)
    label = known.info.title if known else name
    return CodeNode(id=name, kind="code", label=label, status=None, is_leaf=False)


def _edition(one: EditionHeld) -> CodeNode:
    whole = f"{one.complete} of {one.units} units complete, {one.sections} sections"
    return CodeNode(
        id=ids.tree_root(one.source, one.version).removesuffix("/root"),
        kind="edition",
        label=f"{one.version}: {whole}",
        status="newest" if one.is_newest else None,
        is_leaf=False,
    )


def _nodes(library: Library, branches: Sequence[Branch]) -> list[CodeNode]:
    query = select(nodes.c.id).where(nodes.c.body_ref.is_not(None))
    with library.database.read() as connection:
        known = [branch.id for branch in branches]
        leaves = {row.id for row in select_in(connection, query, nodes.c.id, known)}
    return [
        CodeNode(
            id=branch.id,
            kind=branch.kind,
            label=branch.label,
            status=branch.status,
            is_leaf=branch.id in leaves,
        )
        for branch in branches
    ]
