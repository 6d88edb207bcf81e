"""Markdown files as they are, with a map of their headings."""

from __future__ import annotations

import re
from typing import Final

from fonds.chunk.headings import read_outline
from fonds.errors import NoTextError
from fonds.model import BaseNormalizer, Heading, NormalizedBody
from fonds.normalize.encodings import decode, without_controls
from fonds.normalize.html import refuse_other_files
from fonds.normalize.html.walker import section_label
from fonds.normalize.markdown import visible_text

_LINE_END: Final = re.compile(r"\r\n?")


def headings_of(markdown: str) -> tuple[Heading, ...]:
    """The headings at which the text is cut into passages, in order."""
    return tuple(
        Heading(
            level=line.level,
            text=(text := visible_text(markdown[line.text_start : line.text_end])),
            offset=line.offset,
            section=section_label(text[:200]),
        )
        for line in read_outline(markdown).headings
    )


class MarkdownFile(BaseNormalizer):
    """The normalizer `markdown_v1`."""

    name = "markdown_v1"
    version = "1.0.0"

    def to_markdown(self, data: bytes, source_hint: str | None = None) -> NormalizedBody:
        """The same Markdown, HTML in it included; only line ends and invisible signs change."""
        del source_hint
        if not data.strip():
            raise NoTextError("the file is empty")
        refuse_other_files(data, "Markdown")
        decoded = decode(data)
        text, removed = without_controls(_LINE_END.sub("\n", decoded.text))
        if not any(character.isalnum() for character in text):
            raise NoTextError("the file contains no text")
        return NormalizedBody(
            markdown=text,
            headings=headings_of(text),
            warnings=(*decoded.warnings, *removed),
        )
