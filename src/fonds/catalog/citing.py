"""How a document is cited, in the styles that people and programs ask for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from fonds.citations.export import bibtex, csl_json

Style = Literal["bluebook", "csl", "bibtex"]


def cited_as(document: Mapping[str, Any], style: Style) -> str:
    """The citation of a document's row, ready to paste."""
    if style == "csl":
        return json.dumps([csl_json(document)], ensure_ascii=False, indent=2)
    return bibtex(document) if style == "bibtex" else str(document["citation_string"])
