"""What every blob store promises, asked of each of them."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from fonds.errors import (
    BlobChangedError,
    BlobExistsError,
    BlobMissingError,
    SettingsError,
    StoreError,
)
from fonds.seams import Seams
from fonds.stores.blobs import Blobs, Method, SignedAddress, open_blobs

KINDS = ["folder", "memory", "s3", "azure"]


@pytest.fixture(params=KINDS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return str(tmp_path / "blobs")
    if request.param == "memory":
        return "memory://"
    found: str = request.getfixturevalue(f"{request.param}_address")
    return found


@pytest.fixture
def blobs(address: str) -> Blobs:
    return open_blobs(address, seams=Seams())


def in_threads(count: int, work: Callable[[int], str]) -> list[str]:
    barrier = threading.Barrier(count)

    def start(number: int) -> str:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(start, range(count)))


def test_a_file_that_is_adopted_is_there_and_nowhere_else(blobs: Blobs, tmp_path: Path) -> None:
    file = tmp_path / "fetched"
    file.write_bytes(b"%PDF-")
    etag = blobs.move_file("corpus/a.pdf", file)
    assert (blobs.get("corpus/a.pdf"), file.exists()) == (b"%PDF-", False)
    found = blobs.read("corpus/a.pdf")
    assert found is not None
    assert found.etag == etag


def test_a_file_is_not_adopted_under_a_key_that_is_taken(blobs: Blobs, tmp_path: Path) -> None:
    blobs.create("corpus/a.pdf", b"first")
    file = tmp_path / "fetched"
    file.write_bytes(b"second")
    with pytest.raises(BlobExistsError):
        blobs.move_file("corpus/a.pdf", file)
    assert (blobs.get("corpus/a.pdf"), file.read_bytes()) == (b"first", b"second")


def test_a_file_of_another_file_system_is_adopted_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = open_blobs(str(tmp_path / "blobs"), seams=Seams())
    file = tmp_path / "fetched"
    file.write_bytes(b"far away")
    link = os.link

    def across(source: Path, *args: Any, **options: Any) -> None:
        if source == file:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        link(source, *args, **options)

    monkeypatch.setattr(os, "link", across)
    blobs.move_file("a", file)
    assert (blobs.get("a"), file.exists()) == (b"far away", False)


def test_what_is_created_can_be_read_back(blobs: Blobs) -> None:
    etag = blobs.create("corpus/a/b.xml", b"<b/>")
    assert blobs.get("corpus/a/b.xml") == b"<b/>"
    assert etag


def test_second_create_is_refused_and_first_bytes_stay(blobs: Blobs) -> None:
    etag = blobs.create("a/b", b"first")
    with pytest.raises(BlobExistsError, match="a/b"):
        blobs.create("a/b", b"second")
    info = blobs.head("a/b")
    assert info is not None
    assert (blobs.get("a/b"), info.etag) == (b"first", etag)


def test_of_racing_creators_exactly_one_wins(blobs: Blobs) -> None:
    def work(number: int) -> str:
        try:
            blobs.create("race/key", b"%d" % number)
        except BlobExistsError:
            return "lost"
        return str(number)

    results = in_threads(5, work)
    assert Counter(results)["lost"] == 4
    assert [blobs.get("race/key").decode()] == [each for each in results if each != "lost"]


def test_replace_takes_the_current_etag_and_refuses_a_stale_one(blobs: Blobs) -> None:
    first = blobs.create("a", b"1")
    second = blobs.replace("a", b"2", etag=first)
    with pytest.raises(BlobChangedError, match="'a'"):
        blobs.replace("a", b"3", etag=first)
    assert blobs.get("a") == b"2"
    assert blobs.replace("a", b"4", etag=second) not in {first, second}


def test_replace_accepts_the_etags_of_head_and_list(blobs: Blobs) -> None:
    blobs.create("a", b"1")
    (listed,) = blobs.list()
    blobs.replace("a", b"2", etag=listed.etag)
    looked_up = blobs.head("a")
    assert looked_up is not None
    blobs.replace("a", b"3", etag=looked_up.etag)
    assert blobs.get("a") == b"3"


def test_racing_counters_lose_no_increment(blobs: Blobs) -> None:
    blobs.create("counter", b"0")

    def increment() -> None:
        while True:
            info = blobs.head("counter")
            assert info is not None
            # Read after the look: at worst the etag is older than the number, and is refused.
            number = int(blobs.get("counter"))
            try:
                blobs.replace("counter", b"%d" % (number + 1), etag=info.etag)
            except BlobChangedError:
                continue
            return

    def work(_: int) -> str:
        for _ in range(5):
            increment()
        return ""

    in_threads(3, work)
    assert blobs.get("counter") == b"15"


def test_replace_of_a_missing_object_is_refused_and_makes_none(blobs: Blobs) -> None:
    etag = blobs.create("a", b"1")
    blobs.delete("a")
    with pytest.raises(BlobChangedError):
        blobs.replace("a", b"2", etag=etag)
    with pytest.raises(BlobChangedError):
        blobs.replace("never/was", b"2", etag=etag)
    assert list(blobs.list()) == []


def test_put_makes_and_overwrites(blobs: Blobs) -> None:
    first = blobs.put("x/y", b"old")
    second = blobs.put("x/y", b"new")
    info = blobs.head("x/y")
    assert info is not None
    assert (blobs.get("x/y"), info.etag) == (b"new", second)
    assert first != second


def test_put_makes_an_earlier_etag_stale(blobs: Blobs) -> None:
    etag = blobs.create("a", b"1")
    blobs.put("a", b"2")
    with pytest.raises(BlobChangedError):
        blobs.replace("a", b"3", etag=etag)


def test_head_tells_size_and_time(blobs: Blobs) -> None:
    etag = blobs.create("a/b", b"12345")
    info = blobs.head("a/b")
    assert info is not None
    assert (info.key, info.size, info.etag) == ("a/b", 5, etag)
    assert info.modified.utcoffset() == timedelta(0)
    assert datetime.now(UTC) - info.modified < timedelta(days=1)


def test_what_is_not_there_is_missing(blobs: Blobs) -> None:
    blobs.create("a/b/c", b"1")
    for key in ("none", "a", "a/b", "a/b/d", "a/b/c/d"):
        assert blobs.head(key) is None
        with pytest.raises(BlobMissingError, match=key):
            blobs.get(key)
        with pytest.raises(BlobMissingError):
            blobs.get_range(key, 0, 1)
        with pytest.raises(BlobMissingError):
            next(iter(blobs.stream(key)))


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [
        (0, 3, b"012"),
        (4, 2, b"45"),
        (8, 100, b"89"),
        (0, 10, b"0123456789"),
        (10, 1, b""),
        (99, 5, b""),
        (3, 0, b""),
    ],
)
def test_a_range_ends_where_the_object_ends(
    blobs: Blobs, start: int, length: int, expected: bytes
) -> None:
    blobs.create("digits", b"0123456789")
    assert blobs.get_range("digits", start, length) == expected


def test_a_range_cannot_count_backwards(blobs: Blobs) -> None:
    blobs.create("digits", b"0123456789")
    with pytest.raises(StoreError, match="digits"):
        blobs.get_range("digits", -1, 2)
    with pytest.raises(StoreError, match="digits"):
        blobs.get_range("digits", 1, -2)


def test_an_empty_object_is_an_object(blobs: Blobs) -> None:
    blobs.create("empty", b"")
    info = blobs.head("empty")
    assert info is not None
    assert info.size == 0
    assert blobs.get("empty") == b""
    assert blobs.get_range("empty", 0, 5) == b""
    assert b"".join(blobs.stream("empty")) == b""


def test_an_empty_file_is_an_object(blobs: Blobs, tmp_path: Path) -> None:
    source = tmp_path / "empty"
    source.touch()
    blobs.create("empty", source)
    assert blobs.get("empty") == b""


def test_large_file_goes_in_and_comes_out_in_pieces(blobs: Blobs, tmp_path: Path) -> None:
    source = tmp_path / "large"
    pattern = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(8192))
    with source.open("wb") as file:
        for number in range(80):
            file.write(number.to_bytes(4, "big") + pattern)
    blobs.create("large", source)
    with pytest.raises(BlobExistsError):
        blobs.create("large", source)
    with source.open("rb") as file:
        expected = hashlib.file_digest(file, "sha256").hexdigest()
    source.write_bytes(b"the source may change afterwards")
    pieces = list(blobs.stream("large"))
    assert max(map(len, pieces)) <= 1 << 20
    assert hashlib.sha256(b"".join(pieces)).hexdigest() == expected
    assert blobs.get_range("large", 79 * (len(pattern) + 4), 4) == (79).to_bytes(4, "big")


def test_a_file_can_replace_and_overwrite(blobs: Blobs, tmp_path: Path) -> None:
    source = tmp_path / "file"
    source.write_bytes(b"one")
    etag = blobs.put("a", source)
    source.write_bytes(b"two")
    blobs.replace("a", source, etag=etag)
    assert blobs.get("a") == b"two"


def test_a_source_that_cannot_be_read_is_reported_as_such(blobs: Blobs, tmp_path: Path) -> None:
    etag = blobs.create("a", b"1")
    source = tmp_path / "no-such-file"
    writes: list[Callable[[], str]] = [
        lambda: blobs.create("b", source),
        lambda: blobs.put("b", source),
        lambda: blobs.replace("a", source, etag=etag),
    ]
    for write in writes:
        with pytest.raises(StoreError, match="no-such-file"):
            write()
    assert [info.key for info in blobs.list()] == ["a"]


def test_list_gives_what_begins_with_the_prefix(blobs: Blobs) -> None:
    keys = {"corpus/fr/1", "corpus/fr/2/x", "corpus/fr2/1", "corpus/f", "other"}
    for key in keys:
        blobs.create(key, key.encode())
    for prefix in ("", "corpus", "corpus/", "corpus/fr", "corpus/fr/", "corpus/fr/2/x", "nothing/"):
        listed = [info.key for info in blobs.list(prefix)]
        assert sorted(listed) == sorted(key for key in keys if key.startswith(prefix))
    assert {info.key: info.size for info in blobs.list()} == {key: len(key) for key in keys}


def test_list_goes_on_past_a_page_in_one_order(blobs: Blobs) -> None:
    keys = [f"many/{number:04}" for number in range(1010)]

    def work(part: int) -> str:
        for key in keys[part::4]:
            blobs.create(key, b"")
        return ""

    in_threads(4, work)
    listed = [info.key for info in blobs.list("many/")]
    assert listed == sorted(keys)
    assert [info.key for info in blobs.list("many/")] == listed


def test_delete_can_be_repeated(blobs: Blobs) -> None:
    blobs.create("a/b", b"1")
    blobs.delete("a/b")
    blobs.delete("a/b")
    blobs.delete("never/was")
    assert blobs.head("a/b") is None
    blobs.create("a/b", b"2")
    assert blobs.get("a/b") == b"2"


@pytest.mark.parametrize(
    "key",
    [
        "with space/and more",
        "name@1a2b3c4d",
        "a%2Fb",
        "%25",
        "28:9-101",
        "第七百九条/条文",
        "é",
        "q?x=1&y=2",
        "h#ash",
        "plus+and,comma;",
        "~tilde'and\"quotes",
        "<angle>{brace}[bracket]*",
        ".hidden/..dots..",
    ],
)
def test_odd_names_are_names(blobs: Blobs, key: str) -> None:
    blobs.create(key, key.encode())
    assert blobs.get(key) == key.encode()
    assert [info.key for info in blobs.list()] == [key]
    blobs.delete(key)
    assert blobs.head(key) is None


def test_an_encoded_slash_is_not_a_slash(blobs: Blobs) -> None:
    blobs.create("a%2Fb", b"encoded")
    blobs.create("a/b", b"plain")
    assert (blobs.get("a%2Fb"), blobs.get("a/b")) == (b"encoded", b"plain")


@pytest.mark.parametrize(
    "key",
    [
        *("", "/", "/abs", "a/", "a//b", ".", "..", "a/../b", "../b", "a/./b"),
        *(".tmp", ".tmp/x", "a/.tmp/b", ".locks/00", "back\\slash"),
        *("nul\0", "line\nfeed", "del\x7f", "lone\ud800"),
    ],
)
def test_a_key_that_is_no_name_is_refused(blobs: Blobs, key: str) -> None:
    for ask in (
        blobs.head,
        blobs.get,
        blobs.delete,
        lambda key: blobs.get_range(key, 0, 1),
        lambda key: list(blobs.stream(key)),
        lambda key: blobs.create(key, b""),
        lambda key: blobs.put(key, b""),
        lambda key: blobs.replace(key, b"", etag="x"),
    ):
        with pytest.raises(StoreError, match="cannot be a blob key"):
            ask(key)
    assert list(blobs.list()) == []


def test_every_durable_operation_announces_itself_before_it_shows(address: str) -> None:
    seen: list[tuple[str, str, bool]] = []

    def watch(operation: str, subject: str) -> None:
        seen.append((operation, subject, store.head(subject) is not None))

    store = open_blobs(address, seams=Seams(durable=watch))
    etag = store.create("k", b"1")
    store.replace("k", b"2", etag=etag)
    store.put("k", b"3")
    store.delete("k")
    writes = [("blob.put", "k"), ("blob.rename", "k")]
    if "://" in address:
        writes = writes[:1]
    expected = [(*each, False) for each in writes] + [(*each, True) for each in writes * 2]
    assert seen == [*expected, ("blob.delete", "k", True)]


def test_a_failure_announced_in_time_leaves_all_as_it_was(address: str) -> None:
    failing = False

    def fail(operation: str, _: str) -> None:
        if failing:
            raise RuntimeError(operation)

    store = open_blobs(address, seams=Seams(durable=fail))
    etag = store.create("k", b"old")
    failing = True
    for act in (
        lambda: store.create("new", b"1"),
        lambda: store.put("k", b"1"),
        lambda: store.replace("k", b"1", etag=etag),
        lambda: store.delete("k"),
    ):
        with pytest.raises(RuntimeError, match=r"blob\."):
            act()
    assert [(info.key, info.etag) for info in store.list()] == [("k", etag)]
    assert store.get("k") == b"old"


# Signed addresses ---------------------------------------------------------------------------


SIGNED = ["s3", "azure"]


@pytest.fixture(params=SIGNED)
def signing(request: pytest.FixtureRequest) -> Blobs:
    return open_blobs(request.getfixturevalue(f"{request.param}_address"), seams=Seams())


def signed(blobs: Blobs, method: Method, key: str, seconds: int = 300) -> SignedAddress:
    address = blobs.sign(method, key, seconds)
    assert address is not None
    return address


def send(address: SignedAddress, content: bytes = b"", *, method: str = "") -> httpx.Response:
    return httpx.request(
        method or address.method, address.url, content=content, headers=dict(address.headers)
    )


def test_signed_address_takes_an_object_under_its_key(signing: Blobs) -> None:
    signing.create("incoming/user/other", b"other")
    answer = send(signed(signing, "PUT", "incoming/user/job"), b"%PDF-1.7")
    assert answer.is_success
    assert signing.get("incoming/user/job") == b"%PDF-1.7"
    assert {info.key for info in signing.list()} == {"incoming/user/job", "incoming/user/other"}


def test_signed_address_gives_the_bytes(signing: Blobs) -> None:
    signing.create("raw/user/document.pdf", b"%PDF-1.7")
    answer = send(signed(signing, "GET", "raw/user/document.pdf"))
    assert (answer.status_code, answer.content) == (200, b"%PDF-1.7")


def test_objects_are_attachments_whichever_way_they_were_stored(signing: Blobs) -> None:
    signing.create("raw/a.html", b"<script>")
    signing.put("raw/b.html", b"<script>")
    etag = signing.create("raw/c.html", b"old")
    signing.replace("raw/c.html", b"<script>", etag=etag)
    for name in "abc":
        answer = send(signed(signing, "GET", f"raw/{name}.html"))
        assert (answer.content, answer.headers["content-disposition"]) == (
            b"<script>",
            "attachment",
        )


@pytest.mark.parametrize("kind", SIGNED)
def test_signed_addresses_have_the_public_endpoint_of_the_store(
    kind: str, request: pytest.FixtureRequest
) -> None:
    address = request.getfixturevalue(f"{kind}_address")
    inner = dict(parse_qsl(urlsplit(address).query))["endpoint"]
    public = inner.replace("127.0.0.1", "localhost")
    blobs = open_blobs(address, seams=Seams(), public_endpoint=public)
    to = signed(blobs, "PUT", "incoming/user/job")
    assert to.url.startswith(f"{public}/")
    assert send(to, b"sent").is_success
    assert blobs.get("incoming/user/job") == b"sent"
    through_server = open_blobs(address, seams=Seams(), public_endpoint="server")
    assert through_server.sign("PUT", "incoming/user/job", 300) is None
    assert through_server.get("incoming/user/job") == b"sent"


def test_public_endpoint_is_refused_where_it_would_have_no_effect() -> None:
    with pytest.raises(SettingsError, match="blobs_public_endpoint"):
        open_blobs("gs://bucket", seams=Seams(), public_endpoint="https://files.example")


@pytest.mark.parametrize(("method", "tried"), [("GET", "PUT"), ("PUT", "GET"), ("PUT", "DELETE")])
def test_signed_address_allows_its_method_only(signing: Blobs, method: Method, tried: str) -> None:
    signing.create("raw/a", b"kept")
    put = {"x-ms-blob-type": "BlockBlob"}
    address = replace(signed(signing, method, "raw/a"), headers=put)
    assert send(address, b"changed" if tried == "PUT" else b"", method=tried).status_code == 403
    assert signing.get("raw/a") == b"kept"


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_signed_address_is_of_no_other_key(signing: Blobs, method: Method) -> None:
    signing.create("raw/mine", b"mine")
    signing.create("raw/hers", b"hers")
    address = signed(signing, method, "raw/mine")
    assert "raw/mine?" in address.url
    elsewhere = replace(address, url=address.url.replace("raw/mine?", "raw/hers?"))
    assert send(elsewhere, b"changed" if method == "PUT" else b"").status_code == 403
    assert signing.get("raw/hers") == b"hers"


def test_signed_address_cannot_be_made_to_last_longer(signing: Blobs) -> None:
    signing.create("raw/a", b"1")
    address = signed(signing, "GET", "raw/a")
    year = f"{datetime.now(UTC).year}"
    for old, new in (("X-Amz-Expires=300", "X-Amz-Expires=900"), (f"se={year}", "se=2999")):
        forged = replace(address, url=address.url.replace(old, new))
        assert (forged.url == address.url) == (send(forged).status_code == 200)


def test_signed_address_ends(signing: Blobs) -> None:
    signing.create("raw/a", b"1")
    address = signed(signing, "GET", "raw/a", seconds=1)
    deadline = time.monotonic() + 30
    while (answer := send(address)).status_code == 200 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert answer.status_code == 403


def test_object_without_permission_is_not_given(signing: Blobs) -> None:
    signing.create("raw/a", b"secret")
    bare = signed(signing, "GET", "raw/a").url.partition("?")[0]
    assert not httpx.get(bare).is_success


@pytest.mark.parametrize("key", ["28:9-101/name@1a2b", "第七百九条", "q?x=1&y=2", "a%2Fb", "h#ash"])
def test_an_odd_name_is_signed_rightly_or_not_at_all(signing: Blobs, key: str) -> None:
    signing.create(key, b"odd")
    address = signing.sign("GET", key, 60)
    assert address is None or send(address).content == b"odd"
    if address is None:
        assert not key.isascii() or set("?#%") & set(key)


def test_who_prints_an_address_shows_no_signature(signing: Blobs) -> None:
    address = signed(signing, "PUT", "incoming/a")
    assert "ignature" not in repr(address)
    assert "sig=" not in repr(address)


@pytest.mark.parametrize("kind", ["folder", "memory"])
def test_store_without_addresses_signs_none(kind: str, tmp_path: Path) -> None:
    place = str(tmp_path / "blobs") if kind == "folder" else "memory://"
    store = open_blobs(place, seams=Seams())
    assert store.sign("PUT", "incoming/a", 300) is None
    assert store.sign("GET", "incoming/a", 300) is None


@pytest.mark.parametrize("seconds", [0, -1, 7 * 24 * 60 * 60 + 1])
def test_address_for_no_time_or_too_long_is_refused(blobs: Blobs, seconds: int) -> None:
    with pytest.raises(StoreError, match="valid for"):
        blobs.sign("GET", "a", seconds)


def test_key_that_is_no_name_is_not_signed(blobs: Blobs) -> None:
    with pytest.raises(StoreError, match="cannot be a blob key"):
        blobs.sign("GET", "../b", 60)


def test_what_cannot_be_signed_is_refused_without_showing_the_secret() -> None:
    # Whoever holds such a grant only may use it, but cannot make another of it.
    store = open_blobs("az://box?account_name=a&sas_key=sv%3D1%26sig%3Dhush", seams=Seams())
    with pytest.raises(StoreError, match="cannot sign an address of 'a'") as refused:
        store.sign("GET", "a", 60)
    assert "hush" not in str(refused.value)
