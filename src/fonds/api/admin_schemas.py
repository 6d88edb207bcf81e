"""Schemas of requests and responses for operators."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any, Final, Literal

from fastapi import Path
from fastapi.encoders import jsonable_encoder
from pydantic import BaseModel, ConfigDict, Field

from fonds.api.admin_status import IndexHealth, SiteHealth, WaitingUpload
from fonds.api.schemas import UUID_PATTERN
from fonds.model import Counts
from fonds.runs.audit import StoredAudit
from fonds.runs.commands import Command, Kind, QueueName
from fonds.runs.overview import (
    DayYield,
    ErrorGroup,
    LogLine,
    RunInsight,
    SourceInsight,
    StageInsight,
    TaskInsight,
)
from fonds.runs.queue_status import Backlog, EmbeddingWork
from fonds.runs.state import RunStatus
from fonds.stores.columns import format_timestamp

AT: Final = "/api/admin/ingestion"
LAST_ID: Final = 2**31 - 1
"""The largest id of the databases."""
_SOURCE: Final = r"^[a-z0-9][a-z0-9_.-]*$"
_ORDER: Final = ConfigDict(extra="forbid", hide_input_in_errors=True)

SourceName = Annotated[
    str,
    Path(max_length=200, pattern=_SOURCE, examples=["federal_register"]),
]
RunId = Annotated[str, Path(pattern=UUID_PATTERN, description="The id of a run.")]
CommandId = Annotated[int, Path(ge=1, le=LAST_ID)]


class RunOrder(BaseModel):
    """Options for running a source."""

    model_config = _ORDER

    recheck: bool = Field(
        default=False, description="Fetch every item again, listed as new or not."
    )
    accept_loss: bool = Field(default=False, description="Accept a listing that shrank sharply.")


class BackfillOrder(RunOrder):
    """The range of a source to backfill; everything by default."""

    model_config = ConfigDict(
        **_ORDER, json_schema_extra={"example": {"since": "2026-01-01", "until": "2026-01-31"}}
    )

    since: date | None = None
    until: date | None = None
    congresses: Annotated[list[int], Field(max_length=50)] | None = Field(
        default=None, description="For sources organized by Congress."
    )


class AuditOrder(BaseModel):
    """The range of a source to audit; everything by default."""

    model_config = _ORDER

    since: date | None = None
    until: date | None = None


class DrainOrder(BaseModel):
    """Options for draining a queue."""

    model_config = _ORDER

    given_up: bool = Field(default=False, description="Also retry entries that were given up.")


class CommandOrder(BaseModel):
    """A command of any kind."""

    model_config = ConfigDict(
        **_ORDER,
        json_schema_extra={"example": {"command": "run", "source": "federal_register"}},
    )

    command: Kind
    source: Annotated[str, Field(max_length=200, pattern=_SOURCE)] | None = None
    args: Annotated[dict[str, Any], Field(max_length=10)] = {}


class CommandResponse(BaseModel):
    """A command and its outcome."""

    id: int
    command: Kind
    source: str | None
    args: dict[str, Any]
    state: Literal["waiting", "working", "done"]
    requested_by: str
    requested_at: datetime
    finished_at: datetime | None
    outcome: str | None
    run_id: str | None
    links: dict[str, str]


class CommandPage(BaseModel):
    """Commands, newest first."""

    commands: list[CommandResponse]
    next_before: int | None


class SourcesResponse(BaseModel):
    """The overview of all sources."""

    sources: list[SourceInsight]


class RunResponse(BaseModel):
    """A run."""

    id: str
    source: str
    mode: str
    status: RunStatus
    started_at: datetime
    finished_at: datetime | None
    seconds: float
    counts: Counts
    config: dict[str, Any]
    error_summary: str | None
    links: dict[str, str]


class RunPage(BaseModel):
    """Runs, newest first."""

    runs: list[RunResponse]
    next_cursor: str | None


class SourceResponse(BaseModel):
    """A source: description, state, latest runs and recent changes."""

    insight: SourceInsight
    version: str
    depends_on: list[str]
    tables: list[str]
    options: list[str]
    key_setting: str | None
    time_zone: str
    last_seen_key: str | None
    custom: dict[str, Any]
    days: list[DayYield]
    runs: list[RunResponse]
    audit: StoredAudit | None
    commands: list[CommandResponse]


class RunDetailResponse(RunResponse):
    """A run with its stages and errors."""

    stages: list[StageInsight]
    tasks: dict[str, int]
    errors: list[ErrorGroup]


class LogPage(BaseModel):
    """Log lines, oldest first; to follow a log, repeat the request with `after=next_after`."""

    logs: list[LogLine]
    next_after: int
    ended: bool = Field(description="Whether the log is complete.")


class TaskPage(BaseModel):
    """Tasks, in the order in which they finished."""

    tasks: list[TaskInsight]
    next_after: int | None


class ErrorsResponse(BaseModel):
    """Errors by cause, most frequent first."""

    errors: list[ErrorGroup]


class QueueResponse(BaseModel):
    """The status of a queue."""

    queue: Backlog


class EmbeddingQueueResponse(QueueResponse):
    """The status of the embedding queue, with throughput and cost."""

    work: EmbeddingWork


class UploadsResponse(BaseModel):
    """Statistics of uploads."""

    jobs: dict[str, int]
    due: int = Field(description="Jobs ready for a worker.")
    lag_seconds: float = Field(description="Waiting time of the oldest of them.")
    repeated: int = Field(description="Jobs that needed more than one attempt.")
    waiting: list[WaitingUpload]


class SitesResponse(BaseModel):
    """All websites."""

    sites: list[SiteHealth]


class IndexesResponse(BaseModel):
    """All indexes."""

    indexes: list[IndexHealth]
    is_complete: bool


class AuditPage(BaseModel):
    """Audits, newest first."""

    audits: list[StoredAudit]
    next_before: int | None


def to_json(value: Any) -> Any:
    """A record as JSON values."""
    return jsonable_encoder(value, custom_encoder={datetime: format_timestamp})


def run_json(run: RunInsight, now: datetime) -> dict[str, Any]:
    """The JSON of a run."""
    at = f"{AT}/runs/{run.id}"
    links = {name: f"{at}/{name}" for name in ("logs", "tasks", "errors")}
    links |= {"self": at, "stream": f"{at}/logs/stream", "source": f"{AT}/sources/{run.source}"}
    if run.status is RunStatus.RUNNING:
        links["cancel"] = f"{at}/cancel"
    return {**to_json(run), "seconds": run.seconds(now), "links": links}


def command_json(command: Command) -> dict[str, Any]:
    """The JSON of a command, without the process that executes it."""
    links = {"self": f"{AT}/commands/{command.id}"}
    if command.run_id is not None:
        links["run"] = f"{AT}/runs/{command.run_id}"
    fields: Mapping[str, Any] = to_json(command)
    public = {name: value for name, value in fields.items() if name not in _HIDDEN}
    return {**public, "state": command.state, "links": links}


_HIDDEN: Final = frozenset({"claimed_by", "lease_until"})

QueueParameter = Annotated[QueueName, Path(description="The name of the queue.")]
