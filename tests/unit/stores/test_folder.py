"""The folder store: crashes, hostile keys, links and leftovers."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fonds.errors import BlobChangedError, BlobExistsError, StoreError
from fonds.seams import Seams
from fonds.stores.folder import FolderBlobs

OLD, NEW = b"old" * 20_000, b"new!" * 20_000

# Kills itself at the nth durable point, or ends with 0 after the last one.
VICTIM = """
import os, signal, sys
from pathlib import Path
from fonds.seams import Seams
from fonds.stores.folder import FolderBlobs

root, action, fatal = sys.argv[1], sys.argv[2], int(sys.argv[3])
points = 0

def durable(operation, key):
    global points
    points += 1
    if points == fatal:
        os.kill(os.getpid(), signal.SIGKILL)

blobs = FolderBlobs(Path(root), seams=Seams(durable=durable))
new = b"new!" * 20_000
if action == "create":
    blobs.create("deep/down/new", new)
elif action == "put":
    blobs.put("kept/old", new)
elif action == "replace":
    blobs.replace("kept/old", new, etag=blobs.head("kept/old").etag)
else:
    blobs.delete("kept/old")
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


@pytest.fixture
def blobs(root: Path) -> FolderBlobs:
    return FolderBlobs(root, seams=Seams())


def leftovers(root: Path) -> list[Path]:
    return list((root / ".tmp").iterdir())


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def content(blobs: FolderBlobs) -> dict[str, bytes]:
    return {info.key: blobs.get(info.key) for info in blobs.list()}


def reads_and_writes(blobs: FolderBlobs) -> list[Callable[[str], object]]:
    return [
        blobs.head,
        blobs.get,
        blobs.delete,
        lambda key: list(blobs.stream(key)),
        lambda key: blobs.create(key, b"x"),
        lambda key: blobs.put(key, b"x"),
        lambda key: blobs.replace(key, b"x", etag="x"),
    ]


def run_victim(root: Path, action: str, fatal: int) -> int:
    command = [sys.executable, "-c", VICTIM, str(root), action, str(fatal)]
    return subprocess.run(command, check=False).returncode


@pytest.mark.parametrize(
    ("action", "points", "done"),
    [
        ("create", 2, {"kept/old": OLD, "deep/down/new": NEW}),
        ("put", 2, {"kept/old": NEW}),
        ("replace", 2, {"kept/old": NEW}),
        ("delete", 1, {}),
    ],
)
def test_a_kill_at_any_durable_point_leaves_the_old_and_the_next_try_succeeds(
    root: Path, blobs: FolderBlobs, action: str, points: int, done: dict[str, bytes]
) -> None:
    blobs.create("kept/old", OLD)
    for fatal in range(1, points + 1):
        assert run_victim(root, action, fatal) == -signal.SIGKILL
        assert content(blobs) == {"kept/old": OLD}
    assert run_victim(root, action, points + 1) == 0
    assert content(blobs) == done


def test_a_writer_killed_at_a_random_moment_never_shows_half_a_blob(
    root: Path, blobs: FolderBlobs
) -> None:
    blobs.create("kept/old", OLD)
    program = VICTIM.replace(
        "else:\n    blobs.delete",
        """elif action == "forever":
    print("ready", flush=True)
    for size in range(10**9):
        blobs.put("kept/old", b"%d" % (size % 10) * (200_000 + size))
else:
    blobs.delete""",
    )
    for pause in (0.0, 0.011, 0.023):
        with subprocess.Popen(
            [sys.executable, "-c", program, str(root), "forever", "0"], stdout=subprocess.PIPE
        ) as victim:
            assert victim.stdout is not None
            victim.stdout.readline()
            time.sleep(pause)
            victim.kill()
        found = blobs.get("kept/old")
        # Each version consists of one digit, as often as its number says.
        assert found == OLD or found == found[:1] * len(found)
        assert found == OLD or found[:1] == b"%d" % ((len(found) - 200_000) % 10)
        assert [info.key for info in blobs.list()] == ["kept/old"]


def test_a_killed_writer_leaves_no_lock_behind(root: Path, blobs: FolderBlobs) -> None:
    etag = blobs.create("kept/old", OLD)
    assert run_victim(root, "put", 2) == -signal.SIGKILL
    assert blobs.replace("kept/old", NEW, etag=etag) != etag


def test_processes_that_count_together_lose_no_increment(root: Path, blobs: FolderBlobs) -> None:
    program = """
import sys
from pathlib import Path
from fonds.errors import BlobChangedError
from fonds.seams import Seams
from fonds.stores.folder import FolderBlobs

blobs, left = FolderBlobs(Path(sys.argv[1]), seams=Seams()), 40
while left:
    etag = blobs.head("n").etag
    number = int(blobs.get("n"))
    try:
        blobs.replace("n", b"%d" % (number + 1), etag=etag)
        left -= 1
    except BlobChangedError:
        pass
"""
    blobs.create("n", b"1000")
    command = [sys.executable, "-c", program, str(root)]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert blobs.get("n") == b"1120"


def test_every_write_has_an_etag_of_its_own_however_fast_the_disk(
    blobs: FolderBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    etags = [blobs.put("k", b"same") for _ in range(60)]
    assert len(set(etags)) == len(etags)


def test_an_etag_differs_even_when_the_clock_stands_still(
    blobs: FolderBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: moment)
    etags = [blobs.put("k", b"same") for _ in range(20)]
    assert len(set(etags)) == len(etags)
    with pytest.raises(BlobChangedError):
        blobs.replace("k", b"other", etag=etags[0])


def test_nothing_is_left_in_the_temporary_folder(root: Path, blobs: FolderBlobs) -> None:
    etag = blobs.create("a", b"1")
    blobs.replace("a", b"2", etag=etag)
    blobs.put("a", b"3")
    with pytest.raises(BlobExistsError):
        blobs.create("a", b"4")
    assert leftovers(root) == []


def test_old_temporary_files_are_swept_at_opening_and_young_ones_are_not(root: Path) -> None:
    blobs = FolderBlobs(root, seams=Seams())
    blobs.create("kept", b"1")
    old, young = root / ".tmp" / "old", root / ".tmp" / "young"
    for path in (old, young):
        path.write_bytes(b"half")
    two_days_ago = time.time() - 2 * 24 * 60 * 60
    os.utime(old, (two_days_ago, two_days_ago))
    os.utime(root / "kept", (two_days_ago, two_days_ago))
    assert content(FolderBlobs(root, seams=Seams())) == {"kept": b"1"}
    assert leftovers(root) == [young]


def test_a_key_cannot_be_a_file_and_a_folder(blobs: FolderBlobs) -> None:
    blobs.create("a/b", b"1")
    blobs.create("file", b"2")
    for key in ("a", "file/below"):
        with pytest.raises(StoreError, match="both a file and the beginning"):
            blobs.create(key, b"")
        with pytest.raises(StoreError, match="both a file and the beginning"):
            blobs.put(key, b"")
    blobs.delete("a")
    blobs.delete("file/below")
    assert content(blobs) == {"a/b": b"1", "file": b"2"}


def test_a_name_too_long_for_the_file_system_is_refused(blobs: FolderBlobs) -> None:
    for key in ("条" * 100, f"{'x' * 300}/y"):
        for ask in reads_and_writes(blobs):
            with pytest.raises(StoreError, match="longer than this file system allows"):
                ask(key)
    assert content(blobs) == {}


def test_a_deep_key_may_be_longer_than_any_path(blobs: FolderBlobs) -> None:
    key = "/".join(["d" * 200] * 25)
    blobs.create(key, b"deep")
    assert content(blobs) == {key: b"deep"}


def test_a_link_inside_leads_nowhere(root: Path, blobs: FolderBlobs, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")
    for key in ("folder/secret", "file", "folder/new"):
        for ask in reads_and_writes(blobs):
            with pytest.raises(StoreError, match="symbolic link"):
                ask(key)
    assert content(blobs) == {}
    with pytest.raises(StoreError, match="symbolic link"):
        list(blobs.list("folder/"))
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == {"secret": b"secret"}


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    FolderBlobs(tmp_path / "link", seams=Seams()).create("a", b"1")
    assert (tmp_path / "real" / "a").read_bytes() == b"1"


def test_keys_are_listed_in_the_order_of_their_bytes(blobs: FolderBlobs) -> None:
    keys = ["a", "a-b", "a.b", "b/a", "b-", "b/a-", "b/é", "B", "条", "b0", "b/a0/x"]
    for key in keys:
        blobs.create(key, b"")
    assert [info.key for info in blobs.list()] == sorted(keys, key=str.encode)


def test_a_listing_that_is_not_read_to_its_end_keeps_no_folder_open(blobs: FolderBlobs) -> None:
    for key in ("a/b/c", "a/b/d"):
        blobs.create(key, b"")
    before = open_files()
    listing = blobs.list()
    next(listing)
    assert open_files() > before
    del listing
    assert open_files() == before


def test_a_reader_keeps_its_version_while_others_replace_it(blobs: FolderBlobs) -> None:
    blobs.create("a", OLD * 40)
    stream = blobs.stream("a")
    first = next(stream)
    blobs.put("a", NEW)
    assert first + b"".join(stream) == OLD * 40


def test_folders_tidied_away_by_others_come_back(root: Path, blobs: FolderBlobs) -> None:
    blobs.create("a/b/c", b"1")
    blobs.delete("a/b/c")
    (root / "a" / "b").rmdir()
    (root / "a").rmdir()
    blobs.create("a/b/c", b"2")
    assert content(blobs) == {"a/b/c": b"2"}


def test_a_write_that_does_not_fit_names_the_key_and_leaves_nothing(
    root: Path, blobs: FolderBlobs
) -> None:
    blobs.create("kept", b"1")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(StoreError, match="'too/large'"):
            blobs.create("too/large", bytes(1 << 17))
        with pytest.raises(StoreError, match="'kept'"):
            blobs.put("kept", bytes(1 << 17))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert content(blobs) == {"kept": b"1"}
    assert leftovers(root) == []


def test_a_root_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="cannot open the folder"):
        FolderBlobs(tmp_path / "file" / "blobs", seams=Seams())
