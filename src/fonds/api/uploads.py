"""Uploads over HTTP: announced, completed, and the webhook of the parser outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from uuid import UUID

import anyio
import anyio.to_thread
from fastapi import APIRouter, Request
from sqlalchemy import select
from starlette.responses import JSONResponse

from fonds import ids
from fonds.api.answers import (
    BEARER,
    FileClaim,
    JobAnswer,
    Payload,
    UploadAnswer,
    UploadId,
    WebhookAnswer,
    problems,
    schema_of,
)
from fonds.api.desk import Desk, desk_of, unknown_job
from fonds.api.idempotency import Answer, Key, once, respond
from fonds.api.jobs import job_answer
from fonds.api.spooling import spooled
from fonds.stores.tables import upload_jobs
from fonds.uploads.intake import Claim, begin_upload, complete_upload, staging_key
from fonds.uploads.jobs import Job, job_of
from fonds.uploads.reception import Effect, receive_webhook
from fonds.uploads.states import JobStatus
from fonds.uploads.users import Caller

LARGEST_WEBHOOK: Final = 64 * 1024 * 1024
"""Bytes; text has far fewer than the file it was in."""
_AT_ONCE: Final = 2
"""Webhooks that are held in memory."""
_CREATED: Final = 201

router: Final = APIRouter(tags=["uploads"])


@router.post(
    "/uploads",
    status_code=201,
    openapi_extra=BEARER,
    responses={
        201: {"model": UploadAnswer, "description": "A file that was not known."},
        200: {"model": UploadAnswer, "description": "These bytes are known; this is their job."},
        **problems(400, 401, 409, 413, 422, 503),
    },
)
def begin(request: Request, claim: FileClaim, idempotency_key: Key = None) -> JSONResponse:
    """Announce a file, and learn where to send it; the address is good for five minutes."""
    desk = desk_of(request)
    caller, is_known = _known(desk, request, claim.sha256)

    def work() -> Answer:
        said = Claim(name=claim.name, size=claim.bytes, sha256=claim.sha256)
        job = begin_upload(desk.shelf, desk.library.settings, caller.user_id, said)
        return Answer(status=200 if is_known else _CREATED, body=job_answer(job))

    answer, is_replayed = once(
        desk, request, caller.user_id, idempotency_key, work, asked=claim.model_dump()
    )
    if answer.status <= _CREATED:
        answer = _with_address(desk, request, answer)
        headers = {"Location": answer.body["links"]["self"]}
        return respond(answer, is_replayed=is_replayed, headers=headers)
    return respond(answer, is_replayed=is_replayed, headers={})


@router.post(
    "/uploads/{document_id}/complete",
    openapi_extra=BEARER,
    responses={200: {"model": JobAnswer}, **problems(401, 404, 409, 413, 422, 503)},
)
def complete(request: Request, document_id: UploadId, idempotency_key: Key = None) -> JSONResponse:
    """Say that the file is there: it is compared with what was announced, and queued."""
    desk = desk_of(request)
    caller = desk.caller(request)

    def work() -> Answer:
        with desk.library.database.read() as connection:
            job = job_of(connection, UUID(document_id), user_id=caller.user_id)
        if job is None:
            raise unknown_job()
        done = complete_upload(desk.shelf, desk.library.settings, job)
        return Answer(status=200, body=job_answer(done))

    answer, is_replayed = once(desk, request, caller.user_id, idempotency_key, work)
    return respond(answer, is_replayed=is_replayed, headers={})


@router.post(
    "/webhooks/llamaparse",
    openapi_extra=schema_of(Payload),
    responses={200: {"model": WebhookAnswer}, **problems(400, 401, 404, 409, 413, 422, 503)},
)
async def webhook(request: Request) -> JSONResponse:
    """Take the answer of the parser outside, if it is signed, fresh, new and true."""
    desk = desk_of(request)
    settings = desk.library.settings
    most = min(LARGEST_WEBHOOK, settings.max_file_mib * 1024 * 1024)
    async with spooled(request, settings.home / "tmp", most) as path, _turn(request):
        headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw
        ]
        effect = await anyio.to_thread.run_sync(_received, desk, headers, path)
    return JSONResponse({"effect": effect})


def _received(desk: Desk, headers: list[tuple[str, str]], path: Path) -> Effect:
    return receive_webhook(desk.shelf, desk.library.settings, headers, path.read_bytes())


def _turn(request: Request) -> anyio.Semaphore:
    """Of those who hold a webhook in memory; the loop that it belongs to runs by now."""
    state = request.app.state
    if not hasattr(state, "webhook_turns"):
        state.webhook_turns = anyio.Semaphore(_AT_ONCE)
    turns: anyio.Semaphore = state.webhook_turns
    return turns


def _known(desk: Desk, request: Request, sha256: str) -> tuple[Caller, bool]:
    """Who calls, and whether they have announced these bytes before."""
    with desk.library.database.read() as connection:
        caller = desk.known_caller(request, connection)
        uid = ids.upload_uid(caller.user_id, sha256)
        query = select(upload_jobs.c.job_id).where(upload_jobs.c.document_id == uid)
        return caller, connection.scalar(query) is not None


def _with_address(desk: Desk, request: Request, answer: Answer) -> Answer:
    """Where to send the file, if it is still awaited; signed anew where an answer is repeated."""
    with desk.library.database.read() as connection:
        job = job_of(connection, UUID(answer.body["document_id"]))
    if job is None or job.status is not JobStatus.UPLOADED:
        return answer
    return Answer(status=answer.status, body={**answer.body, **_upload(desk, request, job)})


def _upload(desk: Desk, request: Request, job: Job) -> dict[str, Any]:
    return {"upload": desk.signed(request, "PUT", staging_key(job))}
