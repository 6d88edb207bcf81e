"""The plan of a unit: its nodes in reading order, in batches, stored as a blob.

A plan is written once and read line by line. The first line describes the unit. Every further line
is a batch: some nodes, and the ancestors of the first one, so that a batch can be executed without
the others. The plan determines which section is in which pack.

The rows of `code_units` contain the state of each planned unit, and its newest edition.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

from sqlalchemy import Connection, Row, case, select, update

from fonds import ids
from fonds.codes.tree import ROOT, Tree, Walked
from fonds.model import Archived
from fonds.sources.jurisdiction import Leaf, Span, Step
from fonds.stores.columns import format_timestamp
from fonds.stores.database import insert_ignoring
from fonds.stores.tables import code_units

BATCH_NODES: Final = 250
"""Rows written together."""
BATCH_PAGES: Final = 50
"""Bodies that are separate pages: each is a request, and a pack is fetched as a whole."""
BATCH_BYTES: Final = 1 << 20
"""Size of the bodies cut out of one file; a larger body is a batch of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanHead:
    """The first line of a plan."""

    id: str
    """The id of the unit's root."""
    source: str
    version: str
    unit: str
    """Its name in every edition: `title-42`."""
    label: str
    published_at: str | None
    adapter: str
    """Name and version of the adapter that walked the unit."""
    pages: tuple[tuple[str, Archived], ...]
    """All walked pages, by name."""
    nodes: int
    shards: int
    bytes: int
    """Size of the bodies that are parts of walked pages."""
    fetches: int
    """Number of bodies that are separate pages."""
    batches: int

    @property
    def input_sha256(self) -> str:
        """A hash of all walked pages."""
        return ids.json_sha256([[name, archived.sha256] for name, archived in self.pages])


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """One node of a batch."""

    id: str
    position: int
    """Position in reading order within the unit."""
    path: str
    """The segments below the edition's root."""
    kind: str
    number: str
    label: str
    identifier: str
    status: str
    page: str | None
    """The page with its text; None for a container."""
    span: Span | None
    lineage: tuple[Step, ...]

    @property
    def is_leaf(self) -> bool:
        """Whether it has a text of its own."""
        return self.page is not None

    def leaf(self, head: PlanHead) -> Leaf:
        """The leaf that is passed to the adapter."""
        return Leaf(
            id=self.id,
            version=head.version,
            kind=self.kind,
            number=self.number,
            label=self.label,
            identifier=self.identifier,
            status=self.status,
            lineage=self.lineage,
            page=self.page or "",
            published_at=head.published_at,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeBatch:
    """Nodes that are written together; their bodies are in one pack."""

    number: int
    nodes: tuple[PlannedNode, ...]

    @property
    def leaves(self) -> list[PlannedNode]:
        """The nodes with a body."""
        return [node for node in self.nodes if node.is_leaf]


def head_of(walked: Walked, *, source: str, version: str, adapter: str, above: str) -> PlanHead:
    """The head of the plan of a walked unit."""
    tree = walked.tree
    root = tree.id(ROOT)
    # One pass without lists: a hundred thousand small objects need as much memory as the tree.
    shards = fetches = size = 0
    whole_pages: set[str] = set()
    for node in range(len(tree)):
        if tree.is_leaf(node):
            shards += 1
            is_walked = tree.page(node) in walked.pages
            fetches += not is_walked
            if (span := tree.span(node)) is not None:
                size += span.length
            elif is_walked:
                whole_pages.add(tree.page(node))
    size += sum(walked.pages[name].archived.size for name in whole_pages)
    return PlanHead(
        id=root,
        source=source,
        version=version,
        unit=root.removeprefix(f"{above}/"),
        label=tree.label(ROOT),
        published_at=walked.published_at,
        adapter=adapter,
        pages=tuple((name, page.archived) for name, page in sorted(walked.pages.items())),
        nodes=len(tree),
        shards=shards,
        bytes=size,
        fetches=fetches,
        batches=sum(1 for _ in _cut(tree, walked)),
    )


def plan_lines(walked: Walked, head: PlanHead) -> Iterator[bytes]:
    """The lines of a plan."""
    yield _line(_head_to_json(head))
    tree = walked.tree
    for batch in _cut(tree, walked):
        above = [[tree.segment(node), *_step(tree, node)] for node in _ancestors(tree, batch[0])]
        nodes = [_node(tree, node, len(_ancestors(tree, node))) for node in batch]
        yield _line({"above": above, "nodes": nodes})


def read_head(line: bytes) -> PlanHead:
    """Read the first line of a plan."""
    values = json.loads(line)
    pages = tuple((name, _archived(page)) for name, page in values.pop("pages"))
    return PlanHead(**values, pages=pages)


def read_batches(head: PlanHead, lines: Iterable[bytes]) -> Iterator[NodeBatch]:
    """Read the other lines of a plan, one batch at a time."""
    base = head.id.removesuffix(head.unit).rstrip("/")
    position = 0
    for number, line in enumerate(lines):
        nodes = tuple(_read_nodes(json.loads(line), base, position))
        position += len(nodes)
        yield NodeBatch(number=number, nodes=nodes)


# Cutting ----------------------------------------------------------------------------------


def _cut(tree: Tree, walked: Walked) -> Iterator[list[int]]:
    """Nodes in reading order, in batches that are written together."""
    batch: list[int] = []
    size = fetches = 0
    for node in tree.in_reading_order():
        span = tree.span(node)
        length = span.length if span else 0
        fetch = tree.is_leaf(node) and tree.page(node) not in walked.pages
        too_long = size + length > BATCH_BYTES and size
        if len(batch) == BATCH_NODES or too_long or fetches + fetch > BATCH_PAGES:
            yield batch
            batch, size, fetches = [], 0, 0
        batch.append(node)
        size += length
        fetches += fetch
    if batch:
        yield batch


def _ancestors(tree: Tree, node: int) -> list[int]:
    """The ancestors of a node, from the unit's root down."""
    above: list[int] = []
    parent = tree.parent(node)
    while parent is not None:
        above.append(parent)
        parent = tree.parent(parent)
    return above[::-1]


# Lines ------------------------------------------------------------------------------------


def _line(value: Any) -> bytes:
    line = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return line.encode("utf-8", "surrogatepass") + b"\n"


def _head_to_json(head: PlanHead) -> dict[str, Any]:
    pages = [[name, _page(archived)] for name, archived in head.pages]
    return {**asdict(replace(head, pages=())), "pages": pages}


def _page(archived: Archived) -> dict[str, Any]:
    return {**asdict(archived), "retrieved_at": format_timestamp(archived.retrieved_at)}


def _archived(values: dict[str, Any]) -> Archived:
    retrieved_at = datetime.fromisoformat(values["retrieved_at"])
    return Archived(**{**values, "retrieved_at": retrieved_at})


def _step(tree: Tree, node: int) -> list[str]:
    return [tree.kind(node), tree.number(node), tree.label(node)]


def _node(tree: Tree, node: int, depth: int) -> list[Any]:
    span = tree.span(node)
    return [
        depth,
        tree.segment(node),
        *_step(tree, node),
        tree.identifier(node),
        tree.status(node),
        tree.page(node) if tree.is_leaf(node) else None,
        [span.start, span.length] if span else None,
    ]


def _read_nodes(batch: dict[str, Any], base: str, position: int) -> Iterator[PlannedNode]:
    ids_above = [base]
    steps: list[Step] = []
    for segment, *step in batch["above"]:
        ids_above.append(ids.tree_child(ids_above[-1], segment))
        steps.append(Step(kind=step[0], number=step[1], label=step[2]))
    for offset, (depth, segment, *step, identifier, status, page, span) in enumerate(
        batch["nodes"]
    ):
        del ids_above[depth + 1 :], steps[depth:]
        node_id = ids.tree_child(ids_above[-1], segment)
        yield PlannedNode(
            id=node_id,
            position=position + offset,
            path=node_id.removeprefix(f"{base}/"),
            kind=step[0],
            number=step[1],
            label=step[2],
            identifier=identifier,
            status=status,
            page=page,
            span=Span(start=span[0], length=span[1]) if span else None,
            lineage=tuple(steps),
        )
        ids_above.append(node_id)
        steps.append(Step(kind=step[0], number=step[1], label=step[2]))


State = Literal["planned", "partial", "complete"]


def plan_key(source: str, version: str, unit: str, adapter_version: str) -> str:
    """The blob key of a plan. Another version of the adapter makes another plan."""
    return ids.archive_key(source, f"{version}/plans/{adapter_version}/{unit}.jsonl")


def pack_prefix(head: PlanHead) -> str:
    """The common prefix of the keys of a plan's packs."""
    adapter_version = head.adapter.rpartition("@")[2]
    return ids.archive_key(head.source, f"{head.version}/packs/{adapter_version}/{head.unit}")


def record_plan(connection: Connection, head: PlanHead, key: str, now: datetime) -> None:
    """Record that a unit is planned; an existing row is reset if the plan is another one."""
    table = code_units.c
    same_unit = (table.source == head.source) & (table.unit == head.unit)
    others = connection.scalar(select(table.id).where(same_unit, table.id != head.id).limit(1))
    plan = {
        "label": head.label,
        "published_at": head.published_at,
        "plan_key": key,
        "input_sha256": head.input_sha256,
        "nodes": head.nodes,
        "shards": head.shards,
        "bytes": head.bytes,
        "planned_at": now,
    }
    row = {
        "id": head.id,
        "source": head.source,
        "version": head.version,
        "unit": head.unit,
        "state": "planned",
        "is_newest": others is None,
        **plan,
    }
    insert_ignoring(connection, code_units, [row])
    outdated = (table.id == head.id) & (table.plan_key != key)
    connection.execute(update(code_units).where(outdated).values(state="planned", **plan))


def update_unit(connection: Connection, unit_id: str, state: State, now: datetime) -> None:
    """Update the state of an executed unit, and mark its newest edition for searches."""
    table = code_units.c
    row = connection.execute(select(code_units).where(table.id == unit_id)).one()
    if row.state != state:
        values = {"state": state, "completed_at": now}
        connection.execute(update(code_units).where(table.id == unit_id).values(values))
    same_unit = (table.source == row.source) & (table.unit == row.unit)
    editions = connection.execute(select(code_units).where(same_unit)).all()
    newest = _newest(editions)
    if any(edition.is_newest != (edition.id == newest) for edition in editions):
        flag = case((table.id == newest, True), else_=False)
        connection.execute(update(code_units).where(same_unit).values(is_newest=flag))


def _newest(editions: Sequence[Row[Any]]) -> str:
    executed = [row for row in editions if row.state != "planned"] or editions
    return str(max(executed, key=_age).id)


def _age(row: Row[Any]) -> tuple[Any, ...]:
    """A sort key: by date if it is recorded, since labels of different kinds do not compare."""
    return (row.published_at or "", ids.edition_order(row.version))
