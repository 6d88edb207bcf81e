"""German federal law in the XML of gesetze-im-internet.de as Markdown.

A file is a flat list of norms under `dokumente`; a norm alone is read as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from fonds.errors import WrongContentError
from fonds.model import BodyFormat, NormalizedBody
from fonds.normalize.gii.norms import NormWalker
from fonds.normalize.safe_xml import parse_xml, refuse_unsafe, without_nuls

_ROOTS: Final = frozenset({"dokumente", "norm"})


@dataclass(frozen=True, slots=True)
class Gii:
    """The normalizer `gii_v1`."""

    name: str = "gii_v1"
    version: str = "1.0.0"
    accepts_format: BodyFormat = "xml"

    @property
    def label(self) -> str:
        """Name and version as a document records them."""
        return f"{self.name}@{self.version}"

    def to_markdown(self, data: bytes, source_hint: str | None = None) -> NormalizedBody:
        """One norm, or a whole act, as Markdown; the hint is not needed."""
        del source_hint
        root, warnings = _read(data)
        body = NormWalker(root).walk(warnings)
        if not body.markdown:
            raise WrongContentError(f"<{root.tag}> holds no text")
        return body


def _read(data: bytes) -> tuple[Any, tuple[str, ...]]:
    data, warnings = without_nuls(data)
    refuse_unsafe(data, outside_entities=True)
    root = parse_xml(data, remove_pis=True)
    if root.tag not in _ROOTS:
        raise WrongContentError(
            f"the root element is <{str(root.tag)[:80]}>, which is no German norm"
        )
    return root, warnings
