from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.embed.wordllama import SHA256, TOKENIZER, WEIGHTS, WordLlamaEmbedder
from fonds.errors import ModelMissingError

# The package's import sets up logging for the whole process, so it runs in one of its own.
ORACLE = """
import json, sys
from pathlib import Path
import wordllama
model = wordllama.WordLlama.load(
    cache_dir=Path(wordllama.__file__).parent, disable_download=True
)
texts = json.load(sys.stdin)
json.dump(model.embed(texts, norm=True).tolist(), sys.stdout)
"""
SHARED = WordLlamaEmbedder()
TEXTS = [
    "The regulation of trout fisheries.",
    "two  spaces,   three, and at the end ",
    " one in front",
    "   ",
    " ",
    "a",
    "A line\nbreak, a\ttab and\n\n\n  an indent.\r\n",
    "<s>struck</s> and <unk> as HTML has it",
    "already▁marked ▁and▁ spaced",
    "令和6年の政治資金収支報告書を公表します。",
    "Straßenverkehrsordnung § 3 Abs. 2 — “quoted” 😀👩‍👩‍👧",
    "NUL\0inside",
    "x" * 5000,
    "42 U.S.C. § 1396a(a)(10)(A)(i)(VIII) " * 40,
]
PROGRAM = """
import logging, socket
def refuse(*args): raise AssertionError("touched the network")
socket.socket.connect = socket.getaddrinfo = refuse
from fonds.embed.wordllama import WordLlamaEmbedder
WordLlamaEmbedder().embed(["quiet"], "query")
import sys
assert "wordllama" not in sys.modules and not logging.getLogger().handlers
"""


@pytest.fixture(scope="module")
def embedder() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()


def package() -> Path:
    spec = find_spec("wordllama")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def copied(folder: Path) -> Path:
    for name in SHA256:
        (folder / name).parent.mkdir()
        shutil.copy(package() / name, folder / name)
    return folder


def test_vectors_are_those_of_the_package(embedder: WordLlamaEmbedder) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", ORACLE],
        input=json.dumps(TEXTS),
        capture_output=True,
        text=True,
        check=True,
    )
    expected = np.array(json.loads(answer.stdout), np.float32)
    found = embedder.embed(TEXTS, "passage").vectors
    np.testing.assert_allclose(found, expected, atol=1e-5)


@settings(max_examples=60)
@given(st.text(st.sampled_from(list("ab. \n▁é報<s>/\0")), max_size=30))
def test_words_one_by_one_give_the_tokens_of_the_whole(text: str) -> None:
    _, words = SHARED._load()
    assert words.ids(text) == words._encode(text)


def test_words_met_before_give_the_same_tokens(embedder: WordLlamaEmbedder) -> None:
    first = embedder.embed(TEXTS, "passage")
    second = embedder.embed(TEXTS, "passage")
    assert first.tokens == second.tokens
    assert first.vectors.tobytes() == second.vectors.tobytes()


def test_memory_for_words_is_bounded(embedder: WordLlamaEmbedder) -> None:
    _, words = embedder._load()
    for start in range(0, 100_000, 5_000):
        embedder.embed([" ".join(map(str, range(start, start + 5_000)))], "passage")
    assert len(words) < 50_000
    embedder.embed(["y" * 100], "passage")
    assert "y" * 100 not in words


def test_texts_are_cut_at_the_most_tokens(embedder: WordLlamaEmbedder) -> None:
    most = embedder.model.max_tokens
    assert embedder.embed(["word " * 1_000_000], "passage").tokens == most
    assert embedder.embed(["\0" * 1_000_000], "passage").tokens == most
    assert embedder.embed(["<s> " * 1_000_000], "passage").tokens == most


def test_an_empty_text_is_zero_and_has_no_tokens(embedder: WordLlamaEmbedder) -> None:
    found = embedder.embed([""], "query")
    assert not found.vectors.any()
    assert found.tokens == 0


def test_texts_of_like_meaning_are_nearer_than_others(embedder: WordLlamaEmbedder) -> None:
    texts = ["rules on fishing for trout", "angling regulations for salmon", "the annual accounts"]
    vectors = embedder.embed(texts, "passage").vectors
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]


def test_nothing_is_said_or_asked_of_the_network() -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


def test_the_version_tells_which_files_these_are(embedder: WordLlamaEmbedder) -> None:
    assert SHA256[WEIGHTS][:8] in embedder.model.version
    assert SHA256[TOKENIZER][:8] in embedder.model.version
    assert embedder.model.name == "wordllama-l2-supercat-256"


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER])
def test_other_files_are_refused(tmp_path: Path, name: str) -> None:
    folder = copied(tmp_path)
    with (folder / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(ModelMissingError, match=r"not the expected one.*pip install"):
        WordLlamaEmbedder(folder).embed(["trout"], "query")


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError, match=r"l2_supercat_256.*pip install"):
        WordLlamaEmbedder(tmp_path).embed(["trout"], "query")
