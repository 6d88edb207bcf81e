"""A statement as the archive's YAML and the White House's list describe it, made alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any, Final

from fonds import ids
from fonds.errors import MalformedError, WrongContentError
from fonds.sources.families import fields, yaml_files
from fonds.sources.families.addresses import joined, parts_of
from fonds.sources.families.bill_numbers import congress_of, find_bill_numbers
from fonds.sources.families.html_pages import read_page, text_of

LIST: Final = (
    "https://www.whitehouse.gov/omb/information-resources/legislative/"
    "statements-of-administration-policy/"
)

_DATE: Final = re.compile(r"\b([A-Z][a-z]{2})[a-z]*\.?\s+(\d{1,2}),?\s+(\d{4})\b")
# `H.R. 21 – Title`: hyphens stand inside names, dashes with spaces around them do not.
_SEPARATOR: Final = re.compile(r"\s+[-\u2013\u2014]\s+|\s*\u2014\s*")
_ENTRY_ELEMENTS: Final = ("p", "li", "tr", "article", "div")


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """One statement, on no bill, one, or several."""

    title: str
    issued: str
    """ISO day."""
    bills: tuple[str, ...] = ()
    """Codes such as `hr2101`."""
    congress: int | None = None
    file: str | None = None
    url: str | None = None
    fetched_from_url: str | None = None
    date_fetched: str | None = None
    source: str | None = None
    rescinded: str | None = None

    @property
    def day(self) -> date:
        """The day it was issued."""
        return date.fromisoformat(self.issued)

    @property
    def address(self) -> str:
        """What tells it from others of the same day and bill: where it was published."""
        return self.fetched_from_url or self.url or self.file or ""

    @property
    def key(self) -> str:
        """Its task; the document's id where it is on one bill or none."""
        return ids.sap_id(self.issued, self.address, ",".join(self.bills))

    def to_params(self) -> dict[str, Any]:
        """The JSON a task carries."""
        return asdict(self) | {"bills": list(self.bills)}

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Statement:
        """The statement that `to_params` wrote."""
        return cls(**{**params, "bills": tuple(params["bills"])})


def same_address(url: str) -> str:
    """An address in the form in which two of them are compared."""
    parts = parts_of(url)
    return f"{(parts.hostname or '').removeprefix('www.')}{parts.path}"


def read_archive(data: bytes) -> Iterator[Statement]:
    """The statements of one president's YAML file."""
    for number, entry in enumerate(yaml_files.items(data), 1):
        record = fields.mapping(entry)
        if "document_title" not in record:
            raise WrongContentError(f"expected statements, found {fields.describe(record)}")
        try:
            yield _archived(record)
        except MalformedError as error:
            raise MalformedError(f"statement {number} of the file: {error}") from error


def read_list(data: bytes, address: str = LIST) -> list[Statement]:
    """The statements a page of the White House links to."""
    found = [
        statement
        for link in read_page(data).iter("a")
        if (statement := _linked(link, address)) is not None
    ]
    if not found:
        raise WrongContentError("an HTML page that lists no Statement of Administration Policy")
    return list({statement.key: statement for statement in found}.values())


def _archived(record: Mapping[str, Any]) -> Statement:
    issued = fields.required(record, "date_issued")
    try:
        date.fromisoformat(issued)
    except ValueError:
        raise MalformedError(f"`date_issued` is {issued[:40]!r}, which is no ISO date") from None
    title = " ".join((fields.text(record, "document_title") or "").split())
    names = ("file", "url", "fetched_from_url", "date_fetched", "source", "rescinded")
    return Statement(
        title=title or "Statement of Administration Policy",
        issued=issued,
        bills=tuple(dict.fromkeys(code.lower() for code in fields.texts(record, "bills"))),
        congress=fields.whole(record, "congress"),
        **{name: fields.text(record, name) for name in names},
    )


def _linked(link: Any, address: str) -> Statement | None:
    target, title = _as_archived(joined(address, link.get("href") or "") or ""), text_of(link)
    if not title or not parts_of(target).path.lower().endswith(".pdf"):
        return None
    issued = _date_beside(link, title)
    if issued is None:
        return None
    named = find_bill_numbers(_SEPARATOR.split(title)[0]) or find_bill_numbers(title)[:1]
    return Statement(
        title=title,
        issued=issued.isoformat(),
        bills=tuple(bill.code for bill in named),
        congress=congress_of(issued),
        fetched_from_url=target,
        source=address,
    )


def _as_archived(url: str) -> str:
    """An address of the White House as the archive writes it, so that both give one id."""
    if (parts_of(url).hostname or "").removeprefix("www.") != "whitehouse.gov":
        return url
    return f"https://www.{same_address(url)}"


def _date_beside(link: Any, title: str) -> date | None:
    """The first date behind a link in its block; what stands before it is of another."""
    for block in link.iterancestors(*_ENTRY_ELEMENTS):
        words = text_of(block) or ""
        after = words.partition(title)[2] or words
        if found := [day for match in _DATE.finditer(after) if (day := _day(match))]:
            return found[0]
        if block.tag != "div":
            return None
    return None


def _day(match: re.Match[str]) -> date | None:
    try:
        return datetime.strptime(" ".join(match.groups()), "%b %d %Y").date()  # noqa: DTZ007 — a day
    except ValueError:
        return None
