"""Commands that upload files and follow their jobs, over the API of `fonds serve`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from fonds.cli.api_client import ApiClient
from fonds.cli.output import EXIT_FAILED, AsJson, err, harmless, out, print_json, print_table, safe
from fonds.errors import ServerError
from fonds.results import Reading
from fonds.uploads.states import FAILURES, JobStatus

SERVER = "http://127.0.0.1:8000"

Server = Annotated[str, typer.Option(metavar="URL", help="Address of `fonds serve`.")]
Token = Annotated[
    str | None,
    typer.Option(help="Made by `fonds token create`; other users cannot see it in FONDS_TOKEN."),
]

jobs_app = typer.Typer(
    help="List uploads with their status; retry failed ones, and delete.",
    invoke_without_command=True,
)


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.command()(upload)
    app.add_typer(jobs_app, name="jobs")


def upload(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="PDF, Word, HTML, Markdown or text.",
            exists=True,
            dir_okay=False,
        ),
    ],
    *,
    server: Server = SERVER,
    token: Token = None,
    wait: Annotated[
        bool,
        typer.Option("--wait/--no-wait", help="Wait until each can be searched or has failed."),
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Upload files, and wait until each can be searched.

    Files with the same bytes become one document.

    \b
    Examples: fonds upload policy.pdf
              fonds upload reports/*.pdf --no-wait
    """
    with _client(context, server, token) as client:
        outcomes = send_all(client, files, wait=wait, quiet=as_json)
    if as_json:
        print_json([outcome.to_json() for outcome in outcomes])
    failed: list[UploadOutcome] = [outcome for outcome in outcomes if outcome.reason is not None]
    for outcome in failed:
        err.print(f"error: {outcome.file}: {outcome.reason}", style="red", markup=False)
    raise typer.Exit(EXIT_FAILED if failed else 0)


@jobs_app.callback()
def jobs(
    context: typer.Context,
    *,
    failed: Annotated[bool, typer.Option("--failed", help="Only failed ones.")] = False,
    all_users: Annotated[
        bool, typer.Option("--all", help="Of all users; needs a token of scope admin.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number, newest first.")] = 50,
    server: Server = SERVER,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """List your uploads and their status.

    \b
    Examples: fonds jobs
              fonds jobs --failed
    """
    if context.invoked_subcommand is not None:
        return
    with _client(context, server, token) as client:
        listed = client.jobs(failed=failed, all_users=all_users, limit=limit)
    if as_json:
        print_json(listed)
        return
    if not listed:
        err.print("no failed uploads" if failed else "no uploads")
        return
    print_table(
        ["id", "status", "name", "bytes", "updated", "last error"],
        [_row(job) for job in listed],
        prose=["name", "last error"],
    )


@jobs_app.command()
def retry(
    context: typer.Context,
    job: Annotated[str, typer.Argument(metavar="ID", help="As listed by `fonds jobs`.")],
    *,
    server: Server = SERVER,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Retry a failed upload from its last completed stage.

    \b
    Example: fonds jobs retry 0b6f1c9e-8f0e-5c5e-9d44-3f4f0c8f9a11
    """
    with _client(context, server, token) as client:
        retried = client.retry(job)
    if as_json:
        print_json(retried)
        return
    out.print(f"{harmless(retried['name'])}: {retried['status']}", markup=False)


@jobs_app.command()
def delete(
    context: typer.Context,
    jobs: Annotated[list[str], typer.Argument(metavar="ID...", help="As listed by `fonds jobs`.")],
    *,
    server: Server = SERVER,
    token: Token = None,
) -> None:
    """Delete uploads: files, texts, passages and vectors. Back-ups keep them.

    Work on them is stopped first.

    \b
    Example: fonds jobs delete 0b6f1c9e-8f0e-5c5e-9d44-3f4f0c8f9a11
    """
    with _client(context, server, token) as client:
        for job in jobs:
            client.delete(job)
            err.print(f"deleted {harmless(job)}", markup=False)


def _client(context: typer.Context, server: str, token: str | None) -> ApiClient:
    return ApiClient(server, token or context.obj.settings().token)


def _row(job: dict[str, Any]) -> tuple[Any, ...]:
    error = (job["last_error"] or {}).get("message", "")
    return (
        job["document_id"],
        job["status"],
        safe(job["name"]),
        job["bytes"],
        job["updated_at"][:16].replace("T", " "),
        safe(error),
    )


CONCURRENCY: Final = 4
"""Files that are uploaded at the same time."""
_CHUNK_BYTES: Final = 1 << 20
_STAGES: Final = [status.value for status in JobStatus if status not in FAILURES]
_BAR_LENGTH: Final = len(_STAGES) + 1
"""A progress bar has one unit for the transfer, and one for each stage."""

ShowProgress = Callable[[float, str], None]
"""Receives the progress of a file in units of its bar, and its state."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UploadOutcome:
    """The result of one upload."""

    file: Path
    job: dict[str, Any] | None
    reason: str | None
    """The error, if it failed."""

    def to_json(self) -> dict[str, Any]:
        """The fields that `--json` prints."""
        return {"file": str(self.file), "error": self.reason, "job": self.job}


def send_all(
    client: ApiClient, files: Sequence[Path], *, wait: bool, quiet: bool
) -> list[UploadOutcome]:
    """Upload files concurrently; with `wait`, follow each job to its end."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        console=err,
        disable=quiet or not err.is_terminal,
    )

    def send(file: Path) -> UploadOutcome:
        task = bar.add_task(safe(file.name), total=_BAR_LENGTH, state="")

        def show(completed: float, state: str) -> None:
            bar.update(task, completed=completed, state=state)

        outcome = _upload(client, file, show, wait=wait)
        state = outcome.job["status"] if outcome.job else "not sent"
        if not quiet and not err.is_terminal:
            err.print(f"{harmless(file.name)}: {state}", markup=False)
        if not quiet and outcome.job:
            print_reading(outcome.job.get("reading"), file.name)
        return outcome

    with bar, ThreadPoolExecutor(CONCURRENCY, "fonds-upload") as pool:
        return list(pool.map(send, files))


def print_reading(reading: dict[str, Any] | None, name: str) -> None:
    """Print what was read of a file, and each warning, to stderr."""
    if reading is None:
        return
    read = Reading.model_validate(reading)
    for line in (read.summary, *(f"warning: {warning}" for warning in read.warnings)):
        if line:
            err.print(f"{harmless(name)}: {harmless(line)}", markup=False)


def _upload(client: ApiClient, file: Path, show: ShowProgress, *, wait: bool) -> UploadOutcome:
    job: dict[str, Any] | None = None
    try:
        job = _announce(client, file, show)
        if job["status"] == "uploaded":
            _transfer(client, file, job, show)
            job = client.complete(job["document_id"])
        if wait and not job["ended"]:
            job = _follow(client, job, show)
    except ServerError as error:
        return UploadOutcome(file=file, job=job, reason=str(error))
    except OSError as error:
        return UploadOutcome(file=file, job=job, reason=error.strerror or type(error).__name__)
    return UploadOutcome(file=file, job=job, reason=_reason(job))


def _announce(client: ApiClient, file: Path, show: ShowProgress) -> dict[str, Any]:
    show(0, "reading")
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
        size = opened.tell()
    return client.announce(file.name, size, digest)


def _transfer(client: ApiClient, file: Path, job: dict[str, Any], show: ShowProgress) -> None:
    with file.open("rb") as opened:
        chunks = _read_chunks(opened, job["bytes"], show)
        client.send(job["upload"], job["bytes"], chunks)


def _read_chunks(opened: BinaryIO, size: int, show: ShowProgress) -> Iterator[bytes]:
    sent = 0
    while chunk := opened.read(min(_CHUNK_BYTES, size - sent)):
        yield chunk
        sent += len(chunk)
        show(sent / size, "sending")


def _follow(client: ApiClient, job: dict[str, Any], show: ShowProgress) -> dict[str, Any]:
    for event in client.follow(job["document_id"]):
        if (notice := event.get("notice")) and notice != job.get("notice"):
            err.print(f"{harmless(job['name'])}: {harmless(notice)}", markup=False)
        job = {**job, **event}
        show(*_progress_of(job))
    return job


def _progress_of(job: dict[str, Any]) -> tuple[float, str]:
    status = job["status"]
    stage = _STAGES.index(status) if status in _STAGES else 0
    progress = job["progress"] or {}
    done, total = progress.get("embeds_done", 0), progress.get("embeds_total", 0)
    state = status.replace("_", " ")
    if status == "embedding_in_progress" and total:
        return stage + 1 + done / total, f"{state}, {done} of {total} passages"
    if notice := job.get("notice"):
        state += f": {notice}"
    return stage + 2, state


def _reason(job: dict[str, Any]) -> str | None:
    if not job["status"].startswith("failed"):
        return None
    return str((job["last_error"] or {}).get("message") or job["status"])
