"""The outside parser, asked over a real wire: well, badly, and not at all."""

from __future__ import annotations

import logging
import threading
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

import pytest
from tests.support.upstreams.llamaparse import (
    APOLOGY,
    BROKEN,
    CUT,
    DRIP,
    ENDLESS,
    FINE,
    HANG,
    HASTY,
    NO_JSON,
    OVERLOADED,
    RESET,
    TOO_MANY,
    Asked,
    LlamaParseServer,
    Mood,
    Upload,
    failing,
    saying,
)

from fonds.errors import (
    MissingKeyError,
    ParserError,
    RetryableParserError,
    SettingsError,
    StoreError,
)
from fonds.seams import Seams, charged_to
from fonds.settings import Settings
from fonds.stores.blobs import open_blobs
from fonds.testing import ManualClock
from fonds.uploads.llamaparse import HOST, VERSION, LlamaParse, ParsedText
from fonds.uploads.webhook import ParsedUpload, ParseFailure, read_payload, verify_signature

KEY = "llx-hush-hush"
JOB = UUID("0b6f6d9c-6a5c-4c39-8d66-0a4c2f1b7a11")
DOCUMENT = UUID("6c1f7c52-9d0e-5a7b-9a54-1f2e3d4c5b6a")
CONTENT = b"%PDF-1.7 Water damage is covered."


@pytest.fixture
def service() -> Iterator[LlamaParseServer]:
    with LlamaParseServer(key=KEY) as server:
        yield server


@pytest.fixture
def settings(service: LlamaParseServer) -> Settings:
    return Settings(
        hosts={HOST: service.url},
        allow_private=True,
        llamaparse_key=KEY,
        max_file_mib=1,
        timeout=20,
    )


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def parser(settings: Settings, clock: ManualClock) -> LlamaParse:
    return LlamaParse(settings, Seams(clock=clock))


def submit(
    parser: LlamaParse, content: bytes = CONTENT, name: str = "policy.pdf", **changes: Any
) -> str:
    given: dict[str, Any] = {
        "webhook_url": "https://fonds.example/webhooks/llamaparse",
        "job_id": JOB,
        "document_id": DOCUMENT,
        **changes,
    }
    return parser.submit([content[:7], content[7:]], len(content), name, **given)


def held(service: LlamaParseServer, **changes: Any) -> str:
    upload = Upload(id="job-1", name="a.pdf", media_type="", content=b"", fields={})
    service.put(replace(upload, **changes))
    return "job-1"


def refusal(parser: LlamaParse, their_id: str | None = None) -> ParserError:
    with pytest.raises(ParserError) as refused:
        submit(parser) if their_id is None else parser.fetch(their_id)
    assert KEY not in str(refused.value)
    assert "Water" not in str(refused.value)
    return refused.value


def is_retryable(error: ParserError) -> bool:
    return isinstance(error, RetryableParserError)


# Well ---------------------------------------------------------------------------------------


def test_file_goes_out_with_our_ids_and_the_address_for_the_answer(
    parser: LlamaParse, service: LlamaParseServer
) -> None:
    their_id = submit(parser)
    upload = service.uploads[their_id]
    assert (upload.content, upload.name, upload.media_type) == (
        CONTENT,
        "policy.pdf",
        "application/pdf",
    )
    assert upload.fields == {
        "job_id": str(JOB),
        "document_id": str(DOCUMENT),
        "webhook_url": "https://fonds.example/webhooks/llamaparse",
    }
    (asked,) = service.requests
    assert asked.path == "/api/v1/parsing/upload"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert "transfer-encoding" not in asked.headers


def test_file_without_an_address_for_the_answer_goes_out_too(
    parser: LlamaParse, service: LlamaParseServer
) -> None:
    their_id = submit(parser, webhook_url=None)
    assert "webhook_url" not in service.uploads[their_id].fields


def test_text_comes_back_when_it_is_made(parser: LlamaParse, service: LlamaParseServer) -> None:
    service.text = lambda upload: f"# {upload.name}\n\n§ 4 é 条"
    their_id = submit(parser)
    assert parser.fetch(their_id) is None
    assert service.work() == [their_id]
    assert parser.fetch(their_id) == ParsedText(
        markdown="# policy.pdf\n\n§ 4 é 条", parser_version=VERSION
    )


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("a.PDF", "application/pdf"),
        ("a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("a.html", "text/html"),
        ("a.md", "text/markdown"),
        ("a.txt", "text/plain"),
        ("a", "application/octet-stream"),
    ],
)
def test_type_of_the_file_is_told(
    parser: LlamaParse, service: LlamaParseServer, name: str, media_type: str
) -> None:
    assert service.uploads[submit(parser, name=name)].media_type == media_type


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ('a"; name="job_id".pdf', "a%22; name=%22job_id%22.pdf"),
        ("a\r\nX-Evil: 1.pdf", "a%0D%0AX-Evil: 1.pdf"),
        ("../../etc/passwd", "../../etc/passwd"),
    ],
)
def test_name_cannot_forge_the_form(
    parser: LlamaParse, service: LlamaParseServer, name: str, told: str
) -> None:
    upload = service.uploads[submit(parser, name=name)]
    assert upload.name == told
    assert upload.fields["job_id"] == str(JOB)
    assert upload.content == CONTENT


def test_empty_file_and_one_that_looks_like_a_boundary_arrive_as_they_are(
    parser: LlamaParse, service: LlamaParseServer
) -> None:
    for content in (b"", b"\r\n--x--\r\n", b"--\r\n\r\n"):
        assert service.uploads[submit(parser, content)].content == content


def test_large_file_is_never_held_as_a_whole(
    parser: LlamaParse, service: LlamaParseServer, tmp_path: Path
) -> None:
    service.behave([saying({"id": "job-1"})])
    size = 32 << 20
    source = tmp_path / "source"
    with source.open("wb") as file:
        file.truncate(size)
    blobs = open_blobs(str(tmp_path / "blobs"), seams=Seams())
    blobs.create("raw/a", source)
    counted = 0

    def pieces() -> Iterator[bytes]:
        nonlocal counted
        for piece in blobs.stream("raw/a"):
            counted += len(piece)
            yield piece

    service.discards = True
    tracemalloc.start()
    try:
        their_id = parser.submit(
            pieces(), size, "a.pdf", webhook_url=None, job_id=JOB, document_id=DOCUMENT
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (their_id, counted) == ("job-1", size)
    assert peak < size // 2


def test_every_request_is_announced(parser: LlamaParse, service: LlamaParseServer) -> None:
    spent: list[str] = []
    with charged_to(spent.append):
        their_id = submit(parser)
        service.work()
        parser.fetch(their_id)
    assert spent == ["http"] * 3 == ["http"] * len(service.requests)


class Receiver(BaseHTTPRequestHandler):
    """Keeps the last webhook that came."""

    got: ClassVar[list[tuple[list[tuple[str, str]], bytes]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((self.headers.items(), body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


def test_stand_in_delivers_webhooks_that_are_believed(
    parser: LlamaParse, service: LlamaParseServer
) -> None:
    with HTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        thread = threading.Thread(target=receiver.handle_request)
        thread.start()
        their_id = submit(parser, webhook_url=f"http://127.0.0.1:{receiver.server_port}/hook")
        service.work()
        assert service.deliver(their_id, ["a secret"]).status_code == 204
        thread.join()
    headers, body = Receiver.got.pop()
    assert verify_signature(headers, body, ["a secret"], datetime.now(UTC)).startswith("msg_")
    told = read_payload(body, max_bytes=1 << 20)
    assert isinstance(told, ParsedUpload)
    assert (told.job_id, told.document_id) == (JOB, DOCUMENT)
    assert told.markdown == CONTENT.decode()


def test_stand_in_tells_of_failures(parser: LlamaParse, service: LlamaParseServer) -> None:
    def unreadable(_upload: Upload) -> str:
        raise ValueError("no page has a word")

    service.text = unreadable
    their_id = submit(parser)
    service.work()
    told = read_payload(service.payload(their_id), max_bytes=1 << 20)
    assert told == ParseFailure(job_id=JOB, document_id=DOCUMENT, error="no page has a word")
    assert "no page has a word" in str(refusal(parser, their_id))


# Badly --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mood",
    [
        *(TOO_MANY, BROKEN, OVERLOADED, failing(502), failing(408), RESET, CUT, NO_JSON, APOLOGY),
        *(saying([]), saying({}), saying({"id": 7}), saying({"id": ""}), saying({"id": "../up"})),
        *(saying({"id": "x" * 129}), saying(b"[" * 100_000), saying(b"\xff")),
    ],
)
def test_what_may_pass_is_worth_another_try(
    parser: LlamaParse, service: LlamaParseServer, mood: Mood
) -> None:
    service.behave([mood])
    assert is_retryable(refusal(parser))
    assert submit(parser)


@pytest.mark.parametrize("mood", [failing(400), failing(402), failing(404), failing(422), HASTY])
def test_what_is_refused_stays_refused(
    parser: LlamaParse, service: LlamaParseServer, mood: Mood
) -> None:
    service.behave([mood])
    error = refusal(parser)
    # Who hangs up on a file that is still being sent may not be heard any more.
    assert is_retryable(error) == ("answered" not in str(error))
    assert mood is HASTY or str(mood.status) in str(error)


@pytest.mark.parametrize("status", [301, 302, 307])
def test_redirect_is_not_followed(
    parser: LlamaParse, service: LlamaParseServer, status: int
) -> None:
    moved = Mood(name="moved", status=status, headers={"Location": service.url}, body=b"")
    service.behave([moved])
    assert not is_retryable(refusal(parser))
    assert len(service.requests) == 1


def test_reason_of_a_refusal_is_told(parser: LlamaParse, service: LlamaParseServer) -> None:
    service.behave([failing(400, f"File type\n not  supported, {KEY}"), failing(422, [{"a": 1}])])
    assert str(refusal(parser)) == f"{HOST} answered 400 (File type not supported, [key])"
    assert str(refusal(parser)) == f"{HOST} answered 422"


@pytest.mark.parametrize("status", [401, 403])
def test_refused_key_names_the_setting_and_not_the_key(
    parser: LlamaParse, service: LlamaParseServer, status: int
) -> None:
    service.behave([failing(status, f"Invalid API key: {KEY}")])
    error = refusal(parser)
    assert "FONDS_LLAMAPARSE_KEY" in str(error)
    assert not is_retryable(error)


def test_wrong_key_is_refused_by_the_service(settings: Settings) -> None:
    other = LlamaParse(replace(settings, llamaparse_key="llx-other"), Seams())
    error = refusal(other)
    assert "FONDS_LLAMAPARSE_KEY" in str(error)
    assert "llx-other" not in str(error)


@pytest.mark.parametrize("mood", [HANG, DRIP])
def test_service_that_does_not_come_to_an_end_is_given_up(
    settings: Settings, service: LlamaParseServer, mood: Mood
) -> None:
    service.behave([mood])
    hasty = LlamaParse(replace(settings, timeout=0.1), Seams())
    assert is_retryable(refusal(hasty))


def test_endless_answer_is_cut_off(parser: LlamaParse, service: LlamaParseServer) -> None:
    service.behave([ENDLESS])
    error = refusal(parser)
    assert "larger than 1 MiB" in str(error)
    assert not is_retryable(error)


def test_service_that_is_not_there_is_worth_another_try(settings: Settings) -> None:
    with LlamaParseServer() as gone:
        url = gone.url
    absent = LlamaParse(replace(settings, hosts={HOST: url}), Seams())
    assert is_retryable(refusal(absent))


def test_private_address_is_not_asked_unless_allowed(
    settings: Settings, service: LlamaParseServer
) -> None:
    careful = LlamaParse(replace(settings, allow_private=False), Seams())
    error = refusal(careful)
    assert "FONDS_ALLOW_PRIVATE" in str(error)
    assert not is_retryable(error)
    assert service.requests == []


def test_stored_file_of_another_size_is_not_sent_as_this_one(
    parser: LlamaParse, service: LlamaParseServer
) -> None:
    for pieces in ([b"123"], [b"123456"], [b"123", b"456"], []):
        with pytest.raises(ParserError, match="stored file") as refused:
            parser.submit(pieces, 4, "a", webhook_url=None, job_id=JOB, document_id=DOCUMENT)
        assert not is_retryable(refused.value)
    assert service.uploads == {}


def test_trouble_of_the_store_is_told_as_such_and_is_not_the_services_fault(
    parser: LlamaParse, service: LlamaParseServer
) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"1"
        raise StoreError("the object store answered 503")

    for _ in range(6):
        with pytest.raises(StoreError, match="503"):
            parser.submit(pieces(), 4, "a", webhook_url=None, job_id=JOB, document_id=DOCUMENT)
    assert submit(parser) in service.uploads


# Fetching -----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["PENDING", "RUNNING"])
def test_job_that_is_worked_on_gives_nothing_yet(
    parser: LlamaParse, service: LlamaParseServer, status: str
) -> None:
    assert parser.fetch(held(service, status=status)) is None


def test_job_that_failed_there_fails_here_with_its_reason(
    parser: LlamaParse, service: LlamaParseServer
) -> None:
    error = refusal(parser, held(service, status="ERROR", error=f"Password\nneeded {KEY}"))
    assert str(error) == f"{HOST} could not read the file (Password needed [key])"
    assert not is_retryable(error)
    assert not is_retryable(refusal(parser, held(service, status="CANCELLED")))


def test_half_a_document_is_not_taken_for_a_whole_one(
    parser: LlamaParse, service: LlamaParseServer
) -> None:
    half = held(service, status="PARTIAL_SUCCESS", markdown="# Page 1")
    assert "only some pages" in str(refusal(parser, half))


def test_job_that_is_not_known_there_is_refused(parser: LlamaParse) -> None:
    assert not is_retryable(refusal(parser, "job-7"))


@pytest.mark.parametrize("their_id", ["", "../up", "a/b", "a?b", "a b", "é", "a\r\nb", "x" * 129])
def test_id_that_is_none_is_not_asked_for(
    parser: LlamaParse, service: LlamaParseServer, their_id: str
) -> None:
    assert not is_retryable(refusal(parser, their_id))
    assert service.requests == []


@pytest.mark.parametrize(
    "mood", [saying({"status": "DONE"}), saying({"status": None}), saying({}), OVERLOADED, RESET]
)
def test_status_that_says_nothing_is_worth_another_try(
    parser: LlamaParse, service: LlamaParseServer, mood: Mood
) -> None:
    their_id = held(service, status="SUCCESS", markdown="# Text")
    service.behave([mood])
    assert is_retryable(refusal(parser, their_id))
    assert parser.fetch(their_id) is not None


@pytest.mark.parametrize("mood", [saying({}), saying({"markdown": None}), saying([]), CUT, BROKEN])
def test_result_without_a_text_is_worth_another_try(
    parser: LlamaParse, service: LlamaParseServer, mood: Mood
) -> None:
    their_id = held(service, status="SUCCESS", markdown="# Text")
    service.behave([FINE, mood])
    assert is_retryable(refusal(parser, their_id))
    assert parser.fetch(their_id) is not None


@pytest.mark.parametrize("text", ["nul\0", "half\ud800"])
def test_text_that_is_none_is_refused(
    parser: LlamaParse, service: LlamaParseServer, text: str
) -> None:
    service.behave([saying({"status": "SUCCESS"}), saying({"markdown": text})])
    assert not is_retryable(refusal(parser, "job-1"))


def test_text_over_the_limit_is_refused(parser: LlamaParse, service: LlamaParseServer) -> None:
    their_id = held(service, status="SUCCESS", markdown="x" * (1 << 20))
    assert "FONDS_MAX_FILE_MIB" in str(refusal(parser, their_id))


# The breaker --------------------------------------------------------------------------------


def test_service_that_keeps_failing_is_left_alone_for_a_while(
    parser: LlamaParse, service: LlamaParseServer, clock: ManualClock
) -> None:
    service.behave(lambda _asked: OVERLOADED)
    for _ in range(5):
        refusal(parser)
    assert len(service.requests) == 5
    error = refusal(parser)
    assert is_retryable(error)
    assert "gets no requests for now" in str(error)
    assert len(service.requests) == 5
    service.behave([])
    clock.move(seconds=10)
    assert submit(parser)
    assert submit(parser)


def test_refusals_do_not_open_the_breaker(parser: LlamaParse, service: LlamaParseServer) -> None:
    service.behave([failing(400)] * 8)
    for _ in range(8):
        refusal(parser)
    assert submit(parser)


def test_one_thread_tries_whether_the_service_is_back(
    parser: LlamaParse, service: LlamaParseServer, clock: ManualClock
) -> None:
    service.behave([OVERLOADED] * 5)
    for _ in range(5):
        refusal(parser)
    clock.move(seconds=10)
    asked, let_go = threading.Event(), threading.Event()

    def slowly(_asked: Asked) -> Mood:
        asked.set()
        let_go.wait(20)
        return FINE

    service.behave(slowly)
    with ThreadPoolExecutor(2) as pool:
        probe = pool.submit(submit, parser)
        assert asked.wait(20)
        assert is_retryable(refusal(parser))
        let_go.set()
        assert probe.result(20)
    assert len(service.requests) == 6
    assert submit(parser)


def test_threads_share_one_parser(parser: LlamaParse, service: LlamaParseServer) -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda number: submit(parser, b"%d" % number), range(12)))
    contents = {service.uploads[their_id].content for their_id in made}
    assert contents == {b"%d" % number for number in range(12)}


# Secrets ------------------------------------------------------------------------------------


def test_nothing_secret_is_logged(
    parser: LlamaParse, service: LlamaParseServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    service.text = lambda _upload: "Water damage"
    their_id = submit(parser)
    service.work()
    parser.fetch(their_id)
    service.behave([failing(401, KEY)])
    refusal(parser)
    assert KEY not in caplog.text
    assert "Water" not in caplog.text
    assert KEY not in repr(parser)
    assert "Water" not in repr(ParsedText(markdown="Water", parser_version=VERSION))


def test_without_a_key_the_setting_is_named(settings: Settings) -> None:
    with pytest.raises(MissingKeyError, match="FONDS_LLAMAPARSE_KEY"):
        LlamaParse(replace(settings, llamaparse_key=""), Seams())


@pytest.mark.parametrize("key", ["hush\nhush", " hush", "hushé"])
def test_key_that_no_header_can_carry_is_refused_unseen(settings: Settings, key: str) -> None:
    with pytest.raises(SettingsError, match="FONDS_LLAMAPARSE_KEY") as refused:
        LlamaParse(replace(settings, llamaparse_key=key), Seams())
    assert "hush" not in str(refused.value)
