"""What there is: govinfo's bulk folders of laws, and the list of congress.gov for the audit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fonds import ids
from fonds.errors import MalformedError, SuspiciousYieldError, WrongContentError
from fonds.model import Archived, FetchTask, Part
from fonds.sources.base import Ask
from fonds.sources.families import congress_gov, fields
from fonds.sources.families.bulk_folders import BULK, modified_at, name_of, read_folder
from fonds.sources.families.congress_gov import Entry
from fonds.sources.public_laws.laws import NAME
from fonds.sources.public_laws.numbers import LawNumber, read_file_name, read_law_number

LAW: Final = "law"
"""The name of a task's only part."""

COLLECTION: Final = "PLAW"
_KINDS: Final = ("public", "private")


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedLaw:
    """One file of a folder."""

    number: LawNumber
    stated: dict[str, Any]
    """All that the listing says of it."""
    modified: datetime | None
    """None where the listing does not say; then it may always have changed."""
    origin: Archived

    def task(self) -> FetchTask:
        """The task that fetches it while the folder says of it what it says."""
        kind = _KINDS[self.number.is_private]
        folder = f"{self.number.congress}/{kind}/{self.number.package}.xml"
        part = Part(name=LAW, url=f"{BULK}/{COLLECTION}/{folder}", path=folder)
        return FetchTask(
            source=NAME,
            key=self.number.id,
            parts=(part,),
            fingerprint=ids.json_sha256(self.stated),
            origin=self.origin,
        )


async def listed_laws(ask: Ask, congress: int) -> list[ListedLaw]:
    """All laws of a Congress, the public ones first; none, or one named twice, is an error."""
    offered = set((await read_folder(ask, COLLECTION, congress)).names())
    found = [
        law for kind in _KINDS if kind in offered for law in await _folder(ask, congress, kind)
    ]
    if not found:
        raise SuspiciousYieldError(f"govinfo's folders of Congress {congress} list no law")
    return found


async def _folder(ask: Ask, congress: int, kind: str) -> list[ListedLaw]:
    where = f"{congress}/{kind}"
    entries, origin = await read_folder(ask, COLLECTION, congress, kind)
    found: dict[int, ListedLaw] = {}
    for entry in entries:
        name = name_of(entry)
        number = read_file_name(name)
        if number is None:
            continue  # the archive of the whole folder
        if (number.congress, _KINDS[number.is_private]) != (congress, kind):
            raise WrongContentError(f"the folder {where} lists {name}")
        if number.number in found:
            raise SuspiciousYieldError(f"the folder {where} lists {name} twice")
        found[number.number] = ListedLaw(
            number=number,
            stated=dict(entry),
            modified=modified_at(entry),
            origin=origin,
        )
    return [found[number] for number in sorted(found)]


# The audit --------------------------------------------------------------------------------


async def current_congress(ask: Ask) -> int:
    """The Congress that sits, as congress.gov says."""
    answer = await ask(
        f"{congress_gov.API}/congress/current?format=json", path="audit/current.json"
    )
    content = congress_gov.read_object(answer.data, congress_gov.HOST)
    number = fields.whole(fields.section(content, "congress"), "number")
    if number is None:
        raise WrongContentError(f"{congress_gov.HOST} does not say which Congress sits")
    return number


async def enacted_laws(ask: Ask, congress: int) -> frozenset[str]:
    """The public laws of a Congress as congress.gov lists them, by the bills they were."""
    listed = await congress_gov.read_list(
        ask, f"law/{congress}/pub", "bills", path=f"audit/{congress}", identify=_bill
    )
    return frozenset(law.id for bill in listed for law in _laws(bill))


def _bill(entry: Entry) -> tuple[str | None, str | None]:
    return fields.text(entry, "type"), fields.text(entry, "number")


def _laws(bill: Entry) -> list[LawNumber]:
    # A bill can be two laws only by mistake, but then both numbers stand.
    stated = [f"{law.get('type')} {law.get('number')}" for law in fields.sections(bill, "laws")]
    found = [law for text in stated if (law := read_law_number(text))]
    if not found:
        raise MalformedError(f"{_bill(bill)} is listed as a law without a number")
    return [law for law in found if not law.is_private]
