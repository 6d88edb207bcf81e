from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from tests.support.upstreams.embedding_endpoint import (
    APOLOGY,
    BROKEN,
    DRIP,
    ENDLESS,
    FINE,
    HANG,
    NO_DATA,
    NO_JSON,
    OVERLOADED,
    PLAIN,
    POISONOUS,
    REPEATED,
    RESET,
    SHUFFLED,
    TOO_MANY,
    UNCOUNTED,
    EmbeddingEndpoint,
    Mood,
    failing,
)

from fonds.chunk.tokens import count
from fonds.embed.base import Embedder
from fonds.embed.hashing import encodable
from fonds.embed.openai import cut
from fonds.embed.registry import open_embedder
from fonds.errors import (
    BadVectorsError,
    EmbedError,
    EndpointRefusedError,
    RetryableEmbedError,
    SettingsError,
)
from fonds.seams import charged_to
from fonds.settings import Settings

KEY = "sk-very-secret-0123456789"
TEXTS = [f"passage {number} on trout" for number in range(7)]


@pytest.fixture
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with EmbeddingEndpoint() as running:
        yield running


def opened(endpoint: EmbeddingEndpoint, spec: str = "tiny?dims=64", **values: Any) -> Embedder:
    given: dict[str, Any] = {"embed_url": endpoint.url, "embed_key": KEY, "timeout": 20.0, **values}
    return open_embedder(f"openai:{spec}", Settings(**given))


def failure(endpoint: EmbeddingEndpoint, mood: Mood, **values: Any) -> EmbedError:
    endpoint.behave([mood])
    with pytest.raises(EmbedError) as caught:
        opened(endpoint, **values).embed(TEXTS, "passage")
    return caught.value


@pytest.mark.parametrize("mood", [FINE, SHUFFLED, PLAIN], ids=lambda mood: mood.name)
def test_vectors_come_back_in_the_order_of_the_texts(
    endpoint: EmbeddingEndpoint, mood: Mood
) -> None:
    endpoint.behave([mood])
    found = opened(endpoint).embed(TEXTS, "passage")
    np.testing.assert_allclose(found.vectors, [endpoint.vector(text) for text in TEXTS], atol=1e-6)
    assert endpoint.texts == TEXTS
    assert endpoint.requests[0].encoding == "base64"


def test_tokens_are_what_the_endpoint_counts(endpoint: EmbeddingEndpoint) -> None:
    said = Mood(
        name="said",
        body=b'{"data": [{"embedding": [1, 0]}], "usage": {"prompt_tokens": 77}}',
    )
    endpoint.behave([said])
    assert opened(endpoint, "tiny?dims=2").embed(["trout"], "passage").tokens == 77


def test_tokens_are_counted_if_the_endpoint_does_not(endpoint: EmbeddingEndpoint) -> None:
    endpoint.behave([UNCOUNTED])
    assert opened(endpoint).embed(TEXTS, "passage").tokens == sum(map(count, TEXTS))


@pytest.mark.parametrize(
    "mood",
    [TOO_MANY, BROKEN, OVERLOADED, failing(408), RESET, NO_JSON, NO_DATA, APOLOGY],
    ids=lambda mood: mood.name,
)
def test_what_may_succeed_later_is_worth_another_try(
    endpoint: EmbeddingEndpoint, mood: Mood
) -> None:
    error = failure(endpoint, mood)
    assert isinstance(error, RetryableEmbedError)
    assert error.retry_after is None
    assert opened(endpoint).embed(TEXTS, "passage").vectors.shape == (7, 64)


@pytest.mark.parametrize("mood", [HANG, DRIP], ids=lambda mood: mood.name)
def test_an_answer_that_does_not_come_is_given_up(endpoint: EmbeddingEndpoint, mood: Mood) -> None:
    assert isinstance(failure(endpoint, mood, timeout=0.1), RetryableEmbedError)


def test_an_endpoint_that_is_not_there_is_worth_another_try() -> None:
    with EmbeddingEndpoint() as gone:
        pass
    with pytest.raises(RetryableEmbedError, match="failed"):
        opened(gone).embed(TEXTS, "passage")


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), ("0", 0.0), ("99999", 60.0), ("soon", None), ("-1", None)]
)
def test_the_wait_an_endpoint_asks_for_is_told_within_reason(
    endpoint: EmbeddingEndpoint, header: str, seconds: float | None
) -> None:
    error = failure(endpoint, TOO_MANY.after(header))
    assert isinstance(error, RetryableEmbedError)
    assert error.retry_after == seconds


def test_the_wait_may_be_a_date(endpoint: EmbeddingEndpoint) -> None:
    far = format_datetime(datetime.now(UTC) + timedelta(days=2))
    past = format_datetime(datetime.now(UTC) - timedelta(days=2))
    waits = [failure(endpoint, OVERLOADED.after(date)) for date in (far, past)]
    assert [getattr(error, "retry_after", None) for error in waits] == [60.0, 0.0]


def test_quota_that_is_used_up_will_not_come_back_soon(endpoint: EmbeddingEndpoint) -> None:
    error = failure(endpoint, failing(429, "no credit is left", code="insufficient_quota"))
    assert isinstance(error, EndpointRefusedError)
    assert "no credit is left" in str(error)
    assert "FONDS_EMBED_KEY" in str(error)


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "size"),
        (401, "FONDS_EMBED_KEY"),
        (403, "FONDS_EMBED_KEY"),
        (404, "FONDS_EMBED_URL"),
        (302, "FONDS_EMBED_URL"),
    ],
)
def test_what_will_not_succeed_says_what_to_do(
    endpoint: EmbeddingEndpoint, status: int, advice: str
) -> None:
    error = failure(endpoint, failing(status))
    assert isinstance(error, EndpointRefusedError)
    assert str(status) in str(error)
    assert advice in str(error)


def test_the_endpoints_own_words_are_passed_on(endpoint: EmbeddingEndpoint) -> None:
    assert "(too many cooks)" in str(failure(endpoint, failing(400, "too many \n cooks")))


def test_a_redirect_is_not_followed_with_the_key(endpoint: EmbeddingEndpoint) -> None:
    with EmbeddingEndpoint() as other:
        away = Mood(
            name="away", status=307, headers={"Location": f"{other.url}/embeddings"}, body=b""
        )
        failure(endpoint, away)
        assert other.requests == []


@pytest.mark.parametrize("mood", [*POISONOUS, REPEATED], ids=lambda mood: mood.name)
@pytest.mark.parametrize("spec", ["tiny?dims=64", "text-embedding-3-small?dims=64"])
def test_bad_vectors_are_refused(endpoint: EmbeddingEndpoint, mood: Mood, spec: str) -> None:
    endpoint.behave([mood])
    with pytest.raises(BadVectorsError):
        opened(endpoint, spec).embed(TEXTS, "passage")


@pytest.mark.parametrize(
    "data",
    [
        b"[null]",
        b"[{}]",
        b'[{"embedding": null}]',
        b'[{"embedding": []}]',
        b'[{"embedding": "AAA"}]',
        b'[{"embedding": "AAAA"}]',
        b'[{"embedding": [[1, 2]]}]',
        b'[{"embedding": ["a", "b"]}]',
        b'[{"embedding": [1e300, 0]}]',
        b'[{"embedding": [NaN, 0]}]',
        b'[{"embedding": [1, 0], "index": "first"}]',
        b'[{"embedding": [1, 0], "index": 3}]',
    ],
)
def test_what_is_no_vector_is_refused(endpoint: EmbeddingEndpoint, data: bytes) -> None:
    endpoint.behave([Mood(name="odd", body=b'{"data": ' + data + b"}")])
    with pytest.raises(BadVectorsError):
        opened(endpoint, "tiny?dims=2").embed(["trout"], "passage")


def test_an_endless_answer_is_cut_off(endpoint: EmbeddingEndpoint) -> None:
    assert "more bytes" in str(failure(endpoint, ENDLESS))


def test_unknown_models_are_asked_once_for_their_dimensions(endpoint: EmbeddingEndpoint) -> None:
    embedder = opened(endpoint, "nomic-embed-text:latest")
    assert endpoint.requests == []
    assert [embedder.model.dims, embedder.model.dims] == [64, 64]
    assert len(endpoint.requests) == 1
    assert embedder.model.name == "nomic-embed-text:latest"
    assert embedder.model.price == 0


@pytest.mark.parametrize(
    ("name", "dims", "price"),
    [
        ("text-embedding-3-small", 1536, 0.02),
        ("text-embedding-3-large", 3072, 0.13),
        ("text-embedding-ada-002", 1536, 0.10),
    ],
)
def test_known_models_need_not_be_asked(
    endpoint: EmbeddingEndpoint, name: str, dims: int, price: float
) -> None:
    model = opened(endpoint, name).model
    assert (model.name, model.dims, model.price) == (name, dims, price)
    assert endpoint.requests == []


def test_a_known_model_can_be_shortened(endpoint: EmbeddingEndpoint) -> None:
    embedder = opened(endpoint, "text-embedding-3-large?dims=256")
    assert embedder.embed(["trout"], "query").vectors.shape == (1, 256)
    assert endpoint.requests[0].dimensions == 256
    assert embedder.model.version != opened(endpoint, "text-embedding-3-large").model.version


def test_other_models_are_not_asked_to_shorten(endpoint: EmbeddingEndpoint) -> None:
    embedder = opened(endpoint, "tiny?price=0.05&dims=64")
    embedder.embed(["trout"], "query")
    assert endpoint.requests[0].dimensions is None
    assert embedder.model.price == 0.05


def test_the_key_goes_into_its_header_and_nowhere_else(endpoint: EmbeddingEndpoint) -> None:
    endpoint.key = KEY
    opened(endpoint).embed(TEXTS, "passage")
    assert endpoint.requests[0].headers["authorization"] == f"Bearer {KEY}"
    others = {**endpoint.requests[0].headers, "authorization": ""}
    assert KEY not in str(others) + str(endpoint.texts)


def test_without_a_key_no_header_is_sent(endpoint: EmbeddingEndpoint) -> None:
    opened(endpoint, embed_key="").embed(TEXTS, "passage")
    assert "authorization" not in endpoint.requests[0].headers


@pytest.mark.parametrize(
    "mood",
    [
        *(failing(status, f"the key {KEY} is bad") for status in (400, 401, 403, 404, 429, 500)),
        RESET,
        NO_JSON,
        HANG,
    ],
    ids=lambda mood: mood.name,
)
def test_the_key_is_never_shown(
    endpoint: EmbeddingEndpoint, mood: Mood, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    error = failure(endpoint, mood, timeout=0.5)
    shown = "".join(traceback.format_exception(error)) + repr(error) + caplog.text
    assert KEY not in shown
    assert KEY not in repr(opened(endpoint))


@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY}é", f" {KEY}", f"{KEY}\r\nX: y"])
def test_a_key_that_is_none_is_refused_without_being_shown(
    endpoint: EmbeddingEndpoint, key: str
) -> None:
    with pytest.raises(SettingsError, match="FONDS_EMBED_KEY") as caught:
        opened(endpoint, embed_key=key)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.openai.com",
        "ftp://example.org",
        "http://",
        "http://a:b@example.org/v1",
        "http://host:port",
    ],
)
def test_an_address_that_is_none_is_refused(endpoint: EmbeddingEndpoint, url: str) -> None:
    with pytest.raises(SettingsError, match="FONDS_EMBED_URL"):
        opened(endpoint, embed_url=url)


def test_variables_for_proxies_are_ignored(
    endpoint: EmbeddingEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert opened(endpoint).embed(TEXTS, "passage").vectors.any()


def test_empty_texts_are_sent_as_a_space(endpoint: EmbeddingEndpoint) -> None:
    assert opened(endpoint).embed(["", "trout"], "passage").vectors.shape == (2, 64)
    assert endpoint.texts == [" ", "trout"]


def test_no_texts_are_not_sent(endpoint: EmbeddingEndpoint) -> None:
    assert opened(endpoint).embed([], "passage").vectors.shape == (0, 64)
    assert endpoint.requests == []


def test_long_texts_are_cut_to_what_the_model_reads(endpoint: EmbeddingEndpoint) -> None:
    texts = ["word " * 20_000, "報告" * 20_000, "x" * 100_000]
    opened(endpoint).embed(texts, "passage")
    assert [count(text) <= 8191 for text in endpoint.texts] == [True] * 3
    assert count(endpoint.texts[0]) > 8100
    assert all(long.startswith(short) for long, short in zip(texts, endpoint.texts, strict=True))


def test_the_most_tokens_can_be_given(endpoint: EmbeddingEndpoint) -> None:
    opened(endpoint, "tiny?dims=64&max_tokens=10").embed(["word " * 100], "passage")
    assert count(endpoint.texts[0]) <= 10


@examples(max_examples=50)
@given(st.text(max_size=200), st.integers(1, 30))
def test_a_cut_text_is_a_beginning_that_fits(text: str, most: int) -> None:
    whole = encodable(text)
    short = cut(whole, most)
    assert whole.startswith(short)
    assert count(short) <= most
    assert short == whole or count(whole) > most


def test_each_request_is_charged_to_a_budget(endpoint: EmbeddingEndpoint) -> None:
    charged: list[str] = []
    with charged_to(charged.append):
        opened(endpoint).embed(TEXTS, "passage")
    assert charged == ["http"]
