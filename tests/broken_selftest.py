"""The processes of a selftest, but for one step that loses something when it is resumed."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import delete

from fonds.library import Library
from fonds.selftest import child, story
from fonds.selftest.nursery import raise_children
from fonds.stores.tables import citation_edges

whole = story.STEPS["citations"]


def forgetful(library: Library, corpus: story.Corpus) -> Iterable[str]:
    """Forget all citations if this is not the first process of the library."""
    yield from whole(library, corpus)
    if len(list(library.settings.home.parent.glob("notes-*"))) > 1:
        with library.database.write() as connection:
            connection.execute(delete(citation_edges))


if __name__ == "__main__":
    story.STEPS["citations"] = forgetful
    raise_children({work.__name__: work for work in (child.live, child.look, child.check)})
