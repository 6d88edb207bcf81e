"""The records of an index as files of this machine, for programs that read files."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from fonds.errors import ShardError, StoreError
from fonds.shards.cache import ShardCache
from fonds.shards.inbox import AT_ONCE, read_item, waiting
from fonds.shards.index import Index
from fonds.shards.listing import list_shards
from fonds.stores.blobs import BlobInfo

_BATCH: Final = 1024
"""Items of the inbox that are held in memory at once."""
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Copies:
    """Files that together hold every record of an index."""

    shards: list[Path]
    """No key stands in two of them."""
    divided: list[Path]
    """Shards with longer or shorter names, of an index that is being divided: some of their
    records stand in `shards` too."""
    skip: int
    """Lines of each shard's file that come before its records."""
    inbox: Path
    waiting: int
    """Records in the inbox."""


def copy_records(index: Index, folder: Path, *, cache: Path | None) -> Copies:
    """Files with the records of an index, named in a folder; ShardError where one is cut.

    Shards that stand in files already are linked and not copied.
    """
    inbox = folder / "inbox.usv"
    # In this order: a record that is compiled meanwhile is in its shard.
    count = _gather(index, inbox)
    files = _find_files(index, ShardCache(cache or folder / "shards"))
    sizes: Counter[int] = Counter()
    for shard, (path, _) in files.items():
        _check_end(index, shard, path)
        (folder / f"{shard}.usv").symlink_to(path.absolute())
        sizes[len(shard)] += path.stat().st_size
    usual = max(sizes, key=lambda digits: sizes[digits], default=index.layout.digits)
    return Copies(
        shards=[folder / f"{shard}.usv" for shard in files if len(shard) == usual],
        divided=[folder / f"{shard}.usv" for shard in files if len(shard) != usual],
        skip=max((skip for _, skip in files.values()), default=0),
        inbox=inbox,
        waiting=count,
    )


def _gather(index: Index, path: Path) -> int:
    count = 0
    paths = (item for _, item in waiting(index))
    with ThreadPoolExecutor(AT_ONCE, "fonds-query") as pool, path.open("wb") as file:
        while batch := list(islice(paths, _BATCH)):
            for item in pool.map(partial(read_item, index), batch):
                if item is not None:
                    file.write(item.line + b"\n")
                    count += 1
    return count


def _find_files(index: Index, cache: ShardCache) -> dict[str, tuple[Path, int]]:
    """The file of each shard, with the lines to skip."""
    for _ in range(_TRIES):
        listed = {shard: info for shard, info in list_shards(index).shards.items() if info.size}
        with ThreadPoolExecutor(AT_ONCE, "fonds-query") as pool:
            found = list(pool.map(partial(_file_of, index, cache), listed.values()))
        files = {shard: file for shard, file in zip(listed, found, strict=True) if file}
        if len(files) == len(listed):
            return files
    raise StoreError("shards vanish while they are read: the index is being divided; ask again")


def _file_of(index: Index, cache: ShardCache, info: BlobInfo) -> tuple[Path, int] | None:
    if path := index.blobs.local_path(info.key):
        return path, 0
    copy = cache.fetch(index.blobs, info)
    return None if copy is None else (copy, 1)


def _check_end(index: Index, shard: str, path: Path) -> None:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            raise ShardError(f"{index.layout.shard(shard)} ends inside a record")
