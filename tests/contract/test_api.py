"""What the API promises, on every kind of store."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import func, select, update
from tests.support.libraries.uploads import TEXT, upload_library, work
from tests.support.servers import allow_connections
from tests.unit.api.calling import BASE, Api, api_of, claim, events_in, refusal

from fonds.library import Library
from fonds.schema import HEAD
from fonds.seams import Seams
from fonds.stores.tables import idempotency_keys, upload_jobs
from fonds.testing import ManualClock
from fonds.uploads.intake import expire_uploads
from fonds.uploads.live_workers import record_worker
from fonds.uploads.users import Scope
from fonds.uploads.webhook import sign
from fonds.uploads.worker import LEASE

SECRET = "the secret of this test"
SCOPES: tuple[Scope, ...] = ("admin", "service")
DATA = TEXT.encode()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["sqlite-folder", "postgres-s3"])
def library(
    request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock
) -> Iterator[Library]:
    database, blobs = request.param.split("-")
    on: dict[str, Any] = {"webhook_secrets": (SECRET,), "max_file_mib": 4}
    if database == "postgres":
        on["database"] = request.getfixturevalue("postgres_database")
    if blobs == "s3":
        on["blobs"] = request.getfixturevalue("s3_address")
    with upload_library(tmp_path, seams=Seams(clock=clock), **on) as library:
        yield library


@pytest.fixture
def api(library: Library) -> Iterator[Api]:
    with api_of(library) as api:
        yield api


def _count(library: Library, table: Any) -> int:
    with library.database.read() as connection:
        return connection.scalar(select(func.count()).select_from(table)) or 0


def _set(library: Library, document_id: str, **values: Any) -> None:
    with library.database.write() as connection:
        same = upload_jobs.c.document_id == document_id
        connection.execute(update(upload_jobs).where(same).values(values))


# From a file to an answer -------------------------------------------------------------------


def test_upload_is_announced_sent_completed_worked_on_and_found(api: Api) -> None:
    announced = api.announce(DATA, "Flood policy.md")
    assert announced.status_code == 201
    told = announced.json()
    assert told["status"] == "uploaded"
    assert announced.headers["location"] == f"/jobs/{told['document_id']}"
    assert api.deliver(told["upload"], DATA) < 300
    queued = api.post(f"/uploads/{told['document_id']}/complete")
    assert (queued.status_code, queued.json()["status"]) == (200, "parse_queued")
    work(api.library)
    job = api.job(told["document_id"])
    assert job["status"] == "complete"
    assert job["progress"]["embeds_done"] == job["progress"]["chunks_total"] > 0

    document = api.get(job["links"]["document"], params={"text": "true"}).json()
    assert (document["title"], document["file_name"]) == ("Flood policy", "Flood policy.md")
    assert document["reading"] is None
    assert job["reading"] is None
    assert document["is_own"]
    assert "first 500 dollars" in document["text"]
    assert document["provenance"]["raw_sha256"] == hashlib.sha256(DATA).hexdigest()
    assert "text" not in api.get(job["links"]["document"]).json()
    (hit,) = api.get("/api/search", params={"q": "500 dollars", "limit": 1}).json()["results"]
    assert hit["id"] == document["id"]

    raw = api.get(job["links"]["raw"])
    assert raw.status_code == 307
    location = raw.headers["location"]
    fetched = (
        api.call("GET", location, by={})
        if location.startswith(BASE)
        else httpx.get(location, trust_env=False)
    )
    assert fetched.content == DATA


def test_same_bytes_of_the_same_user_are_one_document(api: Api) -> None:
    job = api.upload(DATA)
    again = api.announce(DATA, "another name.md")
    assert again.status_code == 200
    assert again.json()["job_id"] == job["job_id"]
    assert "upload" not in again.json()
    assert api.announce(DATA, by=api.token("noah")).status_code == 201
    assert _count(api.library, upload_jobs) == 2


def test_address_can_be_asked_for_again_until_the_file_has_come(api: Api) -> None:
    first = api.announce(DATA).json()
    second = api.announce(DATA)
    assert second.status_code == 200
    assert second.json()["job_id"] == first["job_id"]
    assert api.deliver(second.json()["upload"], DATA) < 300


def test_late_upload_cannot_change_what_was_accepted(api: Api) -> None:
    announced = api.announce(DATA).json()
    api.deliver(announced["upload"], DATA)
    api.post(f"/uploads/{announced['document_id']}/complete")
    api.deliver(announced["upload"], DATA.replace(b"500", b"900"))
    work(api.library)
    found = api.get(f"/api/documents/upload:{announced['document_id']}?text=true").json()
    assert "first 500 dollars" in found["text"]


def test_job_whose_file_never_came_fails_and_begins_again_when_announced(
    api: Api, clock: ManualClock
) -> None:
    announced = api.announce(DATA).json()
    clock.move(hours=1, seconds=1)
    expire_uploads(api.library.context)
    job = api.job(announced["document_id"])
    assert job["status"] == "failed_parse"
    assert job["last_error"]["message"] == "the file did not arrive in time"
    again = api.announce(DATA).json()
    assert again["status"] == "uploaded"
    assert api.deliver(again["upload"], DATA) < 300


# Refused ------------------------------------------------------------------------------------


def _completed(api: Api, told: dict[str, Any], data: bytes) -> Any:
    document_id = api.post("/uploads", json=told).json()
    assert api.deliver(document_id["upload"], data) < 300
    return api.post(f"/uploads/{document_id['document_id']}/complete")


def test_hash_mismatch_is_refused_and_ends_the_job(api: Api) -> None:
    told = claim(DATA) | {"sha256": "ab" * 32}
    answer = _completed(api, told, DATA)
    assert refusal(answer) == (422, "hash-mismatch")
    (job,) = api.get("/jobs", params={"status": "failed_parse"}).json()["jobs"]
    assert "SHA-256 differs" in job["last_error"]["message"]


def test_pdf_that_is_html_is_refused(api: Api) -> None:
    page = b"<!doctype html><html><body><p>Sorry, no policy today.</p></body></html>"
    assert refusal(_completed(api, claim(page, "policy.pdf"), page)) == (422, "type-mismatch")


def test_completion_before_the_file_has_come_is_too_early(api: Api) -> None:
    announced = api.announce(DATA).json()
    path = f"/uploads/{announced['document_id']}/complete"
    assert refusal(api.post(path)) == (409, "not-there")
    api.deliver(announced["upload"], DATA)
    assert api.post(path).json()["status"] == "parse_queued"


def test_job_and_document_of_another_user_are_not_there(api: Api) -> None:
    job = api.upload(DATA)
    work(api.library)
    noah, at = api.token("noah"), job["document_id"]
    unknown = str(uuid4())
    for method, path in [
        ("GET", "/jobs/{}"),
        ("GET", "/jobs/{}/events"),
        ("POST", "/jobs/{}/retry"),
        ("POST", "/uploads/{}/complete"),
        ("DELETE", "/uploads/{}"),
        ("GET", "/api/documents/upload:{}"),
        ("GET", "/api/documents/upload:{}/raw"),
    ]:
        theirs, nobodys = (api.call(method, path.format(each), by=noah) for each in (at, unknown))
        assert theirs.status_code == nobodys.status_code == 404, path
        assert theirs.json()["kind"] == nobodys.json()["kind"]
    assert api.get("/jobs", by=noah).json()["jobs"] == []
    for by in (noah, {}):
        assert api.get("/api/search", params={"q": "water damage"}, by=by).json()["results"] == []


def test_deleted_upload_is_gone_with_what_was_answered_about_it(api: Api) -> None:
    key = {"Idempotency-Key": "one"}
    at = api.announce(DATA, headers=key).json()["document_id"]
    api.upload(DATA)
    work(api.library)
    assert _count(api.library, idempotency_keys) == 1
    assert api.call("DELETE", f"/uploads/{at}", by=api.token("noah")).status_code == 404
    assert api.get(f"/api/documents/upload:{at}").status_code == 200
    assert api.call("DELETE", f"/uploads/{at}").status_code == 204
    for path in (f"/jobs/{at}", f"/jobs/{at}/events", f"/api/documents/upload:{at}"):
        assert api.get(path).status_code == 404
    assert api.get("/jobs").json()["jobs"] == []
    assert _count(api.library, idempotency_keys) == 0
    assert refusal(api.post(f"/uploads/{at}/complete")) == (404, "unknown-job")
    assert api.upload(DATA)["document_id"] == at


# Webhooks -----------------------------------------------------------------------------------


def _payload(job: dict[str, Any], markdown: str, **changes: Any) -> bytes:
    content = markdown.encode()
    artifact = {
        "type": "markdown",
        "content": markdown,
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
    }
    told = {
        "job_id": job["job_id"],
        "document_id": job["document_id"],
        "status": "parsed",
        "artifacts": [artifact | changes],
        "meta": {"parser_name": "llamaparse", "parser_version": "2026-01-01"},
    }
    return json.dumps(told).encode()


def _hook(api: Api, body: bytes, **changes: str) -> Any:
    signed = sign(uuid4().hex, api.library.seams.clock.now(), body, [SECRET])
    headers = signed | {name.replace("_", "-"): value for name, value in changes.items()}
    return api.post("/webhooks/llamaparse", by={}, headers=headers, content=body)


@pytest.fixture
def outside(api: Api) -> dict[str, Any]:
    """A job that waits for the parser outside."""
    job = api.upload(DATA)
    _set(api.library, job["document_id"], parser="llamaparse")
    return job


def test_job_that_waits_says_when_no_worker_is_running(api: Api, clock: ManualClock) -> None:
    at = api.upload(DATA)["document_id"]
    assert api.job(at)["notice"] is None
    clock.move(seconds=11)
    assert api.job(at)["notice"] == "no worker is running: start `fonds worker`"
    with api.library.database.write() as connection:
        record_worker(connection, "a worker", clock.now(), LEASE)
    assert api.job(at)["notice"] is None


def test_webhook_is_taken_once(api: Api, outside: dict[str, Any]) -> None:
    body = _payload(outside, "# From outside\n\nAn answer about water.")
    assert _hook(api, body, webhook_id="msg-1").status_code == 401
    signed = sign("msg-1", api.library.seams.clock.now(), body, [SECRET])
    taken = api.post("/webhooks/llamaparse", by={}, headers=signed, content=body)
    assert taken.json() == {"effect": "taken"}
    assert api.job(outside["document_id"])["status"] == "parsed"
    replay = api.post("/webhooks/llamaparse", by={}, headers=signed, content=body)
    assert refusal(replay) == (409, "replayed")
    assert _hook(api, body).json() == {"effect": "ignored"}


def test_webhook_that_is_not_believed_is_refused_by_name(
    api: Api, clock: ManualClock, outside: dict[str, Any]
) -> None:
    body = _payload(outside, "# From outside")
    assert refusal(api.post("/webhooks/llamaparse", by={}, content=body)) == (401, "unsigned")
    forged = _hook(api, body, webhook_signature="v1,Zm9yZ2Vk")
    assert refusal(forged) == (401, "bad-signature")
    old = sign("old", clock.now(), body, [SECRET])
    clock.move(minutes=6)
    late = api.post("/webhooks/llamaparse", by={}, headers=old, content=body)
    assert refusal(late) == (401, "stale")
    assert refusal(_hook(api, b"{]")) == (400, "malformed")
    wrong = _payload(outside, "# From outside", sha256="0" * 64)
    assert refusal(_hook(api, wrong)) == (422, "hash-mismatch")
    unknown = _payload({"job_id": str(uuid4()), "document_id": str(uuid4())}, "# Text")
    assert refusal(_hook(api, unknown)) == (404, "unknown-job")
    assert api.job(outside["document_id"])["status"] == "parse_queued"


def test_webhook_is_not_read_beyond_its_limit(api: Api) -> None:
    body = b"x" * (4 * 1024 * 1024 + 1)
    signed = sign("msg-1", api.library.seams.clock.now(), body, [SECRET])
    content = iter([body[:-1], body[-1:]])
    answer = api.post("/webhooks/llamaparse", by={}, headers=signed, content=content)
    assert refusal(answer) == (413, "too-large")


# Idempotency --------------------------------------------------------------------------------


def test_same_key_and_request_are_answered_again_and_done_once(api: Api) -> None:
    key = {"Idempotency-Key": "one"}
    first = api.announce(DATA, headers=key)
    again = api.announce(DATA, headers=key)
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["job_id"] == again.json()["job_id"]
    assert again.json()["upload"]["url"], "an address that is good for five minutes from now on"
    assert api.announce(DATA, by=api.token("noah"), headers=key).status_code == 201


def test_key_of_another_request_is_refused(api: Api) -> None:
    key = {"Idempotency-Key": "one"}
    api.announce(DATA, headers=key)
    assert refusal(api.announce(b"others", headers=key)) == (422, "key-reused")
    assert _count(api.library, upload_jobs) == 1


def test_completion_and_retry_are_done_once_for_a_key(api: Api) -> None:
    announced = api.announce(DATA).json()
    api.deliver(announced["upload"], DATA)
    path, key = f"/uploads/{announced['document_id']}/complete", {"Idempotency-Key": "done"}
    assert api.post(path, headers=key).json()["status"] == "parse_queued"
    work(api.library)
    again = api.post(path, headers=key)
    assert again.json()["status"] == "parse_queued", "what it was answered then"
    assert again.headers["idempotency-replayed"] == "true"
    assert api.post(path).json()["status"] == "complete"


def test_refusal_that_will_stay_is_kept_and_one_that_may_pass_is_not(api: Api) -> None:
    key = {"Idempotency-Key": "empty"}
    empty = claim(b"")
    assert refusal(api.post("/uploads", json=empty, headers=key)) == (422, "empty")
    again = api.post("/uploads", json=empty, headers=key)
    assert refusal(again) == (422, "empty")
    assert again.headers["idempotency-replayed"] == "true"
    announced = api.announce(DATA).json()
    path, key = f"/uploads/{announced['document_id']}/complete", {"Idempotency-Key": "early"}
    assert refusal(api.post(path, headers=key)) == (409, "not-there")
    api.deliver(announced["upload"], DATA)
    assert api.post(path, headers=key).status_code == 200


def test_request_under_way_is_waited_for_until_it_is_given_up(api: Api, clock: ManualClock) -> None:
    key = {"Idempotency-Key": "died"}
    api.announce(DATA, headers=key)
    with api.library.database.write() as connection:
        connection.execute(update(idempotency_keys).values(status=None, answer=None))
    assert refusal(api.announce(DATA, headers=key)) == (409, "in-progress")
    clock.move(seconds=61)
    assert api.announce(DATA, headers=key).status_code == 200


def test_answers_are_forgotten_after_a_day(api: Api, clock: ManualClock) -> None:
    api.announce(DATA, headers={"Idempotency-Key": "one"})
    clock.move(hours=24, seconds=1)
    other = api.announce(b"others", headers={"Idempotency-Key": "two"})
    assert other.status_code == 201
    assert _count(api.library, idempotency_keys) == 1


def test_one_of_many_requests_at_once_with_one_key_does_the_work(api: Api) -> None:
    key = {"Idempotency-Key": "race"}
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: api.announce(DATA, headers=key), range(6)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    first = [a for a in answers if a.status_code == 201 and "idempotency-replayed" not in a.headers]
    assert len(first) == 1
    assert _count(api.library, upload_jobs) == 1


# Jobs ---------------------------------------------------------------------------------------


def test_jobs_come_in_pages_the_newest_first(api: Api, clock: ManualClock) -> None:
    made = []
    for number in range(5):
        made.append(api.announce(f"text {number}".encode()).json()["document_id"])
        clock.move(seconds=number % 2)
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = api.get("/jobs", params={"limit": 2, **({"cursor": cursor} if cursor else {})})
        seen += [job["document_id"] for job in page.json()["jobs"]]
        cursor = page.json()["next_cursor"]
    assert sorted(seen) == sorted(made)
    assert len(seen) == 5
    assert seen[0] in made[-2:]
    assert api.get("/jobs", params={"status": "complete"}).json()["jobs"] == []


def test_only_an_admin_sees_jobs_of_all(api: Api) -> None:
    job = api.announce(DATA).json()
    admin = api.token("olga", "admin")
    assert refusal(api.get("/jobs", params={"all": "true"})) == (403, "scope")
    (seen,) = api.get("/jobs", params={"all": "true"}, by=admin).json()["jobs"]
    assert seen["job_id"] == job["job_id"]
    assert api.get("/jobs", by=admin).json()["jobs"] == []
    assert api.job(job["document_id"], by=admin)["status"] == "uploaded"
    assert api.get(f"/api/documents/upload:{job['document_id']}", by=admin).status_code == 404


def test_failed_job_is_retried_by_its_user_or_an_admin(api: Api) -> None:
    job = api.upload(b"???\n", "empty.txt")
    work(api.library)
    path = f"/jobs/{job['document_id']}/retry"
    failed = api.job(job["document_id"])
    assert failed["status"] == "failed_parse"
    assert failed["links"]["retry"] == path
    retried = api.post(path)
    assert (retried.status_code, retried.json()["status"]) == (202, "parse_queued")
    assert refusal(api.post(path)) == (409, "not-failed")
    work(api.library)
    assert api.post(path, by=api.token("olga", "admin")).status_code == 202


def test_events_tell_every_move_and_go_on_behind_the_last_one_seen(api: Api) -> None:
    job = api.upload(DATA)
    work(api.library)
    path = f"/jobs/{job['document_id']}/events"
    answer = api.get(path)
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = events_in(answer.text)
    moves = [event for event in events if event["event"] == "move"]
    assert [move["data"]["to"] for move in moves][:3] == ["uploaded", "parse_queued", "parsed"]
    assert moves[-1]["data"]["to"] == "complete"
    assert {move["data"]["by"].split(":")[0] for move in moves} == {"user", "worker"}
    assert events[-1]["event"] == "end"
    assert events[-1]["data"]["status"] == "complete"
    rest = events_in(api.get(path, headers={"Last-Event-ID": moves[3]["id"]}).text)
    assert [event["id"] for event in rest if event["event"] == "move"] == [
        move["id"] for move in moves[4:]
    ]
    assert api.get(path, headers={"Last-Event-ID": moves[-1]["id"]}).status_code == 204


# Advancing ----------------------------------------------------------------------------------


def _advance(api: Api, document_id: str, to: str, scope: Any = "service") -> Any:
    by = api.token(f"{scope} of the house", scope)
    return api.post(f"/jobs/{document_id}/advance", json={"to": to}, by=by)


def test_only_a_service_advances(api: Api) -> None:
    job = api.upload(DATA)
    for scope in ("user", "admin"):
        answer = _advance(api, job["document_id"], "parsed", scope)
        assert refusal(answer) == (403, "scope")
    assert _advance(api, str(uuid4()), "parsed").status_code == 404


def test_job_advances_only_with_its_writes(api: Api) -> None:
    job = api.upload(DATA)
    at = job["document_id"]
    assert refusal(_advance(api, at, "chunking")) == (409, "illegal-move")
    assert refusal(_advance(api, at, "failed_parse")) == (409, "not-by-hand")
    assert refusal(_advance(api, at, "parsed")) == (409, "gate")
    text = b"# Flood policy\n\nThe insurer pays."
    api.library.blobs.put("parsed/by/hand.md", text)
    written = {"parsed_path": "parsed/by/hand.md", "parsed_by": "hand@1"}
    _set(api.library, at, **written, parsed_sha256="0" * 64)
    assert refusal(_advance(api, at, "parsed")) == (409, "gate")
    _set(api.library, at, parsed_sha256=hashlib.sha256(text).hexdigest())
    for status in ("parsed", "parse_validated", "chunking"):
        moved = _advance(api, at, status)
        assert (moved.status_code, moved.json()["status"]) == (200, status)
    assert refusal(_advance(api, at, "chunks_stored")) == (409, "gate")
    work(api.library)
    assert api.job(at)["status"] == "complete"


def test_stages_of_vectors_advance_only_when_all_are_there(api: Api) -> None:
    job = api.upload(DATA)
    work(api.library)
    at, count = job["document_id"], api.job(job["document_id"])["progress"]["chunks_total"]
    second = api.upload(DATA + b"\n\nAnd more.\n")
    other = second["document_id"]
    # Another's passages do not count.
    _set(api.library, other, status="parsed", parsed_path="parsed/x.md", parsed_sha256="0" * 64)
    for status in ("parse_validated", "chunking", "chunks_stored"):
        _set(api.library, other, status=status, progress={"chunks_total": count})
    assert _advance(api, other, "embedding_queued").json()["status"] == "embedding_queued"
    assert refusal(_advance(api, other, "embedding_in_progress")) == (409, "gate")
    _set(api.library, other, status="embedding_in_progress")
    assert refusal(_advance(api, other, "embeddings_stored")) == (409, "gate")
    _set(api.library, other, status="embeddings_stored")
    assert refusal(_advance(api, other, "complete")) == (409, "not-by-hand")
    assert refusal(_advance(api, at, "complete")) == (409, "illegal-move")


# Operation ----------------------------------------------------------------------------------


def test_health_and_metrics(api: Api) -> None:
    health = api.get("/health", by={})
    checks = health.json()["checks"]
    assert checks["database"] == f"ok, schema {HEAD}"
    assert re.fullmatch(r"ok, \d+ s ago", checks["blobs"])
    assert re.fullmatch(r"ok, [\d.,]+ (K|M|G|T)iB free", checks["disk"])
    assert checks["worker"] == "no worker is running: start `fonds worker`"
    with api.library.database.write() as connection:
        record_worker(connection, "one", api.library.seams.clock.now(), timedelta(minutes=1))
    assert api.get("/health", by={}).json()["checks"]["worker"] == "ok, running"
    assert refusal(api.get("/metrics", by={})) == (401, "unauthorized")
    assert refusal(api.get("/metrics")) == (403, "scope")
    api.upload(DATA)
    for scope in SCOPES:
        told = api.get("/metrics", by=api.token(scope, scope))
        assert told.headers["content-type"].startswith("text/plain")
        assert 'status="parse_queued"' in told.text


def test_database_that_goes_away_and_comes_back_is_only_waited_for(
    postgres_url: str, postgres_database: str, tmp_path: Path
) -> None:
    name = urlsplit(postgres_database).path.strip("/")
    with upload_library(tmp_path, database=postgres_database) as library, api_of(library) as api:
        job = api.upload(DATA)
        allow_connections(postgres_url, name, allowed=False)
        away = api.get(f"/jobs/{job['document_id']}")
        assert refusal(away) == (503, "database-unavailable")
        assert away.headers["retry-after"] == "5"
        key = {"Idempotency-Key": "through-the-storm"}
        assert api.announce(b"more", headers=key).status_code == 503
        assert refusal(api.get("/health", by={})) == (503, "unwell")
        allow_connections(postgres_url, name, allowed=True)
        assert api.announce(b"more", headers=key).status_code == 201
        work(library)
        assert api.job(job["document_id"])["status"] == "complete"
