"""Every way an upstream fails ends in a row that names item, stage and cause; the rest loads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support import servers
from tests.support.libraries.notes import FAST, NoteOffice, ingest, note_library, rows
from tests.support.upstreams.misbehaving import MisbehavingServer, Request, Response
from tests.support.upstreams.redirecting_loop import RedirectingLoop

from fonds.demo import http
from fonds.demo.bundle import DATA, BundledRegister, StaticFiles
from fonds.demo.federal_register_api import RegisterApi
from fonds.fetch.transport import HttpTransport
from fonds.library import Library, open_library
from fonds.pipeline import run_source
from fonds.runs.state import RunReport, RunRequest, RunStatus
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.testing import FAKE_HOST, FakeSource, ManualClock, note

REGISTER = "www.federalregister.gov"
LEGISLATORS = "unitedstates.github.io"
LIST = "/api/v1/documents.json"
BROKEN_TEXT = "/documents/full_text/xml/2026/01/12/2026-00101.xml"
CURRENT = "/congress-legislators/legislators-current.yaml"
TWO_WEEKS = RunRequest(mode="backfill", since=date(2026, 1, 12), until=date(2026, 1, 25))

BILLION_LAUGHS = b"""<?xml version="1.0"?>
<!DOCTYPE RULE [
<!ENTITY a "ha">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">
<!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;">
<!ENTITY e "&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;">
<!ENTITY f "&e;&e;&e;&e;&e;&e;&e;&e;&e;&e;">
<!ENTITY g "&f;&f;&f;&f;&f;&f;&f;&f;&f;&f;">
<!ENTITY h "&g;&g;&g;&g;&g;&g;&g;&g;&g;&g;">
]>
<RULE><SUPLINF><P>&h;</P></SUPLINF></RULE>
"""


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as running:
        yield running


# Notes: how transport fails ---------------------------------------------------------------


@pytest.fixture
def office(server: MisbehavingServer) -> NoteOffice:
    return NoteOffice(server, 12)


@pytest.fixture
def library(tmp_path: Path, office: NoteOffice) -> Iterator[Library]:
    seams = Seams(clock=ManualClock())
    settings = {"timeout": 0.3, "max_file_mib": 1}
    with note_library(tmp_path, office.server, seams=seams, **settings) as opened:
        yield opened


@pytest.mark.parametrize(
    ("route", "stage", "kind", "cause"),
    [
        pytest.param("/429-storm", "fetch", "RateLimitedError", "429", id="429 storm"),
        pytest.param("/500-storm", "fetch", "UpstreamDownError", "500", id="500 storm"),
        pytest.param("/apology", "parse", "WrongContentError", "a web page", id="html apology"),
        pytest.param(
            "/truncated", "fetch", "IncompleteBodyError", "/truncated", id="truncated body"
        ),
        pytest.param(
            "/truncated-gzip", "fetch", "IncompleteBodyError", "compressed", id="truncated gzip"
        ),
        pytest.param(
            "/wrong-length", "fetch", "ConnectionFailedError", "HTTP", id="wrong content length"
        ),
        pytest.param("/endless", "fetch", "TooLargeError", "1 MiB", id="endless body"),
        pytest.param("/gzip-bomb", "fetch", "TooLargeError", "1 MiB", id="gzip bomb"),
        pytest.param("/hangs", "fetch", "FetchTimeoutError", "in time", id="silence"),
        pytest.param("/resets", "fetch", "IncompleteBodyError", "/resets", id="reset connection"),
        pytest.param(
            "/malformed-chunk", "fetch", "IncompleteBodyError", "chunk", id="malformed chunk"
        ),
        pytest.param("/no-http", "fetch", "ConnectionFailedError", "/no-http", id="not http"),
        pytest.param("/redirect-loop", "fetch", "BadRedirectError", "10 times", id="loop"),
        pytest.param("/redirect-file", "fetch", "BadRedirectError", "file:", id="file address"),
        pytest.param("/no-such-page", "fetch", "NotFoundError", "404", id="missing page"),
    ],
)
def test_note_that_fails_in_transport_fails_alone_and_is_made_good(
    library: Library, office: NoteOffice, *, route: str, stage: str, kind: str, cause: str
) -> None:
    office.redirect_note(5, route)
    report = ingest(library)
    assert report.status is RunStatus.PARTIAL
    assert (report.counts.inserted, report.counts.error) == (11, 1)
    assert_one_standing(library, "fake:5", stage, kind, cause)
    office.publish()
    assert_made_good(library, ingest(library))
    assert library.document("fake:5")


def test_upstream_that_answers_503_and_then_finely_is_asked_twice_and_loaded(
    library: Library, office: NoteOffice
) -> None:
    def moody(request: Request) -> Response:
        if request.count == 1:
            return Response(b"not yet", 503)
        return Response(json.dumps(office.notes[5]).encode())

    office.server.route("/notes/5.json", moody)
    report = ingest(library)
    assert report.status is RunStatus.SUCCESS
    assert report.counts.inserted == 12
    assert [seen.status for seen in office.server.seen("/notes/5.json")] == [503, 200]
    assert not standing(library)


@pytest.mark.smoke
def test_redirect_to_a_private_address_is_refused_and_the_rest_is_loaded(
    library: Library, office: NoteOffice
) -> None:
    office.redirect_note(5, "/redirect-private")
    report = RedirectingLoop(office.server.port).run(_run_guarded(library))
    assert report.status is RunStatus.PARTIAL
    assert report.counts.inserted == 11
    assert_one_standing(library, "fake:5", "fetch", "ForbiddenAddressError", "169.254.169.254")
    office.publish()
    again = RedirectingLoop(office.server.port).run(_run_guarded(library))
    assert_made_good(library, again)


async def _look_up(_host: str, _port: int) -> list[str]:
    return ["93.184.215.14"]


async def _run_guarded(library: Library) -> RunReport:
    settings: Settings = replace(library.settings, allow_private=False)
    # The name of a public server, which a redirecting loop leads to the one on this machine.
    hosts = dict.fromkeys((FAKE_HOST, "127.0.0.1"), f"http://{FAKE_HOST}")
    transport = HttpTransport(allow_private=False, hosts=hosts, look_up=_look_up)
    async with replace(library.context, settings=settings, transport=transport) as context:
        return await run_source(FakeSource(), RunRequest(), context)


# Notes: how lists fail --------------------------------------------------------------------


@pytest.mark.smoke
def test_list_that_shrinks_is_an_error_and_what_it_still_names_is_loaded(
    library: Library, office: NoteOffice
) -> None:
    ingest(library)
    complete = dict(office.notes)
    office.withdraw(1, 2, 3, 4, 5, 6, 7)
    office.change(13)
    report = ingest(library)
    assert report.status is RunStatus.PARTIAL
    assert (report.counts.inserted, report.counts.gone) == (1, 0)
    listing = "listing 2000-01-01..2026-03-10"
    assert_one_standing(library, listing, "discover", "SuspiciousYieldError", "7 of 13 records")
    office.notes |= complete
    office.publish()
    assert_made_good(library, ingest(library))


@pytest.mark.smoke
def test_list_that_is_an_apology_is_an_error_of_discovery_and_is_made_good(
    library: Library, office: NoteOffice
) -> None:
    ingest(library)
    office.server.serve("/list.json", b"<html>Sorry</html>", "text/html")
    report = ingest(library)
    assert report.status is RunStatus.FAILED
    assert_one_standing(library, "discover", "discover", "WrongContentError", "a web page")
    office.publish()
    assert_made_good(library, ingest(library))


@pytest.mark.smoke
def test_list_that_is_empty_is_an_error_and_is_made_good(
    library: Library, office: NoteOffice
) -> None:
    office.server.serve("/list.json", b'{"notes": []}', "application/json")
    report = ingest(library)
    assert report.status is RunStatus.FAILED
    assert_one_standing(library, "yield", "discover", "SuspiciousYieldError", "at least 1")
    office.publish()
    assert_made_good(library, ingest(library))


@pytest.mark.smoke
def test_one_key_for_two_records_of_an_item_is_an_error(
    library: Library, office: NoteOffice
) -> None:
    class Doubling(FakeSource):
        def parse(self, raw: Any) -> Iterator[Any]:
            times = 2 if raw.task.key == "fake:5" and b"double" in raw.parts[0].data else 1
            for _ in range(times):
                yield from super().parse(raw)

    office.break_note(5, json.dumps(note(5, text="double")).encode())
    report = ingest(library, Doubling())
    assert report.status is RunStatus.PARTIAL
    assert report.counts.inserted == 11
    assert_one_standing(library, "fake:5", "parse", "DuplicateKeyError", "two records")
    office.publish()
    assert_made_good(library, ingest(library, Doubling()))


# The Federal Register and the legislators -------------------------------------------------


@contextmanager
def stand_in(home: Path, server: MisbehavingServer, host: str) -> Iterator[Library]:
    """A library that asks the bundled files of a host, through a server that can be told to lie."""
    site: http.Handler = StaticFiles(DATA / host)
    if host == REGISTER:
        site = RegisterApi(BundledRegister(DATA / host))
    server.route("/*", _through(site))
    clock = ManualClock(moment=datetime(2026, 3, 1, 12, tzinfo=UTC))
    hosts = {host: server.address}
    settings: dict[str, Any] = {"hosts": hosts, "allow_private": True, **FAST}
    servers.sqlite_database(home / "fonds.db")
    with open_library(home, seams=Seams(clock=clock), **settings) as library:
        yield library


def _through(site: http.Handler) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        served = site(http.Request(request.method, request.target, request.headers))
        return Response(served.body, served.status.value, served.media_type)

    return answer


@pytest.fixture
def register(tmp_path: Path, server: MisbehavingServer) -> Iterator[Library]:
    with stand_in(tmp_path, server, REGISTER) as opened:
        yield opened


@pytest.fixture
def legislators(tmp_path: Path, server: MisbehavingServer) -> Iterator[Library]:
    with stand_in(tmp_path, server, LEGISLATORS) as opened:
        yield opened


@pytest.mark.parametrize(
    ("text", "kind", "cause"),
    [
        pytest.param(
            b"<RULE><PREAMB><AGENCY>Labor</PREAMB>",
            "MalformedError",
            "not well-formed XML",
            id="malformed XML",
        ),
        pytest.param(BILLION_LAUGHS, "MalformedError", "entities", id="entity expansion"),
        pytest.param(b"", "MalformedError", "empty", id="empty file"),
        pytest.param(
            b"<!DOCTYPE html><html><p>Back soon</p></html>",
            "WrongContentError",
            "HTML",
            id="html apology",
        ),
    ],
)
def test_rule_whose_text_is_bad_xml_fails_alone_and_is_made_good(
    register: Library, server: MisbehavingServer, text: bytes, kind: str, cause: str
) -> None:
    server.serve(BROKEN_TEXT, text, "text/xml")
    report = _run(register, "federal_register", TWO_WEEKS)
    assert report.status is RunStatus.PARTIAL
    assert report.counts.error == 1
    assert_one_standing(register, "fr:2026-00101", "parse", kind, cause)
    others = _held(register)
    assert others
    assert "fr:2026-00101" not in others
    server.remove(BROKEN_TEXT)
    assert_made_good(register, _run(register, "federal_register", TWO_WEEKS))
    assert _held(register) == others | {"fr:2026-00101"}


@pytest.mark.smoke
def test_page_that_repeats_is_an_error_of_its_week_and_the_week_before_is_loaded(
    register: Library, server: MisbehavingServer
) -> None:
    api = _through(RegisterApi(BundledRegister(DATA / REGISTER)))

    def stuttering(request: Request) -> Response:
        """A mirror with pages of three whose second week has the same page twice."""
        answer = json.loads(api(_whole_list(request)).body)
        found, page = answer["results"], int(request.query["page"])
        if request.query["conditions[publication_date][gte]"] == "2026-01-19":
            page = 1
        pages = -(-len(found) // 3)
        part = {"total_pages": pages, "results": found[(page - 1) * 3 : page * 3]}
        return Response(json.dumps(answer | part).encode())

    server.route(LIST, stuttering)
    report = _run(register, "federal_register", TWO_WEEKS)
    assert report.status is RunStatus.PARTIAL
    assert_one_standing(
        register,
        "discover 2026-01-12..2026-01-25",
        "discover",
        "SuspiciousYieldError",
        "page 2 of 2026-01-19 to 2026-01-25 repeats",
    )
    first_week = _held(register)
    assert {"fr:2026-00101", "fr:2026-00124"} <= first_week
    assert "fr:2026-00140" not in first_week
    server.remove(LIST)
    assert_made_good(register, _run(register, "federal_register", TWO_WEEKS))
    assert "fr:2026-00140" in _held(register)


@pytest.mark.parametrize(
    ("spoil", "kind", "cause"),
    [
        pytest.param(
            lambda data: data + b"- id: [unclosed\n", "MalformedError", "YAML", id="malformed YAML"
        ),
        pytest.param(
            lambda data: data + b"- id:\n    bioguide: A1\n    bioguide: B2\n",
            "DuplicateKeyError",
            "'bioguide' appears twice",
            id="duplicated mapping key",
        ),
        pytest.param(
            lambda data: data + data[: data.index(b"\n- id:") + 1],
            "DuplicateKeyError",
            "legislator:H901001 appears twice",
            id="one key for two records",
        ),
        pytest.param(
            lambda _data: b"- &a [x, x]\n- [*a, *a]\n", "MalformedError", "YAML", id="aliases"
        ),
        pytest.param(lambda _data: b"", "WrongContentError", "empty", id="empty file"),
    ],
)
def test_file_of_legislators_that_is_bad_yaml_fails_alone_and_is_made_good(
    legislators: Library,
    server: MisbehavingServer,
    spoil: Callable[[bytes], bytes],
    kind: str,
    cause: str,
) -> None:
    good = (DATA / LEGISLATORS / CURRENT.lstrip("/")).read_bytes()
    server.serve(CURRENT, spoil(good), "text/yaml")
    report = _run(legislators, "legislators", RunRequest())
    assert report.status is RunStatus.PARTIAL
    assert report.counts.error == 1
    assert_one_standing(legislators, "legislators-current", "parse", kind, cause)
    others = _held(legislators)
    assert others
    assert "legislator:H901001" not in others
    server.remove(CURRENT)
    assert_made_good(legislators, _run(legislators, "legislators", RunRequest()))
    assert _held(legislators) > others


def _whole_list(request: Request) -> Request:
    return replace(
        request, target=request.target.replace(f"page={request.query['page']}", "page=1")
    )


def _run(library: Library, source: str, request: RunRequest) -> RunReport:
    return asyncio.run(library.ingest(source, request))


# What is promised each time ---------------------------------------------------------------


def assert_one_standing(library: Library, task: str, stage: str, kind: str, cause: str) -> None:
    (failure,) = standing(library)
    assert (failure["task_key"], failure["error_stage"]) == (task, stage)
    assert failure["error_type"] == kind, failure["error"]
    assert cause in failure["error"]


def assert_made_good(library: Library, report: RunReport) -> None:
    assert (report.status, report.error_summary) == (RunStatus.SUCCESS, None)
    assert report.counts.error == 0
    assert not standing(library)


def standing(library: Library) -> list[dict[str, Any]]:
    query = "SELECT * FROM ingestion_tasks WHERE stage = 'errored' AND resolved_at IS NULL"
    return rows(library, query)


def _held(library: Library) -> set[str]:
    return {row["id"] for row in rows(library, "SELECT id FROM documents WHERE gone_at IS NULL")}
