"""Where an index keeps what: paths as they are specified, and a file name for any key."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fonds.errors import RecordError, UsageError
from fonds.shards.layout import IndexLayout
from fonds.stores.folder import check_key

DOMAINS = IndexLayout("domains")
NASTY = [
    "shards", "shards/a1", "datapackage.json", "datapackage", "clock-", ".", "..", "...", ".tmp",
    ".tmp/x", ".locks", "../../etc/passwd", "/", "//", "a/b", "a/../b", "~", "~/", "~7e", "~2f",
    "\0", "\n", " ", "a b", "a\\b", "\x7f", "🦊", "é", "e\u0301", "A.gov", "a.gov", "a.gov.usv",
    "con", "nul.txt", "%2f", "?x=1&y", "#", "*", "a:b", "x" * 256, "🦊" * 64, "é" * 128,
    "X" * 256, "a" * 199 + "~", "a" * 200 + "/b", ".usv", "-rf", "_", "\ufeff", "\u202e",
]  # fmt: skip
keys = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=64)


def test_paths_are_those_of_the_specification() -> None:
    assert DOMAINS.item("example.gov") == "indexes/domains/example.gov.usv"
    assert DOMAINS.shard("a1") == "indexes/domains/shards/a1.usv"
    assert DOMAINS.lock("a1") == "indexes/domains/shards/a1.lock"
    assert DOMAINS.descriptor == "indexes/domains/datapackage.json"


@given(key=keys)
def test_the_shard_of_a_key_begins_its_hash(key: str) -> None:
    digest = hashlib.sha256(key.encode()).hexdigest()
    assert DOMAINS.shard_of(key) == digest[:2]
    assert IndexLayout("domains", 3).shard_of(key) == digest[:3]


@given(key=keys)
def test_any_key_comes_back_from_a_path_that_every_store_takes(key: str) -> None:
    check_path(key)


@pytest.mark.parametrize("key", NASTY)
def test_so_does_one_that_is_made_to_confuse(key: str) -> None:
    check_path(key)


def check_path(key: str) -> None:
    path = DOMAINS.item(key)
    check_key(path)
    assert DOMAINS.key_of(path) == key
    assert path.isascii()
    assert path == path.lower()
    assert all(len(part) <= 210 for part in path.split("/"))
    assert path.startswith("indexes/domains/")
    assert not path.startswith(DOMAINS.shards)
    assert path != DOMAINS.descriptor


@given(one=keys, other=keys)
def test_different_keys_have_different_paths(one: str, other: str) -> None:
    assert (DOMAINS.item(one) == DOMAINS.item(other)) == (one == other)


def test_the_path_of_a_key_is_never_the_folder_of_another() -> None:
    paths = {DOMAINS.item(key) for key in NASTY}
    folders = {path.rpartition("/")[0] for path in paths}
    assert len(paths) == len(NASTY)
    assert not paths & folders


@pytest.mark.parametrize(
    "path",
    [
        "indexes/domains/datapackage.json",
        "indexes/domains/shards/a1.usv",
        "indexes/domains/shards/x.gov.usv",
        "indexes/domains/notes.txt",
        "indexes/domains/A.gov.usv",
        "indexes/domains/a b.usv",
        "indexes/domains/sub/a.gov.usv",
        "indexes/domains/~61.usv",
        "indexes/domains/~2F.usv",
        "indexes/domains/~ff.usv",
        "indexes/domains/~c3.usv",
        "indexes/domains/~.usv",
        "indexes/domains/.usv",
        f"indexes/domains/{'x' * 200}~/{'x' * 57}.usv",
        "indexes/domains/é.usv",
        "indexes/domains/a~/b.usv",
        "indexes/other/a.gov.usv",
    ],
)
def test_a_file_that_is_named_as_no_key_is_none_of_the_inbox(path: str) -> None:
    assert DOMAINS.key_of(path) is None


@pytest.mark.parametrize("key", ["", "x" * 257, "é" * 129, "\ud800"])
def test_a_key_that_no_file_could_be_named_by_is_refused(key: str) -> None:
    with pytest.raises(RecordError):
        DOMAINS.item(key)


@pytest.mark.parametrize(("digits", "count"), [(1, 16), (2, 256), (3, 4096)])
def test_there_are_as_many_shards_as_names_of_so_many_digits(digits: int, count: int) -> None:
    names = list(IndexLayout("domains", digits).shard_ids())
    assert len(set(names)) == count
    assert names == sorted(names)
    assert {len(name) for name in names} == {digits}


@pytest.mark.parametrize("name", ["", "Domains", "a-b", "a/b", "..", "1a", "a" * 64, 'a"', "é"])
def test_a_name_that_could_not_be_a_folder_and_a_table_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is not a valid name of an index"):
        IndexLayout(name)


@pytest.mark.parametrize("digits", [0, 5, -1])
def test_a_number_of_digits_that_makes_no_sense_is_refused(digits: int) -> None:
    with pytest.raises(UsageError, match="digits"):
        IndexLayout("domains", digits)
