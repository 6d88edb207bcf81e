"""What is asked for on the pages of operators, and what every one of them says about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import APIRouter, Form, Query, Request
from sqlalchemy import Connection
from starlette.responses import RedirectResponse, Response

from fonds.api.admin import known_run, source_named
from fonds.api.admin_schemas import LAST_ID, QueueNamed, RunId, SourceNamed
from fonds.api.dependencies import desk_of
from fonds.errors import UsageError
from fonds.runs import commands
from fonds.runs.commands import Command, Kind
from fonds.runs.state import RunStatus
from fonds.web.rendering import Visitor, operator_of, page, query, require_own_form

AT: Final = "/admin/ingestion"
PATIENCE: Final = timedelta(seconds=15)
"""Whoever does commands looks for them every second or two."""
SHOWN_OPEN: Final = 50
BUSY, QUIET = 3, 30
"""Seconds after which a page looks again, with and without something under way."""

Asked = Annotated[int, Query(ge=0, le=LAST_ID)]
FormKey = Annotated[str, Form(max_length=2000)]
_Day = Annotated[str, Form(max_length=10)]
_Flag = Annotated[bool, Form()]

router: Final = APIRouter(prefix=AT)


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenCommands:
    """What is being asked for while a page is looked at."""

    under_way: tuple[Command, ...]
    """Commands that nothing has come of yet."""
    asked: Command | None
    """The one that led to this page."""
    run_id: UUID | None
    """The run that came of it, or goes on in its source."""
    is_ignored: bool
    """Whether commands wait, and nobody seems to be there to do them."""

    @property
    def every(self) -> int:
        """Seconds after which there may be something new."""
        return BUSY if self.under_way else QUIET


def standing(connection: Connection, now: datetime, asked: int = 0) -> OpenCommands:
    """How commands stand; `asked` is the one that a page is shown for."""
    under_way = commands.listing(connection, is_open=True, limit=SHOWN_OPEN)
    command = commands.get(connection, asked) if asked else None
    run_id = command.run_id if command else None
    if command and command.state == "working" and command.source:
        run_id = commands.running(connection, command.source)
    return OpenCommands(
        under_way=tuple(under_way),
        asked=command,
        run_id=run_id,
        is_ignored=_is_ignored(under_way, now),
    )


def _is_ignored(under_way: list[Command], now: datetime) -> bool:
    """Processes leave no other sign than what they hold."""
    if any(each.lease_until is not None and each.lease_until > now for each in under_way):
        return False
    return any(now - each.requested_at > PATIENCE for each in under_way)


def admin_page(
    request: Request, template: str, visitor: Visitor, state: OpenCommands, **context: Any
) -> Response:
    """A page of operators."""
    return page(
        request,
        f"admin/{template}",
        visitor=visitor,
        state=state,
        now=desk_of(request).now(),
        at_=AT,
        **context,
    )


# Asking -----------------------------------------------------------------------------------


@router.post("/sources/{name}/run")
def run(
    request: Request,
    name: SourceNamed,
    form_key: FormKey,
    *,
    recheck: _Flag = False,
    accept_loss: _Flag = False,
    back: Annotated[Literal["", "overview"], Form()] = "",
) -> Response:
    """Have a source brought up to date."""
    visitor = _sender(request, form_key)
    args = {"recheck": recheck, "accept_loss": accept_loss}
    shown_at = AT if back else None
    return _ask(request, visitor, "run", args, source=name, shown_at=shown_at)


@router.post("/sources/{name}/backfill")
def backfill(
    request: Request,
    name: SourceNamed,
    form_key: FormKey,
    *,
    since: _Day = "",
    until: _Day = "",
    congresses: Annotated[str, Form(max_length=300)] = "",
) -> Response:
    """Have a range of a source filled, or all of it."""
    visitor = _sender(request, form_key)
    args = {"since": since or None, "until": until or None, "congresses": _numbers(congresses)}
    return _ask(request, visitor, "backfill", args, source=name)


@router.post("/sources/{name}/retry")
def retry(request: Request, name: SourceNamed, form_key: FormKey) -> Response:
    """Have all tried again that failed in a source."""
    return _ask(request, _sender(request, form_key), "retry", {}, source=name)


@router.post("/sources/{name}/audit")
def audit(
    request: Request, name: SourceNamed, form_key: FormKey, since: _Day = "", until: _Day = ""
) -> Response:
    """Have what the publisher lists compared with what is held."""
    visitor = _sender(request, form_key)
    args = {"since": since or None, "until": until or None}
    return _ask(request, visitor, "audit", args, source=name)


@router.post("/runs/{run_id}/cancel")
def cancel(request: Request, run_id: RunId, form_key: FormKey) -> Response:
    """Have a run ended; one that has ended by itself meanwhile is shown as it is."""
    visitor, shown_at = _sender(request, form_key), f"{AT}/runs/{run_id}"
    with desk_of(request).library.database.read() as connection:
        going_on = known_run(connection, run_id)
    if going_on.status is not RunStatus.RUNNING:
        return RedirectResponse(shown_at, HTTPStatus.SEE_OTHER)
    args, source = {"run_id": run_id}, going_on.source
    return _ask(request, visitor, "cancel", args, source=source, shown_at=shown_at)


@router.post("/queues/{queue}/drain")
def drain(
    request: Request, queue: QueueNamed, form_key: FormKey, *, given_up: _Flag = False
) -> Response:
    """Have all done that waits in a queue."""
    visitor = _sender(request, form_key)
    args = {"queue": queue, "given_up": given_up}
    return _ask(request, visitor, "drain", args, shown_at=f"{AT}/{queue}")


def _sender(request: Request, form_key: str) -> Visitor:
    visitor = operator_of(request)
    require_own_form(request, visitor, form_key)
    return visitor


def _ask(
    request: Request,
    visitor: Visitor,
    kind: Kind,
    args: Mapping[str, Any],
    *,
    source: str | None = None,
    shown_at: str | None = None,
) -> Response:
    """Write a command down, and lead back to where it is shown."""
    if source is not None:
        source_named(request, source)
    desk = desk_of(request)
    assert visitor.caller is not None
    by = visitor.caller.user_name
    with desk.library.database.write() as connection:
        asked = commands.ask(
            connection,
            kind,
            source,
            args,
            registry=desk.library.sources,
            requested_by=by,
            now=desk.now(),
        )
    place = shown_at or f"{AT}/sources/{source}"
    return RedirectResponse(f"{place}?{query({'asked': asked})}", HTTPStatus.SEE_OTHER)


def _numbers(text: str) -> list[int] | None:
    words = text.replace(",", " ").split()
    if not all(word.isascii() and word.isdigit() for word in words):
        raise UsageError("Congresses are numbers, such as 118, 119")
    return [int(word) for word in words] or None
