"""Files of others are read in two processes, for which requests queue; all else stays at hand."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self
from uuid import UUID, uuid4

import httpx
import psutil
import pytest
from sqlalchemy import update
from starlette.requests import Request
from tests.support.libraries.uploads import make_user, send, upload_library, work
from tests.support.polling import wait_until
from tests.unit.web.visiting import ELSEWHERE, PAGE, Visit
from tests.zoo import pdf

from fonds import ids
from fonds.api.problems import ProblemError
from fonds.api.readings import MAX_WAITING, MAX_WAITING_OF_CLIENT, ReadingQueue
from fonds.engine.readers import ReaderPool
from fonds.errors import EngineError, ParseError
from fonds.library import Library
from fonds.normalize.registry import NormalizerInput, read_text, text_of_json
from fonds.stores.tables import documents
from fonds.web.site import make_site

HTML = b"<html><body><h1>Tides</h1><p>The tide comes twice a day.</p></body></html>"


def public(library: Library, data: bytes, name: str) -> str:
    """The id of a public document that was read from a file."""
    user = make_user(library)
    job = send(library, user, data, name)
    work(library)
    document_id = ids.upload_id(job.document_id)
    with library.database.write() as connection:
        connection.execute(
            update(documents).where(documents.c.id == document_id).values(owner=None)
        )
    return document_id


async def get_from_many(app: Any, path: str, addresses: int, each: int = 1) -> list[int]:
    """The statuses of equal requests, sent at once from so many addresses."""

    async def get(number: int) -> int:
        transport = httpx.ASGITransport(app, client=(f"198.51.100.{number % addresses}", 4000))
        async with httpx.AsyncClient(transport=transport, base_url=ELSEWHERE) as client:
            response = await client.get(path, headers=PAGE, timeout=120)
            return response.status_code

    return list(await asyncio.gather(*map(get, range(addresses * each))))


def reader_processes() -> int:
    """The processes that this one has started to read files; their copies are not counted."""
    children = psutil.Process().children()
    return sum("fonds.engine.worker" in " ".join(child.cmdline()) for child in children)


class Watch(Thread):
    """Counts the reader processes until it is stopped."""

    def __init__(self) -> None:
        super().__init__()
        self.most = 0
        self.ended = Event()

    def run(self) -> None:
        while not self.ended.wait(0.01):
            self.most = max(self.most, reader_processes())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.join()


def test_thirty_anonymous_verifications_of_pdfs_start_at_most_two_processes(
    library: Library,
) -> None:
    document_id = public(library, pdf("The tide comes twice a day."), "tides.pdf")
    app = make_site(library, is_exposed=True)
    assert reader_processes() == 0
    with Watch() as watch:
        statuses = asyncio.run(get_from_many(app, f"/verify/{document_id}", 30))
    assert statuses == [200] * 30
    assert 1 <= watch.most <= 2


def test_every_page_that_reads_a_file_does_so_in_a_reader(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (public(library, HTML + tail, "tides.html") for tail in (b"", b"<p>Ebb."))
    read: list[str] = []
    reading = ReaderPool.read_now

    def noted(self: ReaderPool, function: Any, item: Any, **options: Any) -> Any:
        read.append(function.__name__)
        return reading(self, function, item, **options)

    monkeypatch.setattr(ReaderPool, "read_now", noted)
    app = make_site(library, is_exposed=True)
    for path in (
        f"/d/{one}",
        f"/verify/{one}",
        f"/compare?before={one}&after={other}",
        f"/api/compare?from={one}&to={other}",
    ):
        assert asyncio.run(get_from_many(app, path, 1)) == [200]
    assert read == ["render_part", "derive_again", "compare_texts", "compare_texts"]


# The queue --------------------------------------------------------------------------------


class Readings:
    """Requests to a queue, whose work ends when the test says so."""

    def __init__(self, **options: Any) -> None:
        self.queue = ReadingQueue(**options)
        self.may_end = Event()
        self.running: list[UUID] = []

    def ask(self, user: UUID) -> asyncio.Task[UUID]:
        def read() -> UUID:
            self.running.append(user)
            assert self.may_end.wait(60)
            return user

        request = Request({"type": "http"})
        return asyncio.create_task(self.queue.run(request, read, user=user))

    async def until_running(self, count: int) -> None:
        await asyncio.to_thread(wait_until, lambda: len(self.running) >= count)


@pytest.fixture
def readings() -> Iterator[Readings]:
    made = Readings()
    yield made
    made.may_end.set()


def test_pages_are_served_while_as_many_readings_wait_as_may(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    document_id = public(library, HTML, "tides.html")
    may_end = Event()
    monkeypatch.setattr(Library, "verify", lambda *_, **__: may_end.wait(60))
    app = make_site(library, is_exposed=True)

    async def visit() -> tuple[list[list[int]], list[int]]:
        waiting = asyncio.create_task(get_from_many(app, f"/verify/{document_id}", 30, 2))
        queue = app.state.reading_queue
        await asyncio.to_thread(wait_until, lambda: len(queue._waiting) == 58)
        served = [await get_from_many(app, path, 1) for path in ("/", "/health", "/login")]
        may_end.set()
        return served, await waiting

    served, waited = asyncio.run(visit())
    assert served == [[200]] * 3
    assert len(waited) == 60


def test_readings_of_one_client_wait_for_each_other_and_not_for_others(readings: Readings) -> None:
    async def ask() -> None:
        bold, shy = uuid4(), uuid4()
        tasks = [readings.ask(bold) for _ in range(3)]
        await readings.until_running(1)
        tasks.append(readings.ask(shy))
        await readings.until_running(2)
        assert readings.running == [bold, shy]
        readings.may_end.set()
        assert await asyncio.gather(*tasks) == [bold, bold, bold, shy]

    asyncio.run(ask())


def test_a_client_with_several_waiting_requests_is_refused_and_others_are_not(
    readings: Readings,
) -> None:
    async def ask() -> None:
        bold = uuid4()
        tasks = [readings.ask(bold) for _ in range(1 + MAX_WAITING_OF_CLIENT)]
        await readings.until_running(1)
        with pytest.raises(ProblemError) as refused:
            await readings.ask(bold)
        assert (refused.value.status_code, refused.value.kind) == (429, "too-many-requests")
        assert refused.value.headers == {"Retry-After": "15"}
        tasks.append(readings.ask(uuid4()))
        readings.may_end.set()
        assert len(await asyncio.gather(*tasks)) == 2 + MAX_WAITING_OF_CLIENT

    asyncio.run(ask())


def test_beyond_the_bound_of_the_queue_requests_are_refused(readings: Readings) -> None:
    async def ask() -> None:
        tasks = [readings.ask(uuid4()) for _ in range(2 + MAX_WAITING)]
        await readings.until_running(2)
        with pytest.raises(ProblemError) as refused:
            await readings.ask(uuid4())
        assert (refused.value.status_code, refused.value.kind) == (503, "readers-busy")
        assert refused.value.headers == {"Retry-After": "15"}
        readings.may_end.set()
        await asyncio.gather(*tasks)

    asyncio.run(ask())


def test_a_request_that_waits_too_long_is_refused_and_leaves_the_queue() -> None:
    readings = Readings(readers=1, wait_seconds=0.05)

    async def ask() -> None:
        first = readings.ask(uuid4())
        await readings.until_running(1)
        with pytest.raises(ProblemError) as refused:
            await readings.ask(uuid4())
        assert refused.value.status_code == 503
        assert readings.queue._waiting == []
        readings.may_end.set()
        await first
        await readings.ask(uuid4())

    asyncio.run(ask())


def test_a_request_that_is_cancelled_leaves_the_queue() -> None:
    readings = Readings(readers=1)

    async def ask() -> None:
        first, second = readings.ask(uuid4()), readings.ask(uuid4())
        await readings.until_running(1)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert readings.queue._waiting == []
        readings.may_end.set()
        await first
        await readings.ask(uuid4())

    asyncio.run(ask())


# Hostile files ----------------------------------------------------------------------------


def newlines(size: int) -> bytes:
    return b"<html><body><pre>" + b"\n" * size + b"end</pre></body></html>"


def attributes(size: int) -> bytes:
    return b"<p " + b" ".join(b"a%d=1" % number for number in range(size)) + b">end</p>"


def nested(size: int) -> bytes:
    return b"<div>" * size + b"end"


def table(size: int) -> bytes:
    return b"<table>" + b"<tr><td>1<td>2<td>3" * size + b"</table>"


def emphasis(size: int) -> bytes:
    return b"<p>" + b"<b>a<i>b" * size + b"</p>"


HOSTILE = [newlines, attributes, nested, table, emphasis]


@pytest.mark.parametrize("make", HOSTILE)
def test_a_hostile_upload_is_read_within_limits_or_given_up(make: Any) -> None:
    read_within_limits(make(2000), seconds=20)


@pytest.mark.long
@pytest.mark.parametrize("make", HOSTILE)
def test_a_large_hostile_upload_is_read_within_limits_or_given_up(make: Any) -> None:
    read_within_limits(make(450_000), seconds=10)


def read_within_limits(data: bytes, *, seconds: float) -> None:
    with ReaderPool(workers=1, seconds=seconds, memory_mib=512) as readers:
        hostile = NormalizerInput(normalizer="html_v1", data=data, address=None)
        with suppress(ParseError, EngineError):
            text_of_json(readers.read_now(read_text, hostile))
        tide = NormalizerInput(normalizer="html_v1", data=HTML, address=None)
        assert "twice a day" in text_of_json(readers.read_now(read_text, tide)).markdown


def test_a_file_too_large_for_a_server_is_left_to_the_command(
    library: Library, elsewhere: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    document_id = public(library, HTML, "tides.html")
    monkeypatch.setattr("fonds.web.documents.MAX_BYTES", 10)
    refused = elsewhere.get(f"/verify/{document_id}")
    assert refused.status_code == 422
    assert "fonds verify" in refused.text


def test_a_text_that_takes_too_long_to_render_ends_its_reader_and_no_other_page(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        library = stack.enter_context(upload_library(tmp_path, read_seconds=0.05))
        document_id = public(library, b"A *long* [text](https://a.b).\n" * 9000, "text.md")
        app = make_site(library, is_exposed=True)
        assert asyncio.run(get_from_many(app, f"/d/{document_id}", 1)) == [422]
        assert asyncio.run(get_from_many(app, "/", 1)) == [200]
