"""Whether files can be kept, where the room has gone, and what lies about."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final
from uuid import uuid4

from sqlalchemy import select

from fonds import ids
from fonds.sources.registry import all_sources
from fonds.stores.tables import ingestion_runs
from fonds.upkeep.findings import Finding, Patient, broken, doubtful, fine, sized
from fonds.upkeep.leftovers import stale_files
from fonds.uploads.signing import KEY_FILE

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
    prefixes = {name: ids.archive_key(name, "x")[:-1] for name in known | set(all_sources())}
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
