"""The default embedder: static word vectors from a wheel, averaged over a passage.

The package `wordllama` is never imported: on import it sets up logging for the whole process, and
it can download. Only its two data files are read, and only if their hashes match.

Its tokenizer treats a passage as one word, which is slow. No entry of its vocabulary has a space
after another character, so no merge crosses the start of a word: words can be tokenized one by
one, and most are in the cache. On 230-token passages that is eight times as fast as the package,
with equal vectors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load
from tokenizers import Tokenizer

from fonds.embed.base import Embedded, EmbeddingModel, Purpose
from fonds.embed.hashing import encodable, unit
from fonds.errors import ModelMissingError

WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
TOKENIZER: Final = "tokenizers/l2_supercat_tokenizer_config.json"
SHA256: Final = {
    WEIGHTS: "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    TOKENIZER: "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
}
_REMEDY: Final = "install it with: pip install --force-reinstall 'wordllama>=0.4,<0.5'"

# The average of more tokens means nothing; no passage is that long.
_MAX_TOKENS: Final = 8192
_MAX_TOKEN_LENGTH: Final = 16
_MAX_WORDS: Final = 40_000
_MAX_WORD_LENGTH: Final = 40
# Spaces belong to the word after them; those at the end are a word of their own.
_SPACED_WORD: Final = re.compile(r" +[^ ]+| +\Z")
# The tokenizer's sign for a space, and its control tokens.
_AWKWARD: Final = ("▁", "<s>", "</s>", "<unk>")


class WordLlamaEmbedder:
    """256 dimensions; thousands of passages a second on one core, without a network."""

    is_remote: Final = False
    model: Final = EmbeddingModel(
        name="wordllama-l2-supercat-256",
        version=f"{SHA256[WEIGHTS][:8]}-{SHA256[TOKENIZER][:8]}",
        dims=256,
        max_tokens=_MAX_TOKENS,
    )

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _package_folder()
        self._lock = Lock()
        self._loaded: tuple[NDArray[np.float32], _WordIds] | None = None

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Embedded:  # noqa: ARG002 — alike for both
        """The vectors of some texts; a text without a token gets zeros."""
        table, words = self._load()
        sums = np.zeros((len(texts), self.model.dims), np.float32)
        tokens = 0
        for row, text in zip(sums, texts, strict=True):
            ids = words.ids(text)
            tokens += len(ids)
            # Summed row by row, and not by a product of matrices: bytes must not depend on how
            # many threads an algebra library takes.
            np.add.reduce(table.take(ids, axis=0), axis=0, out=row)
        return Embedded(vectors=unit(sums), tokens=tokens)

    def _load(self) -> tuple[NDArray[np.float32], _WordIds]:
        with self._lock:
            if self._loaded is None:
                self._loaded = _table(self._read(WEIGHTS)), _words(self._read(TOKENIZER))
            return self._loaded

    def _read(self, name: str) -> bytes:
        try:
            data = (self._folder / name).read_bytes()
        except OSError as error:
            raise ModelMissingError(
                f"the file {name} of the package wordllama cannot be read ({error.strerror}): "
                f"{_REMEDY}"
            ) from error
        if sha256(data).hexdigest() != SHA256[name]:
            raise ModelMissingError(
                f"the file {name} of the package wordllama is not the expected one, so its "
                f"vectors could not be compared with others: {_REMEDY}"
            )
        return data


def _package_folder() -> Path:
    package = find_spec("wordllama")
    folders = package.submodule_search_locations if package else None
    if not folders:
        raise ModelMissingError(f"the package wordllama is missing: {_REMEDY}")
    return Path(folders[0])


def _table(data: bytes) -> NDArray[np.float32]:
    table: NDArray[np.float32] = load(data)["embedding.weight"].astype(np.float32)
    return table


def _words(data: bytes) -> _WordIds:
    return _WordIds(Tokenizer.from_buffer(data))


class _WordIds(dict[str, tuple[int, ...]]):
    """A cache of the token ids of words, each with a space before it."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self._tokenizer = tokenizer
        space = tokenizer.token_to_id("▁")
        assert space is not None, "the file's hash was checked"
        self._space = (space,)

    def ids(self, text: str) -> list[int]:
        text = encodable(text[: _MAX_TOKENS * _MAX_TOKEN_LENGTH])
        if not text:
            return []
        if any(sign in text for sign in _AWKWARD):
            return self._encode(text)[:_MAX_TOKENS]
        if len(self) > _MAX_WORDS:
            self.clear()
        words = text.split(" ")
        if "" in words:
            words = [word[1:] for word in _SPACED_WORD.findall(f" {text}")]
        get: Callable[[str], tuple[int, ...]] = self.__getitem__
        return list(chain.from_iterable(map(get, words)))[:_MAX_TOKENS]

    def __missing__(self, word: str) -> tuple[int, ...]:
        # The tokenizer adds a space before every text but an empty one.
        ids = tuple(self._encode(word)) if word else self._space
        if len(word) <= _MAX_WORD_LENGTH:
            self[word] = ids
        return ids

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids
