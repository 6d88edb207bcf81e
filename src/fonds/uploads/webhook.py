"""Webhooks of the external parser: their signatures, their payloads, and their handling.

They are signed by the Standard Webhooks scheme: HMAC-SHA-256 over `id.timestamp.` and the raw
body, in the headers `webhook-id`, `webhook-timestamp` and `webhook-signature`. Each is handled
once, and only if its job waits for it.
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
from fonds.uploads.parsing import MARKDOWN, ParsedFile, move_to_parsed, store_parsed
from fonds.uploads.signing import MIN_SECRET_BYTES
from fonds.uploads.states import JobStatus

WINDOW: Final = timedelta(minutes=5)
"""The allowed difference between the timestamp of a webhook and the clock, either way."""
NONCE_LIFETIME: Final = 2 * WINDOW
"""The time for which nonces are stored: a timestamp may be five minutes ahead."""

ID_HEADER: Final = "webhook-id"
TIMESTAMP_HEADER: Final = "webhook-timestamp"
SIGNATURE_HEADER: Final = "webhook-signature"

_ENCODED: Final = "whsec_"
_VERSION: Final = "v1,"
_MAX_SIGNATURES_LENGTH: Final = 4096
# A dot would make the border between id and timestamp ambiguous in the signed text.
_ID: Final = re.compile(r"[!-\-/-~]{1,256}")
_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}")
_MAX_ERROR_LENGTH: Final = 500


# Signatures -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class SignatureHeaders:
    """The headers of a webhook, each of the right form; whether they are true is another matter."""

    webhook_id: str
    timestamp: str
    signatures: Sequence[bytes]


def check_headers(headers: Iterable[tuple[str, str]], secrets: Sequence[str]) -> SignatureHeaders:
    """The headers of a webhook whose body may be worth reading; else WebhookError.

    Any client can send a body; what is refused here is refused before that is read.
    """
    values = _single_headers(headers)
    webhook_id, timestamp = values[ID_HEADER], values[TIMESTAMP_HEADER]
    if not _ID.fullmatch(webhook_id):
        raise WebhookError(
            f"{ID_HEADER} must be at most 256 visible ASCII characters without a dot",
            kind="malformed",
        )
    if not _TIMESTAMP.fullmatch(timestamp):
        raise WebhookError(f"{TIMESTAMP_HEADER} must be seconds since 1970", kind="malformed")
    signatures = _signatures(values[SIGNATURE_HEADER])
    if not secrets:
        raise WebhookError(
            "no signature can be checked: FONDS_WEBHOOK_SECRETS is not set", kind="bad-signature"
        )
    return SignatureHeaders(webhook_id=webhook_id, timestamp=timestamp, signatures=signatures)


def verify_signature(
    headers: Iterable[tuple[str, str]], data: bytes, secrets: Sequence[str], now: datetime
) -> str:
    """The id of a webhook that is recent and signed with one of the secrets."""
    sent = check_headers(headers, secrets)
    expected = [_signature(sent.webhook_id, sent.timestamp, data, secret) for secret in secrets]
    _match(sent.signatures, expected)
    # Checked last, so that only a sender who knows a secret learns about the clock here.
    if abs(now.timestamp() - int(sent.timestamp)) > WINDOW.total_seconds():
        raise WebhookError(
            f"{TIMESTAMP_HEADER} is more than five minutes from the clock here", kind="stale"
        )
    return sent.webhook_id


def sign(webhook_id: str, at: datetime, data: bytes, secrets: Sequence[str]) -> dict[str, str]:
    """The headers of a webhook, with a signature for each of the secrets."""
    timestamp = str(int(at.timestamp()))
    signatures = [_signature(webhook_id, timestamp, data, secret).decode() for secret in secrets]
    return {
        ID_HEADER: webhook_id,
        TIMESTAMP_HEADER: timestamp,
        SIGNATURE_HEADER: " ".join(_VERSION + signature for signature in signatures),
    }


def require_long_secrets(secrets: Sequence[str]) -> None:
    """Raise for a secret that can be guessed."""
    if any(len(secret_bytes(secret)) < MIN_SECRET_BYTES for secret in secrets):
        raise SettingsError(
            f"FONDS_WEBHOOK_SECRETS: a secret is too short; use {MIN_SECRET_BYTES} bytes or more"
        )


def secret_bytes(secret: str) -> bytes:
    """The bytes of a secret: in base64 after `whsec_`, else its text as it is."""
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
    values: dict[str, str] = {}
    for name, value in headers:
        lowered = name.lower()
        if lowered not in {ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER}:
            continue
        if lowered in values:
            raise WebhookError(f"the header {lowered} is repeated", kind="malformed")
        values[lowered] = value
    for name in (ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER):
        if not values.get(name):
            raise WebhookError(f"the header {name} is missing", kind="unsigned")
    return values


def _signatures(header: str) -> list[bytes]:
    if len(header) > _MAX_SIGNATURES_LENGTH:
        raise WebhookError(f"{SIGNATURE_HEADER} is too long", kind="malformed")
    entries = [entry for entry in header.split(" ") if entry.startswith(_VERSION)]
    if not entries:
        raise WebhookError(f"{SIGNATURE_HEADER} contains no v1 signature", kind="unsigned")
    return [entry.removeprefix(_VERSION).encode("utf-8", "backslashreplace") for entry in entries]


def _match(signatures: Sequence[bytes], expected: Sequence[bytes]) -> None:
    # As texts: two texts in base64 may decode to the same bytes.
    equal = [
        hmac.compare_digest(signature, other) for signature in signatures for other in expected
    ]
    if not any(equal):
        raise WebhookError("no signature is made with one of the secrets", kind="bad-signature")


def _signature(webhook_id: str, timestamp: str, data: bytes, secret: str) -> bytes:
    content = f"{webhook_id}.{timestamp}.".encode() + data
    return base64.b64encode(hmac.digest(secret_bytes(secret), content, hashlib.sha256))


# Replays ----------------------------------------------------------------------------------


def remember_nonce(connection: Connection, webhook_id: str, now: datetime) -> None:
    """Record a webhook in the transaction that handles it; WebhookError if it is a replay."""
    nonce = webhook_nonces.c
    # Other processes may be deleting the same rows, each in a long transaction.
    old = select(nonce.webhook_id).where(nonce.received_at < now - NONCE_LIFETIME)
    expired = nonce.webhook_id.in_(old.with_for_update(skip_locked=True))
    connection.execute(delete(webhook_nonces).where(expired))
    row = insert_into(webhook_nonces, connection.dialect.name).values(
        webhook_id=webhook_id, received_at=now
    )
    inserted = connection.execute(row.on_conflict_do_nothing().returning(nonce.webhook_id))
    if inserted.one_or_none() is None:
        raise WebhookError("this webhook was handled already", kind="replayed")


# Payloads ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedUpload:
    """The text of an upload."""

    job_id: UUID
    document_id: UUID
    markdown: str = field(repr=False)
    sha256: str
    """The hash of the text's UTF-8 bytes, in lower case."""
    bytes: int
    parser_name: str
    parser_version: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ParseFailure:
    """The reason why an upload could not be parsed."""

    job_id: UUID
    document_id: UUID
    error: str


def read_payload(data: bytes, *, max_bytes: int) -> ParsedUpload | ParseFailure:
    """The content of a webhook; WebhookError if it is too large, malformed or inconsistent."""
    if len(data) > max_bytes:
        raise _malformed(f"it has more than {max_bytes} bytes; FONDS_MAX_FILE_MIB sets the limit")
    try:
        payload = _WebhookPayload.model_validate(_json(data))
    except ValidationError as error:
        raise _malformed(_complaint(error)) from None
    return _failed(payload) if payload.status != "parsed" else _parsed(payload)


def _checked_text(text: str) -> str:
    if "\0" in text:
        raise ValueError("NUL")
    text.encode()  # JSON may contain unpaired surrogates, which UTF-8 cannot
    return text


_Text = Annotated[str, AfterValidator(_checked_text)]
_Label = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_checked_text)]
# JSON has UUIDs only as strings.
_Id = Annotated[UUID, Field(strict=False)]


class _Strict(BaseModel):
    # Fields that we do not know are ignored, so that the parser may add some.
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, hide_input_in_errors=True)


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
    # Pydantic's messages quote the payload, and so do the names of unknown fields.
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    path = [part for part in first["loc"] if isinstance(part, int) or part in _NAMES]
    return f"{'.'.join(map(str, path)) or 'the whole'}: {first['type'].replace('_', ' ')}"


def _parsed(payload: _WebhookPayload) -> ParsedUpload:
    texts = [artifact for artifact in payload.artifacts if artifact.type == "markdown"]
    if len(texts) != 1:
        raise _malformed(f"it has {len(texts)} artifacts of type markdown, and not one")
    if payload.meta is None:
        raise _malformed("meta: missing")
    if payload.error:
        raise _malformed("error: there is one, though the status is parsed")
    for artifact in payload.artifacts:
        _check_hash(artifact)
    return ParsedUpload(
        job_id=payload.job_id,
        document_id=payload.document_id,
        markdown=texts[0].content,
        sha256=texts[0].sha256.lower(),
        bytes=texts[0].bytes,
        parser_name=payload.meta.parser_name,
        parser_version=payload.meta.parser_version,
    )


def _failed(payload: _WebhookPayload) -> ParseFailure:
    message = " ".join((payload.error or "").split())[:_MAX_ERROR_LENGTH]
    return ParseFailure(
        job_id=payload.job_id,
        document_id=payload.document_id,
        error=message or "the parser failed without saying why",
    )


def _check_hash(artifact: _ArtifactFile) -> None:
    content = artifact.content.encode()
    if len(content) != artifact.bytes:
        raise WebhookError(
            f"an artifact has {len(content)} bytes, but {artifact.bytes} are announced",
            kind="hash-mismatch",
        )
    if hashlib.sha256(content).hexdigest() != artifact.sha256.lower():
        raise WebhookError(
            "the sha256 of an artifact differs from the one announced", kind="hash-mismatch"
        )


def _json(data: bytes) -> Any:
    try:
        return json.loads(
            data.decode(), object_pairs_hook=_without_repetition, parse_constant=_no_number
        )
    except RecursionError:
        raise _malformed("it is nested too deeply") from None
    except ValueError as error:
        # Neither chained nor quoted: the error of `json` contains the whole document.
        where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise _malformed(f"it is not JSON in UTF-8{where}") from None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise _malformed("a key is repeated")
    return values


def _no_number(_name: str) -> float:
    raise ValueError


def _malformed(what: str) -> WebhookError:
    return WebhookError(f"the webhook is malformed: {what}", kind="malformed")


_BY: Final = "webhook:llamaparse"

Effect = Literal["taken", "ignored"]
"""`ignored`: the job already has its text, or has ended."""


def receive_webhook(
    context: Context, settings: Settings, headers: Iterable[tuple[str, str]], data: bytes
) -> Effect:
    """Handle a result of the external parser; WebhookError says why it is rejected."""
    webhook_id = verify_signature(
        headers, data, settings.webhook_secrets, context.seams.clock.now()
    )
    result = read_payload(data, max_bytes=settings.max_file_mib * 1024 * 1024)
    with context.database.read() as connection:
        job = _waiting_job(connection, result)
    stored: ParsedFile | None = None
    try:
        if isinstance(result, ParsedUpload):
            stored = _store(context, job, result)
    except ParseError as error:
        result = ParseFailure(job_id=job.job_id, document_id=job.document_id, error=str(error))
    now = context.seams.clock.now()
    with context.database.write() as connection:
        remember_nonce(connection, webhook_id, now)
        job = _waiting_job(connection, result, to_write=True)
        return _apply(connection, job, result, stored, now)


def _waiting_job(
    connection: Connection, result: ParsedUpload | ParseFailure, *, to_write: bool = False
) -> Job:
    job = job_of(connection, result.document_id, to_write=to_write)
    if job is None or job.job_id != result.job_id or job.parser == "local":
        raise WebhookError("no job waits for this result", kind="unknown-job")
    return job


def _store(context: Context, job: Job, result: ParsedUpload) -> ParsedFile | None:
    if job.status is not JobStatus.PARSE_QUEUED:
        return None
    text = get_normalizer(MARKDOWN).to_markdown(result.markdown.encode())
    by = f"{result.parser_name}@{result.parser_version}"
    return store_parsed(context.blobs, job, text, by=by)


def _apply(
    connection: Connection,
    job: Job,
    result: ParsedUpload | ParseFailure,
    stored: ParsedFile | None,
    now: datetime,
) -> Effect:
    if job.status is not JobStatus.PARSE_QUEUED:
        return "ignored"
    if isinstance(result, ParseFailure):
        fail(connection, job, ParserError(result.error), now, by=_BY)
    elif stored is None:
        return "ignored"  # the job was retried meanwhile, and is submitted again
    else:
        move_to_parsed(connection, job, stored, by=_BY, now=now, lease_owner=None, lease_until=None)
    return "taken"
