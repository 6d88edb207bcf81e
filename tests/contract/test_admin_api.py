"""What operators see and ask for over HTTP, and that nobody else does."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

import pytest
from sqlalchemy import event, insert
from tests.support.libraries.notes import NoteOffice, ingest, note_library
from tests.support.libraries.uploads import announce, make_user
from tests.support.upstreams.misbehaving import MisbehavingServer
from tests.unit.api.calling import Api, api_of, events_in, refusal

from fonds.api import events as following
from fonds.api import events as streams
from fonds.api.app import make_app
from fonds.library import Library
from fonds.operations import audited, dispatcher
from fonds.runs.overview import source_insights
from fonds.runs.state import Run, RunRequest, RunStatus
from fonds.seams import Seams
from fonds.shards.compiler import Locks
from fonds.shards.inbox import put
from fonds.shards.index import open_index
from fonds.sites.tables import site_addresses, websites
from fonds.sources.base import Registered
from fonds.stores.tables import (
    embedding_batches,
    ingestion_embedding_queue,
    ingestion_stages,
    upload_jobs,
)
from fonds.testing import FakeSource, ManualClock

AT: Final = "/api/admin/ingestion"
PATIENCE: Final = 30.0
_PARTS: Final = {
    "name": "fake",
    "run_id": str(uuid4()),
    "queue": "citations",
    "command_id": "1",
}


@pytest.fixture
def office() -> Iterator[NoteOffice]:
    with MisbehavingServer() as server:
        yield NoteOffice(server, 6)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["sqlite", "postgres"])
def library(
    request: pytest.FixtureRequest, tmp_path: Path, office: NoteOffice, clock: ManualClock
) -> Iterator[Library]:
    address = request.getfixturevalue("postgres_database") if request.param == "postgres" else ""
    given: dict[str, Any] = {"embedder": "hashing", "database": address}
    with note_library(tmp_path, office.server, seams=Seams(clock=clock), **given) as library:
        library.sources.register(FakeSource())
        yield library


@pytest.fixture
def api(library: Library) -> Iterator[Api]:
    with api_of(library) as api:
        api.maria = api.token("maria", "admin")
        yield api


def get(api: Api, path: str, **more: Any) -> Any:
    answer = api.get(AT + path, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


def post(api: Api, path: str, **more: Any) -> Any:
    answer = api.post(AT + path, **more)
    assert answer.status_code == 202, answer.text
    return answer.json()


# Who may ----------------------------------------------------------------------------------


def admin_routes(library: Library) -> list[tuple[str, str]]:
    paths = make_app(library).openapi()["paths"]
    return [
        (method.upper(), re.sub(r"\{(\w+)\}", lambda part: _PARTS[part[1]], path))
        for path, methods in paths.items()
        for method in methods
        if path.startswith(AT)
    ]


def test_only_operators_are_let_in_wherever_they_ask(api: Api) -> None:
    routes = admin_routes(api.library)
    assert len(routes) > 20
    user, service = api.token("bert"), api.token("parser", "service")
    for method, path in routes:
        is_bare = method == "GET" or not path.endswith("/commands")
        body = {} if is_bare else {"json": {"command": "run", "source": "fake"}}
        assert refusal(api.call(method, path, by={}, **body)) == (401, "unauthorized"), path
        assert refusal(api.call(method, path, by=user, **body)) == (403, "scope"), path
        assert refusal(api.call(method, path, by=service, **body)) == (403, "scope"), path
    assert get(api, "/commands")["commands"] == []


def test_local_request_is_not_an_operator_without_a_token(library: Library) -> None:
    with api_of(library, is_exposed=False) as api:
        here = {"host": "127.0.0.1:8000"}
        for method, path in admin_routes(library):
            is_bare = method == "GET" or not path.endswith("/commands")
            body = {} if is_bare else {"json": {"command": "run", "source": "fake"}}
            answer = api.call(method, path, by={}, headers=here, **body)
            assert refusal(answer) == (401, "unauthorized"), path
        operator = api.token("ada", "admin")
        requested = api.post(f"{AT}/sources/fake/run", by=operator, headers=here)
        assert (requested.status_code, requested.json()["requested_by"]) == (202, "ada")


# Sources ----------------------------------------------------------------------------------


def test_sources_are_shown_with_their_last_runs_and_time_since_success(
    api: Api, office: NoteOffice, clock: ManualClock
) -> None:
    ingest(api.library)
    clock.move(hours=1)
    office.break_note(5, b"{not json")
    ingest(api.library, recheck=True)
    clock.move(hours=1)
    sources = {each["name"]: each for each in get(api, "/sources")["sources"]}
    assert set(sources) == set(api.library.sources)
    fake = sources["fake"]
    assert [run["status"] for run in fake["strip"]] == ["success", "partial"]
    assert fake["strip"][0]["counts"]["inserted"] == 6
    assert fake["seconds_since_success"] == 2 * 3600
    assert (fake["overview"]["documents"], fake["overview"]["open_errors"]) == (6, 1)
    assert fake["overview"]["last_status"] == "partial"
    assert fake["running"] is None
    assert sources["bills"]["strip"] == []
    assert sources["bills"]["seconds_since_success"] is None


def test_strip_has_the_last_thirty_runs_oldest_first(api: Api, clock: ManualClock) -> None:
    runs = []
    for _ in range(33):
        clock.move(minutes=1)
        run = begin_run(api.library)
        runs.append(str(run.id))
        run.finish(RunStatus.SUCCESS)
    clock.move(minutes=1)
    going_on = begin_run(api.library)
    fake = next(each for each in get(api, "/sources")["sources"] if each["name"] == "fake")
    assert [run["id"] for run in fake["strip"]] == [*runs, str(going_on.id)][-30:]
    assert fake["running"] == str(going_on.id)


def test_all_sources_take_no_more_questions_than_one(api: Api) -> None:
    asked: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        asked.append(statement)

    def questions(sources: list[Registered]) -> int:
        asked.clear()
        with api.library.database.read() as connection:
            source_insights(connection, sources, api.library.seams.clock.now())
        return len(asked)

    event.listen(api.library.database.engine, "before_cursor_execute", note)
    assert questions([FakeSource()]) == questions(list(api.library.sources.values())) < 12


def test_source_in_detail_shows_schedule_state_runs_and_yield_by_day(
    api: Api, office: NoteOffice, clock: ManualClock
) -> None:
    ingest(api.library)
    clock.move(days=1)
    office.change(3, title="Another")
    ingest(api.library)
    clock.move(minutes=1)
    ingest(api.library)
    post(api, "/sources/fake/audit")
    asyncio.run(audited(api.library, "fake", None, None, requested_by="cron"))
    detail = get(api, "/sources/fake")
    assert detail["insight"]["schedule"] is None
    assert detail["last_seen_key"] == "2026-03-11"
    assert [run["counts"]["updated"] for run in detail["runs"]] == [0, 1, 0]
    days = [(day["day"], day["runs"], day["inserted"], day["updated"]) for day in detail["days"]]
    assert days == [("2026-03-10", 1, 6, 0), ("2026-03-11", 2, 0, 1)]
    assert (detail["audit"]["expected"], detail["audit"]["requested_by"]) == (6, "cron")
    assert [each["command"] for each in detail["commands"]] == ["audit"]
    bills = get(api, "/sources/bills")
    assert bills["insight"]["schedule"]
    assert bills["time_zone"] == "America/New_York"
    assert refusal(api.get(f"{AT}/sources/nosuch")) == (404, "unknown-source")


# Runs -------------------------------------------------------------------------------------


def begin_run(library: Library, source: str = "fake") -> Run:
    run = Run(
        source=source, request=RunRequest(), database=library.database, clock=library.seams.clock
    )
    run.start()
    return run


def test_runs_are_paged_and_filtered(api: Api, clock: ManualClock) -> None:
    begun = []
    for number in range(7):
        clock.move(seconds=number % 2)  # some begin at the same moment
        run = begin_run(api.library, f"fake{number % 2}")
        run.finish(RunStatus.FAILED if number == 3 else RunStatus.SUCCESS, None)
        begun.append(str(run.id))
    seen, cursor = [], ""
    while True:
        page = get(api, f"/runs?limit=3{cursor}")
        seen += [run["id"] for run in page["runs"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert sorted(seen) == sorted(begun)
    assert len(seen) == len(begun)
    assert [run["id"] for run in get(api, "/runs?status=failed")["runs"]] == [begun[3]]
    of_source = get(api, "/runs?source=fake1")["runs"]
    assert [run["id"] for run in of_source] == [begun[5], begun[3], begun[1]]


def test_run_in_detail_shows_counts_stages_tasks_and_errors_by_cause(
    api: Api, office: NoteOffice
) -> None:
    office.break_note(2, b"{not json")
    office.break_note(3, b"<html>", "text/html")
    office.break_note(4, b"{neither")
    office.server.remove("/notes/5.json")
    report = ingest(api.library)
    run_id = str(report.run_id)
    with api.library.database.write() as connection:
        connection.execute(ingestion_stages.delete())
        now = api.library.seams.clock.now()
        row = {"run_id": report.run_id, "stage": "fetch", "began_at": now, "ended_at": now}
        numbers = {"items": 5, "seconds": 2.5, "waited_seconds": 1.0, "retries": 2}
        connection.execute(insert(ingestion_stages).values(row | numbers))
    run = get(api, f"/runs/{run_id}")
    assert (run["status"], run["counts"]["inserted"], run["counts"]["error"]) == ("partial", 2, 4)
    assert [(each["stage"], each["items"], each["retries"]) for each in run["stages"]] == [
        ("fetch", 5, 2)
    ]
    assert run["tasks"] == {"loaded": 2, "errored": 4}
    causes = [(each["stage"], each["type"], each["count"]) for each in run["errors"]]
    assert causes[0] == ("parse", "MalformedError", 2)
    assert set(causes[1:]) == {
        ("parse", "WrongContentError", 1),
        ("fetch", "NotFoundError", 1),
    }
    assert [each["task_key"] for each in run["errors"][0]["examples"]] == ["fake:2", "fake:4"]
    assert all(each["is_open"] for each in run["errors"][0]["examples"])
    assert get(api, f"/runs/{run_id}/errors")["errors"] == run["errors"]
    first = get(api, f"/runs/{run_id}/tasks?stage=errored&limit=3")
    rest = get(api, f"/runs/{run_id}/tasks?stage=errored&after={first['next_after']}")
    assert (len(first["tasks"]), len(rest["tasks"]), rest["next_after"]) == (3, 1, None)


def test_some_of_many_equal_errors_are_shown(api: Api, office: NoteOffice) -> None:
    for number in office.notes:
        office.break_note(number, b"{not json")
    (group,) = get(api, f"/runs/{ingest(api.library).run_id}/errors")["errors"]
    assert (group["count"], len(group["examples"])) == (6, 3)


def test_log_is_read_page_by_page_and_told_when_it_has_ended(api: Api) -> None:
    run = begin_run(api.library)
    for number in range(5):
        run.log("error" if number == 3 else "info", f"line {number}", number=number)
    with api.library.database.write() as connection:
        run.save(connection)
    page = get(api, f"/runs/{run.id}/logs?limit=3")
    lines = page["logs"]
    while page["logs"]:
        page = get(api, f"/runs/{run.id}/logs?limit=3&after={page['next_after']}")
        lines += page["logs"]
        assert not page["ended"]
    assert ours(lines) == [f"line {number}" for number in range(5)]
    assert lines[-1]["context"] == {"number": 4}
    run.finish(RunStatus.SUCCESS)
    rest = get(api, f"/runs/{run.id}/logs?after={page['next_after']}")
    assert ours(rest["logs"]) == []
    assert rest["ended"]
    errors = get(api, f"/runs/{run.id}/logs?level=error")
    assert ours(errors["logs"]) == ["line 3"]


def ours(lines: list[dict[str, Any]]) -> list[str]:
    """What a test has logged; the run itself says that it begins and ends."""
    return [line["message"] for line in lines if line["message"].startswith("line ")]


def logged(events: list[dict[str, Any]]) -> list[str]:
    return ours([each["data"] for each in events if each["event"] == "log"])


@pytest.mark.parametrize("path", ["", "/logs", "/tasks", "/errors", "/logs/stream"])
def test_run_that_is_not_there_is_not_found(api: Api, path: str) -> None:
    assert refusal(api.get(f"{AT}/runs/{uuid4()}{path}")) == (404, "unknown-run")


def test_run_is_followed_until_it_ends(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "POLL_SECONDS", 0.02)
    run = begin_run(api.library)
    run.log("info", "line 0")
    with api.library.database.write() as connection:
        run.save(connection)

    looked = threading.Event()

    def look(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "FROM ingestion_logs" in statement:
            looked.set()

    def go_on() -> None:
        assert looked.wait(PATIENCE)
        run.count(inserted=2)
        run.log("error", "line 1")
        with api.library.database.write() as connection:
            run.save(connection)
        run.log("info", "line 2")
        run.finish(RunStatus.PARTIAL, "something")

    event.listen(api.library.database.engine, "after_cursor_execute", look)
    later = threading.Thread(target=go_on)
    later.start()
    answer = api.get(f"{AT}/runs/{run.id}/logs/stream")
    later.join()
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = events_in(answer.text)
    assert logged(events) == ["line 0", "line 1", "line 2"]
    assert events[-1]["event"] == "end"
    assert events[-1]["data"]["status"] == "partial"
    counted = [each["data"] for each in events if each["event"] == "counts"]
    assert counted[0]["counts"]["inserted"] == 0
    assert counted[-1]["counts"]["inserted"] == 2
    last = {"Last-Event-ID": events[-1]["id"]}
    assert api.get(f"{AT}/runs/{run.id}/logs/stream", headers=last).status_code == 204
    seen = next(each["id"] for each in events if each["data"].get("message") == "line 0")
    again = api.get(f"{AT}/runs/{run.id}/logs/stream", headers={"Last-Event-ID": seen})
    assert logged(events_in(again.text)) == ["line 1", "line 2"]


def test_log_longer_than_one_look_is_followed_whole(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "BATCH_LINES", 4)
    run = begin_run(api.library)
    for number in range(10):
        run.log("info", f"line {number}")
    run.finish(RunStatus.SUCCESS)
    events = events_in(api.get(f"{AT}/runs/{run.id}/logs/stream").text)
    assert logged(events) == [f"line {number}" for number in range(10)]


# Asking -----------------------------------------------------------------------------------


def do_all(library: Library) -> None:
    asyncio.run(asyncio.wait_for(dispatcher(library, poll=0.01).drain(), PATIENCE))


def test_run_is_asked_for_done_and_told(api: Api) -> None:
    answer = api.post(f"{AT}/sources/fake/run")
    asked = answer.json()
    assert answer.status_code == 202
    assert answer.headers["location"] == f"{AT}/commands/{asked['id']}"
    assert (asked["state"], asked["requested_by"], asked["outcome"]) == ("waiting", "maria", None)
    assert "claimed_by" not in asked
    do_all(api.library)
    done = api.get(answer.headers["location"]).json()
    assert (done["state"], done["outcome"]) == ("done", "success: 6 found, 6 fetched, 6 new")
    run = api.get(done["links"]["run"]).json()
    assert (run["source"], run["counts"]["inserted"]) == ("fake", 6)


@pytest.mark.parametrize(
    ("path", "body", "command", "args"),
    [
        ("/sources/fake/run", {"recheck": True}, "run", {"recheck": True}),
        ("/sources/fake/backfill", None, "backfill", {}),
        (
            "/sources/fake/backfill",
            {"since": "2026-01-01", "accept_loss": True},
            "backfill",
            {"since": "2026-01-01", "accept_loss": True},
        ),
        ("/sources/bills/backfill", {"congresses": [119]}, "backfill", {"congresses": [119]}),
        ("/sources/fake/retry", None, "retry", {}),
        ("/sources/fake/audit", {"until": "2026-01-01"}, "audit", {"until": "2026-01-01"}),
        ("/queues/embedding/drain", None, "drain", {"queue": "embedding"}),
        (
            "/queues/citations/drain",
            {"given_up": True},
            "drain",
            {"queue": "citations", "given_up": True},
        ),
        (
            "/commands",
            {"command": "backfill", "source": "fake", "args": {"until": "2026-01-01"}},
            "backfill",
            {"until": "2026-01-01"},
        ),
    ],
)
def test_everything_can_be_asked_for(
    api: Api, path: str, body: Any, command: str, args: dict[str, Any]
) -> None:
    sent = {} if body is None else {"json": body}
    asked = post(api, path, **sent)
    assert (asked["command"], asked["args"]) == (command, args)
    assert post(api, path, **sent)["id"] == asked["id"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/sources/nosuch/run", None, 404),
        ("/sources/fake/run", {"since": "2026-01-01"}, 422),
        ("/sources/fake/backfill", {"since": "soon"}, 422),
        ("/sources/fake/backfill", {"since": "2026-02-01", "until": "2026-01-01"}, 422),
        ("/sources/fake/backfill", {"congresses": [119]}, 422),
        ("/queues/nosuch/drain", None, 422),
        ("/commands", {"command": "sing"}, 422),
        ("/commands", {"command": "run"}, 422),
        ("/commands", {"command": "run", "source": "nosuch"}, 422),
        ("/commands", {"command": "drain", "args": {"queue": {"a": [1]}}}, 422),
    ],
)
def test_nonsense_is_refused(api: Api, path: str, body: Any, status: int) -> None:
    answer = api.post(AT + path, **({} if body is None else {"json": body}))
    assert answer.status_code == status
    assert get(api, "/commands")["commands"] == []


def test_run_is_cancelled_by_its_id_while_it_goes_on(api: Api) -> None:
    run = begin_run(api.library)
    assert get(api, f"/runs/{run.id}")["links"]["cancel"] == f"{AT}/runs/{run.id}/cancel"
    asked = post(api, f"/runs/{run.id}/cancel")
    assert (asked["source"], asked["args"]) == ("fake", {"run_id": str(run.id)})
    run.finish(RunStatus.CANCELLED)
    assert refusal(api.post(f"{AT}/runs/{run.id}/cancel")) == (409, "run-ended")
    assert refusal(api.post(f"{AT}/runs/{uuid4()}/cancel")) == (404, "unknown-run")
    do_all(api.library)
    assert get(api, f"/commands/{asked['id']}")["outcome"] == "done: the run was cancelled"


def test_commands_are_listed_page_by_page(api: Api) -> None:
    asked = [post(api, f"/sources/{name}/run")["id"] for name in ("fake", "bills", "cbo")]
    first = get(api, "/commands?limit=2")
    assert [each["id"] for each in first["commands"]] == asked[:0:-1]
    rest = get(api, f"/commands?before={first['next_before']}")
    assert ([each["id"] for each in rest["commands"]], rest["next_before"]) == (asked[:1], None)
    assert [each["id"] for each in get(api, "/commands?source=cbo")["commands"]] == asked[2:]
    assert get(api, "/commands?open=false")["commands"] == []
    assert refusal(api.get(f"{AT}/commands/999")) == (404, "unknown-command")


# Queues and stores ------------------------------------------------------------------------


def test_queue_tells_what_waits_is_held_failed_and_costs(api: Api, clock: ManualClock) -> None:
    library, now = api.library, clock.now()
    ingest(library)
    library.embed()
    rows = [
        {"record_id": "a", "attempts": 0, "last_error": None, "lease_until": None},
        {"record_id": "b", "attempts": 1, "last_error": "slow", "lease_until": None},
        {"record_id": "c", "attempts": 5, "last_error": "slow", "lease_until": None},
        {
            "record_id": "d",
            "attempts": 1,
            "last_error": None,
            "lease_until": now + timedelta(hours=2),
        },
        {
            "record_id": "upload:e",
            "attempts": 5,
            "last_error": "refused: my secret",
            "lease_until": None,
        },
    ]
    shared = {"table_name": "documents", "input_sha": "0", "enqueued_at": now}
    with library.database.write() as connection:
        connection.execute(insert(ingestion_embedding_queue), [shared | row for row in rows])
    clock.move(hours=1)
    answer = api.get(f"{AT}/embedding/queue")
    assert "secret" not in answer.text
    queue, work = answer.json()["queue"], answer.json()["work"]
    assert (queue["waiting"], queue["leased"], queue["given_up"]) == (3, 1, 2)
    assert (queue["failed_before"], queue["oldest_seconds"]) == (1, 3600)
    assert queue["causes"][0] == {"cause": "slow", "documents": 2}
    assert len(queue["causes"]) == 2
    assert work["model"].startswith("hash")
    assert work["last_hour"]["texts"] == work["total"]["texts"] == 6
    clock.move(hours=2)
    later = get(api, "/embedding/queue")["work"]
    assert (later["last_hour"]["texts"], later["last_day"]["texts"]) == (0, 6)


def test_cost_of_vectors_is_summed(api: Api) -> None:
    ingest(api.library)
    api.library.embed()
    with api.library.database.write() as connection:
        connection.execute(embedding_batches.update().values(cost=1.5))
    assert get(api, "/embedding/queue")["work"]["total"]["cost"] == 1.5


def test_queues_of_texts_and_citations_are_shown(api: Api) -> None:
    ingest(api.library, FakeSource(queued=True))
    assert get(api, "/normalization/queue")["queue"]["waiting"] == 6
    assert get(api, "/citations/queue")["queue"]["queue"] == "citations"


def test_uploads_are_counted_and_those_that_waited_longest_come_first(
    api: Api, clock: ManualClock
) -> None:
    maria = make_user(api.library)
    jobs = []
    for number in range(3):
        clock.move(minutes=1)
        jobs.append(announce(api.library, maria, b"text %d" % number, f"{number}.txt"))
    with api.library.database.write() as connection:
        moved = upload_jobs.update().where(upload_jobs.c.job_id.in_([j.job_id for j in jobs[:2]]))
        connection.execute(moved.values(status="parse_queued"))
    clock.move(minutes=10)
    told = get(api, "/uploads")
    assert (told["jobs"]["uploaded"], told["jobs"]["parse_queued"]) == (1, 2)
    assert [UUID(each["job_id"]) for each in told["waiting"]] == [j.job_id for j in jobs[:2]]
    assert [each["seconds"] for each in told["waiting"]] == [720, 660]


def test_sites_are_shown_with_strategy_and_health(api: Api, clock: ManualClock) -> None:
    standing = {
        "strategy": {"strategy_type": "links"},
        "state": "active",
        "best": 0.9,
        "scores": [0.9, 0.7],
    }
    site = {"id": "tokyo", "name": "Tokyo", "base_url": "https://t.example/", "enabled": True}
    kept = {"rendered": False, "standing": standing, "updated_at": clock.now()}
    address = {
        "website_id": "tokyo",
        "key": "k",
        "url": "https://t.example/a.pdf",
        "kind": "pdf",
        "state": "failed",
        "crawl_id": uuid4(),
        "depth": 0,
        "turn": 0,
        "place": 0,
        "trail": [],
        "updated_at": clock.now(),
    }
    with api.library.database.write() as connection:
        connection.execute(insert(websites).values(site | kept))
        connection.execute(
            insert(websites).values({**site, **kept, "id": "osaka", "standing": None})
        )
        connection.execute(insert(site_addresses).values(address))
    begin_run(api.library, "site-tokyo").finish(RunStatus.PARTIAL)
    osaka, tokyo = get(api, "/sites")["sites"]
    assert (tokyo["strategy"], tokyo["state"], tokyo["last_score"]) == ("links", "active", 0.7)
    assert (tokyo["last_status"], tokyo["pdfs"], tokyo["failed"]) == ("partial", 1, 1)
    assert (osaka["strategy"], osaka["state"], osaka["last_status"]) == (None, None, None)


def test_indexes_are_shown_with_sizes_and_locks(api: Api) -> None:
    index = open_index(api.library.blobs, "domains")
    before = {each["name"]: each["waiting"] for each in get(api, "/indexes")["indexes"]}
    put(index, {"domain": "epa.gov", "updated_at": api.library.seams.clock.now()})
    Locks(index, api.library.seams.clock, "tester").take("0a")
    api.library.blobs.put("indexes/Not-One/x.usv", b"?")
    told = get(api, "/indexes")
    assert told["is_complete"]
    indexes = {each["name"]: each for each in told["indexes"]}
    assert indexes["domains"]["waiting"] == before.get("domains", 0) + 1
    assert [lock["shard"] for lock in indexes["domains"]["locks"]] == ["0a"]
    assert indexes["Not-One"]["problem"]


def test_audits_are_kept_and_shown_newest_first(api: Api, office: NoteOffice) -> None:
    ingest(api.library)
    asyncio.run(audited(api.library, "fake", None, None, requested_by="maria"))
    office.server.serve("/census.json", b'{"numbers": [1, 2, 77, 78]}', "application/json")
    asyncio.run(audited(api.library, "fake", None, None, requested_by="bert"))
    page = get(api, "/audits?source=fake&limit=1")
    (newest,) = page["audits"]
    assert (newest["expected"], newest["missing"], newest["requested_by"]) == (4, 2, "bert")
    assert newest["findings"]["short"][0]["names"] == ["fake:77", "fake:78"]
    (older,) = get(api, f"/audits?before={page['next_before']}")["audits"]
    assert (older["missing"], older["findings"]["lists"]) == (0, 1)
    assert get(api, "/audits?source=bills")["audits"] == []
