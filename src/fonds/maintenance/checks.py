"""Whether files can be kept, where the room has gone, and what lies about.

Whether keys and programs are there that some sources and documents need.

Whether runs, queues and commands go on.
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Final
from uuid import uuid4

from sqlalchemy import Row, func, select

from fonds import ids
from fonds.embed.client import PREFIX as BREAKER
from fonds.embed.client import left_alone
from fonds.errors import SourceBusyError, UsageError
from fonds.maintenance.findings import Finding, Patient, broken, doubtful, fine, sized
from fonds.maintenance.metrics import run_figures
from fonds.maintenance.references import stale_files
from fonds.runs.locks import claim_source
from fonds.runs.schedule import trigger_of
from fonds.runs.state import RunStatus
from fonds.sites.tables import websites
from fonds.sources.base import Registered
from fonds.stores.tables import (
    ingestion_leases,
    ingestion_runs,
    ingestion_source_state,
    ingestion_tasks,
    upload_jobs,
)
from fonds.uploads.signing import KEY_FILE
from fonds.uploads.statistics import upload_statistics

LOW: Final = 1 << 30
"""Bytes; with less there is no room for a large source."""
FULL: Final = 64 << 20
"""Bytes; with less SQLite may not be able to commit."""
COUNTED: Final = 5000
"""Objects looked at below one prefix; of more only that many are added up."""


def check_blobs(patient: Patient) -> Iterator[Finding]:
    """Whether an object can be written, read and deleted."""
    key = f"doctor/{uuid4()}"
    patient.blobs.create(key, b"fonds")
    same = patient.blobs.get(key) == b"fonds"
    patient.blobs.delete(key)
    if same:
        yield fine("blobs", "a file was written, read and deleted")
    else:
        yield broken("blobs", "other bytes came back", "do not trust this store; move the blobs")


def check_disk(patient: Patient) -> Iterator[Finding]:
    """Whether there is room, in the home folder and where the blobs are."""
    folders = {"home": patient.settings.home.absolute()}
    if "://" not in patient.settings.blobs_url:
        folders["blobs"] = Path(patient.settings.blobs_url)
    seen: set[int] = set()
    for name, folder in folders.items():
        if (device := folder.stat().st_dev) in seen:
            continue
        seen.add(device)
        free = shutil.disk_usage(folder).free
        found = f"{sized(free)} free ({name})"
        if free >= LOW:
            yield fine("disk", found)
        else:
            judged = doubtful if free >= FULL else broken
            yield judged("disk", found, f"make room in {folder}; `fonds prune` says what may go")


def check_use(patient: Patient) -> Iterator[Finding]:
    """How much each source takes, as far as it is counted."""
    with patient.database.read() as connection:
        known = set(connection.scalars(select(ingestion_runs.c.source).distinct()))
    prefixes = {name: ids.archive_key(name, "x")[:-1] for name in known | set(patient.sources)}
    prefixes |= {"uploads": "raw/", "texts of uploads": "parsed/", "indexes": "indexes/"}
    taken = sorted(
        ((*_taken(patient, prefix), name) for name, prefix in prefixes.items()), reverse=True
    )
    told = [
        f"{name} {'more than ' if is_cut else ''}{sized(size)}"
        for size, is_cut, name in taken
        if size
    ]
    database = patient.settings.home / "fonds.db"
    if patient.database.is_sqlite and database.is_file():
        told.insert(0, f"database {sized(database.stat().st_size)}")
    yield fine("disk use", ", ".join(told) or "nothing yet")


def _taken(patient: Patient, prefix: str) -> tuple[int, bool]:
    """Bytes below a prefix, and whether there is more than was counted."""
    listed = patient.blobs.list(prefix)
    size = sum(info.size for info in islice(listed, COUNTED))
    return size, next(listed, None) is not None


def check_leftovers(patient: Patient) -> Iterator[Finding]:
    """Whether killed processes have left files behind."""
    left = list(stale_files(patient.settings, patient.now))
    if left:
        found = f"{len(left)} temporary files, {sized(sum(file.size for file in left))}"
        yield doubtful("left behind", found, "`fonds prune --apply` removes them")
    else:
        yield fine("left behind", "no temporary file of a process that ended")


def check_server_key(patient: Patient) -> Iterator[Finding]:
    """Whether nobody else on this machine can read what addresses are signed with."""
    path = patient.settings.home / KEY_FILE
    if not path.exists():
        yield fine("server key", "none yet; `fonds serve` makes one")
    elif stat.S_IMODE(path.stat().st_mode) & 0o077:
        found = f"others can read {path}"
        advice = f"chmod 600 {path}; if somebody may have read it, remove it: another one is made"
        yield broken("server key", found, advice)
    else:
        yield fine("server key", "only its owner can read it")


def check_sources(patient: Patient) -> Iterator[Finding]:
    """Which sources there are, and which of them lack a key."""
    sources = patient.sources
    yield fine("sources", ", ".join(sorted(sources)))
    lacking: dict[str, list[str]] = {}
    for name, source in sources.items():
        key = source.info.key
        if key is not None and key.required and not getattr(patient.settings, key.setting):
            lacking.setdefault(key.setting, []).append(name)
    for setting, names in lacking.items():
        signup = next(key.signup for name in names if (key := sources[name].info.key))
        advice = f"set {setting} in fonds.toml or FONDS_{setting.upper()}; get one at {signup}"
        yield doubtful("keys", f"{', '.join(names)}: no key", advice)
    if not lacking:
        yield fine("keys", "no source lacks one")


def check_model(patient: Patient) -> Iterator[Finding]:
    """Whether the model for vectors can be asked."""
    settings = patient.settings
    asks = settings.embedder.startswith("openai:")
    if asks and "api.openai.com" in settings.embed_url and not settings.embed_key:
        yield doubtful("model", f"{settings.embedder} without a key", "set FONDS_EMBED_KEY")
    else:
        yield fine("model", settings.embedder)


def check_programs(patient: Patient) -> Iterator[Finding]:
    """Whether there is a browser for pages that scripts build, and OCR for scanned ones."""
    yield _browser(patient)
    if program := shutil.which("tesseract"):
        yield fine("tesseract", program)
    else:
        advice = "scanned PDFs are read after apt-get install tesseract-ocr"
        yield fine("tesseract", "not installed", advice)


def _browser(patient: Patient) -> Finding:
    from fonds.sites.browser import find_program  # noqa: PLC0415 — few commands need it

    with suppress(UsageError):
        return fine("browser", find_program(patient.settings.browser))
    advice = "apt-get install chromium, or set FONDS_BROWSER to the path of one"
    query = select(func.count()).where(websites.c.rendered, websites.c.enabled)
    with patient.database.read() as connection:
        needing = connection.scalar(query)
    if needing:
        return doubtful("browser", f"none, and {needing} websites need one", advice)
    return fine("browser", "not installed; some websites would need one", advice)


LONG_RUN: Final = timedelta(hours=12)
LATE: Final = timedelta(days=1)
"""How much later than its schedule says a source may have succeeded."""
AHEAD: Final = timedelta(days=7)
"""Publishers list some things before their day."""
IGNORED: Final = timedelta(minutes=2)
"""A command that waits for longer is seen by nobody."""
FORGOTTEN: Final = timedelta(minutes=5)
"""A lease that ran out so long ago belongs to nobody who could renew it."""
SLOW: Final = timedelta(days=1)
"""What waits in a queue for longer has no worker."""
SHOWN: Final = 5

_DRAINED_BY: Final = {
    "normalization": "`fonds normalize --drain`",
    "citation": "`fonds citations`",
    "embedding": "`fonds embed`",
}


def check_runs(patient: Patient) -> Iterator[Finding]:
    """Whether every run that seems to go on has a process."""
    table = ingestion_runs.c
    query = select(table.source, table.started_at).where(table.status == RunStatus.RUNNING)
    with patient.database.read() as connection:
        running = connection.execute(query.order_by(table.started_at)).all()
    dead = [row.source for row in running if _is_dead(patient, row.source)]
    slow = [
        row.source
        for row in running
        if row.source not in dead and row.started_at < patient.now - LONG_RUN
    ]
    if dead:
        advice = "`fonds run SOURCE` closes it and goes on where it ended; so does the scheduler"
        yield doubtful("runs", f"the process of a run is gone: {_some(dead)}", advice)
    if slow:
        hours = LONG_RUN // timedelta(hours=1)
        advice = "`fonds logs --source SOURCE` says what it does"
        yield doubtful("runs", f"more than {hours} hours: {_some(slow)}", advice)
    if not dead and not slow:
        yield fine("runs", f"{len(running)} under way")


def _is_dead(patient: Patient, source: str) -> bool:
    """Whether nobody holds the right to run a source."""
    if patient.database.is_sqlite:
        try:
            with claim_source(patient.database, patient.settings.home, source, patient.seams.clock):
                return True
        except SourceBusyError:
            return False
    table = ingestion_leases.c
    held = select(table.name).where(
        table.name == f"ingest-{source}", table.lease_until > patient.now
    )
    with patient.database.read() as connection:
        return connection.scalar(held) is None


def check_leases(patient: Patient) -> Iterator[Finding]:
    """Whether leases belong to somebody, and no endpoint is left alone."""
    table = ingestion_leases.c
    old = table.lease_until < patient.now - FORGOTTEN
    query = select(table.name).where(old, ~table.name.startswith(BREAKER)).order_by(table.name)
    with patient.database.read() as connection:
        forgotten = list(connection.scalars(query))
        alone = sorted(left_alone(connection, patient.now))
    if forgotten:
        advice = "nothing needs to be done: whoever comes next takes them over"
        yield doubtful("leases", f"their owners are gone: {_some(forgotten)}", advice)
    if alone:
        advice = "see `fonds embed-status`; the endpoint is tried again by itself"
        yield doubtful("leases", f"the endpoint of {_some(alone)} kept failing", advice)
    if not forgotten and not alone:
        yield fine("leases", "none is left by a process that ended")


def check_queues(patient: Patient) -> Iterator[Finding]:
    """Whether what waits is worked on, and nothing was given up."""
    with patient.database.read() as connection:
        told = run_figures(connection, patient.now)
    for name, queue in told.queues.items():
        check, command = f"{name} queue", _DRAINED_BY[name]
        if queue.given_up:
            found = f"{queue.given_up:,} were given up, {queue.waiting:,} wait"
            advice = "the admin page of the queue says why, and can have them tried once more"
            yield doubtful(check, found, advice)
        elif queue.oldest > SLOW.total_seconds():
            found = f"{queue.waiting:,} wait, the first for {_days(queue.oldest)}"
            yield doubtful(check, found, f"run {command}, or keep `fonds scheduler` going")
        else:
            yield fine(check, f"{queue.waiting:,} wait")
    yield from _commands(told.commands.waiting, told.commands.oldest)


def _commands(waiting: int, oldest: float) -> Iterator[Finding]:
    if oldest > IGNORED.total_seconds():
        found = f"{waiting:,} wait, the first for {oldest / 60:,.0f} minutes"
        yield doubtful(
            "commands", found, "nobody takes them: start `fonds scheduler` or `fonds worker`"
        )
    else:
        yield fine("commands", f"{waiting:,} wait")


def check_uploads(patient: Patient) -> Iterator[Finding]:
    """Whether uploads are worked on."""
    failed = select(func.count()).where(upload_jobs.c.status.startswith("failed_"))
    with patient.database.read() as connection:
        told = upload_statistics(connection, patient.now)
        failures = connection.scalar(failed) or 0
    if told.queue.lag > IGNORED.total_seconds():
        found = f"{told.queue.due:,} are due, the first for {told.queue.lag / 60:,.0f} minutes"
        yield doubtful("uploads", found, "start `fonds worker`")
    else:
        advice = "`fonds jobs` says why; `fonds jobs retry` tries again" if failures else ""
        yield fine("uploads", f"{told.queue.due:,} are due, {failures:,} have failed", advice)


def check_errors(patient: Patient) -> Iterator[Finding]:
    """How many tasks have failed and were not made good."""
    table = ingestion_tasks.c
    standing = (table.stage == "errored") & table.resolved_at.is_(None)
    many = func.count()
    query = select(table.source, many).where(standing).group_by(table.source).order_by(many.desc())
    with patient.database.read() as connection:
        counted = connection.execute(query).all()
    told = ", ".join(f"{source} {count:,}" for source, count in counted[:SHOWN])
    advice = "`fonds errors SOURCE` names them; the next run tries them again" if counted else ""
    yield fine(
        "errors", f"failed tasks stand: {told}" if counted else "no failed task stands", advice
    )


def check_watermarks(patient: Patient) -> Iterator[Finding]:
    """Whether sources have succeeded as often as they should, and none is ahead of its time."""
    with patient.database.read() as connection:
        states = connection.execute(select(ingestion_source_state)).all()
    ahead = [row.source for row in states if _is_ahead(row.last_seen_key, patient.now)]
    registry, now = patient.sources, patient.now
    late = [row.source for row in states if _is_late(row, registry.get(row.source), now)]
    if ahead:
        advice = "what was published since may be missing: `fonds backfill SOURCE --since DATE`"
        yield doubtful("watermarks", f"in the future: {_some(ahead)}", advice)
    if late:
        advice = "`fonds status --source SOURCE` says why; is `fonds scheduler` running?"
        yield doubtful("watermarks", f"behind their schedule: {_some(late)}", advice)
    if not ahead and not late:
        yield fine("watermarks", f"{len(states)} sources, none ahead of its time or behind")


def _is_ahead(key: str | None, now: datetime) -> bool:
    try:
        return date.fromisoformat((key or "")[:10]) > (now + AHEAD).date()
    except ValueError:
        return False  # not every publisher counts by days


def _is_late(row: Row[tuple[object, ...]], source: Registered | None, now: datetime) -> bool:
    trigger = trigger_of(source.info) if source else None
    if trigger is None or row.last_run_at is None:
        return False
    since = row.last_success_at or row.last_run_at
    due: datetime | None = trigger.get_next_fire_time(None, since + timedelta(seconds=1))
    return due is not None and due + LATE < now


def _some(names: list[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _days(seconds: float) -> str:
    return f"{seconds / 86_400:,.0f} days" if seconds >= 172_800 else f"{seconds / 3600:,.0f} hours"  # noqa: PLR2004 — two days
