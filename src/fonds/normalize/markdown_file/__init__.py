"""Markdown that somebody else wrote: kept as it is, with a map of its headings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from fonds.errors import NoTextError
from fonds.model import BodyFormat, NormalizedBody
from fonds.normalize.encodings import decode, without_controls
from fonds.normalize.html import refuse_other_files
from fonds.normalize.markdown_file.headings import headings_of

_LINE_END: Final = re.compile(r"\r\n?")


@dataclass(frozen=True, slots=True)
class MarkdownFile:
    """The normalizer `markdown_v1`."""

    name: str = "markdown_v1"
    version: str = "1.0.0"
    accepts_format: BodyFormat = "text"

    @property
    def label(self) -> str:
        """Name and version as a document records them."""
        return f"{self.name}@{self.version}"

    def to_markdown(self, data: bytes, source_hint: str | None = None) -> NormalizedBody:
        """The same Markdown, HTML in it included; only line ends and invisible signs change."""
        del source_hint
        if not data.strip():
            raise NoTextError("the file is empty")
        refuse_other_files(data, "Markdown")
        decoded = decode(data)
        text, removed = without_controls(_LINE_END.sub("\n", decoded.text))
        if not any(character.isalnum() for character in text):
            raise NoTextError("the file holds no text")
        return NormalizedBody(
            markdown=text,
            headings=headings_of(text),
            warnings=(*decoded.warnings, *removed),
        )
