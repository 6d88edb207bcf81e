"""Vectors of hashed words, without a model: for tests, and as a last resort.

Also the preparation of texts and vectors for all embedders: text that has a UTF-8 form, and vectors
of unit length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import islice, pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fonds.embed.base import Embedded, EmbeddingModel, Purpose
from fonds.errors import UsageError
from fonds.settings import Settings

_DIMS: Final = 256
_MIN_DIMS: Final = 2
_MAX_DIMS: Final = 8192
_SIGN: Final = 1 << 63
# Fixed ranges, because the letters of `\w` depend on the Unicode tables of each Python.
# Scripts from U+2E80 on are mostly written without spaces: there each character is a word.
_WORD: Final = re.compile(r"[0-9a-z\u00aa-\u1fff\u2c00-\u2e7f]+|[\u2e80-\ud7ff\uf900-\U0010ffff]")
_LOWER: Final = {code: chr(code).lower() for code in range(0x530)}


def encodable(text: str) -> str:
    """The text with unpaired surrogates replaced, as damaged feeds contain them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def unit(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Each row at unit length; a row of zeros stays as it is."""
    # Squares of large float32 numbers overflow unless they are summed as float64.
    wide = vectors.astype(np.float64)
    lengths = np.sqrt(np.square(wide).sum(axis=1, keepdims=True))
    lengths[lengths == 0] = 1
    scaled: NDArray[np.float32] = (wide / lengths).astype(np.float32)
    return scaled


class HashingEmbedder:
    """Counts words and pairs of neighbours in `dims` buckets, each with a sign."""

    is_remote: Final = False

    def __init__(self, dims: int = _DIMS) -> None:
        if not _MIN_DIMS <= dims <= _MAX_DIMS:
            raise UsageError(
                f"hashing:{dims} is not possible: choose {_MIN_DIMS} to {_MAX_DIMS} dimensions"
            )
        self.model: Final = EmbeddingModel(name=f"hashing-{dims}", version="1", dims=dims)

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Embedded:  # noqa: ARG002 — alike for both
        """The vectors of some texts; a token is a word."""
        vectors = np.zeros((len(texts), self.model.dims))
        tokens = 0
        for row, text in zip(vectors, texts, strict=True):
            words = _words(text, self.model.max_tokens)
            tokens += len(words)
            hashes = [_hash(feature) for feature in [*words, *map(" ".join, pairwise(words))]]
            signs = [-1 if number & _SIGN else 1 for number in hashes]
            np.add.at(row, [number % _SIGN % self.model.dims for number in hashes], signs)
        return Embedded(vectors=unit(vectors), tokens=tokens)


def _words(text: str, limit: int) -> list[str]:
    matches = _WORD.finditer(text.translate(_LOWER))
    return [match.group() for match in islice(matches, limit)]


@lru_cache(maxsize=65_536)
def _hash(feature: str) -> int:
    return int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")


def open_hashing(rest: str, _settings: Settings) -> HashingEmbedder:
    """The embedder of `hashing:DIMS`."""
    return HashingEmbedder(whole_number("dimensions", rest) if rest else _DIMS)


def whole_number(name: str, text: str) -> int:
    """The number in a name of an embedder; UsageError if it is not one."""
    if not re.fullmatch("[1-9][0-9]{0,7}", text):
        raise UsageError(f"{name} must be a whole number above zero, not {text!r}")
    return int(text)
