from __future__ import annotations

import asyncio
import gzip
import hashlib
import random
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.upstreams.in_memory import InMemoryTransport, StoredBody
from tests.support.upstreams.misbehaving import (
    FINE,
    LAST_MODIFIED,
    MisbehavingServer,
    Request,
    Response,
)
from tests.support.upstreams.redirecting_loop import RedirectingLoop
from tests.unit.fetch.conftest import Fetch

from fonds.errors import (
    BadRedirectError,
    ConnectionFailedError,
    FetchError,
    FetchTimeoutError,
    IncompleteBodyError,
    NotFoundError,
    RateLimitedError,
    RefusedError,
    TooLargeError,
    UpstreamDownError,
)
from fonds.fetch.client import Backoff, Fetcher, Validators, host_headers, retry_after
from fonds.fetch.rates import Pace
from fonds.fetch.transport import HttpRequest, HttpResponse
from fonds.seams import Seams
from fonds.settings import Settings

PACE = Pace(per_second=1000, burst=1000)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEYS = Settings(data_gov_key="d4ta", lda_key="l0bby")


def failing(fetch: Fetch, url: str, **options: object) -> FetchError:
    with pytest.raises(FetchError) as caught:
        fetch(url, **options)
    return caught.value


class NoonClock:
    def now(self) -> datetime:
        return NOON

    def monotonic(self) -> float:
        return 0.0


def test_a_download_is_a_file_with_its_hash_and_headers(
    upstream: MisbehavingServer, fetch: Fetch, folder: Path
) -> None:
    upstream.serve("/a.json", b'{"a": 1}', "application/json", last_modified=LAST_MODIFIED)
    download = fetch(upstream.url("/a.json"), seams=Seams(clock=NoonClock()))
    assert download is not None
    assert download.file.parent == folder
    assert download.file.read_bytes() == b'{"a": 1}'
    assert download.sha256 == hashlib.sha256(b'{"a": 1}').hexdigest()
    assert (download.size, download.media_type) == (8, "application/json")
    assert download.etag == Response(b'{"a": 1}').etag
    assert download.last_modified == LAST_MODIFIED
    assert download.retrieved_at == NOON
    assert download.url == upstream.url("/a.json")


def test_requests_introduce_us_and_ask_for_gzip(
    upstream: MisbehavingServer, fetch: Fetch, settings: Settings
) -> None:
    upstream.serve("/", b"")
    fetch(upstream.url(), settings=replace(settings, user_agent="fonds (Käthe, k@example.org)"))
    headers = upstream.requests[0].headers
    assert headers["user-agent"].encode("latin-1").decode() == "fonds (Käthe, k@example.org)"
    assert headers["accept-encoding"] == "gzip"
    assert "if-none-match" not in headers


def test_unchanged_files_come_back_as_none(upstream: MisbehavingServer, fetch: Fetch) -> None:
    first = fetch(upstream.url("/etag"))
    assert first is not None
    by_etag = Validators(etag=first.etag)
    by_date = Validators(last_modified=first.last_modified)
    assert fetch(upstream.url("/etag"), validators=by_etag) is None
    assert fetch(upstream.url("/etag"), validators=by_date) is None
    assert [seen.status for seen in upstream.requests] == [200, 304, 304]


def test_changed_files_come_back_whole(upstream: MisbehavingServer, fetch: Fetch) -> None:
    upstream.serve("/a", b"one")
    first = fetch(upstream.url("/a"))
    assert first is not None
    upstream.serve("/a", b"two")
    second = fetch(upstream.url("/a"), validators=Validators(etag=first.etag))
    assert second is not None
    assert second.file.read_bytes() == b"two"


def test_not_modified_without_having_asked_is_refused(
    upstream: MisbehavingServer, fetch: Fetch
) -> None:
    error = failing(fetch, upstream.url("/not-modified"), validators=Validators())
    assert isinstance(error, RefusedError)
    assert "304" in str(error)


def test_validators_that_cannot_be_sent_back_are_not_kept(
    upstream: MisbehavingServer, fetch: Fetch
) -> None:
    upstream.serve("/a", b"x", etag='"ü"')
    download = fetch(upstream.url("/a"))
    assert download is not None
    assert download.etag is None


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw deflate", "members"])
def test_compressed_bodies_are_decoded_and_hashed_decoded(
    upstream: MisbehavingServer, fetch: Fetch, encoding: str
) -> None:
    text = b"whereas " * 40_000
    raw = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    body = {
        "gzip": gzip.compress(text) + bytes(512),
        "deflate": zlib.compress(text),
        "raw deflate": raw.compress(text) + raw.flush(),
        "members": gzip.compress(text[:1000]) + gzip.compress(text[1000:]),
    }[encoding]
    name = "gzip" if encoding == "members" else encoding.rsplit(maxsplit=1)[-1]
    upstream.serve("/z", body, content_encoding=name)
    download = fetch(upstream.url("/z"))
    assert download is not None
    assert download.file.read_bytes() == text
    assert (download.size, download.sha256) == (len(text), hashlib.sha256(text).hexdigest())


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/nowhere", NotFoundError),
        ("/429-storm", RateLimitedError),
        ("/500-storm", UpstreamDownError),
        ("/no-content", RefusedError),
        ("/partial", RefusedError),
        ("/unasked-encoding", RefusedError),
        ("/truncated", IncompleteBodyError),
        ("/truncated-gzip", IncompleteBodyError),
        ("/malformed-chunk", IncompleteBodyError),
        ("/resets", IncompleteBodyError),
        ("/wrong-length", ConnectionFailedError),
        ("/no-http", ConnectionFailedError),
        ("/endless", TooLargeError),
        ("/gzip-bomb", TooLargeError),
        ("/redirect-loop", BadRedirectError),
        ("/redirect-file", BadRedirectError),
        ("/redirect-nowhere", BadRedirectError),
        ("/redirect?to=http://%5B::1", BadRedirectError),
    ],
)
def test_each_misbehaviour_has_its_error_and_leaves_no_file(
    upstream: MisbehavingServer, fetch: Fetch, folder: Path, path: str, kind: type[FetchError]
) -> None:
    error = failing(fetch, upstream.url(path))
    assert type(error) is kind
    assert upstream.url(path).partition("?")[0] in str(error)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("status", "headers", "kind"),
    [
        (410, {}, NotFoundError),
        (403, {}, RefusedError),
        (418, {}, RefusedError),
        (503, {}, UpstreamDownError),
        (503, {"retry_after": "0"}, RateLimitedError),
        (599, {}, UpstreamDownError),
        (300, {}, RefusedError),
    ],
)
def test_statuses_map_to_errors(
    upstream: MisbehavingServer,
    fetch: Fetch,
    status: int,
    headers: dict[str, str],
    kind: type[FetchError],
) -> None:
    upstream.serve("/s", b"", status=status, **headers)
    error = failing(fetch, upstream.url("/s"))
    assert type(error) is kind
    assert str(status) in str(error)


def test_a_server_that_hangs_is_a_timeout(
    upstream: MisbehavingServer, fetch: Fetch, settings: Settings
) -> None:
    hasty = replace(settings, timeout=0.1, retries=1)
    error = failing(fetch, upstream.url("/hangs"), settings=hasty)
    assert isinstance(error, FetchTimeoutError)


def test_a_drip_ends_at_the_deadline(
    upstream: MisbehavingServer, fetch: Fetch, settings: Settings, folder: Path
) -> None:
    once = replace(settings, retries=1)
    error = failing(fetch, upstream.url("/drip"), settings=once, deadline=0.3)
    assert isinstance(error, FetchTimeoutError)
    assert list(folder.iterdir()) == []


def test_a_closed_port_is_a_failed_connection(fetch: Fetch) -> None:
    with MisbehavingServer() as gone:
        url = gone.url("/")
    error = failing(fetch, url)
    assert isinstance(error, ConnectionFailedError)


def test_an_announced_length_above_the_cap_is_refused_unread(
    upstream: MisbehavingServer, fetch: Fetch, folder: Path
) -> None:
    upstream.serve("/big", bytes(2**20 + 1))
    assert isinstance(failing(fetch, upstream.url("/big")), TooLargeError)
    upstream.serve("/big", bytes(2**20))
    download = fetch(upstream.url("/big"))
    assert download is not None
    assert download.size == 2**20
    assert list(folder.iterdir()) == [download.file]


def test_the_cap_counts_decompressed_bytes(
    upstream: MisbehavingServer, fetch: Fetch, folder: Path
) -> None:
    upstream.serve("/z", gzip.compress(bytes(2**20 + 1)), content_encoding="gzip")
    assert isinstance(failing(fetch, upstream.url("/z")), TooLargeError)
    assert list(folder.iterdir()) == []


def test_bytes_beyond_the_announced_length_do_not_reach_the_next_file(
    upstream: MisbehavingServer, settings: Settings, folder: Path
) -> None:
    async def run() -> bytes:
        async with Fetcher(settings, seams=Seams(), folder=folder) as fetcher:
            with pytest.raises(ConnectionFailedError):
                await fetcher.download(upstream.url("/wrong-length"), source="t", pace=PACE)
            download = await fetcher.download(upstream.url("/etag"), source="t", pace=PACE)
            assert download is not None
            return download.read()

    assert asyncio.run(run()) == b"tagged"


@pytest.mark.parametrize(("path", "tries"), [("/429-then-fine", 3), ("/503-then-fine", 2)])
def test_passing_trouble_is_retried_until_it_passes(
    upstream: MisbehavingServer, fetch: Fetch, path: str, tries: int
) -> None:
    download = fetch(upstream.url(path))
    assert download is not None
    assert download.file.read_bytes() == FINE
    assert len(upstream.requests) == tries


@pytest.mark.parametrize(("path", "tries"), [("/429-storm", 3), ("/truncated", 3), ("/none", 1)])
def test_only_what_may_pass_is_retried_and_not_for_ever(
    upstream: MisbehavingServer, fetch: Fetch, path: str, tries: int
) -> None:
    failing(fetch, upstream.url(path))
    assert len(upstream.requests) == tries


def test_waits_are_those_the_upstream_asks_for(
    upstream: MisbehavingServer, fetch: Fetch, settings: Settings
) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(round(seconds, 6))

    def answer(request: Request) -> Response:
        asked = ["0", "3600", "Sun, 01 Mar 2026 12:00:30 GMT"]
        if request.count > len(asked):
            return Response(b"done")
        return Response(status=429, headers={"Retry-After": asked[request.count - 1]})

    upstream.route("/busy", answer)
    patient = replace(settings, retries=4, retry_wait=0.002, retry_wait_max=0.02)
    seams = Seams(clock=NoonClock())
    fetch(upstream.url("/busy"), settings=patient, seams=seams, sleep=sleep)
    assert waits == [0.0, 0.02, 0.02]


def test_a_host_that_asks_for_a_pause_gets_it_from_all_sources(
    settings: Settings, folder: Path
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    def respond(request: HttpRequest) -> HttpResponse:
        if request.url.endswith("/busy"):
            headers = [("Retry-After", "30")]
            return HttpResponse(status=429, headers=headers, body=StoredBody())
        return HttpResponse(status=200, body=StoredBody())

    async def run() -> None:
        opened = Fetcher(
            replace(settings, retries=1, retry_wait_max=20.0),
            seams=Seams(clock=NoonClock()),
            folder=folder,
            transport=InMemoryTransport(respond),
            sleep=sleep,
        )
        async with opened as fetcher:
            with pytest.raises(RateLimitedError):
                await fetcher.download("https://a.gov/busy", source="one", pace=PACE)
            await fetcher.download("https://a.gov/", source="two", pace=PACE)
            await fetcher.download("https://b.gov/", source="one", pace=PACE)

    asyncio.run(run())
    assert slept == [20.0]


def test_redirects_are_followed_and_the_asked_address_is_kept(
    upstream: MisbehavingServer, fetch: Fetch
) -> None:
    upstream.serve("/new/place", b"here")
    for status in (301, 302, 303, 307, 308):
        url = upstream.url(f"/redirect?status={status}&to=new/place")
        download = fetch(url)
        assert download is not None
        assert (download.url, download.file.read_bytes()) == (url, b"here")


def test_hosts_are_mapped_on_every_hop(
    upstream: MisbehavingServer, fetch: Fetch, settings: Settings
) -> None:
    upstream.serve("/gov/end?x=1", b"mapped")
    upstream.serve("/org/start", b"", status=302, location="https://two.example.gov/end?x=1")
    stand_ins = {
        "one.example.org": upstream.url("/org"),
        "two.example.gov": upstream.url("/gov"),
    }
    mapped = replace(settings, hosts=stand_ins)
    download = fetch("https://one.example.org/start", settings=mapped)
    assert download is not None
    assert download.file.read_bytes() == b"mapped"
    assert download.url == "https://one.example.org/start"
    assert {seen.headers["host"] for seen in upstream.requests} == {f"127.0.0.1:{upstream.port}"}


def test_keys_are_not_carried_to_another_host(
    upstream: MisbehavingServer, fetch: Fetch, settings: Settings
) -> None:
    upstream.serve("/end", b"")
    upstream.serve("/away", b"", status=302, location="https://two.example/end")
    upstream.serve("/stay", b"", status=302, location="https://one.example/end")
    stand_ins = dict.fromkeys(("one.example", "two.example"), upstream.address)
    mapped = replace(settings, hosts=stand_ins)
    keys = {"X-Api-Key": "s3cret", "Authorization": "Bearer s3cret", "Accept": "text/xml"}
    fetch("https://one.example/away", settings=mapped, headers=keys)
    fetch("https://one.example/stay", settings=mapped, headers=keys)
    away, stay = upstream.seen("/end")
    assert away.headers["accept"] == "text/xml"
    assert "s3cret" not in str(away.headers)
    assert stay.headers["x-api-key"] == "s3cret"


def test_keys_are_not_carried_from_https_to_http(
    upstream: MisbehavingServer, fetch: Fetch, settings: Settings
) -> None:
    upstream.serve("/end", b"")
    upstream.serve("/down", b"", status=302, location="http://one.example/end")
    mapped = replace(settings, hosts={"one.example": upstream.address})
    fetch("https://one.example/down", settings=mapped, headers={"X-Api-Key": "s3cret"})
    assert "x-api-key" not in upstream.seen("/end")[0].headers


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://example.org/", "", "http://", "http://[x"]
)
def test_only_http_addresses_are_asked(fetch: Fetch, url: str) -> None:
    assert isinstance(failing(fetch, url), BadRedirectError)


@pytest.mark.parametrize(
    "path", ["/none", "/429-storm", "/truncated", "/endless", "/redirect-loop"]
)
def test_errors_hold_no_secrets(upstream: MisbehavingServer, fetch: Fetch, path: str) -> None:
    url = upstream.url(f"{path}?a=1&api_key=s3cret&token=s3cret").replace("//", "//u:s3cret@")
    error = failing(fetch, url)
    assert "a=1" in str(error) or path == "/redirect-loop"
    assert "s3cret" not in str(error)


def test_a_malformed_key_is_not_shown(upstream: MisbehavingServer, fetch: Fetch) -> None:
    error = failing(fetch, upstream.url("/"), headers={"X-Api-Key": "s3cret\n"})
    assert "s3cret" not in f"{error!r} {error.__cause__!r}"


def test_requests_are_counted_with_hops_and_repetitions(
    upstream: MisbehavingServer, settings: Settings, folder: Path
) -> None:
    async def run() -> tuple[int, int]:
        async with Fetcher(settings, seams=Seams(), folder=folder) as fetcher:
            await fetcher.download(upstream.url("/503-then-fine"), source="t", pace=PACE)
            await fetcher.download(upstream.url("/redirect?to=/etag"), source="t", pace=PACE)
            known = Validators(etag='"other"')
            await fetcher.download(upstream.url("/etag"), source="t", pace=PACE, validators=known)
            return fetcher.counts.total, fetcher.counts.conditional

    assert asyncio.run(run()) == (5, 1)


def test_connections_are_reused(
    upstream: MisbehavingServer, settings: Settings, folder: Path
) -> None:
    async def run() -> int:
        async with Fetcher(settings, seams=Seams(), folder=folder) as fetcher:
            for path in ("/etag", "/503-then-fine", "/redirect?to=/etag"):
                await fetcher.download(upstream.url(path), source="t", pace=PACE)
            return fetcher.counts.total

    loop = RedirectingLoop(upstream.port)
    assert loop.run(run()) == 5
    assert loop.connected == ["127.0.0.1"]


class Piecemeal:
    """Responds with pieces and pauses."""

    def __init__(self, *pieces: bytes | float, announced: int) -> None:
        self._pieces = pieces
        self._announced = announced

    async def send(self, request: HttpRequest) -> HttpResponse:
        del request
        length = ("Content-Length", str(self._announced))
        return HttpResponse(status=200, headers=[length], body=self)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, bytes):
                yield piece
            else:
                await asyncio.sleep(piece)

    async def aclose(self) -> None:
        return


def test_a_file_that_keeps_coming_may_take_longer_than_the_deadline(
    fetch: Fetch, settings: Settings
) -> None:
    large = replace(settings, max_file_mib=2, retries=1)
    slow = Piecemeal(bytes(2**20), 0.6, b"end", announced=2**20 + 3)
    download = fetch("https://a.gov/", transport=slow, settings=large, deadline=0.4)
    assert download is not None
    assert download.size == 2**20 + 3


def test_a_body_shorter_than_announced_is_incomplete_over_any_transport(
    fetch: Fetch, folder: Path
) -> None:
    error = failing(fetch, "https://a.gov/", transport=Piecemeal(b"abc", announced=4))
    assert type(error) is IncompleteBodyError
    assert list(folder.iterdir()) == []


def test_a_cancelled_download_leaves_no_file(
    upstream: MisbehavingServer, settings: Settings, folder: Path
) -> None:
    def files() -> list[Path]:
        return list(folder.iterdir())

    async def run() -> None:
        async with Fetcher(settings, seams=Seams(), folder=folder) as fetcher:
            ask = fetcher.download(upstream.url("/drip"), source="t", pace=PACE)
            task = asyncio.create_task(ask)
            while not files():  # noqa: ASYNC110 — a folder raises no event
                await asyncio.sleep(0.005)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()

    asyncio.run(run())
    assert files() == []


# Retries


def backoff(*, first: float = 1.0, longest: float = 60.0) -> Backoff:
    settings = Settings(retries=10_000, retry_wait=first, retry_wait_max=longest)
    return Backoff(settings, random.Random(7))


def test_waits_double_with_jitter_up_to_the_longest() -> None:
    failures = backoff(first=1.0, longest=6.0)
    waits = [failures.next_wait(UpstreamDownError("down")) or 0 for _ in range(5)]
    for low, wait in zip((1, 2, 4), waits, strict=False):
        assert low <= wait <= low + 1
    assert waits[0] != 1
    assert waits[3:] == [6.0, 6.0]


def test_a_hundred_failures_do_not_overflow() -> None:
    failures = backoff()
    assert [failures.next_wait(UpstreamDownError("down")) for _ in range(2000)][-1] == 60.0


@pytest.mark.parametrize(("asked", "waited"), [(0.0, 0.0), (12.5, 12.5), (3600.0, 60.0)])
def test_the_upstreams_wish_counts_up_to_the_longest_wait(asked: float, waited: float) -> None:
    error = RateLimitedError("slow down", retry_after=asked)
    assert backoff().next_wait(error) == waited


@pytest.mark.parametrize(("retries", "waits"), [(0, [None]), (1, [None]), (3, [1.0, 1.0, None])])
def test_so_many_tries_are_made(retries: int, waits: list[float | None]) -> None:
    failures = Backoff(
        Settings(retries=retries, retry_wait=2.0, retry_wait_max=1.0), random.Random(7)
    )
    assert [failures.next_wait(UpstreamDownError("down")) for _ in waits] == waits


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        (" 120 ", 120.0),
        ("9" * 400, 999_999_999.0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 13:00:30 +0100", 30.0),
        ("Sun, 01 Mar 2026 12:00:30 -0000", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("Mon, 99 Foo 2026 00:00:00 GMT", None),
        ("٣", None),
    ],
)
def test_retry_after_is_read_in_both_forms(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, NOON) == seconds


# Headers for particular hosts


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("https://api.congress.gov/v3/bill", {"X-Api-Key": "d4ta"}),
        ("https://API.govinfo.gov/collections", {"X-Api-Key": "d4ta"}),
        ("https://lda.gov/api/v1/filings/", {"Authorization": "Token l0bby"}),
        ("http://lda.gov/api/v1/filings/", {}),
        ("https://lda.gov.example.org/", {}),
        ("https://www.congress.gov/", {}),
    ],
)
def test_a_key_is_sent_to_its_own_host_over_tls_only(url: str, headers: dict[str, str]) -> None:
    assert host_headers(KEYS, url) == {"Accept": "*/*", **headers}


def test_without_a_key_nothing_is_sent() -> None:
    assert host_headers(Settings(), "https://api.congress.gov/v3/bill") == {"Accept": "*/*"}


def test_listings_that_insist_on_json_are_asked_for_it() -> None:
    listing = "https://www.govinfo.gov/bulkdata/json/BILLSTATUS/119/hr"
    assert host_headers(Settings(), listing) == {"Accept": "application/json"}
