"""What operators ask for: rows that any face writes, and that whoever is at work takes up.

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
LEASE: Final = timedelta(seconds=90)
"""Longer than that of a run: whoever takes a command over finds its source free."""
TRIED_FOR: Final = timedelta(days=1)
"""A command that is taken over after so long is what its processes die of."""
LONGEST_NAME: Final = 200
MOST_CONGRESSES: Final = 50

_FLAGS: Final = ("recheck", "accept_loss")
_UNDERSTOOD: Final[Mapping[Kind, tuple[str, ...]]] = {
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
    """Something that was asked for, and what came of it."""

    id: int
    command: Kind
    source: str | None
    args: Mapping[str, Any]
    requested_by: str
    requested_at: datetime
    claimed_by: str | None
    """Which process has it, or had it."""
    lease_until: datetime | None
    finished_at: datetime | None
    outcome: str | None
    """In plain words; the first, before a colon, says how it ended."""
    run_id: UUID | None
    """The run that came of it, or that it ended."""

    @classmethod
    def from_row(cls, row: Row[Any]) -> Self:
        """The command of a whole row."""
        return cls(**row._asdict())

    @property
    def state(self) -> Literal["waiting", "working", "done"]:
        """How far it is; one whose process was killed is working until its lease is over."""
        if self.finished_at is not None:
            return "done"
        return "waiting" if self.claimed_by is None else "working"


# Asking -----------------------------------------------------------------------------------


def ask(
    connection: Connection,
    command: Kind,
    source: str | None,
    args: Mapping[str, Any],
    *,
    registry: SourceRegistry,
    requested_by: str,
    now: datetime,
) -> int:
    """Write down what is wanted; an equal command that is still open is not asked twice."""
    wanted = checked(command, source, args, registry)
    if command == "cancel":
        wanted = _with_run(connection, source, wanted)
    if connection.dialect.name == "postgresql":
        # Two who ask at once would both find that nobody has.
        connection.execute(text("LOCK TABLE ingestion_commands IN SHARE ROW EXCLUSIVE MODE"))
    same = _is_open & (_command.command == command)
    same &= _command.source.is_(None) if source is None else _command.source == source
    query = select(_command.id, _command.args).where(same).order_by(_command.id)
    for row in connection.execute(query):
        if row.args == wanted:
            return int(row.id)
    values = {
        "command": command,
        "source": source,
        "args": wanted,
        "requested_by": requested_by,
        "requested_at": now,
    }
    made = connection.execute(
        ingestion_commands.insert().values(values).returning(ingestion_commands.c.id)
    )
    return int(made.scalar_one())


def checked(
    command: str, source: str | None, args: Mapping[str, Any], registry: SourceRegistry
) -> dict[str, Any]:
    """The arguments as they are kept, without those that say nothing; UsageError for nonsense."""
    if command not in KINDS:
        raise UsageError(f"there is no command {command!r}; there are: {', '.join(KINDS)}")
    if (source is None) != (command == "drain"):
        lacks = "concerns a queue and no source" if command == "drain" else "needs a source"
        raise UsageError(f"{command} {lacks}")
    options = registry.require(source).info.options if source is not None else ()
    given = {name: value for name, value in args.items() if value not in (None, False)}
    for name in given:
        if name not in _UNDERSTOOD[command] or (name == "congresses" and name not in options):
            who = f"backfill of {source}" if name == "congresses" else command
            raise UsageError(f"{who} does not understand {name[:LONGEST_NAME]!r}")
    wanted = {name: _value(name, value) for name, value in given.items()}
    if wanted.get("since", "") > wanted.get("until", "9999"):
        raise UsageError(f"since {wanted['since']} is after until {wanted['until']}")
    if command == "drain" and "queue" not in wanted:
        raise UsageError(f"drain needs a queue: {', '.join(QUEUES)}")
    return wanted


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
    is_list = isinstance(value, list) and 0 < len(value) <= MOST_CONGRESSES
    return is_list and all(type(each) is int and 0 < each < 1000 for each in value)  # noqa: PLR2004 — no such Congress


def _with_run(connection: Connection, source: str | None, wanted: dict[str, Any]) -> dict[str, Any]:
    """A cancel names the run that is meant: it must not end one that begins later."""
    if "run_id" in wanted:
        return wanted
    going_on = running(connection, source or "")
    return wanted if going_on is None else {**wanted, "run_id": str(going_on)}


def running(connection: Connection, source: str) -> UUID | None:
    """The run of a source that is going on, as far as its row tells."""
    query = select(_run.id).where(_run.source == source, _run.status == RunStatus.RUNNING)
    return connection.scalar(query.order_by(_run.started_at.desc()).limit(1))


# Doing ------------------------------------------------------------------------------------


def claim(
    connection: Connection, owner: str, now: datetime, kinds: Collection[Kind]
) -> Command | None:
    """Take the oldest command of these kinds that nobody has, or whose holder is gone."""
    candidates = _is_open & _command.command.in_(kinds)
    while rows := LEASES.claim(
        connection, owner, now, now + LEASE, candidates, order_by=_command.id
    ):
        command = Command.from_row(rows[0])
        if command.claimed_by is None or now - command.requested_at <= TRIED_FOR:
            return command
        # The row goes on naming the process that had it last.
        LEASES.release(connection, _command.id == command.id, {"claimed_by": command.claimed_by})
        _end(connection, _command.id == command.id, _GAVE_UP, None, now)
    return None


def keep(connection: Connection, command_id: int, owner: str, now: datetime) -> bool:
    """Hold a command for another while; False if it is another's by now."""
    return LEASES.renew(connection, _held(command_id, owner), now + LEASE) == 1


def release(connection: Connection, command_id: int, owner: str) -> None:
    """Give a command back, for another to take up at once."""
    LEASES.release(connection, _held(command_id, owner))


def finish(
    connection: Connection,
    command_id: int,
    owner: str,
    outcome: str,
    *,
    run_id: UUID | None,
    now: datetime,
) -> bool:
    """Write down what came of a command; False if it is another's by now."""
    return _end(connection, _held(command_id, owner), outcome, run_id, now)


def _held(command_id: int, owner: str) -> ColumnElement[bool]:
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
    """Whether somebody wants the run of a source that is going on to end."""
    wanted = _cancels(connection, source)
    return bool(wanted) and str(running(connection, source)) in wanted.values()


def settle_cancels(connection: Connection, source: str, now: datetime) -> None:
    """Say of cancels what became of the runs they name, as far as these have ended."""
    for command_id, run_id in _cancels(connection, source).items():
        if run_id and (ended := ending(connection, UUID(run_id))) is not None:
            _end(connection, (_command.id == command_id) & _is_open, ended, UUID(run_id), now)


def ending(connection: Connection, run_id: UUID) -> str | None:
    """What a cancel of a run came to, in words; None while the run goes on."""
    status = connection.scalar(select(_run.status).where(_run.id == run_id))
    if status == RunStatus.RUNNING:
        return None
    if status is None:
        return "refused: there is no such run"
    if status == RunStatus.CANCELLED:
        return "done: the run was cancelled"
    return f"refused: the run had ended before: {status}"


def withdraw(connection: Connection, source: str, by: str, now: datetime) -> int:
    """End what waits to be done with a source before it begins; says how many that were."""
    waits = _is_open & _command.claimed_by.is_(None) & (_command.source == source)
    ended = {"finished_at": now, "outcome": f"cancelled: withdrawn by {by} before it began"}
    waiting = update(ingestion_commands).where(waits, _command.command != "cancel")
    return connection.execute(waiting.values(ended)).rowcount


def _cancels(connection: Connection, source: str) -> dict[int, str]:
    """Open cancels of a source, and the runs they name."""
    of_source = (_command.command == "cancel") & (_command.source == source)
    query = select(_command.id, _command.args).where(_is_open, of_source)
    return {row.id: row.args.get("run_id", "") for row in connection.execute(query)}


# Looking ----------------------------------------------------------------------------------


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
    """The command of an id."""
    query = select(ingestion_commands).where(_command.id == command_id)
    row = connection.execute(query).one_or_none()
    return None if row is None else Command.from_row(row)
