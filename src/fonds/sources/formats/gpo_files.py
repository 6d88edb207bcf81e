"""Files of the Government Publishing Office as bodies and rows, fetched or loose.

Quirks of the publisher:
- A missing file is not a 404: the server redirects to `/error`, which answers 200 with a page.
- A text may be a cover with `[TEXT NOT AVAILABLE REFER TO PDF]`: then the PDF is the body.
- A text names its report or its day, but not its granule: a loose one is known by its file name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fonds.errors import WrongContentError
from fonds.model import Archived, Body, ParsedRecord, RawPart
from fonds.normalize.encodings import decode
from fonds.normalize.registry import get_normalizer
from fonds.sources.formats import mods, yaml
from fonds.sources.formats.days import printed_day
from fonds.sources.formats.mods import ModsItem
from fonds.sources.formats.records import normalized_body

_ERROR_PAGE: Final = re.compile(rb"<title>[^<]*(?:Page Not Found|Error)|/error\b", re.IGNORECASE)
_HTML: Final = re.compile(rb"<(?:!doctype html|html)\b", re.IGNORECASE)
_PRE: Final = re.compile(rb"<pre\b", re.IGNORECASE)
_STUB: Final = re.compile(rb"\[\s*TEXT\s+NOT\s+AVAILABLE[^\]]{0,40}\]", re.IGNORECASE)
_LOOKED_AT: Final = 4096
# A cover takes a thousand characters or two; a text longer than this has only a gap in it.
_MAX_COVER_LENGTH: Final = 6000

MakeRecord = Callable[[ModsItem, Archived, Body | None], ParsedRecord]
"""The records of a granule, made from the file that describes it and its body."""


def is_error_page(data: bytes) -> bool:
    """Whether this is the page that govinfo serves for a missing file."""
    start = data[:_LOOKED_AT]
    is_page = _HTML.search(start) is not None and not _PRE.search(data)
    return is_page and _ERROR_PAGE.search(start) is not None


def is_text_page(data: bytes) -> bool:
    """Whether this is a page with typeset text."""
    return _HTML.search(data[:_LOOKED_AT]) is not None and _PRE.search(data) is not None


def is_stub(data: bytes) -> bool:
    """Whether a text is only the cover of what the PDF holds."""
    return len(b" ".join(data.split())) <= _MAX_COVER_LENGTH and _STUB.search(data) is not None


def text_body(part: RawPart) -> Body | None:
    """The text of a page; None where it is only a cover, or the page of a missing file."""
    if is_error_page(part.data):
        return None
    if not is_text_page(part.data):
        raise WrongContentError(f"{part.archived.url} is not a page with typeset text")
    if is_stub(part.data):
        return None
    return normalized_body(part, "html", get_normalizer("text_v1"))


def pdf_body(part: RawPart) -> Body:
    """A PDF, whose text is too expensive to be read while loading."""
    if b"%PDF-" not in part.data[:_LOOKED_AT]:
        raise WrongContentError(f"{part.archived.url} is not a PDF")
    return Body(archived=part.archived, format="pdf")


def printed_iso_day(text: str) -> str | None:
    """`MAY 19, 2025` in ISO 8601; None if it is not a day."""
    day = printed_day(text.title(), "%B %d, %Y")
    return day.isoformat() if day else None


# Loose files ------------------------------------------------------------------------------


def govinfo_id(package: str) -> str:
    """`chrg:CHRG-119hhrg58888`: a package or granule of govinfo under its collection's name."""
    return f"{package.partition('-')[0].lower()}:{package}"


@dataclass(frozen=True, kw_only=True, slots=True)
class LooseReader:
    """Reads files without a task, whatever they are, for one collection."""

    code: str
    record: MakeRecord
    from_text: Callable[[str, str], ModsItem]
    """A granule as far as its text describes it, by its name."""
    from_json: Callable[[Any], Sequence[ModsItem]]
    """Granules of a JSON file of another publisher, or an error that says what it is."""

    def read(self, parts: Iterable[RawPart]) -> Iterator[ParsedRecord]:
        """Granules with the bodies that lie beside them; a text alone describes itself."""
        described: list[tuple[ModsItem, Archived]] = []
        texts: dict[str, RawPart] = {}
        pdfs: dict[str, RawPart] = {}
        for part in parts:
            if b"%PDF-" in part.data[:_LOOKED_AT]:
                pdfs[self._name(part)] = part
            elif is_text_page(part.data):
                texts[self._name(part)] = part
            else:
                described += [(item, part.archived) for item in self._described(part.data)]
        for item, archived in described:
            yield self._recorded(item, archived, texts.pop(item.id, None), pdfs.pop(item.id, None))
        for name, part in texts.items():
            item = self.from_text(name, decode(part.data).text)
            yield self._recorded(item, part.archived, part, pdfs.pop(name, None))
        if pdfs:
            raise WrongContentError(f"the PDF of {min(pdfs)}: its mods.xml is missing beside it")

    def _recorded(
        self, item: ModsItem, archived: Archived, text: RawPart | None, pdf: RawPart | None
    ) -> ParsedRecord:
        body = text_body(text) if text else None
        return self.record(item, archived, body or (pdf_body(pdf) if pdf else None))

    def _described(self, data: bytes) -> Sequence[ModsItem]:
        if _HTML.search(data[:_LOOKED_AT]):
            what = "the page for a missing file" if is_error_page(data) else "a web page, a listing"
            raise WrongContentError(f"expected a typeset text or MODS, found {what}")
        if not data.lstrip().startswith((b"{", b"[")):
            package = mods.read(data)
            collection = next(iter(package.fields.get("collectionCode", ())), self.code)
            if collection != self.code:
                raise WrongContentError(f"expected {self.code}, found a package of {collection}")
            return package.items
        return self.from_json(yaml.load(data))

    def _name(self, part: RawPart) -> str:
        file = part.archived.url.rpartition("/")[2]
        match = re.search(rf"{self.code}-[0-9][A-Za-z0-9-]*", file)
        if match is None:
            raise WrongContentError(
                f"{file} does not say which granule it is; name it like {self.code}-…, as it "
                "is called upstream"
            )
        return match[0]


# Rows -------------------------------------------------------------------------------------


def bill_rows(item: ModsItem) -> Iterator[dict[str, Any]]:
    """The bills a granule names."""
    for bill in item.bills:
        yield {"bill_ref": bill.reference, **bill.model_dump()}


def member_rows(item: ModsItem) -> Iterator[dict[str, Any]]:
    """The members a granule names."""
    for member in item.members:
        row = member.model_dump(exclude={"congress", "last_first"})
        yield {"legislator_ref": member.reference, **row}


def committee_rows(item: ModsItem) -> Iterator[dict[str, Any]]:
    """The committees a granule names."""
    for committee in item.committees:
        row = committee.model_dump(mode="json")
        yield {"committee_ref": committee.reference, **row}
