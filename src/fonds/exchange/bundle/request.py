"""Loads the bundle at an address: a copy of it where it is not at hand, then the bundle itself."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select

from fonds.context import Context
from fonds.errors import BundleError
from fonds.exchange.bundle.create import Watch
from fonds.exchange.bundle.load import LoadReport, load
from fonds.exchange.bundle.opening import BundleMirror, is_url, open_folder
from fonds.exchange.bundle.raw import read_raw_package
from fonds.exchange.bundle.statement import Statement, read_statement
from fonds.exchange.bundle.verify import CheckedBundle, require_valid
from fonds.runs.concurrency import in_thread
from fonds.stores.blobs import Blobs
from fonds.stores.permissions import make_private_folder
from fonds.stores.tables import loaded_bundles


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadRequest:
    """A bundle that is to be loaded."""

    address: str
    display: str
    """The address without secrets."""
    key: str | None
    """The public key that must have signed it."""
    is_pull: bool
    """True if the same address is loaded again and again."""
    watch: Watch


async def load_from(request: LoadRequest, context: Context) -> LoadReport:
    """Load a bundle, checked and compared; a pull keeps its tables for the next one."""
    name = hashlib.sha256(request.address.encode()).hexdigest()[:16]
    work = context.settings.home / "bundles" / name
    make_private_folder(work)
    pin = await in_thread(_pin, request, context)
    if is_url(request.address):
        report = await _load_url(request, context, work, pin)
    else:
        blobs = await in_thread(open_folder, request.address, work / "files")
        bundle = await in_thread(_checked, request, blobs, with_containers=True)
        _require_key(bundle.statement, request, pin)
        report = await load(bundle, context, work / "scratch", watch=request.watch)
    if not (request.is_pull and is_url(request.address)):
        shutil.rmtree(work, ignore_errors=True)
    return report


@dataclass(frozen=True, slots=True)
class _Pin:
    """The key that signed the bundle that was pulled from an address before."""

    key: str | None


def _pin(request: LoadRequest, context: Context) -> _Pin | None:
    if not request.is_pull:
        return None
    table = loaded_bundles.c
    query = (
        select(table.key)
        .where(table.address == request.display, table.loaded_at.is_not(None))
        .order_by(table.began_at.desc())
        .limit(1)
    )
    with context.database.read() as connection:
        row = connection.execute(query).one_or_none()
    return _Pin(row.key) if row else None


def _require_key(statement: Statement | None, request: LoadRequest, pin: _Pin | None) -> None:
    """BundleError for a bundle that another key signs than the one before, or than is given."""
    key = statement.key if statement else None
    if request.key is not None or pin is None or pin.key in {None, key}:
        return
    signer = f"it is signed by {key}" if key else "it is not signed any more"
    why = (
        "the old key vouches for the new one"
        if statement and statement.is_successor_of(pin.key or "")
        else "nothing says that the new one is of the same maker"
    )
    raise BundleError(
        f"the bundle is refused, and nothing was changed: the last one from this address was "
        f"signed by {pin.key}, and {signer}; {why}. Compare it with the key that the maker "
        f"publishes, and pass it with --key"
    )


def _checked(request: LoadRequest, blobs: Blobs, *, with_containers: bool) -> CheckedBundle:
    return require_valid(
        blobs,
        request.display,
        key=request.key,
        with_containers=with_containers,
        watch=request.watch,
    )


async def _load_url(
    request: LoadRequest, context: Context, work: Path, pin: _Pin | None
) -> LoadReport:
    mirror = BundleMirror(request.address, work, context.fetcher, watch=request.watch)
    package = await mirror.fetch_descriptors()
    _require_key(await in_thread(read_statement, mirror.blobs), request, pin)
    await mirror.fetch_tables(package, await in_thread(read_raw_package, mirror.blobs))
    bundle = await in_thread(_checked, request, mirror.blobs, with_containers=False)
    report = await load(
        bundle, context, work / "scratch", fetch=mirror.fetch_containers, watch=request.watch
    )
    await in_thread(mirror.drop_containers)
    return report
