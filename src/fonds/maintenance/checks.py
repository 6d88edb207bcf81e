"""Checks of files and disks, of keys and programs, and of runs, queues, leases and uploads."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime, timedelta
from importlib.metadata import EntryPoint, entry_points
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Final

from sqlalchemy import Row, func, select

from fonds import ids
from fonds.embed.client import BREAKER_PREFIX, open_breakers
from fonds.embed.registry import GROUP as EMBEDDERS
from fonds.engine.opening import open_engine
from fonds.errors import FondsError, PluginError, SourceBusyError, UsageError
from fonds.exchange.snapshot import display_address
from fonds.maintenance.disk import free_space
from fonds.maintenance.findings import Finding, MaintenanceTarget, failure, ok, sized, warning
from fonds.maintenance.metrics import run_statistics
from fonds.maintenance.references import stale_files
from fonds.maintenance.store_monitor import DEADLINE_SECONDS, problem_of_store, within_deadline
from fonds.normalize.registry import GROUP as NORMALIZERS
from fonds.plugins import broken_plugins, load_plugin
from fonds.runs.locks import lock_source
from fonds.runs.schedule import trigger_of
from fonds.runs.state import RunStatus
from fonds.sites.browser import find_program
from fonds.sites.tables import websites
from fonds.sources.base import Registered
from fonds.sources.registry import GROUP as SOURCES
from fonds.sources.registry import plugin_sources
from fonds.stores.database import sqlite_file
from fonds.stores.permissions import is_private
from fonds.stores.server_values import HIDDEN_CLIENTS, read_value
from fonds.stores.tables import (
    ingestion_leases,
    ingestion_runs,
    ingestion_source_state,
    ingestion_tasks,
    upload_jobs,
)
from fonds.uploads.statistics import upload_statistics

MIN_FREE: Final = 1 << 30
"""Bytes; less may not be enough for a large source."""
CRITICAL_FREE: Final = 64 << 20
"""Bytes; with less SQLite may not be able to commit."""
HIDDEN_CLIENTS_FOR: Final = timedelta(days=1)
"""How long a hidden client is reported; the server stores the newest every hour."""
MAX_COUNTED: Final = 5000
"""Objects below one prefix whose sizes are added; more are not counted."""


def check_blobs(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check that a blob can be written, read and deleted before a deadline."""
    problem = problem_of_store(target.blobs, "doctor", DEADLINE_SECONDS)
    if problem is None:
        yield ok("blobs", "a file was written, read and deleted")
    elif "within" in problem:
        advice = "the store hangs: see its log, its free space and its volumes, and the network"
        yield failure("blobs", f"{problem}: {display_address(target.settings.blobs_url)}", advice)
    else:
        yield failure("blobs", problem, "do not use this store; move the blobs")


def check_engine(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check that the engine exists and, if it is a cluster, that it can be joined."""
    address = target.settings.engine

    def count_workers() -> int:
        with open_engine(address) as engine:
            return engine.workers

    try:
        workers = within_deadline(count_workers, DEADLINE_SECONDS)
    except TimeoutError:
        summary = f"{address} did not answer within {DEADLINE_SECONDS:.0f} seconds"
        yield failure("engine", summary, "see `ray status`, or set FONDS_ENGINE=local")
    except (FondsError, OSError, RuntimeError) as error:  # of Ray: the versions differ
        yield failure("engine", str(error), "correct FONDS_ENGINE, or `engine` in fonds.toml")
    else:
        yield ok("engine", f"{address}, {workers} processes")


def check_disk(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check the free space of the home folder and of the blobs."""
    for name, folder, free in free_space(target.settings):
        summary = f"{sized(free)} free ({name})"
        if free >= MIN_FREE:
            yield ok("disk", summary)
        else:
            report = warning if free >= CRITICAL_FREE else failure
            advice = f"free space in {folder}; `fonds prune` lists what can be deleted"
            yield report("disk", summary, advice)


def check_use(target: MaintenanceTarget) -> Iterator[Finding]:
    """Report the disk use of each source."""
    with target.database.read() as connection:
        sources = set(connection.scalars(select(ingestion_runs.c.source).distinct()))
    prefixes = {name: ids.archive_key(name, "x")[:-1] for name in sources | set(target.sources)}
    prefixes |= {"uploads": "raw/", "texts of uploads": "parsed/", "indexes": "indexes/"}
    taken = sorted(
        ((*_usage(target, prefix), name) for name, prefix in prefixes.items()), reverse=True
    )
    usages = [
        f"{name} {'more than ' if is_cut else ''}{sized(size)}"
        for size, is_cut, name in taken
        if size
    ]
    database = target.settings.home / "fonds.db"
    if target.database.is_sqlite and database.is_file():
        usages.insert(0, f"database {sized(database.stat().st_size)}")
    yield ok("disk use", ", ".join(usages) or "nothing yet")


def _usage(target: MaintenanceTarget, prefix: str) -> tuple[int, bool]:
    """Bytes below a prefix, and whether some were not counted."""
    listed = target.blobs.list(prefix)
    size = sum(info.size for info in islice(listed, MAX_COUNTED))
    return size, next(listed, None) is not None


def check_leftovers(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check for files that killed processes left behind."""
    left = list(stale_files(target.settings, target.now))
    if left:
        summary = f"{len(left)} temporary files, {sized(sum(file.size for file in left))}"
        yield warning("left behind", summary, "`fonds prune --apply` removes them")
    else:
        yield ok("left behind", "no temporary files of dead processes")


def check_clients(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check that servers know their clients' addresses, also behind proxies."""
    with target.database.read() as connection:
        stored = read_value(connection, HIDDEN_CLIENTS)
    if stored is None or target.now - stored.updated_at > HIDDEN_CLIENTS_FOR:
        yield ok("clients", "no proxy has hidden the address of a client today")
        return
    peer, trace = stored.value["peer"], stored.value["trace"]
    yield warning(
        "clients",
        f"a proxy at {peer} hides the addresses of clients ({trace}, last at "
        f"{stored.updated_at:%Y-%m-%d %H:%M} UTC): limits count all of them as one",
        f"let it send X-Forwarded-For, and set FONDS_TRUSTED_PROXIES={peer} "
        "(docs/how-to/deploy.md); without a proxy there, a client has invented this",
    )


def check_permissions(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check that no other user of this machine can read the library."""
    folders = [target.settings.home.resolve()]
    if file := sqlite_file(target.settings.database_url):
        folders.append(file.parent.resolve())
    if "://" not in target.settings.blobs_url:
        folders.append(Path(target.settings.blobs_url).resolve())
    private = [folder for folder in folders if is_private(folder)]
    readable = [
        str(folder)
        for folder in dict.fromkeys(folders)
        if not any(folder.is_relative_to(other) for other in private)
    ]
    if readable:
        summary = f"other users of this machine can read {', '.join(readable)}"
        yield warning("permissions", summary, f"chmod 700 {' '.join(map(quote, readable))}")
    else:
        yield ok("permissions", "only its owner can read the library")


def check_sources(target: MaintenanceTarget) -> Iterator[Finding]:
    """List all sources, and check that they have their keys."""
    sources = target.sources
    yield ok("sources", ", ".join(sorted(sources)))
    without_key: dict[str, list[str]] = {}
    for name, source in sources.items():
        key = source.info.key
        if key is not None and key.required and not getattr(target.settings, key.setting):
            without_key.setdefault(key.setting, []).append(name)
    for setting, names in without_key.items():
        signup = next(key.signup for name in names if (key := sources[name].info.key))
        advice = f"set {setting} in fonds.toml or FONDS_{setting.upper()}; get one at {signup}"
        yield warning("keys", f"{', '.join(names)}: no key", advice)
    if not without_key:
        yield ok("keys", "no source is without its key")


def check_plugins(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check that the plugins of installed packages can be loaded."""
    names = sorted(set(target.sources) & set(plugin_sources()))
    for group in (NORMALIZERS, EMBEDDERS):
        for entry in entry_points(group=group):
            with suppress(PluginError):
                load_plugin(entry, EntryPoint.load)
                names.append(entry.name)
    broken = [each for group in (SOURCES, NORMALIZERS, EMBEDDERS) for each in broken_plugins(group)]
    for each in broken:
        summary = f"{each.name} ({each.group}) is left out: {each.reason}"
        yield warning("plugins", summary, f"update or remove the package {each.package}")
    if not broken:
        yield ok("plugins", ", ".join(names) or "none installed")


def check_model(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check that the embedding model has its key."""
    settings = target.settings
    is_remote = settings.embedder.startswith("openai:")
    if is_remote and "api.openai.com" in settings.embed_url and not settings.embed_key:
        yield warning("model", f"{settings.embedder} without a key", "set FONDS_EMBED_KEY")
    else:
        yield ok("model", settings.embedder)


def check_programs(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check for a browser, for pages built by scripts, and for OCR, for scanned PDFs."""
    yield _browser(target)
    if program := shutil.which("tesseract"):
        yield ok("tesseract", program)
    else:
        advice = "to read scanned PDFs: apt-get install tesseract-ocr"
        yield ok("tesseract", "not installed", advice)


def _browser(target: MaintenanceTarget) -> Finding:

    with suppress(UsageError):
        return ok("browser", find_program(target.settings.browser))
    advice = "apt-get install chromium, or set FONDS_BROWSER to the path of a browser"
    query = select(func.count()).where(websites.c.rendered, websites.c.enabled)
    with target.database.read() as connection:
        rendered_sites = connection.scalar(query)
    if rendered_sites:
        return warning("browser", f"none, and {rendered_sites} websites need one", advice)
    return ok("browser", "not installed; some websites would need one", advice)


LONG_RUN: Final = timedelta(hours=12)
MAX_DELAY: Final = timedelta(days=1)
"""The tolerated delay of a source after the time of its schedule."""
MAX_AHEAD: Final = timedelta(days=7)
"""Publishers list some items before their date."""
COMMAND_DELAY: Final = timedelta(minutes=2)
"""No process takes a command that has waited for longer."""
LEASE_GRACE: Final = timedelta(minutes=5)
"""The owner of a lease that expired longer ago is dead."""
MAX_QUEUE_WAIT: Final = timedelta(days=1)
"""No worker takes rows of a queue that have waited for longer."""
MAX_NAMES: Final = 5

_DRAINED_BY: Final = {
    "normalization": "`fonds normalize --drain`",
    "citation": "`fonds citations`",
    "embedding": "`fonds embed`",
}


def check_runs(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check that every unfinished run has a process, and that none takes too long."""
    table = ingestion_runs.c
    query = select(table.source, table.started_at).where(table.status == RunStatus.RUNNING)
    with target.database.read() as connection:
        running = connection.execute(query.order_by(table.started_at)).all()
    dead = [row.source for row in running if _is_dead(target, row.source)]
    slow = [
        row.source
        for row in running
        if row.source not in dead and row.started_at < target.now - LONG_RUN
    ]
    if dead:
        advice = "`fonds run SOURCE` closes it and continues from there; so does the scheduler"
        yield warning("runs", f"the process of a run is dead: {_some(dead)}", advice)
    if slow:
        hours = LONG_RUN // timedelta(hours=1)
        advice = "`fonds logs --source SOURCE` shows its progress"
        yield warning("runs", f"more than {hours} hours: {_some(slow)}", advice)
    if not dead and not slow:
        yield ok("runs", f"{len(running)} in progress")


def _is_dead(target: MaintenanceTarget, source: str) -> bool:
    """True if no process has the lock of a source."""
    if target.database.is_sqlite:
        try:
            with lock_source(target.database, target.settings.home, source, target.seams.clock):
                return True
        except SourceBusyError:
            return False
    table = ingestion_leases.c
    is_leased = select(table.name).where(
        table.name == f"ingest-{source}", table.lease_until > target.now
    )
    with target.database.read() as connection:
        return connection.scalar(is_leased) is None


def check_leases(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check for leases of dead processes, and for open circuit breakers."""
    table = ingestion_leases.c
    old = table.lease_until < target.now - LEASE_GRACE
    is_lock = ~table.name.startswith(BREAKER_PREFIX)
    query = select(table.name).where(old, is_lock).order_by(table.name)
    with target.database.read() as connection:
        expired = list(connection.scalars(query))
        paused_models = sorted(open_breakers(connection, target.now))
    if expired:
        advice = "nothing needs to be done: the next process takes them over"
        yield warning("leases", f"their owners are dead: {_some(expired)}", advice)
    if paused_models:
        advice = "see `fonds embed-status`; the endpoint is tried again automatically"
        yield warning("leases", f"the endpoint of {_some(paused_models)} kept failing", advice)
    if not expired and not paused_models:
        yield ok("leases", "none of a dead process")


def check_queues(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check that queues are processed, and that no row has failed for good."""
    with target.database.read() as connection:
        statistics = run_statistics(connection, target.now)
    for name, queue in statistics.queues.items():
        check, command = f"{name} queue", _DRAINED_BY[name]
        if queue.given_up:
            summary = f"{queue.given_up:,} were given up, {queue.waiting:,} wait"
            advice = "the admin page of the queue shows the reasons and can retry them"
            yield warning(check, summary, advice)
        elif queue.oldest > MAX_QUEUE_WAIT.total_seconds():
            summary = f"{queue.waiting:,} wait, the first for {_days(queue.oldest)}"
            yield warning(check, summary, f"run {command}, or keep `fonds scheduler` going")
        else:
            yield ok(check, f"{queue.waiting:,} wait")
    yield from _commands(statistics.commands.waiting, statistics.commands.oldest)


def _commands(waiting: int, oldest: float) -> Iterator[Finding]:
    if oldest > COMMAND_DELAY.total_seconds():
        summary = f"{waiting:,} wait, the first for {oldest / 60:,.0f} minutes"
        yield warning(
            "commands", summary, "no process takes them: start `fonds scheduler` or `fonds worker`"
        )
    else:
        yield ok("commands", f"{waiting:,} wait")


def check_uploads(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check that uploads are processed."""
    failed = select(func.count()).where(upload_jobs.c.status.startswith("failed_"))
    with target.database.read() as connection:
        queue = upload_statistics(connection, target.now).queue
        failures = connection.scalar(failed) or 0
    if queue.lag > COMMAND_DELAY.total_seconds():
        summary = f"{queue.due:,} are due, the first for {queue.lag / 60:,.0f} minutes"
        yield warning("uploads", summary, "start `fonds worker`")
    else:
        advice = "`fonds jobs` shows the reasons; `fonds jobs retry` retries" if failures else ""
        yield ok("uploads", f"{queue.due:,} are due, {failures:,} have failed", advice)


def check_errors(target: MaintenanceTarget) -> Iterator[Finding]:
    """Count failed tasks that have not succeeded since."""
    table = ingestion_tasks.c
    is_open = (table.stage == "errored") & table.resolved_at.is_(None)
    many = func.count()
    query = select(table.source, many).where(is_open).group_by(table.source).order_by(many.desc())
    with target.database.read() as connection:
        counted = connection.execute(query).all()
    counts = ", ".join(f"{source} {count:,}" for source, count in counted[:MAX_NAMES])
    if counted:
        advice = (
            "`fonds errors` lists them; the next run retries them, `fonds dismiss` forgets them"
        )
        yield warning("errors", f"failed tasks: {counts}", advice)
    else:
        yield ok("errors", "no failed tasks")


def check_watermarks(target: MaintenanceTarget) -> Iterator[Finding]:
    """Check that sources have succeeded on schedule, and that no watermark is in the future."""
    with target.database.read() as connection:
        states = connection.execute(select(ingestion_source_state)).all()
    ahead = [row.source for row in states if _is_ahead(row.last_seen_key, target.now)]
    registry, now = target.sources, target.now
    late = [
        row.source
        for row in states
        if row.source in (target.settings.scheduled_sources or [row.source])
        and _is_late(row, registry.get(row.source), now)
    ]
    if ahead:
        advice = "later documents may be missing: `fonds backfill SOURCE --since DATE`"
        yield warning("watermarks", f"in the future: {_some(ahead)}", advice)
    if late:
        advice = "see `fonds status --source SOURCE`; is `fonds scheduler` running?"
        yield warning("watermarks", f"behind their schedule: {_some(late)}", advice)
    if not ahead and not late:
        yield ok("watermarks", f"{len(states)} sources, none late or in the future")


def _is_ahead(key: str | None, now: datetime) -> bool:
    try:
        return date.fromisoformat((key or "")[:10]) > (now + MAX_AHEAD).date()
    except ValueError:
        return False  # not every watermark is a date


def _is_late(row: Row[tuple[object, ...]], source: Registered | None, now: datetime) -> bool:
    trigger = trigger_of(source.info) if source else None
    if trigger is None or row.last_run_at is None:
        return False
    since = row.last_success_at or row.last_run_at
    due: datetime | None = trigger.get_next_fire_time(None, since + timedelta(seconds=1))
    return due is not None and due + MAX_DELAY < now


def _some(names: list[str]) -> str:
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def _days(seconds: float) -> str:
    return f"{seconds / 86_400:,.0f} days" if seconds >= 172_800 else f"{seconds / 3600:,.0f} hours"  # noqa: PLR2004 — two days
