"""Forms that submit operator commands, and the state of commands on every operator page."""

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

from fonds.api.admin import run_or_404, source_or_404
from fonds.api.admin_schemas import LAST_ID, QueueParameter, RunId, SourceName
from fonds.api.dependencies import app_state
from fonds.errors import UsageError
from fonds.runs import commands
from fonds.runs.commands import Command, Kind
from fonds.runs.state import RunStatus
from fonds.web.rendering import Viewer, page, query, require_operator, require_own_form

AT: Final = "/admin/ingestion"
IGNORED_AFTER: Final = timedelta(seconds=15)
"""Schedulers and workers look for commands every second or two."""
MAX_OPEN: Final = 50
BUSY_SECONDS, IDLE_SECONDS = 3, 30
"""Refresh intervals of pages, with and without open commands."""

CommandParameter = Annotated[int, Query(ge=0, le=LAST_ID)]
FormKey = Annotated[str, Form(max_length=2000)]
_Day = Annotated[str, Form(max_length=10)]
_Flag = Annotated[bool, Form()]

router: Final = APIRouter(prefix=AT)


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenCommands:
    """The open commands while a page is displayed."""

    pending: tuple[Command, ...]
    """Commands that are not finished."""
    submitted: Command | None
    """The command after which this page is displayed."""
    run_id: UUID | None
    """The run of that command, or the active run of its source."""
    is_ignored: bool
    """Whether commands wait, but no process seems to execute them."""

    @property
    def every(self) -> int:
        """Seconds until the next refresh."""
        return BUSY_SECONDS if self.pending else IDLE_SECONDS


def open_commands(connection: Connection, now: datetime, command_id: int = 0) -> OpenCommands:
    """Query the open commands and the one after which a page is displayed."""
    pending = commands.listing(connection, is_open=True, limit=MAX_OPEN)
    command = commands.get(connection, command_id) if command_id else None
    run_id = command.run_id if command else None
    if command and command.state == "working" and command.source:
        run_id = commands.running(connection, command.source)
    return OpenCommands(
        pending=tuple(pending),
        submitted=command,
        run_id=run_id,
        is_ignored=_is_ignored(pending, now),
    )


def _is_ignored(pending: list[Command], now: datetime) -> bool:
    """Processes that execute commands can only be recognized by their leases."""
    if any(each.lease_until is not None and each.lease_until > now for each in pending):
        return False
    return any(now - each.requested_at > IGNORED_AFTER for each in pending)


def admin_page(
    request: Request, template: str, viewer: Viewer, state: OpenCommands, **context: Any
) -> Response:
    """A page of operators."""
    return page(
        request,
        f"admin/{template}",
        viewer=viewer,
        state=state,
        now=app_state(request).now(),
        at_=AT,
        **context,
    )


# Submitting -------------------------------------------------------------------------------


@router.post("/sources/{name}/run")
def run(
    request: Request,
    name: SourceName,
    form_key: FormKey,
    *,
    recheck: _Flag = False,
    accept_loss: _Flag = False,
    back: Annotated[Literal["", "overview"], Form()] = "",
) -> Response:
    """Run a source."""
    viewer = _sender(request, form_key)
    args = {"recheck": recheck, "accept_loss": accept_loss}
    page_path = AT if back else None
    return _submit(request, viewer, "run", args, source=name, page_path=page_path)


@router.post("/sources/{name}/backfill")
def backfill(
    request: Request,
    name: SourceName,
    form_key: FormKey,
    *,
    since: _Day = "",
    until: _Day = "",
    congresses: Annotated[str, Form(max_length=300)] = "",
) -> Response:
    """Backfill a source, or a range of it."""
    viewer = _sender(request, form_key)
    args = {"since": since or None, "until": until or None, "congresses": _numbers(congresses)}
    return _submit(request, viewer, "backfill", args, source=name)


@router.post("/sources/{name}/retry")
def retry(request: Request, name: SourceName, form_key: FormKey) -> Response:
    """Retry all failed tasks of a source."""
    return _submit(request, _sender(request, form_key), "retry", {}, source=name)


@router.post("/sources/{name}/audit")
def audit(
    request: Request, name: SourceName, form_key: FormKey, since: _Day = "", until: _Day = ""
) -> Response:
    """Compare the listings of the publisher with the library."""
    viewer = _sender(request, form_key)
    args = {"since": since or None, "until": until or None}
    return _submit(request, viewer, "audit", args, source=name)


@router.post("/runs/{run_id}/cancel")
def cancel(request: Request, run_id: RunId, form_key: FormKey) -> Response:
    """Cancel a run, unless it has ended in the meantime."""
    viewer, page_path = _sender(request, form_key), f"{AT}/runs/{run_id}"
    with app_state(request).library.database.read() as connection:
        run = run_or_404(connection, run_id)
    if run.status is not RunStatus.RUNNING:
        return RedirectResponse(page_path, HTTPStatus.SEE_OTHER)
    args, source = {"run_id": run_id}, run.source
    return _submit(request, viewer, "cancel", args, source=source, page_path=page_path)


@router.post("/queues/{queue}/drain")
def drain(
    request: Request, queue: QueueParameter, form_key: FormKey, *, given_up: _Flag = False
) -> Response:
    """Process all entries of a queue."""
    viewer = _sender(request, form_key)
    args = {"queue": queue, "given_up": given_up}
    return _submit(request, viewer, "drain", args, page_path=f"{AT}/{queue}")


def _sender(request: Request, form_key: str) -> Viewer:
    viewer = require_operator(request)
    require_own_form(request, viewer, form_key)
    return viewer


def _submit(
    request: Request,
    viewer: Viewer,
    kind: Kind,
    args: Mapping[str, Any],
    *,
    source: str | None = None,
    page_path: str | None = None,
) -> Response:
    """Store a command, and redirect to the page that displays it."""
    if source is not None:
        source_or_404(request, source)
    app = app_state(request)
    assert viewer.caller is not None
    by = viewer.caller.user_name
    with app.library.database.write() as connection:
        command_id = commands.submit(
            connection,
            kind,
            source,
            args,
            registry=app.library.sources,
            requested_by=by,
            now=app.now(),
        )
    path = page_path or f"{AT}/sources/{source}"
    return RedirectResponse(f"{path}?{query({'asked': command_id})}", HTTPStatus.SEE_OTHER)


def _numbers(text: str) -> list[int] | None:
    words = text.replace(",", " ").split()
    if not all(word.isascii() and word.isdigit() for word in words):
        raise UsageError("Congresses must be numbers, such as 118, 119")
    return [int(word) for word in words] or None
