"""What a unit will cost, before anything is written: sub-requests, bytes, invocations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fonds.codes.budget import Meter
from fonds.codes.execution import STATEMENTS
from fonds.codes.invocation import UnitOrder, plan_head, walk_order
from fonds.codes.origin import PlaceOrigin, open_place
from fonds.codes.plan import Batch, PlanHead, plan_lines, read_batches
from fonds.errors import UnitTooLargeError
from fonds.runs.context import Workplace
from fonds.seams import charged_to
from fonds.sources.jurisdiction import JurisdictionAdapter

_PLANNING: Final = 12
"""Sub-requests for storing and reading a plan, and for noting what came of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitPlan:
    """A unit that was walked and not executed."""

    id: str
    nodes: int
    shards: int
    bytes: int
    """Of bodies cut out of files; those that are pages of their own are not known before."""
    walked: int
    """Sub-requests that the walk made."""
    fetches: int
    """Bodies that are pages of their own."""
    subrequests: int
    """That executing it will make, at most about."""
    invocations: int


async def plan_unit(
    order: UnitOrder, adapter: JurisdictionAdapter, workplace: Workplace
) -> UnitPlan:
    """Walk a unit, writing nothing, and say what executing it will cost."""
    meter = Meter(order.budget)
    origin = PlaceOrigin(open_place(order.given, adapter.info, workplace), version=order.version)
    try:
        with charged_to(meter.charge):
            walked = await walk_order(order, adapter, origin, meter)
    finally:
        await origin.close()
    head = plan_head(order, adapter, walked)
    _, *lines = plan_lines(walked, head)
    costs = [_cost(head, batch) for batch in read_batches(head, lines)]
    walking = meter.subrequests + len(head.pages) + _PLANNING
    if max(costs) + _PLANNING > order.budget.subrequests:
        raise UnitTooLargeError(
            f"one batch of {order.unit} takes about {max(costs)} sub-requests, and its plan "
            f"{_PLANNING}: allow more than {order.budget.subrequests} (--max-subrequests)"
        )
    return UnitPlan(
        id=head.id,
        nodes=head.nodes,
        shards=head.shards,
        bytes=head.bytes,
        walked=meter.subrequests,
        fetches=head.fetches,
        subrequests=walking + sum(costs),
        invocations=_invocations(walking, costs, order.budget.subrequests),
    )


def _cost(head: PlanHead, batch: Batch) -> int:
    walked = {name for name, _ in head.pages}
    return STATEMENTS + sum(node.page not in walked for node in batch.leaves)


def _invocations(walking: int, costs: list[int], limit: int) -> int:
    """How many budgets it takes if no batch is divided."""
    count, left = 1, limit - walking
    for cost in costs:
        if cost > left:
            count, left = count + 1, limit - _PLANNING
        left -= cost
    return count
