"""What a comparison finds is what there is, whichever files the rows are in."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.bundles import bundle, document, rows_of

from fonds.errors import BundleError
from fonds.exchange.bundle import contents
from fonds.exchange.bundle.contents import ALIASES, DOCUMENTS, EDITIONS, ORIGINS, PASSAGES
from fonds.exchange.bundle.diff import Difference, bundle_rows, differences
from fonds.stores.blobs import Blobs


@pytest.fixture(autouse=True, scope="module")
def _small() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contents, "MIN_FILE_SIZE", 1500)
        patch.setattr(contents, "MAX_FILE_SIZE", 6000)
        yield


Held = Mapping[int, str]
HELD = st.dictionaries(st.integers(0, 60), st.sampled_from(["one", "two", "three"]), max_size=60)


def found(one: Held, other: Held) -> list[Difference]:
    sides = [
        bundle_rows(*bundle(rows_of(*(document(f"held:{n:03}", text) for n, text in each.items()))))
        for each in (one, other)
    ]
    return list(differences(*sides))


@settings(max_examples=60)
@given(HELD, HELD)
def test_every_difference_is_found_once_and_nothing_else(one: Held, other: Held) -> None:
    told = found(one, other)
    names = [each.id for each in told]
    assert names == sorted(set(names))
    changes = {int(each.id[-3:]): each.change for each in told}
    expected = dict.fromkeys(other.keys() - one.keys(), "added")
    expected |= dict.fromkeys(one.keys() - other.keys(), "removed")
    expected |= {n: "changed" for n in one.keys() & other.keys() if one[n] != other[n]}
    assert changes == expected


def test_a_change_names_the_fields_and_the_tables() -> None:
    (told,) = found({1: "one", 2: "two"}, {1: "one", 2: "other"})
    assert told.id == "held:002"
    assert told.fields == (
        "body_text",
        "body_text_sha256",
        "content_sha256",
        "passages",
        "origins",
    )


def test_rows_of_a_document_that_alone_differ_are_told_as_its_change() -> None:
    one, other = document("held:1"), document("held:1")
    other[ALIASES] = {**other[ALIASES], "alias": "Another name"}
    sides = [bundle_rows(*bundle(rows_of(each))) for each in (one, other)]
    (told,) = differences(*sides)
    assert (told.change, told.fields) == ("changed", ("aliases",))


def test_editions_are_told_by_themselves() -> None:
    edition = {
        **dict.fromkeys((field.name for field in EDITIONS.fields), "x"),
        "nodes": 1,
        "shards": 1,
        "bytes": 1,
    }
    sides = [bundle_rows(*bundle({EDITIONS: rows})) for rows in ([], [edition])]
    assert list(differences(*sides)) == [Difference(table="editions", id="x", change="added")]


def test_files_that_both_have_are_not_read() -> None:
    rows = rows_of(*(document(f"held:{n:03}", "words " * 40) for n in range(200)))
    one, package = bundle(rows)
    changed = {**rows, DOCUMENTS: [*rows[DOCUMENTS]]}
    changed[DOCUMENTS][100] = {**rows[DOCUMENTS][100], "title": "Another"}
    other, another = bundle(changed)
    assert len(package.parts[DOCUMENTS]) > 10
    same = set(package.parts[DOCUMENTS]) & set(another.parts[DOCUMENTS])
    for blobs in (one, other):
        drop(blobs, [part.path(DOCUMENTS) for part in same])
        drop(blobs, [part.path(PASSAGES) for part in package.parts[PASSAGES]])
    (told,) = differences(bundle_rows(one, package), bundle_rows(other, another))
    assert (told.id, told.fields) == ("held:100", ("title",))


def drop(blobs: Blobs, keys: list[str]) -> None:
    for key in keys:
        blobs.delete(key)


def test_a_damaged_file_is_not_taken_for_a_difference() -> None:
    one = bundle(rows_of(document("held:1")))
    blobs, package = bundle(rows_of(document("held:1", "other")))
    path = package.parts[ORIGINS][0].path(ORIGINS)
    blobs.put(path, blobs.get(path).replace(b"held:1", b"held:2"))
    with pytest.raises(BundleError, match="does not match the hash"):
        list(differences(bundle_rows(*one), bundle_rows(blobs, package)))
