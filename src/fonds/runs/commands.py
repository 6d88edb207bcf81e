"""Commands of operators: rows that any interface writes, and that a scheduler or worker claims.

The caller owns the transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final, Literal, Self, get_args
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, select, text, update

from fonds.errors import UsageError
from fonds.runs.state import RunStatus
from fonds.sources.registry import SourceRegistry
from fonds.stores.leases import Leases
from fonds.stores.tables import ingestion_commands, ingestion_runs

Kind = Literal["run", "backfill", "cancel", "retry", "drain", "audit"]
QueueName = Literal["normalization", "embedding", "citations"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
QUEUES: Final[tuple[QueueName, ...]] = get_args(QueueName)
LEASES: Final = Leases(ingestion_commands, owner="claimed_by")
LEASE: Final = timedelta(seconds=55)
"""Longer than that of a run, so that the source is unlocked when a command is taken over."""
MAX_AGE: Final = timedelta(days=1)
"""A command that is taken over after so long is given up: it probably kills its processes."""
MAX_NAME_LENGTH: Final = 200
MAX_CONGRESSES: Final = 50

_FLAGS: Final = ("recheck", "accept_loss")
_ARGUMENTS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "run": _FLAGS,
    "backfill": ("since", "until", "congresses", *_FLAGS),
    "cancel": ("run_id",),
    "retry": (),
    "drain": ("queue", "given_up"),
    "audit": ("since", "until"),
}
_GAVE_UP: Final = "failed: the processes that took this up for a day all ended before it was done"

_command: Final = ingestion_commands.c
_run: Final = ingestion_runs.c
_is_open: Final = _command.finished_at.is_(None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """A request of an operator, and its outcome."""

    id: int
    command: Kind
    source: str | None
    args: Mapping[str, Any]
    requested_by: str
    requested_at: datetime
    claimed_by: str | None
    """The process that does or did it."""
    lease_until: datetime | None
    finished_at: datetime | None
    outcome: str | None
    """In words; the part before the colon is the status."""
    run_id: UUID | None
    """The run that it started or cancelled."""

    @classmethod
    def from_row(cls, row: Row[Any]) -> Self:
        """From a row with all columns."""
        return cls(**row._asdict())

    @property
    def state(self) -> Literal["waiting", "working", "done"]:
        """The state; a command whose process was killed is `working` until its lease expires."""
        if self.finished_at is not None:
            return "done"
        return "waiting" if self.claimed_by is None else "working"


# Submitting -------------------------------------------------------------------------------


def submit(
    connection: Connection,
    command: Kind,
    source: str | None,
    args: Mapping[str, Any],
    *,
    registry: SourceRegistry,
    requested_by: str,
    now: datetime,
) -> int:
    """Store a command, unless an equal one is still open; returns its id."""
    checked_args = checked(command, source, args, registry)
    if command == "cancel":
        checked_args = _with_run(connection, source, checked_args)
    if connection.dialect.name == "postgresql":
        # Two processes at the same time would both see that there is none.
        connection.execute(text("LOCK TABLE ingestion_commands IN SHARE ROW EXCLUSIVE MODE"))
    same = _is_open & (_command.command == command)
    same &= _command.source.is_(None) if source is None else _command.source == source
    query = select(_command.id, _command.args).where(same).order_by(_command.id)
    for row in connection.execute(query):
        if row.args == checked_args:
            return int(row.id)
    values = {
        "command": command,
        "source": source,
        "args": checked_args,
        "requested_by": requested_by,
        "requested_at": now,
    }
    inserted = connection.execute(
        ingestion_commands.insert().values(values).returning(ingestion_commands.c.id)
    )
    return int(inserted.scalar_one())


def checked(
    command: str, source: str | None, args: Mapping[str, Any], registry: SourceRegistry
) -> dict[str, Any]:
    """The arguments as they are stored, without defaults; UsageError if they are invalid."""
    if command not in KINDS:
        raise UsageError(f"there is no command {command!r}; there are: {', '.join(KINDS)}")
    if (source is None) != (command == "drain"):
        rule = "takes a queue and no source" if command == "drain" else "needs a source"
        raise UsageError(f"{command} {rule}")
    options = registry.require(source).info.options if source is not None else ()
    present = {name: value for name, value in args.items() if value not in (None, False)}
    for name in present:
        if name not in _ARGUMENTS[command] or (name == "congresses" and name not in options):
            subject = f"backfill of {source}" if name == "congresses" else command
            raise UsageError(f"{subject} has no argument {name[:MAX_NAME_LENGTH]!r}")
    result = {name: _value(name, value) for name, value in present.items()}
    if result.get("since", "") > result.get("until", date.max.isoformat()):
        raise UsageError(f"since {result['since']} is after until {result['until']}")
    if command == "drain" and "queue" not in result:
        raise UsageError(f"drain needs a queue: {', '.join(QUEUES)}")
    return result


def _value(name: str, value: Any) -> Any:
    if name in {"since", "until"}:
        return _day(name, value)
    if name == "queue":
        if value not in QUEUES:
            raise UsageError(f"there is no such queue; there are: {', '.join(QUEUES)}")
        return value
    if name == "run_id":
        return _identity(value)
    if name == "congresses":
        if not _are_numbers(value):
            raise UsageError("congresses is a list of numbers such as [118, 119]")
        return sorted(set(value))
    if value is not True:
        raise UsageError(f"{name} is either true or false")
    return True


def _day(name: str, value: Any) -> str:
    try:
        return date.fromisoformat(str(value)).isoformat()
    except ValueError as error:
        raise UsageError(f"{name} is a day such as 2026-01-31") from error


def _identity(value: Any) -> str:
    try:
        return str(UUID(str(value)))
    except ValueError as error:
        raise UsageError("run_id is the id of a run") from error


def _are_numbers(value: Any) -> bool:
    is_list = isinstance(value, list) and 0 < len(value) <= MAX_CONGRESSES
    return is_list and all(type(each) is int and 0 < each < 1000 for each in value)  # noqa: PLR2004 — no such Congress


def _with_run(connection: Connection, source: str | None, args: dict[str, Any]) -> dict[str, Any]:
    """A cancel names its run, so that it does not end one that starts later."""
    if "run_id" in args:
        return args
    run_id = running(connection, source or "")
    return args if run_id is None else {**args, "run_id": str(run_id)}


def running(connection: Connection, source: str) -> UUID | None:
    """The id of the run of a source that is running, by its row."""
    query = select(_run.id).where(_run.source == source, _run.status == RunStatus.RUNNING)
    return connection.scalar(query.order_by(_run.started_at.desc()).limit(1))


# Doing ------------------------------------------------------------------------------------


def claim(
    connection: Connection, owner: str, now: datetime, kinds: Collection[Kind]
) -> Command | None:
    """Claim the oldest open command of these kinds that has no lease, or an expired one."""
    candidates = _is_open & _command.command.in_(kinds)
    while rows := LEASES.claim(
        connection, owner, now, now + LEASE, candidates, order_by=_command.id
    ):
        command = Command.from_row(rows[0])
        if command.claimed_by is None or now - command.requested_at <= MAX_AGE:
            return command
        # The row still names the process that had it last.
        LEASES.release(connection, _command.id == command.id, {"claimed_by": command.claimed_by})
        _end(connection, _command.id == command.id, _GAVE_UP, None, now)
    return None


def keep(connection: Connection, command_id: int, owner: str, now: datetime) -> bool:
    """Renew the lease of a command; False if another process has it."""
    return LEASES.renew(connection, _is_owned_by(command_id, owner), now + LEASE) == 1


def release(connection: Connection, command_id: int, owner: str) -> None:
    """Release a command, so that another process can claim it."""
    LEASES.release(connection, _is_owned_by(command_id, owner))


def finish(
    connection: Connection,
    command_id: int,
    owner: str,
    outcome: str,
    *,
    run_id: UUID | None,
    now: datetime,
) -> bool:
    """Store the outcome of a command; False if another process has it."""
    return _end(connection, _is_owned_by(command_id, owner), outcome, run_id, now)


def _is_owned_by(command_id: int, owner: str) -> ColumnElement[bool]:
    return LEASES.is_owned(owner, [command_id]) & _is_open


def _end(
    connection: Connection,
    which: ColumnElement[bool],
    outcome: str,
    run_id: UUID | None,
    now: datetime,
) -> bool:
    ended = {"finished_at": now, "outcome": outcome.replace("\0", "\ufffd"), "lease_until": None}
    ended |= {} if run_id is None else {"run_id": run_id}
    return connection.execute(update(ingestion_commands).where(which).values(ended)).rowcount > 0


# Cancelling -------------------------------------------------------------------------------


def is_cancelled(connection: Connection, source: str) -> bool:
    """Whether an open command cancels the run of a source."""
    cancels = _cancels(connection, source)
    return bool(cancels) and str(running(connection, source)) in cancels.values()


def finish_cancels(connection: Connection, source: str, now: datetime) -> None:
    """Store the outcome of cancels whose runs have ended."""
    for command_id, run_id in _cancels(connection, source).items():
        if run_id and (ended := ending(connection, UUID(run_id))) is not None:
            _end(connection, (_command.id == command_id) & _is_open, ended, UUID(run_id), now)


def ending(connection: Connection, run_id: UUID) -> str | None:
    """The outcome of cancelling a run, in words; None while it is running."""
    status = connection.scalar(select(_run.status).where(_run.id == run_id))
    if status == RunStatus.RUNNING:
        return None
    if status is None:
        return "refused: there is no such run"
    if status == RunStatus.CANCELLED:
        return "done: the run was cancelled"
    return f"refused: the run had ended before: {status}"


def withdraw(connection: Connection, source: str, by: str, now: datetime) -> int:
    """End the waiting commands of a source, and return their number."""
    waits = _is_open & _command.claimed_by.is_(None) & (_command.source == source)
    ended = {"finished_at": now, "outcome": f"cancelled: withdrawn by {by} before it began"}
    waiting = update(ingestion_commands).where(waits, _command.command != "cancel")
    return connection.execute(waiting.values(ended)).rowcount


def _cancels(connection: Connection, source: str) -> dict[int, str]:
    """Open cancels of a source, and the runs they name."""
    of_source = (_command.command == "cancel") & (_command.source == source)
    query = select(_command.id, _command.args).where(_is_open, of_source)
    return {row.id: row.args.get("run_id", "") for row in connection.execute(query)}


# Reading ----------------------------------------------------------------------------------


def listing(
    connection: Connection,
    *,
    limit: int,
    before: int | None = None,
    source: str | None = None,
    is_open: bool | None = None,
) -> list[Command]:
    """Commands, the newest first; those before an id, of a source, or still open."""
    query = select(ingestion_commands).order_by(_command.id.desc()).limit(limit)
    if before is not None:
        query = query.where(_command.id < before)
    if source is not None:
        query = query.where(_command.source == source)
    if is_open is not None:
        query = query.where(_is_open if is_open else ~_is_open)
    return [Command.from_row(row) for row in connection.execute(query)]


def get(connection: Connection, command_id: int) -> Command | None:
    """The command with this id."""
    query = select(ingestion_commands).where(_command.id == command_id)
    row = connection.execute(query).one_or_none()
    return None if row is None else Command.from_row(row)
