"""Names of Congress that several sources share: ids, bills, committees; lists of api.congress.gov.

Quirks of api.congress.gov, version 3:
- It wants a key of api.data.gov. Without one it answers 403, and so it does with a wrong one;
  mirrors pass the same refusal on with status 200, as `{"error": {"code": …}}`.
- It gives at most 250 entries at a time, and does not say so when more are asked for.
- Its lists are not sorted by anything stable: one that changes while it is read repeats entries
  of earlier pages and leaves others out.
- `next` and the `url` of entries may name hosts that do not exist (`https://v3/crsreport/…`), so
  addresses are always made here.

Bills are cited by the Bluebook's rule 13.2: `H.R. 1234, 119th Cong. (2025).`, resolutions with its
own abbreviations (`H.R.J. Res. 41`, `H.R. Res. 5`), not with those of congress.gov. A version of
the text has the parenthesis of rule 13.2(b), with the last action on the bill and its day:
`H.R. 1234, 119th Cong. (as introduced in House, Mar. 4, 2025).`

Committees are shortened as in the citation of a hearing or a report, with the code that names them
in every federal data set: `H. Comm. on Agriculture (HSAG).` A former committee has the Congresses
in which it is listed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final
from urllib.parse import urlencode

from fonds import ids
from fonds.citations.forms import bluebook_date
from fonds.errors import (
    MalformedError,
    MissingKeyError,
    RateLimitedError,
    RefusedError,
    SuspiciousYieldError,
    WrongContentError,
)
from fonds.sources.base import Ask
from fonds.sources.formats import fields

HOST: Final = "api.congress.gov"
API: Final = f"https://{HOST}/v3"
PER_PAGE: Final = 250
Entry = Mapping[str, Any]

_NO_KEY: Final = (
    "`data_gov_key` is missing or not valid: set it in fonds.toml or FONDS_DATA_GOV_KEY; get one "
    "at https://api.data.gov/signup/"
)


def list_address(resource: str, offset: int) -> str:
    """One page of a list: `crsreport`, `house-vote/119`."""
    query = {"format": "json", "limit": PER_PAGE, "offset": offset}
    return f"{API}/{resource}?{urlencode(query)}"


async def read_list(
    ask: Ask,
    resource: str,
    name: str,
    *,
    path: str,
    identify: Callable[[Entry], Hashable] = ids.json_sha256,
) -> list[Entry]:
    """All entries under `name` in the pages of a list, whole and each once.

    The pages are archived as `<path>-<offset>.json`. An empty list, a page that is short, and an
    entry that comes twice are errors: nothing may be concluded from half a list.
    """
    entries_by_key: dict[Hashable, Entry] = {}
    count = 1
    while len(entries_by_key) < count:
        offset = len(entries_by_key)
        data = await _page(ask, resource, offset, f"{path}-{offset}.json")
        count, entries = read_page(data, name)
        _check_length(resource, offset, len(entries), count)
        for entry in entries:
            key = identify(entry)
            if key in entries_by_key:
                raise SuspiciousYieldError(
                    f"{HOST} repeats an entry of /{resource} on the page from {offset} on; the "
                    "list changed while it was read, or its pages are all the same: try again"
                )
            entries_by_key[key] = entry
    return list(entries_by_key.values())


def read_page(data: bytes, name: str) -> tuple[int, list[Entry]]:
    """The stated length of the list, and the entries that a page has under `name`."""
    content = read_object(data, HOST)
    count = fields.whole(fields.section(content, "pagination"), "count")
    if count is None or name not in content:
        raise WrongContentError(
            f"{HOST} answered with {fields.describe(content)} instead of a list of {name}"
        )
    return count, fields.sections(content, name)


def read_object(data: bytes, where: str) -> Entry:
    """A JSON object that does not report an error; other content is named by the error."""
    try:
        content = json.loads(data)
    except ValueError as error:
        if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
            raise WrongContentError(f"{where}: a page of HTML or XML instead of JSON") from None
        raise MalformedError(f"{where}: not JSON: {error}") from error
    if not isinstance(content, Mapping):
        raise WrongContentError(f"{where}: {fields.describe(content)} instead of a record")
    if "error" in content:
        raise _refusal(content["error"], where)
    return content


async def _page(ask: Ask, resource: str, offset: int, path: str) -> bytes:
    try:
        return (await ask(list_address(resource, offset), path=path)).data
    except RefusedError as error:
        raise RefusedError(f"{error}: {_NO_KEY}") from error


def _check_length(resource: str, offset: int, listed: int, count: int) -> None:
    due = min(PER_PAGE, count - offset)
    if not count or listed != due:
        raise SuspiciousYieldError(
            f"{HOST} counts {count} entries of /{resource} and lists {listed} from {offset} on, "
            f"where {max(due, 1)} are due"
        )


def _refusal(error: Any, where: str) -> Exception:
    details = error if isinstance(error, Mapping) else {"message": error}
    code, message = str(details.get("code") or ""), str(details.get("message") or "no reason")[:200]
    if code.startswith("API_KEY_"):
        return MissingKeyError(f"{where}: refused, {message} ({_NO_KEY})")
    if code == "OVER_RATE_LIMIT":
        return RateLimitedError(f"{where}: asks us to slow down, {message}")
    return WrongContentError(f"{where}: the report of an error, {message}")


ABBREVIATIONS: Final = {
    "hr": "H.R.",
    "s": "S.",
    "hjres": "H.R.J. Res.",
    "sjres": "S.J. Res.",
    "hconres": "H.R. Con. Res.",
    "sconres": "S. Con. Res.",
    "hres": "H.R. Res.",
    "sres": "S. Res.",
}

_TEENS: Final = range(11, 14)
_ENDINGS: Final = {1: "st", 2: "nd", 3: "rd"}


def bill_id(congress: int, kind: str, number: int) -> str:
    """`bill:119-hr-1`."""
    return f"bill:{congress}-{kind.lower()}-{number}"


def law_id(congress: int, number: int, *, private: bool = False) -> str:
    """`plaw:119-21`, and `plaw:119-pvt-3` for a private law."""
    return f"plaw:{congress}-{'pvt-' if private else ''}{number}"


def vote_id(chamber: str, congress: int, session: int, number: int) -> str:
    """`vote:house/119-1/362`."""
    return f"vote:{chamber}/{congress}-{session}/{number}"


def legislator_id(bioguide: str) -> str:
    """`legislator:C000127`."""
    return f"legislator:{bioguide}"


def committee_id(code: str) -> str:
    """`committee:SSAF`, and `committee:SSAF13` for a subcommittee."""
    return f"committee:{code}"


def cbo_id(publication: str) -> str:
    """`cbo:61234`."""
    return f"cbo:{publication}"


def cite_bill(*, congress: int, kind: str, number: int, introduced: date | None) -> str:
    """`H.R. 1234, 119th Cong. (2025).`; without a date the year its Congress began."""
    year = introduced.year if introduced else first_year(congress)
    return f"{_numbered(congress, kind, number)} ({year})."


def cite_bill_text(
    *, congress: int, kind: str, number: int, stage: str, published: date | None
) -> str:
    """`H.R. 1234, 119th Cong. (as introduced in House, Mar. 4, 2025).`; `stage` is that phrase."""
    when = f", {bluebook_date(published)}" if published else ""
    return f"{_numbered(congress, kind, number)} ({stage}{when})."


def ordinal(number: int) -> str:
    """`119th`, `122nd`: as congress.gov counts, in addresses and in names."""
    ending = "th" if number % 100 in _TEENS else _ENDINGS.get(number % 10, "th")
    return f"{number}{ending}"


def bluebook_ordinal(number: int) -> str:
    """`102d`, `103d`, where congress.gov writes 102nd and 103rd."""
    return ordinal(number).replace("nd", "d").replace("rd", "d")


def first_year(congress: int) -> int:
    """The odd year a Congress first met: 2025 for the 119th."""
    return 2 * congress + 1787


def _numbered(congress: int, kind: str, number: int) -> str:
    return f"{ABBREVIATIONS[kind]} {number}, {bluebook_ordinal(congress)} Cong."


_RESOLUTIONS: Final = {"": "res", "c": "conres", "j": "jres"}
# `H.R. 21`, `H R 22`, `S. 4429`, `H.J. Res. 38`, `H. Con. Res. 108`; but not `U.S. 5`.
_BILL_NUMBER: Final = re.compile(
    r"(?<![\w.])(?:"
    r"(?P<chamber>[HS])\.?\s?(?:R\.\s?)?(?:(?P<form>C)on\.?\s?|(?P<joint>J)\.?\s?)?Res\.?"
    r"|(?P<bill>H\.?\s?R\.?|S\.?)"
    r")\s?(?P<number>[0-9]{1,5})(?![\w-])"
)
_CODE: Final = re.compile(r"(hr|s|hjres|sjres|hconres|sconres|hres|sres)\.?\s?([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class BillNumber:
    """A bill or resolution of some Congress."""

    kind: str
    """`hr`, `s`, `hjres`, …"""
    number: int

    @property
    def code(self) -> str:
        """`hjres41`."""
        return f"{self.kind}{self.number}"

    @property
    def printed(self) -> str:
        """As citations write it: `H.R. 2101`."""
        return f"{ABBREVIATIONS[self.kind]} {self.number}"

    def document_id(self, congress: int) -> str:
        """The bill's document."""
        return bill_id(congress, self.kind, self.number)


def find_bill_numbers(text: str) -> list[BillNumber]:
    """The bills a text names, each once, in its order."""
    return list(dict.fromkeys(_bill_numbers(text)))


def leading_bill_number(text: str) -> BillNumber | None:
    """The bill a text begins with, or None where it begins otherwise."""
    match = _BILL_NUMBER.match(text)
    return _read(match) if match else None


def read_bill_code(code: str) -> BillNumber | None:
    """The bill behind a code such as `hjres41`, or None where it is none."""
    match = _CODE.fullmatch(code.strip().lower())
    return BillNumber(match[1], int(match[2])) if match else None


def congress_of(day: date) -> int:
    """The Congress that sat on a day; it begins on January 3."""
    year = day.year - ((day.month, day.day) < (1, 3))
    return (year - 1787) // 2


def first_day_of(congress: int) -> date:
    """The January 3 a Congress begins on."""
    return date(first_year(congress), 1, 3)


def _bill_numbers(text: str) -> Iterator[BillNumber]:
    return map(_read, _BILL_NUMBER.finditer(text))


def _read(match: re.Match[str]) -> BillNumber:
    number = int(match["number"])
    if match["bill"]:
        return BillNumber("s" if match["bill"].startswith("S") else "hr", number)
    form = (match["form"] or match["joint"] or "").lower()
    return BillNumber(match["chamber"].lower() + _RESOLUTIONS[form], number)


_SHORT: Final = (
    (re.compile(r"\bSubcommittee\b"), "Subcomm."),
    (re.compile(r"\bCommittee\b"), "Comm."),
    (re.compile(r"^House\b"), "H."),
    (re.compile(r"^(?:United States )?Senate\b"), "S."),
    (re.compile(r"^Joint\b"), "J."),
)
# Most are listed without the words "Subcommittee on"; these already say what they are.
_NAMES_ITSELF: Final = re.compile(r"Subcommittee|Task Force|Panel", re.IGNORECASE)
_CHAMBERS: Final = {"house": "U.S. House of Representatives", "senate": "U.S. Senate"}


def citation_for(
    *, code: str, name: str, parent: str | None = None, congresses: Iterable[int] = ()
) -> str:
    """The committee ready to cite.

    `Subcomm. on Crop Insurance of the H. Comm. on Agriculture, 97th–103d Cong. (HSAG77).`
    """
    cited = _shortened(subcommittee_name(name) if parent else name)
    if parent:
        cited += f" of the {_shortened(parent)}"
    when = congress_ranges(congresses)
    return f"{cited}, {when} ({code})." if when else f"{cited} ({code})."


def subcommittee_name(name: str) -> str:
    """`Subcommittee on Defense` for `Defense`, which is all that the lists say."""
    return name if _NAMES_ITSELF.search(name) else f"Subcommittee on {name}"


def title_for(name: str, parent: str | None = None) -> str:
    """The committee's name, and in parentheses that of the one above it."""
    return f"{subcommittee_name(name)} ({parent})" if parent else name


def publisher_for(chamber: str) -> str:
    """The body whose committee it is; Congress for a joint one."""
    return _CHAMBERS.get(chamber, "U.S. Congress")


def summary_for(
    *,
    name: str,
    chamber: str,
    parent: str | None,
    is_current: bool | None,
    jurisdiction: str | None,
    congresses: Iterable[int],
    names: Iterable[str],
) -> str:
    """Whole sentences that a search for a field, a former name or a Congress finds."""
    what = f"Subcommittee of the {parent}" if parent else "Committee"
    ranges = congress_ranges(congresses)
    other_names = "; ".join(other for other in dict.fromkeys(names) if other not in name)
    sentences = [
        f"{what} ({publisher_for(chamber)})",
        jurisdiction,
        "No longer in existence" if is_current is False else None,
        f"Bills were referred to it in the {ranges}" if ranges else None,
        f"Listed as {other_names}" if other_names else None,
    ]
    return " ".join(f"{sentence.rstrip('.')}." for sentence in sentences if sentence)


def congress_ranges(congresses: Iterable[int]) -> str:
    """`93d, 97th–103d Cong.`, or nothing for none."""
    runs: list[list[int]] = []
    for number in sorted(set(congresses)):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    listed = ", ".join(_run(run) for run in runs)
    return f"{listed} Cong." if listed else ""


def _run(numbers: list[int]) -> str:
    first, last = bluebook_ordinal(numbers[0]), bluebook_ordinal(numbers[-1])
    return first if first == last else f"{first}–{last}"


def _shortened(name: str) -> str:
    for pattern, short in _SHORT:
        name = pattern.sub(short, name)
    return name
