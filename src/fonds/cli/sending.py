"""Files on their way to a server, each with a line that says how far it is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from fonds.cli.api_client import ApiClient
from fonds.cli.output import err, harmless, safe
from fonds.errors import ServerError
from fonds.uploads.states import FAILURES, JobStatus

AT_ONCE: Final = 4
"""Files under way at the same time."""
_PIECE: Final = 1 << 20
_STAGES: Final = [status.value for status in JobStatus if status not in FAILURES]
_WHOLE: Final = len(_STAGES) + 1
"""A bar has a part for the sending, and one for each stage."""

Show = Callable[[float, str], None]
"""How far a file is, in parts of its bar, and in a word."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of a file."""

    file: Path
    job: dict[str, Any] | None
    reason: str | None
    """Why it failed; None if it did not."""

    def told(self) -> dict[str, Any]:
        """For machines."""
        return {"file": str(self.file), "error": self.reason, "job": self.job}


def send_all(client: ApiClient, files: Sequence[Path], *, wait: bool, quiet: bool) -> list[Outcome]:
    """Send files, some at once, and see each to its end if that is wanted."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        console=err,
        disable=quiet or not err.is_terminal,
    )

    def send(file: Path) -> Outcome:
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


def _sent(client: ApiClient, file: Path, show: Show, *, wait: bool) -> Outcome:
    job: dict[str, Any] | None = None
    try:
        job = _announced(client, file, show)
        if job["status"] == "uploaded":
            _deliver(client, file, job, show)
            job = client.complete(job["document_id"])
        if wait and not job["ended"]:
            job = _watched(client, job, show)
    except ServerError as error:
        return Outcome(file=file, job=job, reason=str(error))
    except OSError as error:
        return Outcome(file=file, job=job, reason=error.strerror or type(error).__name__)
    return Outcome(file=file, job=job, reason=_reason(job))


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
