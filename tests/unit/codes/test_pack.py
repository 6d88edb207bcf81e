"""Packs return the bytes that were added, or raise an error."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.codes.packs import Pack, PackWriter, open_pack
from fonds.errors import BlobMissingError, StoreError
from fonds.seams import Seams
from fonds.stores.blobs import Blobs, body_ref, open_blobs, read_reference
from fonds.testing import Saboteur

KEY = "corpus/fakecode/2024/packs/1/title-1/00000"
URL = "https://code.example/0.toc"
DAY = datetime(2026, 1, 5, 7, 8, 9, 123000, tzinfo=UTC)
SECTIONS = [("a/b/root/section-1", b"One.\n"), ("a/b/root/section-2", b""), ("x", b"Three\x00\xff")]

sections = st.dictionaries(st.text(max_size=20), st.binary(max_size=60), max_size=6)


@pytest.fixture(params=["folder", "memory"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    address = str(tmp_path / "blobs") if request.param == "folder" else "memory://"
    return open_blobs(address, seams=Seams())


def store(
    blobs: Blobs, bodies: Sequence[tuple[str, bytes]], key: str = KEY, at: datetime = DAY
) -> Pack:
    writer = PackWriter()
    for section_id, data in bodies:
        writer.add(section_id, data, url=URL, retrieved_at=at)
    return writer.store(blobs, key)


def contents(pack: Pack) -> dict[str, bytes]:
    with pack:
        return {section_id: pack.read(entry) for section_id, entry in pack.entries.items()}


@settings(max_examples=60)
@given(sections)
def test_sections_are_read_as_they_were_added(bodies: dict[str, bytes]) -> None:
    blobs = open_blobs("memory://", seams=Seams())
    assert contents(store(blobs, list(bodies.items()))) == bodies
    assert contents(open_pack(blobs, KEY)) == bodies


@settings(max_examples=60)
@given(sections)
def test_reference_read_by_range_gives_the_section(bodies: dict[str, bytes]) -> None:
    blobs = open_blobs("memory://", seams=Seams())
    with store(blobs, list(bodies.items())) as written, open_pack(blobs, KEY) as read:
        for known, data in bodies.items():
            ref = written.ref(written.entries[known])
            assert ref == read.ref(read.entries[known])
            assert read_reference(blobs, ref) == data


def test_sections_keep_their_order_address_and_time(blobs: Blobs) -> None:
    store(blobs, SECTIONS)
    with open_pack(blobs, KEY) as pack:
        assert list(pack.entries) == [known for known, _ in SECTIONS]
        assert {(entry.url, entry.retrieved_at) for entry in pack.entries.values()} == {(URL, DAY)}


def test_same_sections_make_the_same_bytes(blobs: Blobs) -> None:
    for key in ("one", "two"):
        with store(blobs, SECTIONS, key):
            pass
    assert blobs.get("one") == blobs.get("two")


def test_existing_pack_is_used_and_not_written_again(blobs: Blobs) -> None:
    with store(blobs, SECTIONS):
        before = blobs.get(KEY)
    with store(blobs, [("other", b"bytes")], at=DAY + timedelta(days=1)) as pack:
        assert list(pack.entries) == [known for known, _ in SECTIONS]
        assert contents(pack) == dict(SECTIONS)
    assert blobs.get(KEY) == before


def test_new_writer_is_empty(blobs: Blobs) -> None:
    assert PackWriter().is_empty
    writer = PackWriter()
    writer.add("empty", b"", url=URL, retrieved_at=DAY)
    assert not writer.is_empty
    with writer.store(blobs, KEY) as pack:
        assert list(pack.entries) == ["empty"]


def test_failure_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    refusing = open_blobs(str(tmp_path / "blobs"), seams=Seams(durable=Saboteur(fail_at=1)))
    with pytest.raises(StoreError) as refused:
        store(refusing, SECTIONS)
    assert list(folder.iterdir()) == [], refused
    refusing.put(KEY, b"no index\n")
    with pytest.raises(StoreError) as broken:
        open_pack(refusing, KEY)
    assert list(folder.iterdir()) == [], broken


def test_missing_pack_is_missing(blobs: Blobs) -> None:
    with pytest.raises(BlobMissingError):
        open_pack(blobs, KEY)


def test_damaged_section_is_an_error_with_advice(blobs: Blobs) -> None:
    with store(blobs, SECTIONS):
        data = blobs.get(KEY)
    blobs.put(KEY, data[:-1] + b"!")
    with open_pack(blobs, KEY) as pack:
        first, _, third = pack.entries.values()
        assert pack.read(first) == b"One.\n"
        with pytest.raises(StoreError, match="delete it"):
            pack.read(third)


@pytest.mark.parametrize(
    "index",
    [b"", b"\n", b"[]\n", b"{}\n", b'{"sections": 7}\n', b'{"sections": [[1]]}\n', b"\xff\n"],
)
def test_blob_without_an_index_is_not_a_pack(blobs: Blobs, index: bytes) -> None:
    blobs.put(KEY, index)
    with pytest.raises(StoreError, match="not a pack"):
        open_pack(blobs, KEY)


@settings(max_examples=60)
@given(st.data())
def test_truncated_pack_returns_whole_sections_and_an_error_for_the_rest(
    data: st.DataObject,
) -> None:
    blobs = open_blobs("memory://", seams=Seams())
    with store(blobs, SECTIONS) as pack:
        refs = {known: pack.ref(entry) for known, entry in pack.entries.items()}
    whole = blobs.get(KEY)
    cut = data.draw(st.integers(0, len(whole) - 1))
    blobs.put(KEY, whole[:cut])
    assert _readable(blobs).items() <= dict(SECTIONS).items()
    assert "x" not in _readable(blobs)
    with pytest.raises(StoreError, match="is truncated"):
        read_reference(blobs, refs["x"])


@settings(max_examples=150)
@given(st.data())
def test_whatever_byte_is_damaged_no_other_bytes_are_ever_read(data: st.DataObject) -> None:
    blobs = open_blobs("memory://", seams=Seams())
    with store(blobs, SECTIONS):
        whole = blobs.get(KEY)
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.one_of(st.sampled_from(b'-.e0123456789"[]{},\n'), st.integers(0, 255)))
    blobs.put(KEY, whole[:at] + bytes([byte]) + whole[at + 1 :])
    assert set(_readable(blobs).values()) <= set(dict(SECTIONS).values())


def _readable(blobs: Blobs) -> dict[str, bytes]:
    """The sections that are read without an error of the store."""
    found = {}
    try:
        with open_pack(blobs, KEY) as pack:
            for known, entry in pack.entries.items():
                try:
                    found[known] = pack.read(entry)
                except StoreError:
                    continue
    except StoreError:
        return {}
    return found


@pytest.mark.parametrize("number", ["-1", "-999999", "1e3", "1.5", '"7"', "null", "9" * 30])
@pytest.mark.parametrize("field", ["start", "length"])
def test_index_with_a_number_that_cannot_be_is_an_error_of_the_store(
    number: str, field: str
) -> None:
    blobs = open_blobs("memory://", seams=Seams())
    place = f"{number}, 5" if field == "start" else f"0, {number}"
    known = f'["s", {place}, "{"0" * 64}", "{URL}", "2026-01-05T00:00:00.000Z"]'
    blobs.put(KEY, f'{{"format": "fonds pack 1", "sections": [{known}]}}\nbytes'.encode())
    with pytest.raises(StoreError), open_pack(blobs, KEY) as pack:
        pack.read(pack.entries["s"])


def test_reference_to_a_whole_blob_reads_all_of_it(blobs: Blobs) -> None:
    blobs.put("corpus/one", b"all of it")
    assert read_reference(blobs, "corpus/one") == b"all of it"
    assert read_reference(blobs, body_ref("corpus/one", 4, 2)) == b"of"
    with pytest.raises(StoreError, match="is truncated"):
        read_reference(blobs, body_ref("corpus/one", 4, 20))
