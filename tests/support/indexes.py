"""Indexes with few shards in every kind of store, and stores that tell what they were asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from fonds.errors import BlobExistsError
from fonds.seams import Seams
from fonds.shards.compiler import Compiled, Compiler
from fonds.shards.index import DOMAINS, Index, describe, open_index, read_description, version_of
from fonds.shards.layout import IndexLayout
from fonds.shards.manifest import entry_of, read_entries
from fonds.shards.schema import Record, Value, schema_of
from fonds.stores.blobs import Blobs, FolderBlobs, open_blobs

if TYPE_CHECKING:
    import pytest

DIGITS: Final = 1
"""Sixteen shards, in which compilers meet often."""
BEGINNING: Final = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
AT_ONCE: Final = timedelta()
"""The lifetime of locks for somebody who waits for none."""
EVERY: Final = schema_of(
    [
        ("key", "string"),
        ("text", "string"),
        ("whole", "integer"),
        ("part", "number"),
        ("flag", "boolean"),
        ("day", "date"),
        ("moment", "datetime"),
        ("updated_at", "datetime"),
    ]
)
"""A field of each type."""
KINDS: Final = ("folder", "marking", "memory", "s3", "azure")


class MarkingBlobs(FolderBlobs):
    """A folder that cannot delete one version only, as some servers cannot."""

    def remove(self, key: str, *, etag: str) -> None:
        raise AssertionError((key, etag))

    def can_remove_versions(self) -> bool:
        return False


Opener = Callable[[Seams], Blobs]
"""Opens the same store again, for somebody else."""


def opener(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Opener:
    """A fresh store of a kind."""
    if kind == "marking":
        return lambda seams: MarkingBlobs(tmp_path / "blobs", seams=seams)
    if kind == "memory":
        return _memory()
    address = str(tmp_path / "blobs")
    if kind != "folder":
        address = request.getfixturevalue(f"{kind}_address")
    return lambda seams: open_blobs(address, seams=seams)


def _memory() -> Opener:
    first: Any = open_blobs("memory://", seams=Seams())

    def again(seams: Seams) -> Blobs:
        return cast("Blobs", type(first)(first._store, "memory://", seams=seams))

    return again


def make_index(blobs: Blobs, name: str = "domains", digits: int = DIGITS) -> Index:
    """An index with few shards, made at the first call."""
    layout = IndexLayout(name, digits)
    with suppress(BlobExistsError):
        blobs.create(layout.descriptor, describe(layout, DOMAINS, {}))
    return open_index(blobs, name)


def record(key: str, number: int, text: str = "") -> dict[str, Value]:
    """A record that is newer, the greater its number is."""
    time = BEGINNING + timedelta(seconds=number)
    return {"domain": key, "company_name": text, "scraper_version": number, "updated_at": time}


def lines(*records: Record) -> bytes:
    """Records as they stand in a shard, in the order given."""
    return b"".join(DOMAINS.encode(each) for each in records)


def keys_of(index: Index, shard: str, number: int) -> list[str]:
    """Keys that belong into one shard."""
    keys = (f"{number}.example" for number in count())
    return list(islice((key for key in keys if index.layout.shard_of(key) == shard), number))


def compile_all(index: Index, **options: Any) -> Compiled:
    """One round of a compiler."""
    return Compiler(index, seams=Seams(), **options).run()


def held(index: Index, shard: str) -> bytes:
    """The bytes of a shard, or none."""
    version = version_of(index.blobs, index.layout.shard(shard))
    return version.data if version else b""


def all_shards(index: Index) -> dict[str, bytes]:
    """The bytes of every shard there is."""
    return {shard: data for shard in index.layout.shard_ids() if (data := held(index, shard))}


def check_manifest(index: Index) -> None:
    """Entries and data package say what the shards hold."""
    entries = {shard: entry_of(data) for shard, data in all_shards(index).items()}
    assert {shard: noted.contents for shard, noted in read_entries(index).items()} == entries
    assert read_description(index.blobs.get(index.layout.descriptor)).entries == entries


def keys_below(index: Index, ending: str = "") -> list[str]:
    """What stands beside and in the shards, from the index's own folder on."""
    found: Iterable[str] = (info.key for info in index.blobs.list(index.layout.inbox))
    return [key.removeprefix(index.layout.inbox) for key in found if key.endswith(ending)]


Hook = Callable[[str, str], None]
"""Told the name of a method and a key, just before the method is called."""


@dataclass
class Watched:
    """A store that notes what it is asked for, and whether it gave anything back."""

    blobs: Blobs
    before: Hook = lambda _name, _key: None
    asked: list[tuple[str, str, bool]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.blobs, name)

        def noted(*arguments: Any, **options: Any) -> Any:
            key = str(arguments[0]) if arguments else ""
            self.before(name, key)
            result = None
            try:
                result = method(*arguments, **options)
            finally:
                self.asked.append((name, key, result is not None))
            return result

        return noted

    @property
    def reads(self) -> list[str]:
        """Keys of the objects that were asked for, each as often as it was."""
        ways = {"get", "read", "head", "stream", "get_range"}
        return [key for name, key, _ in self.asked if name in ways]


def watched(index: Index, before: Hook = lambda _name, _key: None) -> tuple[Index, Watched]:
    """The index again, on a store that takes notes."""
    store = Watched(index.blobs, before)
    return replace(index, blobs=cast("Blobs", store)), store
