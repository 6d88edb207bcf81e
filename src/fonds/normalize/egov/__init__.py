"""Japanese law in the XML of e-Gov (schema version 3) as Markdown.

A reading set beside a word (`<Ruby>瑕疵<Rt>かし</Rt></Ruby>`) follows it in brackets: 瑕疵（かし）.
Items and their subdivisions stand on lines of their own, an em space further in at each level.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from fonds.errors import WrongContentError
from fonds.model import BodyFormat, NormalizedBody
from fonds.normalize.egov.vocabulary import KNOWN
from fonds.normalize.egov.walker import Walker
from fonds.normalize.safe_xml import parse_xml, refuse_unsafe, without_nuls

_PROLOGUE: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*<[?!]")
_BOM: Final = b"\xef\xbb\xbf"
_SEVERAL: Final = "Fragment"


@dataclass(frozen=True, slots=True)
class Egov:
    """The normalizer `egov_v1`."""

    name: str = "egov_v1"
    version: str = "1.0.0"
    accepts_format: BodyFormat = "xml"

    @property
    def label(self) -> str:
        """Name and version as a document records them."""
        return f"{self.name}@{self.version}"

    def to_markdown(
        self,
        data: bytes,
        source_hint: str | None = None,  # noqa: ARG002 — the protocol's; a file says what it is
    ) -> NormalizedBody:
        """A law, an article, or any run of the schema's elements as Markdown."""
        data, warnings = without_nuls(data)
        refuse_unsafe(data)
        elements = _elements(data)
        body = Walker().walk(elements, warnings)
        if not body.markdown:
            raise WrongContentError(f"<{elements[0].tag}> holds no text")
        return body


def _elements(data: bytes) -> list[Any]:
    """What is to be written: the law of a whole file, or the elements of a piece of one."""
    if _PROLOGUE.match(data):
        root = parse_xml(data)
        found = [root]
    else:
        several = f"<{_SEVERAL}>".encode() + data.removeprefix(_BOM) + f"</{_SEVERAL}>".encode()
        root = parse_xml(several)
        found = list(root.iterchildren("*"))
    if found and found[0].tag not in KNOWN:
        # The answer of the API wraps the law.
        found = list(found[0].iter("Law"))[:1] or found
    if not any(element.tag in KNOWN for one in found for element in one.iter("*")):
        raise WrongContentError("no element of the Japanese law schema is in it")
    return found
