"""The shapes of what operators ask for over HTTP, and of what they are answered."""

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
"""The highest number that the databases give."""
_SOURCE: Final = r"^[a-z0-9][a-z0-9_.-]*$"
_ORDER: Final = ConfigDict(extra="forbid", hide_input_in_errors=True)

SourceNamed = Annotated[
    str,
    Path(max_length=200, pattern=_SOURCE, examples=["federal_register"]),
]
RunId = Annotated[str, Path(pattern=UUID_PATTERN, description="The id of a run.")]
CommandId = Annotated[int, Path(ge=1, le=LAST_ID)]


class RunOrder(BaseModel):
    """How a source is to be run."""

    model_config = _ORDER

    recheck: bool = Field(default=False, description="Ask for every item, listed as new or not.")
    accept_loss: bool = Field(default=False, description="Believe a list that shrank.")


class BackfillOrder(RunOrder):
    """Which range of a source is to be filled; all of it without one."""

    model_config = ConfigDict(
        **_ORDER, json_schema_extra={"example": {"since": "2026-01-01", "until": "2026-01-31"}}
    )

    since: date | None = None
    until: date | None = None
    congresses: Annotated[list[int], Field(max_length=50)] | None = Field(
        default=None, description="For sources that count by Congress."
    )


class AuditOrder(BaseModel):
    """Which range of a source is to be counted; all of it without one."""

    model_config = _ORDER

    since: date | None = None
    until: date | None = None


class DrainOrder(BaseModel):
    """How a queue is to be worked off."""

    model_config = _ORDER

    given_up: bool = Field(default=False, description="Try again what was given up, too.")


class CommandOrder(BaseModel):
    """Anything that can be asked for."""

    model_config = ConfigDict(
        **_ORDER,
        json_schema_extra={"example": {"command": "run", "source": "federal_register"}},
    )

    command: Kind
    source: Annotated[str, Field(max_length=200, pattern=_SOURCE)] | None = None
    args: Annotated[dict[str, Any], Field(max_length=10)] = {}


class CommandAnswer(BaseModel):
    """Something that was asked for, and what came of it."""

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
    """Commands, the newest first."""

    commands: list[CommandAnswer]
    next_before: int | None


class SourcesAnswer(BaseModel):
    """All sources at a glance."""

    sources: list[SourceInsight]


class RunAnswer(BaseModel):
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
    """Runs, the newest first."""

    runs: list[RunAnswer]
    next_cursor: str | None


class SourceAnswer(BaseModel):
    """One source: what it is, where it stands, its last runs, and what it brought lately."""

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
    runs: list[RunAnswer]
    audit: StoredAudit | None
    commands: list[CommandAnswer]


class RunDetailAnswer(RunAnswer):
    """A run with its stages, and what failed in it."""

    stages: list[StageInsight]
    tasks: dict[str, int]
    errors: list[ErrorGroup]


class LogPage(BaseModel):
    """Lines of a log, the oldest first; ask again with `after=next_after` to follow it."""

    logs: list[LogLine]
    next_after: int
    ended: bool = Field(description="Whether nothing can follow.")


class TaskPage(BaseModel):
    """Tasks, in the order they were settled."""

    tasks: list[TaskInsight]
    next_after: int | None


class ErrorsAnswer(BaseModel):
    """What failed, by cause, the most frequent first."""

    errors: list[ErrorGroup]


class QueueAnswer(BaseModel):
    """How a queue stands."""

    queue: Backlog


class EmbeddingQueueAnswer(QueueAnswer):
    """How the queue for vectors stands, and what making them takes."""

    work: EmbeddingWork


class UploadsAnswer(BaseModel):
    """How uploads are doing."""

    jobs: dict[str, int]
    due: int = Field(description="Jobs that a worker could take.")
    lag_seconds: float = Field(description="How long the first of them has waited.")
    repeated: int = Field(description="Jobs that did not come through at the first try.")
    waiting: list[WaitingUpload]


class SitesAnswer(BaseModel):
    """All websites."""

    sites: list[SiteHealth]


class IndexesAnswer(BaseModel):
    """All indexes."""

    indexes: list[IndexHealth]
    is_complete: bool


class AuditPage(BaseModel):
    """Audits, the newest first."""

    audits: list[StoredAudit]
    next_before: int | None


def plain(value: Any) -> Any:
    """Records as JSON has them."""
    return jsonable_encoder(value, custom_encoder={datetime: format_timestamp})


def run_answer(run: RunInsight, now: datetime) -> dict[str, Any]:
    """A run as clients see it."""
    at = f"{AT}/runs/{run.id}"
    links = {name: f"{at}/{name}" for name in ("logs", "tasks", "errors")}
    links |= {"self": at, "stream": f"{at}/logs/stream", "source": f"{AT}/sources/{run.source}"}
    if run.status is RunStatus.RUNNING:
        links["cancel"] = f"{at}/cancel"
    return {**plain(run), "seconds": run.seconds(now), "links": links}


def command_answer(command: Command) -> dict[str, Any]:
    """A command as clients see it; which process has it is nobody's business."""
    links = {"self": f"{AT}/commands/{command.id}"}
    if command.run_id is not None:
        links["run"] = f"{AT}/runs/{command.run_id}"
    told: Mapping[str, Any] = plain(command)
    shown = {name: value for name, value in told.items() if name not in _HIDDEN}
    return {**shown, "state": command.state, "links": links}


_HIDDEN: Final = frozenset({"claimed_by", "lease_until"})

QueueNamed = Annotated[QueueName, Path(description="Which queue.")]
