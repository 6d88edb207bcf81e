"""What every embedder promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Purpose = Literal["passage", "query"]
"""Some models want to be told which of both a text is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingModel:
    """What makes vectors comparable, and what they cost."""

    name: str
    version: str
    """Other weights, another tokenizer, another prefix: another version."""
    dims: int
    price: float = 0.0
    """USD for a million tokens."""
    max_tokens: int = 8192
    """Of one text; what is beyond is not read by the model."""
    batch_tokens: int = 65_536
    """Of one request, about."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Embedded:
    """Vectors for some texts, in their order."""

    vectors: NDArray[np.float32]
    """One row for each text, `dims` wide; not yet checked."""
    tokens: int
    """As the model counts them, or as we estimate where it does not say."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors; may be called from several threads at once.

    Raises `RetryableEmbedError` for what may succeed later, another `EmbedError` for what will not.
    """

    @property
    def model(self) -> EmbeddingModel:
        """Which model this is."""
        ...

    @property
    def is_remote(self) -> bool:
        """Whether texts leave this machine, so that limits, retries and the breaker matter."""
        ...

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Embedded:
        """The vectors of some texts."""
        ...
