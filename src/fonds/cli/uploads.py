"""Commands that upload files and look after their jobs, over the API of `fonds serve`.

Files on their way to a server, each with a line that says how far it is.
"""

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
from fonds.uploads.states import FAILURES, JobStatus

SERVER = "http://127.0.0.1:8000"

Server = Annotated[str, typer.Option(metavar="URL", help="Where `fonds serve` is reached.")]
Token = Annotated[
    str | None,
    typer.Option(
        help="Of `fonds token create`; the setting `token` (FONDS_TOKEN) is seen by no other user."
    ),
]

jobs_app = typer.Typer(
    help="Uploads on their way; those that failed, and once more.", invoke_without_command=True
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
        bool, typer.Option("--wait/--no-wait", help="Until each can be found, or has failed.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Upload files, and watch each become searchable.

    The same bytes are one document, however often they are uploaded.

    \b
    Examples: fonds upload policy.pdf
              fonds upload reports/*.pdf --no-wait
    """
    with _client(context, server, token) as client:
        outcomes = send_all(client, files, wait=wait, quiet=as_json)
    if as_json:
        print_json([outcome.told() for outcome in outcomes])
    failed: list[UploadOutcome] = [outcome for outcome in outcomes if outcome.reason is not None]
    for outcome in failed:
        err.print(f"error: {outcome.file}: {outcome.reason}", style="red", markup=False)
    raise typer.Exit(EXIT_FAILED if failed else 0)


@jobs_app.callback()
def jobs(
    context: typer.Context,
    *,
    failed: Annotated[bool, typer.Option("--failed", help="Only those that failed.")] = False,
    everybody: Annotated[
        bool, typer.Option("--all", help="Of all users; needs a token of the scope admin.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = 50,
    server: Server = SERVER,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """List your uploads and where each of them stands.

    \b
    Examples: fonds jobs
              fonds jobs --failed
    """
    if context.invoked_subcommand is not None:
        return
    with _client(context, server, token) as client:
        found = client.jobs(failed=failed, everybody=everybody, limit=limit)
    if as_json:
        print_json(found)
        return
    if not found:
        err.print("there are none that failed" if failed else "there are none")
        return
    print_table(
        ["id", "status", "name", "bytes", "updated", "last error"],
        [_row(job) for job in found],
        prose=["name", "last error"],
    )


@jobs_app.command()
def retry(
    context: typer.Context,
    job: Annotated[str, typer.Argument(metavar="ID", help="As `fonds jobs` shows it.")],
    *,
    server: Server = SERVER,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Send an upload that failed back to its last good stage.

    \b
    Example: fonds jobs retry 0b6f1c9e-8f0e-5c5e-9d44-3f4f0c8f9a11
    """
    with _client(context, server, token) as client:
        sent = client.retry(job)
    if as_json:
        print_json(sent)
        return
    out.print(f"{harmless(sent['name'])}: {sent['status']}", markup=False)


def _client(context: typer.Context, server: str, token: str | None) -> ApiClient:
    from fonds.cli.api_client import ApiClient  # noqa: PLC0415 — few commands send requests

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


AT_ONCE: Final = 4
"""Files under way at the same time."""
_PIECE: Final = 1 << 20
_STAGES: Final = [status.value for status in JobStatus if status not in FAILURES]
_WHOLE: Final = len(_STAGES) + 1
"""A bar has a part for the sending, and one for each stage."""

Show = Callable[[float, str], None]
"""How far a file is, in parts of its bar, and in a word."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UploadOutcome:
    """What became of a file."""

    file: Path
    job: dict[str, Any] | None
    reason: str | None
    """Why it failed; None if it did not."""

    def told(self) -> dict[str, Any]:
        """For machines."""
        return {"file": str(self.file), "error": self.reason, "job": self.job}


def send_all(
    client: ApiClient, files: Sequence[Path], *, wait: bool, quiet: bool
) -> list[UploadOutcome]:
    """Send files, some at once, and see each to its end if that is wanted."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        console=err,
        disable=quiet or not err.is_terminal,
    )

    def send(file: Path) -> UploadOutcome:
        task = bar.add_task(safe(file.name), total=_WHOLE, state="")

        def show(parts: float, state: str) -> None:
            bar.update(task, completed=parts, state=state)

        outcome = _sent(client, file, show, wait=wait)
        state = outcome.job["status"] if outcome.job else "not sent"
        if not quiet and not err.is_terminal:
            err.print(f"{harmless(file.name)}: {state}", markup=False)
        return outcome

    with bar, ThreadPoolExecutor(AT_ONCE, "fonds-upload") as pool:
        return list(pool.map(send, files))


def _sent(client: ApiClient, file: Path, show: Show, *, wait: bool) -> UploadOutcome:
    job: dict[str, Any] | None = None
    try:
        job = _announced(client, file, show)
        if job["status"] == "uploaded":
            _deliver(client, file, job, show)
            job = client.complete(job["document_id"])
        if wait and not job["ended"]:
            job = _watched(client, job, show)
    except ServerError as error:
        return UploadOutcome(file=file, job=job, reason=str(error))
    except OSError as error:
        return UploadOutcome(file=file, job=job, reason=error.strerror or type(error).__name__)
    return UploadOutcome(file=file, job=job, reason=_reason(job))


def _announced(client: ApiClient, file: Path, show: Show) -> dict[str, Any]:
    show(0, "reading")
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
        size = opened.tell()
    return client.announce(file.name, size, digest)


def _deliver(client: ApiClient, file: Path, job: dict[str, Any], show: Show) -> None:
    with file.open("rb") as opened:
        pieces = _pieces(opened, job["bytes"], show)
        client.send(job["upload"], job["bytes"], pieces)


def _pieces(opened: BinaryIO, size: int, show: Show) -> Iterator[bytes]:
    sent = 0
    while piece := opened.read(min(_PIECE, size - sent)):
        yield piece
        sent += len(piece)
        show(sent / size, "sending")


def _watched(client: ApiClient, job: dict[str, Any], show: Show) -> dict[str, Any]:
    for seen in client.follow(job["document_id"]):
        job = {**job, **seen}
        show(*_standing(job))
    return job


def _standing(job: dict[str, Any]) -> tuple[float, str]:
    status = job["status"]
    place = _STAGES.index(status) if status in _STAGES else 0
    progress = job["progress"] or {}
    done, total = progress.get("embeds_done", 0), progress.get("embeds_total", 0)
    state = status.replace("_", " ")
    if status == "embedding_in_progress" and total:
        return place + 1 + done / total, f"{state}, {done} of {total} passages"
    if status == "parse_queued":
        state += ", until `fonds worker` takes it"
    return place + 2, state


def _reason(job: dict[str, Any]) -> str | None:
    if not job["status"].startswith("failed"):
        return None
    return str((job["last_error"] or {}).get("message") or job["status"])
