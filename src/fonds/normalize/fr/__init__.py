"""The Federal Register's XML (RULE, PRORULE, NOTICE, PRESDOCU) as Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from fonds.errors import WrongContentError
from fonds.ids import federal_register_number
from fonds.model import BodyFormat, NormalizedBody
from fonds.normalize.fr.walker import Walker
from fonds.normalize.safe_xml import parse_xml, refuse_unsafe, without_nuls

DOCUMENTS: Final = ("RULE", "PRORULE", "NOTICE", "PRESDOCU", "CORRECT")
"""The elements that are one document each."""

_ROOTS: Final = frozenset(
    {*DOCUMENTS, "FEDREG", "NEWPART", "RULES", "PRORULES", "NOTICES", "PRESDOCS", "CORRECTS"}
)


@dataclass(frozen=True, slots=True)
class FrXml:
    """The normalizer `fr_xml_v1`."""

    name: str = "fr_xml_v1"
    version: str = "1.1.0"
    accepts_format: BodyFormat = "xml"

    @property
    def label(self) -> str:
        """Name and version as a document records them."""
        return f"{self.name}@{self.version}"

    def to_markdown(self, data: bytes, source_hint: str | None = None) -> NormalizedBody:
        """The whole file as Markdown, or of a whole issue the document the hint names.

        The hint is a document's id or number; files of a single document ignore it.
        """
        root, warnings = read_xml(data)
        if root.tag == "FEDREG" and source_hint:
            root = _named(root, source_hint)
        body = element_to_markdown(root, warnings)
        if not body.markdown:
            raise WrongContentError(f"<{root.tag}> holds no text")
        return body


def element_to_markdown(element: Any, warnings: tuple[str, ...] = ()) -> NormalizedBody:
    """One document, already parsed, as Markdown."""
    return Walker(element).walk(warnings)


def read_xml(data: bytes) -> tuple[Any, tuple[str, ...]]:
    """The root of Federal Register XML, and what had to be mended to read it."""
    data, warnings = without_nuls(data)
    refuse_unsafe(data)
    root = parse_xml(data)
    if root.tag not in _ROOTS:
        raise WrongContentError(
            f"the root element is <{root.tag}>, which is no Federal Register document"
        )
    return root, warnings


def document_number(document: Any) -> str | None:
    """The number a document's FRDOC states, as the API writes it."""
    for line in document.iter("FRDOC"):
        match = re.search(r"FR\s+Doc\.?\s*([\w\u2010-\u2014-]+)", " ".join(line.itertext()))
        if match:
            return federal_register_number(match[1].replace("\u2014", "-"))
    return None


def _named(issue: Any, hint: str) -> Any:
    number = hint.removeprefix("fr:").partition("@")[0]
    for document in issue.iter(*DOCUMENTS):
        if document_number(document) == number:
            return document
    raise WrongContentError(f"the issue holds no document numbered {number}")
