from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from pathlib import Path

import pytest

from fonds.errors import TooLargeError
from fonds.fetch.body_writer import BodyWriter, Decompressor, remove_stale_files
from fonds.seams import SystemClock

EMPTY_BLOCK = b"\x00\x00\x00\xff\xff"


def test_compressed_bytes_count_even_if_nothing_comes_out_of_them(tmp_path: Path) -> None:
    writer = BodyWriter("https://a.gov/", tmp_path, cap=1000, encoding="gzip", announced="")
    writer.add(gzip.compress(b"")[:10])
    writer.add(EMPTY_BLOCK * 190)
    with pytest.raises(TooLargeError):
        writer.add(EMPTY_BLOCK * 10)
    assert writer.size == 0
    writer.discard()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_bodies_may_arrive_in_pieces_of_any_size(step: int) -> None:
    text = b"section " * 300
    body = gzip.compress(text) + gzip.compress(text) + bytes(20)
    inflation = Decompressor("gzip")
    pieces = [body[start : start + step] for start in range(0, len(body), step)]
    found = b"".join(piece for each in pieces for piece in inflation.decompress(each))
    assert found == text * 2
    assert inflation.is_whole


def test_what_comes_out_is_handed_over_in_small_pieces() -> None:
    inflation = Decompressor("deflate")
    sizes = [len(piece) for piece in inflation.decompress(zlib.compress(bytes(2**22)))]
    assert sum(sizes) == 2**22
    assert max(sizes) <= 2**18


def test_files_of_killed_processes_are_swept_after_a_day_and_younger_ones_are_not(
    tmp_path: Path,
) -> None:
    old, young = tmp_path / "download-old", tmp_path / "download-young"
    for file in (old, young):
        file.touch()
    os.utime(old, (0, 0))
    remove_stale_files(tmp_path, SystemClock())
    assert [file.name for file in tmp_path.iterdir()] == [young.name]


@pytest.mark.parametrize("length", [0, 9, 10, 11, 25])
def test_only_what_is_too_long_to_be_held_has_a_file(tmp_path: Path, length: int) -> None:
    body = bytes(range(length))
    writer = BodyWriter(
        "https://a.gov/", tmp_path, cap=100, encoding="", announced="", max_in_memory=10
    )
    for start in range(0, length, 4):
        writer.add(body[start : start + 4])
    assert writer.finish() == hashlib.sha256(body).hexdigest()
    if length <= 10:
        assert writer.data == body
        assert list(tmp_path.iterdir()) == []
    else:
        assert writer.data is None
        assert writer.file.read_bytes() == body


def test_what_is_held_and_discarded_leaves_nothing(tmp_path: Path) -> None:
    for length in (5, 20):
        writer = BodyWriter(
            "https://a.gov/", tmp_path, cap=100, encoding="", announced="", max_in_memory=10
        )
        writer.add(bytes(length))
        writer.discard()
    assert list(tmp_path.iterdir()) == []
