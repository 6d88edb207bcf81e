"""Webhooks that are not believed, each by the name of what is wrong; and that none counts twice."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select

from fonds.errors import SettingsError, WebhookError
from fonds.stores.database import Database
from fonds.stores.tables import webhook_nonces
from fonds.uploads.webhook import (
    ParsedUpload,
    ParseFailure,
    read_payload,
    remember_nonce,
    secret_bytes,
    sign,
    verify_signature,
)

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
SECRET = "the secret of this test"
ENCODED = "whsec_" + base64.b64encode(b"twenty-four random bytes").decode()
BODY = b'{"status": "parsed"}'
MOST = 1 << 20


def verified(
    headers: Mapping[str, str] | list[tuple[str, str]],
    *secrets: str,
    body: bytes = BODY,
    now: datetime = NOW,
) -> str:
    pairs = headers if isinstance(headers, list) else list(headers.items())
    return verify_signature(pairs, body, secrets or (SECRET,), now)


def refusal(
    headers: Mapping[str, str] | list[tuple[str, str]], *secrets: str, **others: Any
) -> str:
    with pytest.raises(WebhookError) as refused:
        verified(headers, *secrets, **others)
    assert SECRET not in str(refused.value)
    return refused.value.kind


def headers(**changes: str) -> dict[str, str]:
    made = sign("msg_1", NOW, BODY, [SECRET])
    return made | {name.replace("_", "-"): value for name, value in changes.items()}


# Signatures ---------------------------------------------------------------------------------


def test_signed_webhook_is_believed_and_its_id_is_told() -> None:
    assert verified(headers()) == "msg_1"
    assert verified({name.title(): value for name, value in headers().items()}) == "msg_1"


def test_signature_is_the_one_of_the_published_scheme() -> None:
    # Computed with `openssl dgst -sha256 -hmac` and `base64`.
    made = sign("msg_2", datetime.fromtimestamp(1_700_000_000, UTC), b"{}", ["plain"])
    assert made["webhook-timestamp"] == "1700000000"
    assert made["webhook-signature"] == "v1,15RH1naL0pzNenCYelonxtvBStBQsdObFbB9D8mzEzM="


def test_wrong_signature_is_refused() -> None:
    forged = headers(webhook_signature="v1," + base64.b64encode(b"\0" * 32).decode())
    assert refusal(forged) == "bad-signature"
    assert refusal(headers(), "another secret") == "bad-signature"
    assert refusal(headers(), body=BODY + b" ") == "bad-signature"
    assert refusal(headers(webhook_id="msg_2")) == "bad-signature"
    later = str(int(NOW.timestamp()) + 1)
    assert refusal(headers(webhook_timestamp=later)) == "bad-signature"


def test_without_secrets_nothing_is_believed() -> None:
    with pytest.raises(WebhookError, match="FONDS_WEBHOOK_SECRETS") as refused:
        verify_signature(list(headers().items()), BODY, (), NOW)
    assert refused.value.kind == "bad-signature"


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_missing_header_means_unsigned(name: str) -> None:
    assert refusal({key: value for key, value in headers().items() if key != name}) == "unsigned"
    assert refusal(headers() | {name: ""}) == "unsigned"


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_repeated_header_is_refused_even_if_both_agree(name: str) -> None:
    pairs = list(headers().items())
    assert refusal([*pairs, (name.upper(), headers()[name])]) == "malformed"


@pytest.mark.parametrize(
    "entry", ["v1a,AAAA", "v2,AAAA", "v1", "AAAA", ",", " ", "V1,AAAA", "v1:AAAA"]
)
def test_signature_of_another_scheme_means_unsigned(entry: str) -> None:
    assert refusal(headers(webhook_signature=entry)) == "unsigned"


@pytest.mark.parametrize("entry", ["v1,", "v1,é", "v1,\ud800", "v1,AAAA", "v1,not base64"])
def test_signature_that_is_none_is_refused(entry: str) -> None:
    assert refusal(headers(webhook_signature=entry)) == "bad-signature"


def test_endless_list_of_signatures_is_refused() -> None:
    entries = " ".join(["v1,AAAA"] * 2000)
    assert refusal(headers(webhook_signature=entries)) == "malformed"


@pytest.mark.parametrize("name", ["x" * 257, "a b", "a.1700000000", "é", "nul\0", "a\n"])
def test_id_that_is_too_long_or_ambiguous_is_refused(name: str) -> None:
    made = sign(name, NOW, BODY, [SECRET])
    assert refusal(made) == "malformed"


@pytest.mark.parametrize("stamp", ["soon", "1.5", "-1", "1e9", "+1", " 1", "٣", "9" * 13, "0x1"])
def test_timestamp_that_is_no_number_is_refused(stamp: str) -> None:
    assert refusal(headers(webhook_timestamp=stamp)) == "malformed"


@pytest.mark.parametrize("seconds", [-300, 300, 0])
def test_timestamp_at_the_edge_of_the_window_is_fresh(seconds: int) -> None:
    made = sign("msg_1", NOW + timedelta(seconds=seconds), BODY, [SECRET])
    assert verified(made) == "msg_1"


def test_old_timestamp_is_refused() -> None:
    assert refusal(sign("msg_1", NOW - timedelta(seconds=301), BODY, [SECRET])) == "stale"
    assert refusal(headers(), now=NOW + timedelta(seconds=300.001)) == "stale"


def test_future_timestamp_is_refused() -> None:
    assert refusal(sign("msg_1", NOW + timedelta(seconds=301), BODY, [SECRET])) == "stale"


def test_forged_webhook_is_not_told_what_the_clock_says() -> None:
    old = sign("msg_1", NOW - timedelta(days=1), BODY, ["another secret"])
    assert refusal(old) == "bad-signature"


def test_during_rotation_either_secret_is_good() -> None:
    old, new = "the old secret", ENCODED
    for sender in ([old], [new], [old, new], [new, old], ["gone", new]):
        assert verified(sign("msg_1", NOW, BODY, sender), old, new) == "msg_1"
    assert refusal(sign("msg_1", NOW, BODY, ["gone"]), old, new) == "bad-signature"
    assert refusal(sign("msg_1", NOW, BODY, [old]), new) == "bad-signature"


def test_signatures_of_unknown_schemes_may_stand_beside_ours() -> None:
    mixed = "v1a,AAAA v2,BBBB " + headers()["webhook-signature"]
    assert verified(headers(webhook_signature=mixed)) == "msg_1"


def test_encoded_secret_is_decoded_and_another_is_not() -> None:
    assert secret_bytes(ENCODED) == b"twenty-four random bytes"
    assert secret_bytes("plain é") == "plain é".encode()


@pytest.mark.parametrize("secret", ["whsec_", "whsec_not base64!", "whsec_AAA", ""])
def test_secret_that_says_nothing_is_refused_unseen(secret: str) -> None:
    with pytest.raises(SettingsError, match="FONDS_WEBHOOK_SECRETS") as refused:
        verified(headers(), secret or "whsec_")
    assert "not base64" not in str(refused.value)


def flipped(data: bytes, position: int) -> bytes:
    place, bit = divmod(position % (len(data) * 8), 8)
    return data[:place] + bytes([data[place] ^ (1 << bit)]) + data[place + 1 :]


@given(
    body=st.binary(max_size=64),
    name=st.from_regex(r"[A-Za-z0-9_-]{1,40}", fullmatch=True),
    secret=st.text(min_size=1, max_size=20).filter(lambda text: not text.startswith("whsec_")),
    part=st.sampled_from(["body", "webhook-id", "webhook-timestamp", "webhook-signature"]),
    position=st.integers(0, 10_000),
)
def test_any_changed_bit_is_refused(
    body: bytes, name: str, secret: str, part: str, position: int
) -> None:
    made = sign(name, NOW, body, [secret])
    pairs = list(made.items())
    assert verify_signature(pairs, body, [secret], NOW) == name
    if part == "body":
        changed = flipped(body, position) if body else b"\0"
        with pytest.raises(WebhookError):
            verify_signature(pairs, changed, [secret], NOW)
        return
    made[part] = flipped(made[part].encode(), position).decode("latin-1")
    with pytest.raises(WebhookError):
        verify_signature(list(made.items()), body, [secret], NOW)


@given(st.text(min_size=1, max_size=12), st.text(min_size=1, max_size=12))
def test_any_other_secret_is_refused(one: str, other: str) -> None:
    made = list(sign("msg_1", NOW, BODY, ["x" + one]).items())
    if one == other:
        assert verify_signature(made, BODY, ["x" + other], NOW) == "msg_1"
        return
    with pytest.raises(WebhookError):
        verify_signature(made, BODY, ["x" + other], NOW)


# Payloads -----------------------------------------------------------------------------------

JOB = "0b6f6d9c-6a5c-4c39-8d66-0a4c2f1b7a11"
DOCUMENT = "6c1f7c52-9d0e-5a7b-9a54-1f2e3d4c5b6a"
TEXT = "# Policy\n\nWater damage § 4 is covered.\n"


def artifact(content: str = TEXT, **changes: Any) -> dict[str, Any]:
    data = content.encode("utf-8", "replace")
    made = {
        "type": "markdown",
        "content": content,
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
    }
    return made | changes


def payload(**changes: Any) -> dict[str, Any]:
    return {
        "job_id": JOB,
        "document_id": DOCUMENT,
        "status": "parsed",
        "artifacts": [artifact()],
        "meta": {"parser_name": "llamaparse", "parser_version": "2025-08-01"},
        **changes,
    }


def read(given: Any, *, most: int = MOST) -> ParsedUpload | ParseFailure:
    body = given if isinstance(given, bytes) else json.dumps(given).encode()
    return read_payload(body, max_bytes=most)


def refused(given: Any, *, most: int = MOST) -> str:
    with pytest.raises(WebhookError) as caught:
        read(given, most=most)
    assert "Water" not in str(caught.value)
    assert caught.value.__cause__ is None
    return caught.value.kind


def test_text_is_read() -> None:
    told = read(payload())
    assert told == ParsedUpload(
        job_id=UUID(JOB),
        document_id=UUID(DOCUMENT),
        markdown=TEXT,
        sha256=hashlib.sha256(TEXT.encode()).hexdigest(),
        bytes=len(TEXT.encode()),
        parser_name="llamaparse",
        parser_version="2025-08-01",
    )
    assert "Water" not in repr(told)


def test_hash_may_be_in_capitals() -> None:
    capitals = artifact()["sha256"].upper()
    told = read(payload(artifacts=[artifact(sha256=capitals)]))
    assert isinstance(told, ParsedUpload)
    assert told.sha256 == capitals.lower()


@pytest.mark.parametrize("status", ["failed", "error"])
def test_failure_is_read_with_its_reason(status: str) -> None:
    told = read({"job_id": JOB, "document_id": DOCUMENT, "status": status, "error": "No\n text."})
    assert told == ParseFailure(job_id=UUID(JOB), document_id=UUID(DOCUMENT), error="No text.")
    silent = read(payload(status=status, artifacts=[]))
    assert isinstance(silent, ParseFailure)
    assert "without saying why" in silent.error


@pytest.mark.parametrize(
    "wrong",
    [
        {"sha256": hashlib.sha256(b"").hexdigest()},
        {"bytes": len(TEXT)},
        {"bytes": 0},
        {"content": TEXT + " "},
        {"content": TEXT.replace("is", "as")},
        {"content": ""},
    ],
)
def test_hash_mismatch_is_refused(wrong: dict[str, Any]) -> None:
    assert refused(payload(artifacts=[artifact() | wrong])) == "hash-mismatch"


def test_hash_of_every_artifact_is_checked() -> None:
    assert isinstance(
        read(payload(artifacts=[artifact(), artifact("x", type="text")])), ParsedUpload
    )
    other = artifact("x", type="text", bytes=2)
    assert refused(payload(artifacts=[artifact(), other])) == "hash-mismatch"


def test_exactly_one_markdown_is_wanted() -> None:
    for artifacts in ([], [artifact(), artifact()], [artifact(type="text")]):
        assert refused(payload(artifacts=artifacts)) == "malformed"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b"{}",
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b'{"job_id": NaN}',
        b'{"bytes": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
    ids=range(12),
)
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    assert refused(body) == "malformed"


@pytest.mark.parametrize("key", ["status", "job_id"])
def test_repeated_key_is_refused(key: str) -> None:
    body = json.dumps(payload())
    repeated = body[:-1] + f', "{key}": {json.dumps(payload()[key])}}}'
    assert refused(repeated.encode()) == "malformed"


@pytest.mark.parametrize(
    "changes",
    [
        {"job_id": "not-a-uuid"},
        {"job_id": 7},
        {"document_id": None},
        {"status": "PARSED"},
        {"status": "complete"},
        {"status": None},
        {"artifacts": {}},
        {"artifacts": [artifact(bytes="12")]},
        {"artifacts": [artifact(bytes=12.0)]},
        {"artifacts": [artifact(bytes=True)]},
        {"artifacts": [artifact(bytes=-1)]},
        {"artifacts": [artifact(sha256="abc")]},
        {"artifacts": [artifact(sha256="g" * 64)]},
        {"artifacts": [artifact(sha256=artifact()["sha256"] + "\n")]},
        {"artifacts": [artifact() | {"content": None}]},
        {"artifacts": [artifact("nul\0")]},
        {"artifacts": [artifact("lone\ud800")]},
        {"artifacts": [artifact()] + [artifact(type="text")] * 100},
        {"meta": None},
        {"meta": {"parser_name": "llamaparse"}},
        {"meta": {"parser_name": "x" * 201, "parser_version": "1"}},
        {"meta": {"parser_name": "nul\0", "parser_version": "1"}},
        {"error": "though it was parsed"},
    ],
)
def test_payload_against_the_contract_is_refused(changes: dict[str, Any]) -> None:
    assert refused(payload(**changes)) == "malformed"


def test_unknown_fields_of_a_payload_are_ignored() -> None:
    meta = payload()["meta"] | {"pages": 3}
    more = payload(timestamp="2026-03-10T12:00:00Z", artifacts=[artifact(language="en")], meta=meta)
    assert read(more) == read(payload())


@pytest.mark.parametrize("missing", ["job_id", "document_id", "status", "artifacts", "meta"])
def test_payload_without_a_field_is_refused(missing: str) -> None:
    given = payload()
    del given[missing]
    assert refused(given) == "malformed"


def test_payload_over_the_limit_is_refused() -> None:
    size = len(json.dumps(payload()).encode())
    assert isinstance(read(payload(), most=size), ParsedUpload)
    assert refused(payload(), most=size - 1) == "malformed"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["job_id", "document_id", "status", "artifacts", "meta", "error"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=8,
    )
)
def test_whatever_comes_is_understood_or_refused_by_name(given_: Any) -> None:
    def outcome() -> str:
        try:
            read(payload(**given_) if isinstance(given_, dict) else given_)
        except WebhookError as error:
            return error.kind
        return "understood"

    assert outcome() in {"understood", "malformed", "hash-mismatch"}


# Once ---------------------------------------------------------------------------------------


def handle(database: Database, webhook_id: str, now: datetime = NOW) -> str:
    try:
        with database.write() as connection:
            remember_nonce(connection, webhook_id, now)
    except WebhookError as error:
        return error.kind
    return "handled"


def nonces(database: Database) -> int:
    with database.read() as connection:
        count: int = connection.execute(
            select(func.count()).select_from(webhook_nonces)
        ).scalar_one()
        return count


def test_replay_is_refused(database: Database) -> None:
    assert handle(database, "msg_1") == "handled"
    assert handle(database, "msg_1") == "replayed"
    assert handle(database, "msg_1", NOW + timedelta(minutes=5)) == "replayed"
    assert handle(database, "msg_2") == "handled"


def test_handling_that_failed_can_be_repeated(database: Database) -> None:
    def fail() -> None:
        with database.write() as connection:
            remember_nonce(connection, "msg_1", NOW)
            raise OSError("the object store is away")

    with pytest.raises(OSError, match="away"):
        fail()
    assert handle(database, "msg_1") == "handled"


def test_of_many_deliveries_at_once_one_is_handled(database: Database) -> None:
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(lambda _: handle(database, "msg_1"), range(8)))
    assert sorted(told) == ["handled"] + ["replayed"] * 7


def test_nonce_is_kept_while_its_webhook_could_still_be_fresh(database: Database) -> None:
    ahead = sign("msg_1", NOW + timedelta(minutes=5), BODY, [SECRET])
    assert handle(database, verified(ahead)) == "handled"
    last = NOW + timedelta(minutes=10)
    assert handle(database, verified(ahead, now=last), last) == "replayed"
    assert refusal(ahead, now=last + timedelta(seconds=1)) == "stale"


def test_nonces_are_forgotten_when_they_protect_nothing_any_more(database: Database) -> None:
    for number in range(3):
        handle(database, f"msg_{number}")
    assert nonces(database) == 3
    handle(database, "msg_9", NOW + timedelta(minutes=10, seconds=1))
    assert nonces(database) == 1


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_forgetting_waits_for_nobody(database: Database) -> None:
    handle(database, "msg_1")
    later = NOW + timedelta(minutes=11)
    with database.write() as slow:
        remember_nonce(slow, "msg_2", later)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(handle, database, "msg_3", later).result(30) == "handled"
    assert nonces(database) == 2
