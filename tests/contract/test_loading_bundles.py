"""A bundle fills a library, or is merged into one, from any address and after any stop."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Self

import pytest
from sqlalchemy import update
from tests.support.damaged_bundles import FORGER, OpenBundle, at, first, forged, opened, seal
from tests.support.demo_bundles import (
    BILL,
    KEY,
    SOURCES,
    STATE,
    bundle_demo,
    bundled,
    counts,
    library_at,
    load,
    retitled,
    root_of,
    rows,
)
from tests.support.libraries.demo import demo

from fonds.errors import FondsError
from fonds.exchange.bundle import opening
from fonds.exchange.bundle.contents import DOCUMENTS, EDITIONS, NODES, read_package
from fonds.exchange.bundle.raw import RAW
from fonds.library import open_library
from fonds.seams import Seams
from fonds.stores.tables import documents
from fonds.testing import ManualClock


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed bundle of the demo's library with the publishers' bytes; not to be changed."""
    return bundle_demo(tmp_path_factory.mktemp("made") / "bundle")


@pytest.fixture
def bundle(made: Path, tmp_path: Path) -> Path:
    """A copy of that bundle."""
    return Path(shutil.copytree(made, tmp_path / "bundle"))


# Loading ----------------------------------------------------------------------------------


def test_loading_derives_everything_again_and_gives_the_same_root(
    tmp_path: Path, made: Path
) -> None:
    with library_at(tmp_path / "new") as library:
        report = load(library, made, key=KEY.public)
        assert (report.added, report.proven, report.unproven) == (report.documents,) * 2 + (0,)
        assert report.is_equal
        assert root_of(library, tmp_path / "again") == report.root
        with open_library(demo().home) as source:
            theirs, ours = counts(source), counts(library)
        typed = [name for name in theirs if name.startswith("bill") and theirs[name]]
        assert typed
        assert {name: ours[name] for name in typed} == {name: theirs[name] for name in typed}
        assert library.verify(BILL).verdict == "match"
        assert library.document(BILL)["bundle"] == f"{report.root} {KEY.public}"


def test_loading_into_postgresql_and_a_bucket_gives_the_same_root(
    tmp_path: Path, made: Path, postgres_database: str, s3_address: str
) -> None:
    with library_at(tmp_path / "new", database=postgres_database, blobs=s3_address) as library:
        assert load(library, made).is_equal
        assert library.verify(BILL).verdict == "match"


def test_loading_again_writes_nothing(tmp_path: Path, made: Path) -> None:
    with library_at(tmp_path / "new") as library:
        load(library, made)
        before = rows(library, *STATE)
        report = load(library, made)
        assert (report.unchanged, report.added, report.updated) == (report.documents, 0, 0)
        assert rows(library, *STATE) == before


def test_library_that_was_loaded_gives_the_same_bundle_with_its_bytes(
    tmp_path: Path, made: Path
) -> None:
    with library_at(tmp_path / "new") as library:
        load(library, made)
        bundled(library, tmp_path / "again", sources=SOURCES)
    assert (tmp_path / "again" / RAW).read_bytes() == (made / RAW).read_bytes()


def test_without_bytes_documents_are_taken_as_they_stand_and_are_unproven(tmp_path: Path) -> None:
    with open_library(demo().home) as library:
        bundled(library, tmp_path / "bundle", raw=False, sources=SOURCES)
    with library_at(tmp_path / "new") as library:
        report = load(library, tmp_path / "bundle")
        assert (report.unproven, report.proven) == (report.documents, 0)
        assert root_of(library, tmp_path / "again") == report.root
        assert counts(library)["bills"] == 0
        proof = library.verify(BILL)
        assert proof.verdict == "unproven"
        assert f"bundle {report.root}, key {KEY.public}" in str(proof.reason)
        assert library.search("bill")
        document = library.document(BILL)
        assert (document["raw_path"], document["bundle"]) == ("", f"{report.root} {KEY.public}")


@pytest.mark.long
def test_bytes_that_come_later_prove_what_was_loaded_without(tmp_path: Path, made: Path) -> None:
    with open_library(demo().home) as library:
        bundled(library, tmp_path / "bundle", raw=False, sources=SOURCES, clock=ManualClock())
    with library_at(tmp_path / "new") as library:
        load(library, tmp_path / "bundle")
        assert load(library, made).is_equal
        assert library.verify(BILL).verdict == "match"
        assert counts(library)["bills"] > 0


def test_document_that_the_library_fetched_itself_is_never_overwritten(
    tmp_path: Path, bundle: Path
) -> None:
    home = Path(shutil.copytree(demo().home, tmp_path / "own"))
    with library_at(home) as library:
        other = {"title": "As we fetched it", "content_sha256": "0" * 64}
        with library.database.write() as connection:
            connection.execute(update(documents).where(documents.c.id == BILL).values(other))
        before = rows(library, *STATE)
        report = load(library, bundle)
        assert (report.preserved, report.added, report.updated) == (1, 0, 0)
        assert not report.is_equal
        assert rows(library, *STATE) == before


def newer(bundle: OpenBundle, days: int = 1) -> None:
    assert bundle.statement is not None
    made_at = bundle.statement.made + timedelta(days=days)
    stamp = made_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    bundle.statement = replace(bundle.statement, made_at=stamp)


def without(bundle: OpenBundle, document_id: str) -> None:
    """Leave a document and its input out."""
    for resource, table in bundle.rows.items():
        if resource not in {EDITIONS, NODES}:
            table[:] = [row for row in table if row[resource.owner] != document_id]
    bundle.inputs = [
        each for each in bundle.inputs if document_id not in each["task"].get("documents", ())
    ]


def retold(folder: Path, tmp_path: Path, change: Callable[[OpenBundle], None]) -> None:
    """Change the bytes of a bundle, and its rows as our own parsers read them."""
    forged(folder, change, key=KEY)
    scratch = tmp_path / "reading"
    with library_at(scratch) as library:
        inputs = opened(folder)
        trusted = Path(shutil.copytree(folder, tmp_path / "other-version"))
        for each in inputs.inputs:
            each["recipe"] = "another version"
        seal(inputs, trusted, key=KEY)
        load(library, trusted)
        assert inputs.statement is not None
        clock = ManualClock(inputs.statement.made)
        bundled(library, tmp_path / "again", sources=SOURCES, clock=clock)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "again", folder)


def changed_later(bundle: OpenBundle) -> None:
    retitled(bundle)
    newer(bundle)


@pytest.mark.long
def test_newer_bundle_updates_what_an_older_one_brought(
    tmp_path: Path, made: Path, bundle: Path
) -> None:
    retold(bundle, tmp_path, changed_later)
    with library_at(tmp_path / "new") as library:
        first = load(library, made)
        report = load(library, bundle)
        assert report.root != first.root
        assert report.updated >= 1
        assert report.is_equal
        assert library.document(BILL)["bundle"] == f"{report.root} {KEY.public}"
        assert root_of(library, tmp_path / "here") == report.root


def test_parser_of_another_version_is_named_and_its_documents_are_loaded_as_ours(
    tmp_path: Path, bundle: Path
) -> None:
    def older(contents: OpenBundle) -> None:
        contents.document(BILL, DOCUMENTS)["title"] = "As another version read it"
        for each in contents.inputs:
            if BILL in each["task"].get("documents", ()):
                each["recipe"] = "bills@0.1.0 headings@0.1.0:512/64"

    forged(bundle, older)
    with library_at(tmp_path / "new") as library:
        report = load(library, bundle)
        assert report.other_versions == {"bills@0.1.0 headings@0.1.0:512/64": [BILL]}
        assert library.document(BILL)["title"] != "As another version read it"


def test_tar_archive_is_loaded_like_its_folder(tmp_path: Path, made: Path) -> None:
    with tarfile.open(tmp_path / "bundle.tar", "w") as archive:
        archive.add(made, ".", filter=visible)
    with library_at(tmp_path / "new") as library:
        assert load(library, tmp_path / "bundle.tar").is_equal


def visible(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "/." in member.name else member


def test_owners_and_keys_never_travel(bundle: Path) -> None:
    for file in bundle.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert b'"owner"' not in data
            assert KEY.secret_text().encode() not in data


@pytest.mark.long
def test_older_edition_is_refused_and_rolls_nothing_back(
    tmp_path: Path, made: Path, bundle: Path
) -> None:
    retold(bundle, tmp_path, changed_later)
    with library_at(tmp_path / "new") as library:
        load(library, bundle)
        before = rows(library, *STATE)
        with pytest.raises(FondsError, match="newer one of the same maker"):
            load(library, made)
        contents = opened(made)
        seal(contents, tmp_path / "by-another", key=FORGER)
        with pytest.raises(FondsError, match="roll back"):
            load(library, tmp_path / "by-another")
        assert rows(library, *STATE) == before


# Addresses --------------------------------------------------------------------------------


class RangeServer:
    """Serves a folder with ranges; counts what it sends, and breaks off where it is told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: list[tuple[str, str | None]] = []
        self.knows_ranges = True
        self.max_raw_requests: int | None = None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                served.answer(self)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        return Handler

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        byte_range = handler.headers["Range"]
        self.requests.append((handler.path, byte_range))
        file = self.folder / handler.path.lstrip("/")
        is_over = self.max_raw_requests is not None and (
            len(self.paths("/raw/")) > self.max_raw_requests
        )
        if not file.is_file() or is_over:
            handler.send_error(404)
            return
        data, status = file.read_bytes(), 200
        if byte_range and self.knows_ranges:
            start, end = map(int, byte_range.removeprefix("bytes=").split("-"))
            handler.send_response(206)
            handler.send_header("Content-Range", f"bytes {start}-{end}/{len(data)}")
            data = data[start : end + 1]
        else:
            handler.send_response(status)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def paths(self, prefix: str) -> list[str]:
        return [path for path, _ in self.requests if path.startswith(prefix)]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def test_bundle_at_a_url_is_fetched_through_the_guard(tmp_path: Path, made: Path) -> None:
    with RangeServer(made) as server:
        with (
            library_at(tmp_path / "new") as library,
            pytest.raises(FondsError, match=r"private|loopback"),
        ):
            load(library, server.url)
        assert server.requests == []


def test_interrupted_load_of_a_url_continues_where_it_ended(
    tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "RANGE_SIZE", 5_000)
    with RangeServer(made) as server, library_at(tmp_path / "new", allow_private=True) as library:
        server.max_raw_requests = 2
        with pytest.raises(FondsError, match="missing"):
            load(library, server.url, is_pull=True)
        assert counts(library)["documents"] == 0
        assert server.paths("/data/")
        server.max_raw_requests = None
        server.requests.clear()
        assert load(library, server.url, is_pull=True).is_equal
        assert server.paths("/data/") == []
        ranges = [byte_range for path, byte_range in server.requests if path.startswith("/raw/")]
        assert ranges[0] == "bytes=10000-14999"


def test_server_without_ranges_is_read_as_a_whole(
    tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "RANGE_SIZE", 5_000)
    with RangeServer(made) as server, library_at(tmp_path / "new", allow_private=True) as library:
        server.knows_ranges = False
        assert load(library, server.url).is_equal


def test_pull_fetches_only_what_changed(tmp_path: Path, bundle: Path) -> None:
    with (
        RangeServer(bundle) as server,
        library_at(tmp_path / "new", allow_private=True) as library,
    ):
        load(library, server.url, is_pull=True)
        before = rows(library, *STATE)
        server.requests.clear()
        report = load(library, server.url, is_pull=True)
        assert report.unchanged == report.documents
        assert server.paths("/raw/") == []
        assert server.paths("/data/") == []
        assert rows(library, *STATE) == before


def test_pull_refuses_another_key_until_it_is_given(tmp_path: Path, bundle: Path) -> None:
    with library_at(tmp_path / "new") as library:
        load(library, bundle, is_pull=True)
        before = counts(library)
        seal(opened(bundle), bundle, key=FORGER)
        with pytest.raises(FondsError, match=r"was signed by .* nothing says"):
            load(library, bundle, is_pull=True)
        assert counts(library) == before
        assert load(library, bundle, is_pull=True, key=FORGER.public).is_equal


def test_server_that_sends_more_than_the_bundle_names_is_refused(
    tmp_path: Path, bundle: Path
) -> None:
    file = first(bundle, "data/passages/*")
    file.write_bytes(file.read_bytes() + b"x" * 1000)
    with (
        RangeServer(bundle) as server,
        library_at(tmp_path / "new", allow_private=True) as library,
    ):
        with pytest.raises(FondsError, match=r"more than|not the file"):
            load(library, server.url)
        assert counts(library)["documents"] == 0


# Kills ------------------------------------------------------------------------------------


class StoppedError(Exception):
    """The process ends here."""


@pytest.mark.long
@pytest.mark.parametrize("nth", [1, 2, 3, 5, 8, 13, 21, 34, 55])
def test_load_that_is_stopped_anywhere_and_repeated_gives_the_same_library(
    tmp_path: Path, made: Path, nth: int
) -> None:
    left = nth

    def durable(_operation: str, _subject: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise StoppedError

    with library_at(tmp_path / "new"):
        pass
    with (
        open_library(tmp_path / "new", seams=Seams(durable=durable)) as library,
        suppress(StoppedError),
    ):
        load(library, made)
    with library_at(tmp_path / "new") as library:
        assert load(library, made).is_equal
        assert root_of(library, tmp_path / "again") == read_package(at(made), "there").root
