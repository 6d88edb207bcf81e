"""Webhooks: who may send them, each of them once, and what they say.

Signed after the Standard Webhooks scheme: HMAC-SHA-256 over `id.timestamp.` and the raw body, in
the headers `webhook-id`, `webhook-timestamp` and `webhook-signature`.

What is done with a webhook: believed or not, once, and never against the state of its job.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import Connection, delete, select

from fonds.context import Context
from fonds.errors import ParseError, ParserError, SettingsError, WebhookError
from fonds.normalize.registry import get_normalizer
from fonds.settings import Settings
from fonds.stores.database import insert_into
from fonds.stores.tables import webhook_nonces
from fonds.uploads.jobs import Job, fail, job_of
from fonds.uploads.parsing import MARKDOWN, ParsedFile, store_parsed, take_parsed
from fonds.uploads.states import JobStatus

WINDOW: Final = timedelta(minutes=5)
"""How far a webhook's clock may be from ours, either way."""
KEPT: Final = 2 * WINDOW
"""What is dated five minutes ahead stays fresh for so long."""

ID_HEADER: Final = "webhook-id"
TIMESTAMP_HEADER: Final = "webhook-timestamp"
SIGNATURE_HEADER: Final = "webhook-signature"

_ENCODED: Final = "whsec_"
_VERSION: Final = "v1,"
_LONGEST_SIGNATURES: Final = 4096
# A dot would leave open where the id ends and the timestamp begins in what is signed.
_ID: Final = re.compile(r"[!-\-/-~]{1,256}")
_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}")
_QUOTED: Final = 500


# Signatures -------------------------------------------------------------------------------


def verify_signature(
    headers: Iterable[tuple[str, str]], body: bytes, secrets: Sequence[str], now: datetime
) -> str:
    """The id of a webhook that is signed with one of the secrets, and fresh."""
    found = _single_headers(headers)
    webhook_id, stamp = found[ID_HEADER], found[TIMESTAMP_HEADER]
    if not _ID.fullmatch(webhook_id):
        raise WebhookError(
            f"{ID_HEADER} must be at most 256 visible ASCII characters without a dot",
            kind="malformed",
        )
    if not _TIMESTAMP.fullmatch(stamp):
        raise WebhookError(f"{TIMESTAMP_HEADER} must be seconds since 1970", kind="malformed")
    expected = [_signature(webhook_id, stamp, body, secret) for secret in secrets]
    _match(_signatures(found[SIGNATURE_HEADER]), expected)
    # Judged last, so that only who knows a secret learns what our clock says.
    if abs(now.timestamp() - int(stamp)) > WINDOW.total_seconds():
        raise WebhookError(
            f"{TIMESTAMP_HEADER} is more than five minutes from the clock here", kind="stale"
        )
    return webhook_id


def sign(webhook_id: str, moment: datetime, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
    """The headers of a webhook, with a signature for each of the secrets."""
    stamp = str(int(moment.timestamp()))
    made = [_VERSION + _signature(webhook_id, stamp, body, secret).decode() for secret in secrets]
    return {
        ID_HEADER: webhook_id,
        TIMESTAMP_HEADER: stamp,
        SIGNATURE_HEADER: " ".join(made),
    }


def secret_bytes(secret: str) -> bytes:
    """What a secret stands for: `whsec_` begins one in base64, any other is taken as it is."""
    if not secret.startswith(_ENCODED):
        decoded = secret.encode()
    else:
        try:
            decoded = base64.b64decode(secret.removeprefix(_ENCODED), validate=True)
        except (binascii.Error, ValueError):
            raise SettingsError("FONDS_WEBHOOK_SECRETS: after whsec_ must come base64") from None
    if not decoded:
        raise SettingsError("FONDS_WEBHOOK_SECRETS: a secret must not be empty")
    return decoded


def _single_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers:
        lowered = name.lower()
        if lowered not in {ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER}:
            continue
        if lowered in found:
            raise WebhookError(f"{lowered} is there more than once", kind="malformed")
        found[lowered] = value
    for name in (ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER):
        if not found.get(name):
            raise WebhookError(f"the header {name} is missing", kind="unsigned")
    return found


def _signatures(header: str) -> list[bytes]:
    if len(header) > _LONGEST_SIGNATURES:
        raise WebhookError(f"{SIGNATURE_HEADER} is too long", kind="malformed")
    entries = [entry for entry in header.split(" ") if entry.startswith(_VERSION)]
    if not entries:
        raise WebhookError(f"{SIGNATURE_HEADER} holds no v1 signature", kind="unsigned")
    return [entry.removeprefix(_VERSION).encode("utf-8", "backslashreplace") for entry in entries]


def _match(given: Sequence[bytes], expected: Sequence[bytes]) -> None:
    # As texts: two texts in base64 may stand for the same bytes.
    equal = [hmac.compare_digest(one, other) for one in given for other in expected]
    if not any(equal):
        hint = "" if expected else "; FONDS_WEBHOOK_SECRETS is not set"
        raise WebhookError(
            f"no signature is made with a secret of ours{hint}", kind="bad-signature"
        )


def _signature(webhook_id: str, stamp: str, body: bytes, secret: str) -> bytes:
    content = f"{webhook_id}.{stamp}.".encode() + body
    return base64.b64encode(hmac.digest(secret_bytes(secret), content, hashlib.sha256))


# Once -------------------------------------------------------------------------------------


def remember_nonce(connection: Connection, webhook_id: str, now: datetime) -> None:
    """Note a webhook in the transaction of its handling; WebhookError if it was handled before."""
    nonce = webhook_nonces.c
    # Others may be forgetting the same ones, each in a transaction with much else to do.
    old = select(nonce.webhook_id).where(nonce.received_at < now - KEPT)
    forgotten = nonce.webhook_id.in_(old.with_for_update(skip_locked=True))
    connection.execute(delete(webhook_nonces).where(forgotten))
    row = insert_into(webhook_nonces, connection.dialect.name).values(
        webhook_id=webhook_id, received_at=now
    )
    made = connection.execute(row.on_conflict_do_nothing().returning(nonce.webhook_id))
    if made.one_or_none() is None:
        raise WebhookError("this webhook was handled already", kind="replayed")


# What they say ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedUpload:
    """The text of an upload."""

    job_id: UUID
    document_id: UUID
    markdown: str = field(repr=False)
    sha256: str
    """Of the text's UTF-8 bytes, in lower case."""
    bytes: int
    parser_name: str
    parser_version: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ParseFailure:
    """Why an upload could not be read."""

    job_id: UUID
    document_id: UUID
    error: str


def read_payload(body: bytes, *, most: int) -> ParsedUpload | ParseFailure:
    """What a webhook says, of at most so many bytes; WebhookError if it contradicts itself."""
    if len(body) > most:
        raise _malformed(f"it has more than {most} bytes; FONDS_MAX_FILE_MIB sets the limit")
    try:
        payload = _WebhookPayload.model_validate(_json(body))
    except ValidationError as error:
        raise _malformed(_complaint(error)) from None
    return _failed(payload) if payload.status != "parsed" else _parsed(payload)


def _plain(text: str) -> str:
    if "\0" in text:
        raise ValueError("NUL")
    text.encode()  # JSON can write halves of characters, which are no text
    return text


_Text = Annotated[str, AfterValidator(_plain)]
_Label = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_plain)]
# JSON has no identities, only texts.
_Id = Annotated[UUID, Field(strict=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)


class _ArtifactFile(_Strict):
    type: _Label
    content: _Text
    sha256: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")]
    bytes: Annotated[int, Field(ge=0, le=1 << 40)]


class _Meta(_Strict):
    parser_name: _Label
    parser_version: _Label


class _WebhookPayload(_Strict):
    job_id: _Id
    document_id: _Id
    status: Literal["parsed", "failed", "error"]
    artifacts: list[_ArtifactFile] = Field(default_factory=list, max_length=100)
    meta: _Meta | None = None
    error: _Text | None = None


_NAMES: Final = frozenset().union(
    *(kind.model_fields for kind in (_WebhookPayload, _ArtifactFile, _Meta))
)


def _complaint(error: ValidationError) -> str:
    # The library's own words quote the payload, and so do the names of fields we do not know.
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    known = [part for part in first["loc"] if isinstance(part, int) or part in _NAMES]
    return f"{'.'.join(map(str, known)) or 'the whole'}: {first['type'].replace('_', ' ')}"


def _parsed(payload: _WebhookPayload) -> ParsedUpload:
    found = [each for each in payload.artifacts if each.type == "markdown"]
    if len(found) != 1:
        raise _malformed(f"it has {len(found)} artifacts of type markdown, and not one")
    if payload.meta is None:
        raise _malformed("meta: missing")
    if payload.error:
        raise _malformed("error: there is one, though the status is parsed")
    for artifact in payload.artifacts:
        _check_hash(artifact)
    return ParsedUpload(
        job_id=payload.job_id,
        document_id=payload.document_id,
        markdown=found[0].content,
        sha256=found[0].sha256.lower(),
        bytes=found[0].bytes,
        parser_name=payload.meta.parser_name,
        parser_version=payload.meta.parser_version,
    )


def _failed(payload: _WebhookPayload) -> ParseFailure:
    said = " ".join((payload.error or "").split())[:_QUOTED]
    return ParseFailure(
        job_id=payload.job_id,
        document_id=payload.document_id,
        error=said or "the parser failed without saying why",
    )


def _check_hash(artifact: _ArtifactFile) -> None:
    content = artifact.content.encode()
    if len(content) != artifact.bytes:
        raise WebhookError(
            f"an artifact has {len(content)} bytes, and {artifact.bytes} are announced",
            kind="hash-mismatch",
        )
    if hashlib.sha256(content).hexdigest() != artifact.sha256.lower():
        raise WebhookError(
            "an artifact has another sha256 than the one announced", kind="hash-mismatch"
        )


def _json(body: bytes) -> Any:
    try:
        return json.loads(
            body.decode(), object_pairs_hook=_without_repetition, parse_constant=_no_number
        )
    except RecursionError:
        raise _malformed("it is nested too deeply") from None
    except ValueError as error:
        # Neither chained nor quoted: the library's error holds the whole document.
        where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise _malformed(f"it is not JSON in UTF-8{where}") from None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _malformed("a key is there more than once")
    return found


def _no_number(_name: str) -> float:
    raise ValueError


def _malformed(what: str) -> WebhookError:
    return WebhookError(f"the webhook cannot be understood: {what}", kind="malformed")


_BY: Final = "webhook:llamaparse"

Effect = Literal["taken", "ignored"]
"""`ignored`: the job has its text already, or has ended; a late answer changes nothing."""


def receive_webhook(
    context: Context, settings: Settings, headers: Iterable[tuple[str, str]], body: bytes
) -> Effect:
    """Take the answer of the parser outside; WebhookError says why it is not believed."""
    webhook_id = verify_signature(
        headers, body, settings.webhook_secrets, context.seams.clock.now()
    )
    told = read_payload(body, most=settings.max_file_mib * 1024 * 1024)
    with context.database.read() as connection:
        job = _job_told_of(connection, told)
    try:
        stored = _stored(context, job, told) if isinstance(told, ParsedUpload) else None
    except ParseError as error:
        told, stored = (
            ParseFailure(job_id=job.job_id, document_id=job.document_id, error=str(error)),
            None,
        )
    now = context.seams.clock.now()
    with context.database.write() as connection:
        remember_nonce(connection, webhook_id, now)
        return _take(connection, _job_told_of(connection, told, to_write=True), told, stored, now)


def _job_told_of(
    connection: Connection, told: ParsedUpload | ParseFailure, *, to_write: bool = False
) -> Job:
    job = job_of(connection, told.document_id, to_write=to_write)
    if job is None or job.job_id != told.job_id or job.parser == "local":
        raise WebhookError("no job waits for this answer", kind="unknown-job")
    return job


def _stored(context: Context, job: Job, told: ParsedUpload) -> ParsedFile | None:
    if job.status is not JobStatus.PARSE_QUEUED:
        return None
    text = get_normalizer(MARKDOWN).to_markdown(told.markdown.encode())
    return store_parsed(context.blobs, job, text, by=f"{told.parser_name}@{told.parser_version}")


def _take(
    connection: Connection,
    job: Job,
    told: ParsedUpload | ParseFailure,
    stored: ParsedFile | None,
    now: datetime,
) -> Effect:
    if job.status is not JobStatus.PARSE_QUEUED:
        return "ignored"
    if isinstance(told, ParseFailure):
        fail(connection, job, ParserError(told.error), now, by=_BY)
    elif stored is None:
        return "ignored"  # it was sent back this very moment; the parser will be asked again
    else:
        take_parsed(connection, job, stored, by=_BY, now=now, lease_owner=None, lease_until=None)
    return "taken"
