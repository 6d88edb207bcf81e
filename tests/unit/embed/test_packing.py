"""What is stored of what a model answers."""

from __future__ import annotations

import numpy as np
import pytest

from fonds.embed.base import pack_vectors

DIMS = 64


@pytest.mark.parametrize("neighbour", [np.zeros(DIMS), np.full(DIMS, 3.0)])
def test_a_vector_is_stored_the_same_whatever_else_is_in_its_batch(
    neighbour: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> None:
    numbers = np.random.default_rng(7).standard_normal((50, DIMS))
    vectors = (numbers / np.linalg.norm(numbers, axis=1, keepdims=True)).astype(np.float32)
    together = np.vstack([vectors, neighbour]).astype(np.float32)
    assert pack_vectors(together, 51, DIMS)[:50] == pack_vectors(vectors, 50, DIMS)
