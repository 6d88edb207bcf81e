"""What a normalizer is: bytes of one format in, Markdown with its map out."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from fonds.model import BodyFormat, NormalizedBody


@runtime_checkable
class Normalizer(Protocol):
    """Pure and synchronous: the same bytes give the same Markdown, on every machine."""

    @property
    def name(self) -> str:
        """Its slug: `fr_xml_v1`."""
        ...

    @property
    def version(self) -> str:
        """Semantic version; another one makes stored bodies stale."""
        ...

    @property
    def label(self) -> str:
        """Name and version as a document records them: `fr_xml_v1@1.0.0`."""
        ...

    @property
    def accepts_format(self) -> BodyFormat:
        """The raw format it reads."""
        ...

    def to_markdown(self, data: bytes, source_hint: str | None = None) -> NormalizedBody:
        """Turn raw bytes into Markdown, or raise a `ParseError` that names the cause."""
        ...
