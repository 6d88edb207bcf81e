"""A bundle that is not what it says is found out, and the place is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.bundles import bundle, document, rows_of

from fonds.exchange.bundle.contents import (
    ALIASES,
    CITATIONS,
    DESCRIPTOR,
    DOCUMENTS,
    ORIGINS,
    PASSAGES,
    BundlePackage,
    Record,
    Resource,
)
from fonds.exchange.bundle.verify import MAX_PROBLEMS, BundleReport, verify
from fonds.seams import Seams
from fonds.stores.blobs import Blobs, open_blobs

ONE, TWO = document("held:1"), document("held:2", "Other words.")


def whole() -> tuple[Blobs, BundlePackage]:
    return bundle(rows_of(ONE, TWO))


def faults(found: BundleReport) -> list[str]:
    return [f"{each.where}: {each.what}" for each in found.problems]


def test_a_sound_bundle_is_sound() -> None:
    blobs, package = whole()
    found = verify(blobs, "here")
    assert faults(found) == []
    assert (found.root, found.count) == (package.root, 0)
    assert found.records["documents"] == 2


def test_an_empty_bundle_is_sound() -> None:
    assert verify(bundle({})[0], "here").count == 0


@pytest.mark.parametrize(
    ("resource", "bent", "fault"),
    [
        (DOCUMENTS, {"citation_string": ""}, "documents held:1: its citation_string is empty"),
        (DOCUMENTS, {"source_url": ""}, "documents held:1: its source_url is empty"),
        (DOCUMENTS, {"source_org": None}, "has no source_org"),
        (DOCUMENTS, {"body_text": "x"}, "documents held:1: its text does not match its hash"),
        (DOCUMENTS, {"body_text": None}, "documents held:1: its text does not match its hash"),
        (DOCUMENTS, {"is_gone": 0}, "is_gone that is not of type boolean"),
        (DOCUMENTS, {"id": "held:3"}, "held:1: has rows, but there is no such document"),
        (PASSAGES, {"text": "x"}, "passages held:1: passage 0 does not match its hash"),
        (PASSAGES, {"document": "held:0"}, "held:1: has no passage"),
        (ORIGINS, {"raw_sha256": "x"}, "it has no provenance"),
        (ORIGINS, {"document": "held:0"}, "held:1: has no provenance"),
        (ALIASES, {"document": "held:0"}, "held:0: has rows, but there is no such document"),
        (CITATIONS, {"document": "held:0"}, "held:0: has rows, but there is no such document"),
        (CITATIONS, {"surplus": 1}, "other fields than citations have"),
    ],
)
def test_what_is_wrong_with_a_row_is_said(resource: Resource, bent: Record, fault: str) -> None:
    found = verify(bundle(rows_of({**ONE, resource: {**ONE[resource], **bent}}, TWO))[0], "here")
    assert any(fault in each for each in faults(found)), faults(found)


def test_a_row_that_does_not_make_sense_is_named_by_file_and_line() -> None:
    blobs, package = bundle(rows_of(ONE, {**TWO, ORIGINS: {**TWO[ORIGINS], "raw_sha256": 5}}))
    path = package.parts[ORIGINS][0].path(ORIGINS)
    assert f"{path}:2: has a raw_sha256 that is not of type string" in faults(verify(blobs, "here"))


def test_rows_out_of_order_and_rows_that_stand_twice_are_found() -> None:
    rows = rows_of(ONE, TWO)
    for order in ([1, 0], [0, 0, 1]):
        bent = {**rows, DOCUMENTS: [rows[DOCUMENTS][place] for place in order]}
        told = faults(verify(bundle(bent)[0], "here"))
        assert any("does not come after" in each for each in told)


Bend = Callable[[Blobs, str], Any]


@pytest.mark.parametrize(
    ("bend", "fault"),
    [
        (lambda blobs, path: blobs.delete(path), "is missing"),
        (lambda blobs, path: blobs.put(path, blobs.get(path)[:-1]), "bytes instead of"),
        (
            lambda blobs, path: blobs.put(path, blobs.get(path).replace(b"Some", b"None")),
            "does not match the hash in its name",
        ),
    ],
)
def test_a_file_that_is_gone_cut_off_or_changed_is_named(bend: Bend, fault: str) -> None:
    blobs, package = whole()
    path = package.parts[PASSAGES][0].path(PASSAGES)
    bend(blobs, path)
    assert any(path in each and fault in each for each in faults(verify(blobs, "here")))


def bent_descriptor(change: Callable[[dict[str, Any]], Any]) -> list[str]:
    blobs, _ = whole()
    told = json.loads(blobs.get(DESCRIPTOR))
    change(told)
    blobs.put(DESCRIPTOR, json.dumps(told).encode())
    return faults(verify(blobs, "here"))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda told: told.update(root="0" * 64), "its own hashes: root"),
        (lambda told: told.update(content="0" * 64), "its own hashes: content"),
        (lambda told: told.update(format=2), "format 2"),
        (lambda told: told.update(format=[]), "format"),
        (lambda told: told.pop("root"), "not one of a bundle"),
        (lambda told: told.update(resources={}), "other tables"),
        (lambda told: told.update(selection=[5]), "not one of a bundle"),
        (lambda told: told["resources"].pop(), "other tables"),
        (lambda told: told["resources"][0].update(rows=9), "its own hashes: resources"),
        (lambda told: told["resources"][0].update(path=["../../etc/passwd"]), "its own hashes"),
        (lambda told: told["resources"][0]["schema"]["fields"].pop(), "its own hashes"),
        (
            lambda told: told["resources"][0]["parts"][0].update(bytes=1 << 40),
            "has an invalid size",
        ),
        (lambda told: told["resources"][0]["parts"][0].update(bytes="9"), "not one of a bundle"),
        (lambda told: told["resources"][0]["parts"][0].update(records=True), "not one of a bundle"),
        (lambda told: told["resources"][0]["parts"][0].update(records=9), "its own hashes"),
        (lambda told: told["resources"][0]["parts"][0].update(sha256="../x"), "not one of"),
        (lambda told: told["resources"][0]["parts"][0].update(more=1), "not one of a bundle"),
    ],
)
def test_a_data_package_that_is_bent_is_refused(
    change: Callable[[dict[str, Any]], Any], fault: str
) -> None:
    (told,) = bent_descriptor(change)
    assert fault in told


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"5", b"null", b"\xff", b"[" * 100_000, b'{"format":1}']
)
def test_what_is_no_data_package_is_refused(data: bytes) -> None:
    blobs = open_blobs("memory://", seams=Seams())
    blobs.put(DESCRIPTOR, data)
    (told,) = faults(verify(blobs, "here"))
    assert "not one of a bundle" in told


def test_no_bundle_is_said_to_be_none() -> None:
    (told,) = faults(verify(open_blobs("memory://", seams=Seams()), "here"))
    assert "there is no bundle at here" in told


def test_many_problems_are_counted_and_some_are_told() -> None:
    many = [document(f"held:{n:04}", citation_string="") for n in range(MAX_PROBLEMS + 50)]
    found = verify(bundle(rows_of(*many))[0], "here")
    assert (found.count, len(found.problems)) == (MAX_PROBLEMS + 50, MAX_PROBLEMS)
