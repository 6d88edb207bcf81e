"""What is read at one go is what h11 reads; anything else is left to it."""

from __future__ import annotations

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.fetch.heads import read, written

PLAIN = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nContent-Length: 5\r\nETag: \r\n\r\n%PDF-"
)


def by_h11(data: bytes) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("Host", "a.example")]))
    client.send(h11.EndOfMessage())
    client.receive_data(data)
    event = client.next_event()
    assert isinstance(event, h11.Response)
    return event.status_code, event.reason, event.headers.raw_items()


def test_a_plain_head_is_read_with_the_lengths_of_both_parts() -> None:
    plain = read(PLAIN)
    assert plain is not None
    head, own, body = plain
    assert (head.status, head.reason, head.headers) == by_h11(PLAIN)
    assert (PLAIN[own:], body) == (b"%PDF-", 5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"200 OK", b"206 Partial"),
        (b"200 OK", b"304 Not Modified"),
        (b"HTTP/1.1", b"HTTP/1.0"),
        (b"\r\n", b"\n"),
        (b"Content-Length: 5\r\n", b""),
        (b"Content-Length: 5\r\n", b"Content-Length: 5\r\nContent-Length: 7\r\n"),
        (b"Length: 5", b"Length: +5"),
        (b"Length: 5", b"Length: 5, 5"),
        (b"ETag: ", b"Transfer-Encoding: chunked"),
        (b"ETag: ", b"Connection: close"),
        (b"ETag: ", b"Connection: keep-alive, upgrade"),
        (b"ETag: ", b"ETag : x"),
        (b"ETag: ", b" folded"),
        (b"ETag: ", b"ETag: a\x00b"),
        (b"ETag: \r\n\r\n", b"ETag: \r\n"),
    ],
)
def test_what_is_not_plain_is_left_to_h11(old: bytes, new: bytes) -> None:
    assert old in PLAIN
    assert read(PLAIN.replace(old, new)) is None


@given(
    reason=st.binary(max_size=8),
    fields=st.lists(
        st.tuples(
            st.sampled_from([b"ETag", b"X-A", b"Connection", b"Date", b"a b", b""]),
            st.sampled_from([b":", b": ", b":  ", b" :"]),
            st.sampled_from([b"x", b"", b"keep-alive", b"a\tb", b"\xff y", b"c ", b"d\r"]),
        ),
        max_size=3,
    ),
)
@settings(max_examples=200)
def test_what_is_read_is_what_h11_reads(
    reason: bytes, fields: list[tuple[bytes, bytes, bytes]]
) -> None:
    lines = b"".join(b"%b\r\n" % b"".join(field) for field in fields)
    data = b"HTTP/1.1 200 %b\r\n%bContent-Length: 3\r\n\r\nabc" % (reason, lines)
    plain = read(data)
    if plain is not None:
        head, own, body = plain
        assert (head.status, head.reason, head.headers) == by_h11(data)
        assert (data[own:], body) == (b"abc", 3)


def test_a_question_is_written_as_h11_writes_it() -> None:
    headers = [(b"User-Agent", b"fonds/1"), (b"Host", b"a.example"), (b"Accept", b"*/*")]
    asked = h11.Request(method=b"GET", target=b"/a?b", headers=headers)
    assert written(b"GET", b"/a?b", headers) == h11.Connection(h11.CLIENT).send(asked)


@pytest.mark.parametrize(
    ("method", "target", "more"),
    [
        (b"POST", b"/", []),
        (b"GET", b"/a b", []),
        (b"GET", b"/\r\nX: y", []),
        (b"GET", b"/", [(b"X", b"y\r\nZ: a")]),
        (b"GET", b"/", [(b"X", b"y ")]),
        (b"GET", b"/", [(b"X y", b"z")]),
        (b"GET", b"/", [(b"host", b"b.example")]),
        (b"GET", b"/", [(b"Content-Length", b"3")]),
    ],
)
def test_a_question_that_takes_care_is_left_to_h11(
    method: bytes, target: bytes, more: list[tuple[bytes, bytes]]
) -> None:
    assert written(method, target, [(b"Host", b"a.example"), *more]) is None
