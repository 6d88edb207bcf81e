"""Parts cut out of a title by their bytes: a section, or notes that stand side by side.

The title declares the namespaces, so that a part alone has none. All reading goes by local names;
any declaration serves.
"""

from __future__ import annotations

import re
from typing import Any, Final

from fonds.normalize.safe_xml import parse_fragment
from fonds.normalize.uslm.vocabulary import DOCUMENTS, NAMESPACES
from fonds.normalize.uslm.walker import Walker

_FIRST_TAG: Final = re.compile(rb"\s*<(?:[\w.-]+:)?([A-Za-z][\w.-]*)([^>]*)>")
_USLM: Final = re.compile("|".join(map(re.escape, NAMESPACES)).encode())
_XHTML: Final = b"http://www.w3.org/1999/xhtml"
_USUAL: Final = {
    b"xsi": b"http://www.w3.org/2001/XMLSchema-instance",
    b"dc": b"http://purl.org/dc/elements/1.1/",
    b"dcterms": b"http://purl.org/dc/terms/",
    b"xhtml": _XHTML,
    b"html": _XHTML,
}


def is_part(data: bytes) -> bool:
    """Whether bytes begin with an element of a title rather than with a document's own root."""
    tag = _FIRST_TAG.match(data)
    if tag is None or _USLM.search(tag[2]):
        return False
    name = tag[1].decode("ascii")
    return name in Walker.HANDLERS and name not in DOCUMENTS


def read_part(data: bytes) -> Any:
    """The element of a part; of several side by side, an element around them all."""
    around = parse_fragment(
        data,
        root=b"notes",
        default=NAMESPACES[0],
        known=_USUAL,
        remove_pis=True,
        collect_ids=False,
    )
    if len(around) == 1 and not (around.text or "").strip():
        return around[0]
    return around
