"""Signed bundles of the demo's library, and libraries that bundles are loaded into."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import func, inspect, select

from fonds.exchange.bundle.contents import DOCUMENTS, ORIGINS
from fonds.exchange.bundle.create import BundleSigner, create
from fonds.exchange.bundle.load import LoadReport
from fonds.exchange.bundle.request import LoadRequest, load_from
from fonds.exchange.keys import SigningKey
from fonds.library import Library, open_library
from fonds.stores.tables import metadata
from tests.support.damaged_bundles import OpenBundle, at
from tests.support.libraries.demo import demo

KEY: Final = SigningKey.generate()
BILL: Final = "bill:119-hr-2101"
SOURCES: Final = ("bills", "cbo", "usc")
STATE: Final = ("documents", "document_chunk_buffer", "ingestion_inputs", "bills", "nodes")


def bundled(library: Library, folder: Path, *, raw: bool = True, **given: Any) -> str:
    """Make a signed bundle; returns its root."""
    created = create(
        library.database,
        at(folder),
        where="here",
        archive=library.blobs if raw else None,
        signer=BundleSigner(key=KEY),
        **given,
    )
    assert created.raw is None or not created.raw.without
    return created.root


def bundle_demo(folder: Path) -> Path:
    """Make a signed bundle of the demo's library with the publishers' bytes."""
    with open_library(demo().home) as library:
        bundled(library, folder, sources=SOURCES)
    return folder


@contextmanager
def library_at(home: Path, **settings: Any) -> Iterator[Library]:
    """The library in a folder, which is made if it is missing."""
    with open_library(home, create=True, **settings) as library:
        yield library


def load(
    library: Library, address: Path | str, *, key: str | None = None, is_pull: bool = False
) -> LoadReport:
    """Load a bundle as the command does."""

    async def loading() -> LoadReport:
        async with library.open_context() as context:
            name = str(address)
            request = LoadRequest(
                address=name, display=name, key=key, is_pull=is_pull, watch=lambda *_: None
            )
            return await load_from(request, context)

    return asyncio.run(loading())


def root_of(library: Library, folder: Path) -> str:
    """The root of a bundle that is made of a library."""
    return create(library.database, at(folder), sources=SOURCES, where="here").root


def rows(library: Library, *tables: str) -> dict[str, Any]:
    """All rows of some tables, without the run that loaded them."""
    with library.database.read() as connection:
        return {
            name: sorted(map(repr, connection.execute(select(metadata.tables[name]))))
            for name in tables
        }


def counts(library: Library) -> dict[str, int]:
    """The number of rows of each table."""
    with library.database.read() as connection:
        existing = set(inspect(connection).get_table_names())
        return {
            name: connection.scalar(select(func.count()).select_from(table)) or 0
            for name, table in metadata.tables.items()
            if name in existing
        }


def retitled(bundle: OpenBundle) -> None:
    """The publisher changed the title of a bill."""
    old = bundle.document(BILL, ORIGINS)["raw_sha256"]
    title = bundle.document(BILL, DOCUMENTS)["title"].encode()
    assert title in bundle.files[old]
    sha = bundle.replace_file(old, bundle.files[old].replace(title, b"Another Title Act"))
    for row in bundle.rows[ORIGINS]:
        row["raw_sha256"] = sha if row["raw_sha256"] == old else row["raw_sha256"]
