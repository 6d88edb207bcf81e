"""The Code of Federal Regulations as XML (eCFR's API and bulk files, the annual edition)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from fonds.errors import WrongContentError
from fonds.model import BodyFormat, NormalizedBody
from fonds.normalize.ecfr.vocabulary import FRAGMENTS
from fonds.normalize.ecfr.walker import CfrWalker
from fonds.normalize.safe_xml import parse_xml, refuse_unsafe, without_nuls

_ROOTS: Final = frozenset(
    {"ECFR", "DLPSTEXTCLASS", "CFRDOC", "CFRGRANULE", *(f"DIV{level}" for level in range(1, 10))}
)
# <DIV5 is eCFR's, <div class="…"> is a page's.
_FIRST_TAG: Final = re.compile(rb"\s*<([A-Za-z][A-Za-z0-9-]*)")


@dataclass(frozen=True, slots=True)
class EcfrXml:
    """The normalizer `ecfr_xml_v1`."""

    name: str = "ecfr_xml_v1"
    version: str = "1.1.0"
    accepts_format: BodyFormat = "xml"

    @property
    def label(self) -> str:
        """Name and version as a document records them."""
        return f"{self.name}@{self.version}"

    def to_markdown(self, data: bytes, source_hint: str | None = None) -> NormalizedBody:
        """All that is given as Markdown: a title, a part, a section, a part's notes side by side.

        The hint is not needed.
        """
        del source_hint
        root, warnings = read_cfr(data)
        body = CfrWalker(root).walk(warnings)
        if not body.markdown:
            raise WrongContentError(f"<{root.tag}> holds no text")
        return body


def read_cfr(data: bytes) -> tuple[Any, tuple[str, ...]]:
    """The root of CFR XML, and what had to be mended to read it.

    Elements cut out of a file, one or several, are put under a root of their own.
    """
    data, warnings = without_nuls(data)
    first = _FIRST_TAG.match(data)
    if first and first[1].decode() in FRAGMENTS:
        data = b"<ECFR>%b</ECFR>" % data
    refuse_unsafe(data)
    root = parse_xml(data)
    if root.tag not in _ROOTS:
        raise WrongContentError(
            f"the root element is <{root.tag[:80]}>, which is no Code of Federal Regulations"
        )
    return root, warnings
