from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from fonds.embed.hashing import HashingEmbedder, encodable, unit
from fonds.errors import UsageError

PROGRAM = """
from hashlib import sha256
from fonds.embed.hashing import HashingEmbedder
print(sha256(HashingEmbedder().embed(["Trout, eels", "収支報告書"], "query").vectors).hexdigest())
"""


def closeness(first: str, second: str) -> float:
    vectors = HashingEmbedder().embed([first, second], "passage").vectors
    return float(vectors[0] @ vectors[1])


@pytest.mark.parametrize("seed", ["0", "1"])
def test_vectors_do_not_depend_on_the_process(seed: str) -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    # Written down, so that another machine or Python that computes otherwise is noticed.
    expected = "b0692c8e46cd15bbb293a4e1f948705d7ea3613e818a3c55d3d9e7d0c688ab3c"
    assert found.stdout.strip() == expected


def test_texts_with_common_words_are_nearer_than_others() -> None:
    query = "regulation of trout fisheries"
    assert closeness(query, "Trout fisheries: their regulation") > closeness(
        query, "budget of 2026"
    )


def test_order_of_words_matters() -> None:
    assert closeness("dog bites man", "man bites dog") < 0.999


def test_case_does_not_matter() -> None:
    assert closeness("Übung MACHT", "übung macht") == pytest.approx(1)


def test_languages_without_spaces_share_parts_of_words() -> None:
    assert closeness("政治資金収支報告書", "収支報告書") > closeness(
        "政治資金収支報告書", "漁業の規制"
    )


def test_a_text_without_words_is_zero() -> None:
    assert not HashingEmbedder().embed(["?! …"], "passage").vectors.any()


def test_dimensions_can_be_chosen() -> None:
    embedder = HashingEmbedder(32)
    assert embedder.embed(["trout"], "query").vectors.shape == (1, 32)
    assert embedder.model.dims == 32
    assert embedder.model.name != HashingEmbedder(64).model.name


@pytest.mark.parametrize("dims", [0, 1, 10_000])
def test_impossible_dimensions_are_refused(dims: int) -> None:
    with pytest.raises(UsageError, match="dimensions"):
        HashingEmbedder(dims)


def test_tokens_are_words() -> None:
    assert HashingEmbedder().embed(["two words", "three more words"], "passage").tokens == 5


def test_unit_keeps_zeros_and_survives_large_numbers() -> None:
    vectors = unit(np.array([[0, 0], [3e38, 3e38], [3, 4]], np.float32))
    np.testing.assert_allclose(vectors, [[0, 0], [0.5**0.5, 0.5**0.5], [0.6, 0.8]], rtol=1e-6)
    assert vectors.dtype == np.float32


def test_halves_of_pairs_are_replaced_and_whole_pairs_joined() -> None:
    assert encodable("a\ud800b") == "a\ufffdb"
    assert encodable("\ud83d\ude00") == "😀"
    assert encodable("plain") == "plain"
