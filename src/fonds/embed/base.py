"""The interface of embedders, and the form in which their vectors are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, runtime_checkable

from fonds.errors import BadVectorsError
from fonds.stores.vector_buffer import StoredVector, vector_sha

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Purpose = Literal["passage", "query"]
"""The kind of a text, which some models need."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingModel:
    """A model: what makes its vectors comparable, and what they cost."""

    name: str
    version: str
    """Other weights, another tokenizer, another prefix: another version."""
    dims: int
    price: float = 0.0
    """USD for a million tokens."""
    max_tokens: int = 8192
    """The limit of one text, of which the model reads no more."""
    batch_tokens: int = 65_536
    """The approximate limit of one request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Embedded:
    """Vectors for some texts, in their order."""

    vectors: NDArray[np.float32]
    """One row for each text, `dims` wide; not yet checked."""
    tokens: int
    """As the model counts them, or estimated."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors; may be called from several threads at once.

    Raises `RetryableEmbedError` for what may succeed later, another `EmbedError` for what will not.
    """

    @property
    def model(self) -> EmbeddingModel:
        """The model that it uses."""
        ...

    @property
    def is_remote(self) -> bool:
        """Whether texts leave this machine, so that limits, retries and the breaker matter."""
        ...

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Embedded:
        """The vectors of some texts."""
        ...


LENGTH_TOLERANCE: Final = 1e-6
"""The allowed deviation of the length of a unit vector from 1, in single precision."""


def pack_vectors(vectors: NDArray[Any], count: int, dims: int) -> list[StoredVector]:
    """The vectors of `count` texts as they are stored; BadVectorsError if any is invalid.

    A vector of zeros has no direction and stays as it is.
    """
    import numpy as np  # noqa: PLC0415 — most commands need no vectors

    if vectors.shape != (count, dims):
        raise BadVectorsError(
            f"the model returned for {count} texts an array of shape {vectors.shape}"
            f" instead of {count} vectors of {dims} numbers"
        )
    if not np.isfinite(vectors).all():
        raise BadVectorsError("the model returned numbers that are not finite")
    with np.errstate(over="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    unit = np.ascontiguousarray(vectors, "<f4")
    # Judged one by one: the bytes of a vector must not depend on the others of its batch.
    is_off = np.abs(lengths - 1) >= LENGTH_TOLERANCE
    if is_off.any():
        # In double precision no finite single overflows when it is squared.
        exact = vectors[is_off].astype(np.float64)
        lengths = np.sqrt(np.einsum("ij,ij->i", exact, exact))
        lengths[lengths == 0] = 1.0
        unit = unit.copy()
        unit[is_off] = exact / lengths[:, None]
    return [StoredVector(data, vector_sha(data)) for data in map(bytes, unit)]
