"""Bills, resolutions and amendments in the House and Senate DTD's XML as Markdown.

No external entity is opened, and files that declare entities of their own are rejected.
"""

from __future__ import annotations

import re
from collections import Counter
from html.entities import html5
from typing import Any, Final

from fonds.errors import WrongContentError
from fonds.model import NormalizedBody
from fonds.normalize.billres.walker import BillWalker
from fonds.normalize.safe_xml import parse_xml, refuse_unsafe, without_nuls
from fonds.normalize.walker import XmlNormalizer

_ROOTS: Final = frozenset({"bill", "resolution", "amendment-doc"})
_TEXT_ELEMENTS: Final = frozenset(
    {
        "form",
        "amendment-form",
        "conference-report-form",
        "engrossed-amendment-form",
        "legis-body",
        "resolution-body",
        "amendment-body",
        "engrossed-amendment-body",
    }
)

_ENTITY: Final = re.compile(rb"&([A-Za-z][A-Za-z0-9._-]*+);")
_XML_ENTITIES: Final = frozenset({"amp", "lt", "gt", "quot", "apos"})


def read_bill(data: bytes) -> tuple[Any, tuple[str, ...]]:
    """The root of a bill, resolution or amendment, and warnings of what was changed to read it."""
    data, cleaned = without_nuls(data)
    refuse_unsafe(data, outside_entities=True)
    data, unknown = _decode_entities(data)
    root = parse_xml(data, remove_pis=True)
    _require_bill(root)
    return root, (*cleaned, *unknown)


def _require_bill(root: Any) -> None:
    tag = str(root.tag)
    if tag.startswith("{http://schemas.gpo.gov/xml/uslm}"):
        raise WrongContentError("USLM XML, not the bill DTD's; use the normalizer for USLM")
    if tag not in _ROOTS:
        raise WrongContentError(
            f"the root element is <{tag[:80]}>, not a bill, resolution or amendment"
        )
    # Bill trackers' status files have a root of the same name.
    if not any(child.tag in _TEXT_ELEMENTS for child in root):
        raise WrongContentError(
            f"<{tag}> has neither a form nor a body: it is not the text of a bill"
        )


def _decode_entities(data: bytes) -> tuple[bytes, list[str]]:
    # Files refer to ISO character entities that an outside DTD would declare; HTML knows them.
    unknown: Counter[str] = Counter()

    def decoded(reference: re.Match[bytes]) -> bytes:
        name = reference[1].decode("ascii")
        if name in _XML_ENTITIES:
            return reference[0]
        characters = html5.get(f"{name};")
        if characters is None:
            unknown[name] += 1
            return b"&amp;" + reference[0][1:]
        return "".join(f"&#{ord(character)};" for character in characters).encode()

    data = _ENTITY.sub(decoded, data)
    return data, [
        f"unknown entity &{name[:80]}; ({count}×); kept as it is"
        for name, count in sorted(unknown.items())
    ]


class BillRes(XmlNormalizer):
    """The normalizer `billres_v1`; a section quoted by an amendment is not a heading."""

    name = "billres_v1"
    version = "1.0.1"

    def _convert(self, data: bytes, _hint: str | None) -> NormalizedBody:
        root, warnings = read_bill(data)
        return BillWalker(root).walk(warnings)
