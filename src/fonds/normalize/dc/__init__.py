"""The District of Columbia's laws and code as the Council publishes them (XML of its own)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from fonds.errors import WrongContentError
from fonds.model import BodyFormat, NormalizedBody
from fonds.normalize.dc.lines import local
from fonds.normalize.dc.walker import Walker
from fonds.normalize.safe_xml import parse_xml, refuse_unsafe, without_nuls

_DOCUMENTS: Final = frozenset({"section", "container", "document"})
_PASSAGES: Final = frozenset(
    {"text", "para", "aftertext", "annotations", "annotation", "heading", "prefix", "num"}
)

# What is cut out of an index has neither the declarations of the file around it nor one root.
_OPENING: Final = (
    b'<passages xmlns="https://code.dccouncil.us/schemas/dc-library"'
    b' xmlns:codified="https://code.dccouncil.us/schemas/codified"'
    b' xmlns:codify="https://code.dccouncil.us/schemas/codify"'
    b' xmlns:xi="http://www.w3.org/2001/XInclude">'
)
_CLOSING: Final = b"</passages>"


@dataclass(frozen=True, slots=True)
class DcXml:
    """The normalizer `dc_xml_v1`."""

    name: str = "dc_xml_v1"
    version: str = "1.0.0"
    accepts_format: BodyFormat = "xml"

    @property
    def label(self) -> str:
        """Name and version as a document records them."""
        return f"{self.name}@{self.version}"

    def to_markdown(self, data: bytes, source_hint: str | None = None) -> NormalizedBody:
        """A section, or passages cut out of an index; the hint is not needed.

        A section's first heading is its number and title: `§ 47-1801.04. Definitions.`
        """
        del source_hint
        root, warnings = read_dc(data)
        body = Walker().walk(root, warnings)
        if not body.markdown:
            raise WrongContentError(f"<{local(root)}> holds no text")
        return body


def read_dc(data: bytes) -> tuple[Any, tuple[str, ...]]:
    """The root of the Council's XML, and what had to be mended to read it."""
    data, warnings = without_nuls(data)
    refuse_unsafe(data)
    data = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if data.startswith(b"<?xml"):
        root = parse_xml(data, remove_pis=True)
        if local(root) not in _DOCUMENTS:
            raise _stranger(root)
        return root, warnings
    root = parse_xml(_OPENING + data + _CLOSING, remove_pis=True)
    if not any(local(child) in _DOCUMENTS | _PASSAGES for child in root):
        raise _stranger(root[0] if len(root) else root)
    return root, warnings


def _stranger(element: Any) -> WrongContentError:
    return WrongContentError(
        f"the root element is <{local(element)[:80]}>, which is no section of the D.C. Code"
    )
