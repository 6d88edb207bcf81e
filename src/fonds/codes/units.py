"""Units of editions: what is planned, what is complete, which edition is the newest."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, Row, case, select, update

from fonds import ids
from fonds.codes.plan import PlanHead
from fonds.stores.database import insert_ignoring
from fonds.stores.tables import code_units

State = Literal["planned", "partial", "complete"]


def plan_key(source: str, version: str, unit: str, adapter_version: str) -> str:
    """The blob key of a plan. Another version of the adapter makes another plan."""
    return ids.archive_key(source, f"{version}/plans/{adapter_version}/{unit}.jsonl")


def pack_prefix(head: PlanHead) -> str:
    """What the keys of a plan's packs begin with."""
    adapter_version = head.adapter.rpartition("@")[2]
    return ids.archive_key(head.source, f"{head.version}/packs/{adapter_version}/{head.unit}")


def record_plan(connection: Connection, head: PlanHead, key: str, now: datetime) -> None:
    """Note that a unit is planned; of a unit that was planned before, that it is so anew."""
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


def settle(connection: Connection, unit_id: str, state: State, now: datetime) -> None:
    """Note how a unit stands after it was executed, and let searches have its newest edition."""
    table = code_units.c
    row = connection.execute(select(code_units).where(table.id == unit_id)).one()
    if row.state != state:
        ended = {"state": state, "completed_at": now}
        connection.execute(update(code_units).where(table.id == unit_id).values(ended))
    same_unit = (table.source == row.source) & (table.unit == row.unit)
    editions = connection.execute(select(code_units).where(same_unit)).all()
    newest = _newest(editions)
    wrong = [one.id for one in editions if one.is_newest != (one.id == newest)]
    if wrong:
        flag = case((table.id == newest, True), else_=False)
        connection.execute(update(code_units).where(same_unit).values(is_newest=flag))


def _newest(editions: Sequence[Row[Any]]) -> str:
    executed = [row for row in editions if row.state != "planned"] or editions
    return str(max(executed, key=_age).id)


def _age(row: Row[Any]) -> tuple[Any, ...]:
    """By the day of the text, if it is known; stamps of different kinds do not compare."""
    return (row.published_at or "", ids.edition_order(row.version))
