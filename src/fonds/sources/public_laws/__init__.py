"""Public and private laws as enacted, from GPO's USLM files of the 113th Congress (2013) on.

Quirks of the publisher:
- The folders are rebuilt in batches: every file is dated by its last conversion, which says
  nothing of the law. What a folder says of a file is the task's fingerprint.
- Folders of a Congress are listed first, as private laws have a folder in few of them.
- A law of the last days of a Congress is signed after the next one has begun, and its file comes
  weeks or months later. So a run looks at the current Congress and the one before it, and nothing
  is ever concluded from a law that is missing from a list of days.
- Numbers are written with an en dash (`Public Law 119–1`), words are broken by soft hyphens.
- Files converted before 2020 state no `approvedDate` and identify no section; there, the day is
  taken from the line `Approved March 27, 2017.` Since then sidenotes are inside titles.
- The bill a law was made of is in the margin of its title and at the head of its history; the
  latter also names the companion bill, in parentheses.
- Marginal notes break lines into paragraphs of their own, and so does the legislative history.
- A law quotes whole sections to put them into other laws; they are none of its own.
- Private laws are printed without a page of the Statutes at Large at first (`?1`).
- Compilations of statutes (`COMPS-…`) are read as loose files only. Their `meta` repeats the act
  itself as the last amendment in some cases; the note in the preface is right.
- Listings are answered with 406 unless JSON is asked for by `Accept: application/json`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

from fonds import ids
from fonds.errors import MalformedError, SuspiciousYieldError, WrongContentError
from fonds.model import (
    Archived,
    Discovery,
    FetchTask,
    KeyListing,
    ParsedRecord,
    Part,
    Raw,
    RawPart,
    SourceState,
    Watermark,
)
from fonds.sources.base import Ask, Expected, Rate, SourceInfo
from fonds.sources.formats import congress as congress_gov
from fonds.sources.formats import fields, xml, yaml
from fonds.sources.formats.congress import Entry, congress_of
from fonds.sources.formats.days import requested_congresses
from fonds.sources.formats.govinfo import (
    BULK,
    modified_at,
    name_of,
    offered_congresses,
    read_folder,
)
from fonds.sources.public_laws.laws import (
    NAME,
    TABLES,
    LawNumber,
    check_is,
    compilation_record,
    law_record,
    read_file_name,
    read_law_number,
    stated_number,
)

# govinfo's bulk folders of laws, and the list of congress.gov for the audit.

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
    laws = [law for kind in _KINDS if kind in offered for law in await _folder(ask, congress, kind)]
    if not laws:
        raise SuspiciousYieldError(f"govinfo's folders of Congress {congress} list no law")
    return laws


async def _folder(ask: Ask, congress: int, kind: str) -> list[ListedLaw]:
    where = f"{congress}/{kind}"
    entries, origin = await read_folder(ask, COLLECTION, congress, kind)
    laws: dict[int, ListedLaw] = {}
    for entry in entries:
        name = name_of(entry)
        number = read_file_name(name)
        if number is None:
            continue  # the archive of the whole folder
        if (number.congress, _KINDS[number.is_private]) != (congress, kind):
            raise WrongContentError(f"the folder {where} lists {name}")
        if number.number in laws:
            raise SuspiciousYieldError(f"the folder {where} lists {name} twice")
        laws[number.number] = ListedLaw(
            number=number,
            stated=dict(entry),
            modified=modified_at(entry),
            origin=origin,
        )
    return [laws[number] for number in sorted(laws)]


# The audit --------------------------------------------------------------------------------


async def current_congress(ask: Ask) -> int:
    """The Congress that sits, as congress.gov says."""
    listing = await ask(
        f"{congress_gov.API}/congress/current?format=json", path="audit/current.json"
    )
    content = congress_gov.read_object(listing.data, congress_gov.HOST)
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
    # A bill can be two laws only by mistake, but then both numbers are kept.
    stated = [f"{law.get('type')} {law.get('number')}" for law in fields.sections(bill, "laws")]
    laws = [law for text in stated if (law := read_law_number(text))]
    if not laws:
        raise MalformedError(f"{_bill(bill)} is listed as a law without a number")
    return [law for law in laws if not law.is_private]


FIRST_CONGRESS: Final = 113
# Bills passed in the last days of a Congress are signed within ten days, Sundays excepted.
SIGNED_LATER: Final = timedelta(days=20)


class PublicLaws:
    """The source `public_laws`."""

    info = SourceInfo(
        name=NAME,
        title="Public and private laws",
        summary="public and private laws since 2013, in full",
        organisation="U.S. Government Publishing Office and Office of the Federal Register",
        addresses=(f"{BULK}/{COLLECTION}/",),
        jurisdiction="United States",
        version="1.0.0",
        schedule="25 6 * * *",
        rate=Rate(per_second=4, burst=4),
        tables=TABLES,
        depends_on=("bills",),
        published_at="approvedDate; before 2020 the line `Approved …` below the text",
        options=("congresses",),
        csl_type="legislation",
    )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The laws of the Congresses asked for, by number.

        Without a range these are the current Congress and the one before it, in a backfill as in
        any other run; `congresses` names others, and days choose those that may have passed a law
        signed on them.
        """
        newest = state.last_seen_key or ""
        for congress in await _requested_congresses(state, ask):
            laws = await listed_laws(ask, congress)
            for law in laws:
                if law.modified:
                    newest = max(newest, law.modified.isoformat())
                if _may_have_changed(law, state):
                    yield law.task()
            listed = frozenset(law.number.id for law in laws)
            yield KeyListing(prefix=f"plaw:{congress}-", task_keys=listed)
        if newest:
            yield Watermark(last_seen_key=newest)

    def parse(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        """The record of a law; a loose file may be the compilation of a statute as well."""
        for part in raw.parts:
            if part.name == LAW:
                root = _read(part, "pLaw")
                check_is(stated_number(root), raw.task.key)
                yield law_record(root, part)
            elif not part.name:
                yield _loose_record(part)

    async def enumerate(
        self, ask: Ask, since: date | None, until: date | None
    ) -> AsyncIterator[Expected]:
        """The public laws congress.gov lists, of the Congresses that sat on these days.

        Without days: those of the current Congress. It wants `data_gov_key`, and lists a law some
        weeks before GPO has its file. Private laws are left out, as few of them have one.
        """
        current = await current_congress(ask)
        last = congress_of(until) if until else current
        first = congress_of(since) if since else current if until is None else FIRST_CONGRESS
        for congress in range(max(first, FIRST_CONGRESS), min(last, current) + 1):
            laws = await enacted_laws(ask, congress)
            yield Expected(scope=f"Congress {congress}", document_ids=laws)


source: Final = PublicLaws()


# Which Congresses -------------------------------------------------------------------------


async def _requested_congresses(state: SourceState, ask: Ask) -> list[int]:
    offered = await offered_congresses(ask, COLLECTION)
    values = state.options.get("congresses") if state.backfill else None
    congresses = requested_congresses(state, first=FIRST_CONGRESS, delay=SIGNED_LATER)
    missing = [number for number in congresses if number not in offered]
    # The first law of a Congress is printed weeks after it has begun.
    if missing and (values or len(missing) == len(congresses)):
        raise SuspiciousYieldError(
            f"govinfo offers no laws of Congress {missing[0]}; it has those from {offered[0]} to "
            f"{offered[-1]}"
        )
    return [number for number in congresses if number in offered]


def _may_have_changed(law: ListedLaw, state: SourceState) -> bool:
    """A law signed since a day has a file that was written since."""
    if not state.backfill or state.since is None or law.modified is None:
        return True
    return law.modified.date() >= state.since


# Files ------------------------------------------------------------------------------------


def _read(part: RawPart, *roots: str) -> Any:
    return xml.without_namespaces(xml.read(part.data, *roots))


def _loose_record(part: RawPart) -> ParsedRecord:
    start = part.data[:512].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith((b"{", b"[")):
        raise WrongContentError(_described(yaml.load(part.data)))
    root = _read(part, "pLaw", "statuteCompilation")
    return law_record(root, part) if root.tag == "pLaw" else compilation_record(root, part)


def _described(loaded: Any) -> str:
    if isinstance(loaded, dict) and "files" in loaded:
        return "a listing of a bulk folder, which names files but holds no law"
    if isinstance(loaded, dict) and ("bill" in loaded or "bills" in loaded):
        return (
            "a record of congress.gov: the bill that became a law, which `bills` loads from its "
            "status; the law itself is not in it"
        )
    return f"expected a law in USLM, found {fields.describe(loaded)}"
