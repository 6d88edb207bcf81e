"""What every embedder promises."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.support.upstreams.embedding_endpoint import EmbeddingEndpoint
from tests.unit.embed.test_onnx import tiny_model

from fonds.embed.base import Embedder, Purpose
from fonds.embed.registry import open_embedder
from fonds.errors import ModelMissingError
from fonds.settings import Settings

SPECS = ["wordllama", "minilm", "onnx", "openai", "hashing", "hashing:32"]
TEXTS = [
    "The regulation of trout fisheries.",
    "Eels, and what the law says about them in the second part of this long chapter.",
    "River.",
    "令和6年の政治資金収支報告書を公表します。",
    "Straßenverkehrsordnung § 3",
]
ODD = {
    "empty": "",
    "space": " ",
    "line breaks": "\n\n\r\n\t",
    "emoji": "😀👩‍👩‍👧🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "nul": "\0\0trout\0",
    "half a pair": "\ud800 trout \udfff",
    "a megabyte of words": "trout and eel " * 75_000,
    "a megabyte of one letter": "x" * 1_000_000,
    "a megabyte of spaces": " " * 1_000_000,
    "control": "<s></s><unk>[CLS][SEP]<|endoftext|>",
    "no character": "\uffff\ufffe\U0010ffff",
}


@pytest.fixture(scope="module", params=SPECS)
def spec(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "onnx":
        folder: Path = tiny_model(tmp_path_factory.mktemp("model"), query_prefix="query : ")
        return f"onnx:{folder}"
    return "openai:tiny" if request.param == "openai" else str(request.param)


@pytest.fixture(scope="module")
def settings() -> Iterator[Settings]:
    with EmbeddingEndpoint(dims=48) as endpoint:
        yield Settings(embed_url=endpoint.url)


@pytest.fixture(scope="module")
def embedder(spec: str, settings: Settings) -> Embedder:
    try:
        return open_embedder(spec, settings)
    except ModelMissingError as error:
        pytest.skip(str(error))


def test_it_says_what_it_is(embedder: Embedder) -> None:
    assert isinstance(embedder, Embedder)
    assert embedder.model.name
    assert embedder.model.version
    assert embedder.model.dims > 0
    assert embedder.model.price >= 0


def test_one_vector_for_each_text(embedder: Embedder) -> None:
    found = embedder.embed(TEXTS, "passage")
    assert found.vectors.shape == (len(TEXTS), embedder.model.dims)
    assert found.vectors.dtype == np.float32


@pytest.mark.parametrize("purpose", ["passage", "query"])
def test_vectors_have_unit_length(embedder: Embedder, purpose: Purpose) -> None:
    lengths = np.linalg.norm(embedder.embed(TEXTS, purpose).vectors, axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-5)


def test_a_vector_depends_on_its_text_alone(embedder: Embedder) -> None:
    together = embedder.embed(TEXTS, "passage").vectors
    reverse = embedder.embed(TEXTS[::-1], "passage").vectors[::-1]
    alone = np.concatenate([embedder.embed([text], "passage").vectors for text in TEXTS])
    np.testing.assert_allclose(together, reverse, atol=1e-5)
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_different_texts_have_different_vectors(embedder: Embedder) -> None:
    vectors = embedder.embed(["The trout in the river.", "Eel law"], "passage").vectors
    assert vectors[0] @ vectors[1] < 0.99


def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    found = embedder.embed([], "passage")
    assert found.vectors.shape == (0, embedder.model.dims)
    assert found.tokens == 0


def test_tokens_add_up(embedder: Embedder) -> None:
    together = embedder.embed(TEXTS, "passage").tokens
    assert together > 0
    assert together == sum(embedder.embed([text], "passage").tokens for text in TEXTS)


@pytest.mark.parametrize("name", ODD)
def test_odd_texts_give_finite_vectors(embedder: Embedder, name: str) -> None:
    found = embedder.embed([ODD[name], TEXTS[0]], "passage")
    assert np.isfinite(found.vectors).all()
    lengths = np.linalg.norm(found.vectors, axis=1)
    assert lengths[0] == pytest.approx(1, abs=1e-5) or lengths[0] == 0
    alone = embedder.embed([TEXTS[0]], "passage").vectors[0]
    np.testing.assert_allclose(found.vectors[1], alone, atol=1e-5)


def test_a_text_counts_no_more_tokens_than_the_model_reads(embedder: Embedder) -> None:
    tokens = embedder.embed([ODD["a megabyte of words"]], "passage").tokens
    assert 0 < tokens <= embedder.model.max_tokens


def test_a_full_batch_is_taken_at_once(embedder: Embedder) -> None:
    texts = [f"{TEXTS[number % 3]} {number}" for number in range(256)]
    assert embedder.embed(texts, "passage").vectors.shape == (256, embedder.model.dims)


def test_threads_do_not_disturb_each_other(
    spec: str, settings: Settings, embedder: Embedder
) -> None:
    expected = embedder.embed(TEXTS, "passage").vectors
    fresh = open_embedder(spec, settings)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: fresh.embed(TEXTS, "passage").vectors, range(8)))
    for vectors in found:
        np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_opened_again_it_is_the_same(spec: str, settings: Settings, embedder: Embedder) -> None:
    again = open_embedder(spec, settings)
    assert again.model == embedder.model
    first, second = (each.embed(TEXTS, "passage").vectors for each in (embedder, again))
    assert first.tobytes() == second.tobytes()
