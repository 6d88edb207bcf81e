"""What the plans of a code say should be there, against what is."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import select

from fonds.codes.pages import open_blob
from fonds.codes.plan import read_batches, read_head
from fonds.runs.audit import Audit, Scope, compare, concluded
from fonds.runs.context import Workplace
from fonds.sources.base import Expected
from fonds.sources.jurisdiction import JurisdictionAdapter
from fonds.stores.tables import code_units


def audit_code(adapter: JurisdictionAdapter, workplace: Workplace) -> Audit:
    """Count every planned section of every edition; a unit that could not be planned has failed."""
    table = code_units.c
    query = select(table.id, table.plan_key).where(table.source == adapter.info.name)
    with workplace.database.read() as connection:
        planned = connection.execute(query.order_by(table.id)).all()
    scopes = [_unit(workplace, row.id, row.plan_key) for row in planned]
    return concluded(adapter, workplace, scopes)


def _unit(workplace: Workplace, unit_id: str, plan_key: str) -> Scope:
    expected = 0
    missing: list[str] = []
    for sections in _sections(workplace, plan_key):
        found = compare(workplace.database, Expected(scope=unit_id, document_ids=sections))
        expected += found.expected
        missing += found.missing
    return Scope(name=unit_id, expected=expected, missing=tuple(missing))


def _sections(workplace: Workplace, plan_key: str) -> Iterator[frozenset[str]]:
    lines = iter(open_blob(workplace.blobs, plan_key))
    for batch in read_batches(read_head(next(lines)), lines):
        yield frozenset(node.id for node in batch.leaves)
