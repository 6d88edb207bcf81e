"""Computed identities: what holds for every input, and the values that must never change."""

from __future__ import annotations

import hashlib
import unicodedata
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fonds import ids

modest = settings(max_examples=60)

# Damaged feeds hold lone surrogates, which hypothesis leaves out unless asked.
texts = st.text(st.characters(exclude_categories=()), max_size=12)
awkward = texts | st.sampled_from([".", "..", "/", "a/b", "~2", "548~2", "%2F", " ", "\0", "–"])
levels = st.sampled_from(["title", "Section", "part", "第", "Sub chapter", "../x", "a.b"])


def uuid5_by_hand(name: str) -> str:
    namespace = bytes.fromhex("6c8a1e6e1f0b4aa89f0a1a7c2e6f2b42")
    digest = bytearray(hashlib.sha1(namespace + name.encode()).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return "-".join([text[:8], text[8:12], text[12:16], text[16:20], text[20:]])


# Trees ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "number", "expected"),
    [
        ("section", "12-704e", "section-12-704e"),
        ("section", "300aa-34", "section-300aa-34"),
        ("section", "28:9-101", "section-28:9-101"),
        ("section", "202 to 204", "section-202-to-204"),
        ("section", "47–1801.04", "section-47-1801.04"),
        ("section", "47\u20111801.04", "section-47-1801.04"),
        ("section", "  1\u00a0 2\n3 ", "section-1-2-3"),
        ("Title", "IV", "title-IV"),
        ("title", "iv", "title-iv"),
        ("chapter", "Ⅳ", "chapter-Ⅳ"),
        ("rule", "1.10.5", "rule-1.10.5"),
        ("article", "第七百九条", "article-第七百九条"),
        ("section", "5/4", "section-5%2F4"),
        ("section", "548~2", "section-548%7E2"),
        ("section", "[repealed]", "section-%5Brepealed%5D"),
        ("section", "..", "section-.."),
        ("front", "", "front"),
        ("PART", " ", "part"),
        ("..", "", "%2E%2E"),
    ],
)
def test_segment_of_a_real_number(level: str, number: str, expected: str) -> None:
    assert ids.segment(level, number) == expected


@modest
@given(levels | awkward.filter(str.strip), awkward)
def test_a_segment_is_one_harmless_name(level: str, number: str) -> None:
    segment = ids.segment(level, number)
    assert segment not in {"", ".", ".."}
    assert not set(segment) & set("/~\\?# \0")
    assert not any(character.isspace() for character in segment)
    segment.encode()


@modest
@given(levels, awkward)
def test_composed_and_decomposed_text_give_one_id(level: str, number: str) -> None:
    composed = unicodedata.normalize("NFC", number)
    decomposed = unicodedata.normalize("NFD", number)
    assert ids.segment(level, composed) == ids.segment(level, decomposed)


def test_composed_and_decomposed_accents_give_one_id() -> None:
    assert ids.segment("Préambule", "é") == ids.segment("Pre\u0301ambule", "e\u0301")


@modest
@given(st.lists(st.tuples(levels, awkward), max_size=12))
def test_siblings_are_unique_whatever_their_numbers(children: list[tuple[str, str]]) -> None:
    numbered = ids.number_siblings(ids.segment(*child) for child in children)
    assert len(set(numbered)) == len(children)


@modest
@given(st.lists(st.sampled_from(["section-1", "section-2", "front"]), max_size=9), st.data())
def test_siblings_keep_their_ids_when_others_follow(
    segments: list[str], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(segments)))
    assert ids.number_siblings(segments)[:cut] == ids.number_siblings(segments[:cut])


def test_duplicates_are_numbered_in_the_publishers_order() -> None:
    segments = [ids.segment("section", number) for number in ("548", "549", "548", "548")]
    assert ids.number_siblings(segments) == [
        "section-548",
        "section-549",
        "section-548~2",
        "section-548~3",
    ]


def test_a_number_that_looks_like_a_duplicate_is_none() -> None:
    segments = [ids.segment("section", number) for number in ("548", "548~2", "548")]
    assert ids.number_siblings(segments) == ["section-548", "section-548%7E2", "section-548~2"]


@modest
@given(st.lists(st.tuples(levels, awkward), min_size=1, max_size=6))
def test_a_parents_id_is_a_strict_prefix_at_a_slash(path: list[tuple[str, str]]) -> None:
    root = ids.tree_root("us_code", "119-36")
    above = [root]
    for level, number in path:
        above.append(ids.tree_child(above[-1], ids.segment(level, number)))
    for parent, child in pairwise(above):
        assert child.startswith(f"{parent}/")
        assert "/" not in child.removeprefix(f"{parent}/")
        assert ids.tree_parent(child) == parent
    assert ids.tree_parent(root) is None


def test_a_node_called_root_is_not_taken_for_the_root() -> None:
    root = ids.tree_root("us_code", "119-36")
    assert root == "us_code/119-36/root"
    assert ids.tree_parent(ids.tree_child(root, "root")) == root


# Documents and chunks ---------------------------------------------------------------------


def test_uids_of_documents_never_change() -> None:
    uid = ids.document_uid("fr:2026-08558")
    assert str(uid) == "92158634-ed8c-5776-bbf1-012f40ecdc78"
    assert str(uid) == uuid5_by_hand("fr:2026-08558")


def test_chunk_ids_never_change() -> None:
    uid = UUID("92158634-ed8c-5776-bbf1-012f40ecdc78")
    chunk = ids.chunk_id(uid, "Markdown_v1", "1.2.0", 7)
    assert str(chunk) == "94a31265-7214-5534-8ca4-6115dc4a6381"
    assert str(chunk) == uuid5_by_hand(f"{uid}:markdown_v1:1.2.0:7")


def test_an_upload_is_known_by_its_owner_and_its_bytes() -> None:
    owner = UUID("00000000-0000-4000-8000-000000000001")
    uid = ids.upload_uid(owner, "AB" * 32)
    assert str(uid) == "4f48beae-9b45-5d32-9d31-0024303d3a98"
    assert str(uid) == uuid5_by_hand(f"{owner}:{'ab' * 32}")
    assert uid == ids.upload_uid(owner, "ab" * 32)
    assert uid != ids.upload_uid(UUID(int=owner.int + 1), "ab" * 32)


@modest
@given(st.uuids(), st.integers(0, 10**6), st.integers(0, 10**6))
def test_chunk_ids_differ_by_ordinal_alone(uid: UUID, one: int, other: int) -> None:
    same = ids.chunk_id(uid, "c", "1", one) == ids.chunk_id(uid, "c", "1", other)
    assert same == (one == other)


def test_equal_passages_have_one_hash_whatever_their_spacing() -> None:
    expected = hashlib.sha256("caf\u00e9 au lait".encode()).hexdigest()
    assert ids.chunk_sha("  cafe\u0301\n\nau\tlait ") == expected
    assert ids.chunk_sha("caf\u00e9 aulait") != expected


# Hashes, blobs, shards --------------------------------------------------------------------


def test_archive_key_keeps_a_decent_path() -> None:
    key = ids.archive_key("federal_register", "metadata/2026/05/2026-08558.json")
    assert key == "corpus/federal_register/metadata/2026/05/2026-08558.json"


@pytest.mark.parametrize(
    "path",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "a/../../b",
        "./x",
        "a//b",
        "..\\..\\x",
        "%2e%2e/x",
        ".. /x",
    ],
)
def test_archive_key_of_a_hostile_path_stays_inside(path: str) -> None:
    parts = ids.archive_key("gao", path).split("/")
    assert parts[:2] == ["corpus", "gao"]
    assert len(parts) > 2
    assert not {"", ".", ".."} & set(parts)
    assert "\\" not in "".join(parts)


@modest
@given(st.lists(awkward, max_size=5).map("/".join))
def test_archive_key_never_leaves_its_source(path: str) -> None:
    parts = ids.archive_key("gao", path).split("/")
    assert parts[:2] == ["corpus", "gao"]
    assert not {"", ".", ".."} & set(parts)
    assert not set("".join(parts)) & set("\\\0\n @~")


@modest
@given(awkward, st.binary(max_size=8))
def test_a_changed_file_gets_a_name_no_feed_can_take(path: str, data: bytes) -> None:
    sha256 = hashlib.sha256(data).hexdigest()
    changed = ids.changed_key(ids.archive_key("gao", "a.pdf"), sha256)
    assert changed == f"corpus/gao/a.pdf@{sha256[:8]}"
    assert ids.archive_key("gao", path) != changed
    assert ids.archive_key("gao", f"a.pdf@{sha256[:8]}") != changed


@modest
@given(st.text(max_size=20))
def test_shard_is_the_first_byte_of_the_hash(key: str) -> None:
    assert ids.shard_id(key) == f"{hashlib.sha256(key.encode()).digest()[0]:02x}"


def test_json_is_hashed_in_canonical_form() -> None:
    expected = hashlib.sha256('{"a":[1,"é"],"b":null}'.encode()).hexdigest()
    assert ids.json_sha256({"b": None, "a": [1, "é"]}) == expected


def test_text_that_has_no_utf8_form_still_has_a_hash() -> None:
    assert ids.text_sha256("\ud800") == hashlib.sha256(b"\xed\xa0\x80").hexdigest()
