"""What CBO's two lists say of a publication, made alike."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any, Final

from fonds.errors import MalformedError, WrongContentError
from fonds.sources.families import xml_files
from fonds.sources.families.bill_numbers import (
    BillNumber,
    congress_of,
    find_bill_numbers,
    leading_bill_number,
)
from fonds.sources.families.feeds import WASHINGTON, FeedItem, plain_text, read_date, read_feed

_ADDRESS: Final = re.compile(r"/publication/(\d{1,9})\b")
_GUID: Final = re.compile(r"(\d{1,9}) at https?://")


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One publication as a list describes it."""

    publication: str
    title: str
    issued: str | None
    """ISO 8601 with its offset."""
    description: str | None
    bill_number: str | None = None
    """As the list of estimates has it."""
    congress: int | None = None
    """Of the list of estimates it stands in; None for other publications."""
    is_estimate: bool = False

    @property
    def moment(self) -> datetime | None:
        """When it was published."""
        return datetime.fromisoformat(self.issued) if self.issued else None

    @property
    def day(self) -> date | None:
        """The day in Washington."""
        return self.moment.astimezone(WASHINGTON).date() if self.moment else None

    @property
    def title_bill(self) -> BillNumber | None:
        """The first bill the title names."""
        return next(iter(find_bill_numbers(self.title)), None)

    @property
    def bill(self) -> BillNumber | None:
        """The bill it is about: the title's, for Bill_Number may name that of the other chamber."""
        return self.title_bill or next(iter(find_bill_numbers(self.bill_number or "")), None)

    @property
    def bill_congress(self) -> int | None:
        """The Congress its bill belongs to."""
        return self.congress or (congress_of(self.day) if self.day else None)

    def to_params(self) -> dict[str, Any]:
        """The JSON a task carries."""
        return asdict(self)


def read_estimates(data: bytes, congress: int | None) -> list[Entry]:
    """The cost estimates of a Congress; the file calls itself RSS and is none."""
    root = xml_files.read(data, "response")
    return [_estimate(item, congress) for item in root.iterchildren("item")]


def read_publications(data: bytes) -> list[Entry]:
    """The publications of the feed of everything."""
    return [_publication(item) for item in read_feed(data).items]


def once_each(entries: list[Entry]) -> Iterator[Entry]:
    """Each publication once; of two descriptions always the same one, for their order changes."""
    chosen: dict[str, Entry] = {}
    for entry in entries:
        other = chosen.setdefault(entry.publication, entry)
        chosen[entry.publication] = min(entry, other, key=repr)
    return iter(chosen.values())


def _estimate(item: Any, congress: int | None) -> Entry:
    moment = read_date(xml_files.text(item, "Date"))
    number = _ADDRESS.search(xml_files.text(item, "Link") or "")
    if number is None:
        raise MalformedError(f"item {item.get('key')} of the list has no link to a publication")
    return Entry(
        publication=number[1],
        title=plain_text(xml_files.text(item, "Title")) or f"Cost estimate {number[1]}",
        issued=moment.isoformat() if moment else None,
        description=plain_text(xml_files.text(item, "Description")),
        bill_number=xml_files.text(item, "Bill_Number"),
        congress=congress,
        is_estimate=True,
    )


def _publication(item: FeedItem) -> Entry:
    number = _ADDRESS.search(item.link or "") or _GUID.search(item.guid or "")
    if number is None:
        raise WrongContentError(
            f"an entry of the feed leads to no publication: {item.link or item.title}"
        )
    title = item.title or f"Publication {number[1]}"
    return Entry(
        publication=number[1],
        title=title,
        issued=item.published.isoformat() if item.published else None,
        description=item.description,
        # Estimates are headed by their bill; other titles name one in passing, if at all.
        is_estimate=leading_bill_number(title) is not None,
    )
