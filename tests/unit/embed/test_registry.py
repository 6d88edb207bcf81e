from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fonds.embed.registry import embedder_names, open_embedder
from fonds.errors import ModelMissingError, UsageError
from fonds.settings import Settings

SETTINGS = Settings()


@pytest.mark.parametrize(
    ("spec", "name", "dims"),
    [
        ("wordllama", "wordllama-l2-supercat-256", 256),
        (" wordllama ", "wordllama-l2-supercat-256", 256),
        ("hashing", "hashing-256", 256),
        ("hashing:64", "hashing-64", 64),
        ("openai:text-embedding-3-small", "text-embedding-3-small", 1536),
        ("openai:nomic-embed-text:v1.5?dims=768", "nomic-embed-text:v1.5", 768),
    ],
)
def test_embedders_are_opened_by_name(spec: str, name: str, dims: int) -> None:
    embedder = open_embedder(spec, SETTINGS)
    assert (embedder.model.name, embedder.model.dims) == (name, dims)
    assert embedder.is_remote == spec.startswith("openai")


def test_the_default_setting_can_be_opened() -> None:
    assert open_embedder(SETTINGS.embedder, SETTINGS).model.dims


@pytest.mark.parametrize("spec", ["", "word2vec", "wordllama:512", "minilm:x", "WORDLLAMA", ":"])
def test_an_unknown_name_is_answered_by_all_there_are(spec: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_embedder(spec, SETTINGS)
    assert all(name in str(caught.value) for name in embedder_names())


@pytest.mark.parametrize(
    "spec",
    [
        "hashing:many",
        "hashing:0",
        "hashing:-8",
        "hashing:٦٤",
        "hashing:99999999999",
        "onnx:",
        "onnx",
        "openai:",
        "openai",
        "openai:?dims=3",
        "openai:m?dims=",
        "openai:m?dims=x",
        "openai:m?price=free",
        "openai:m?price=-1",
        "openai:m?price=nan",
        "openai:m?max_tokens=0",
        "openai:m?colour=red",
        "openai:m?dims",
    ],
)
def test_a_malformed_name_is_refused(spec: str) -> None:
    with pytest.raises(UsageError):
        open_embedder(spec, SETTINGS)


def test_the_folder_of_a_model_must_hold_one(tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError, match=r"fonds-model\.json"):
        open_embedder(f"onnx:{tmp_path / 'nowhere'}", SETTINGS)


def test_only_what_is_used_is_imported() -> None:
    program = (
        "import sys, fonds.embed.registry\n"
        "heavy = {'numpy', 'onnxruntime', 'tokenizers', 'aiohttp', 'wordllama', 'pydantic'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
