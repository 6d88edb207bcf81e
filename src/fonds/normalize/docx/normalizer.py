"""The normalizer of Word files; apart from the package, so that a look at one loads no more."""

from __future__ import annotations

import io
from dataclasses import dataclass

from fonds.errors import MalformedError, NoTextError
from fonds.model import BodyFormat, NormalizedBody
from fonds.normalize.docx.archive import open_word
from fonds.normalize.docx.conversion import to_page
from fonds.normalize.docx.page import build_lists, tidied
from fonds.normalize.docx.parts import read_word
from fonds.normalize.html import read_html
from fonds.normalize.html.walker import HtmlWalker


@dataclass(frozen=True, slots=True)
class Docx:
    """The normalizer `docx_v1`: the text as it reads with all tracked changes accepted."""

    name: str = "docx_v1"
    version: str = "1.0.0"
    # Word's format is XML in a ZIP archive.
    accepts_format: BodyFormat = "xml"

    @property
    def label(self) -> str:
        """Name and version as a document records them."""
        return f"{self.name}@{self.version}"

    def to_markdown(self, data: bytes, source_hint: str | None = None) -> NormalizedBody:
        """The document's text and notes; nothing outside the bytes is opened, no hint needed."""
        del source_hint
        if not data:
            raise MalformedError("the file is empty")
        page, left_out = to_page(read_word(open_word(io.BytesIO(data))))
        root, _, warnings = read_html(f'<meta charset="utf-8"><div>{tidied(page)}</div>'.encode())
        build_lists(root)
        body = HtmlWalker(root).walk((*left_out, *warnings))
        if not any(character.isalnum() for character in body.markdown):
            why = "; ".join(left_out) or "it is blank"
            raise NoTextError(f"the Word file holds no text: {why}")
        return body
