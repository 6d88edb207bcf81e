"""The processes of a selftest of a product that is broken in two ways.

Its store says that it has stored what it could not store, and a library that was disturbed forgets
its citations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps

from sqlalchemy import delete

from fonds.errors import BlobExistsError, StoreError
from fonds.library import Library
from fonds.selftest import child, scenario
from fonds.selftest.child import serve
from fonds.stores.folder import Data, FolderBlobs
from fonds.stores.tables import citation_edges

Storing = Callable[[FolderBlobs, str, Data], str]

whole = scenario.STEPS["citations"]


def careless(store: Storing) -> Storing:
    """Store as this does, and never complain."""

    @wraps(store)
    def stored(blobs: FolderBlobs, key: str, data: Data) -> str:
        try:
            return store(blobs, key, data)
        except BlobExistsError:
            raise
        except StoreError:
            return ""

    return stored


def forgetful(library: Library, corpus: scenario.Corpus) -> Iterable[str]:
    """Forget all citations, but for the library that others are compared with."""
    yield from whole(library, corpus)
    if not library.settings.home.parent.name.startswith("undisturbed"):
        with library.database.write() as connection:
            connection.execute(delete(citation_edges))


if __name__ == "__main__":
    scenario.STEPS["citations"] = forgetful
    for name in ("create", "put"):
        setattr(FolderBlobs, name, careless(getattr(FolderBlobs, name)))
    works = (child.run_steps, child.dump_state, child.check_invariants)
    serve({work.__name__: work for work in works})
