"""What a crawl found, held against what a site lists."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from tests.zoo.site import ELSEWHERE, Key, ZooSite, key

Finding = tuple[str, str | None, str | None]
"""Address, organisation, period."""

# What may stand around an organisation's name without making it another one: an abbreviation in
# brackets, what a link says of its file, and what every link of these lists says.
_ABBREVIATION: Final = re.compile(r"[(\[（［「][a-z0-9&./ -]{1,12}[)\]）］」]")
_ABOUT_A_FILE: Final = re.compile(
    r"\d+([.,]\d+)?\s*(kb|mb|kib|mib|ko|mo|bytes|キロバイト|メガバイト)|(?<![a-z])pdf(?![a-z])|ファイル|形式"
)
_MARKS: Final = re.compile(r"[\W_]+")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How well a site was read; shares are 1.0 where there is nothing to count."""

    expected: int
    found: int
    """Distinct addresses that were told of, without those robots.txt keeps from us."""
    hit: int
    organizations: tuple[int, int]
    """Right, and stated: of the PDFs that were found."""
    periods: tuple[int, int]
    missing: list[str] = field(default_factory=list)
    wrong_links: list[str] = field(default_factory=list)
    mistaken: list[tuple[str, str | None, str | None]] = field(default_factory=list)
    """Path, what is true, what was told: of organisations and periods."""

    @property
    def recall(self) -> float:
        return _share(self.hit, self.expected)

    @property
    def wrong(self) -> float:
        """The share of what was told of that is no report."""
        return len(self.wrong_links) / self.found if self.found else 0.0

    @property
    def organizations_right(self) -> float:
        return _share(*self.organizations)

    @property
    def periods_right(self) -> float:
        return _share(*self.periods)


def judge(site: ZooSite, base: str, found: Iterable[Finding]) -> Verdict:
    """How well the findings of a crawl of a site agree with what it lists.

    Addresses are compared after percent-decoding, with parameters in any order; of a PDF on the
    file server only its path counts. Nothing is owed where a page states no organisation or
    period. A period is right when it is the same text.
    """
    told = {_place(url, base): (organization, period) for url, organization, period in found}
    for path in site.forbidden:
        told.pop(_place(path, base), None)
    places = [
        (truth, [_place(each, base) for each in (truth.path, *truth.aliases)])
        for truth in site.listed
    ]
    hits = [
        (truth, told[next(place for place in where if place in told)])
        for truth, where in places
        if any(place in told for place in where)
    ]
    known = {place for _, where in places for place in where}
    hit = {truth.path for truth, _ in hits}
    names = [(t, name) for t, (name, _) in hits if t.organization is not None]
    periods = [(t, period) for t, (_, period) in hits if t.period is not None]
    wrong_names = [(t, told) for t, told in names if not same_organization(t.organization, told)]
    wrong_periods = [(t, told) for t, told in periods if t.period != told]
    return Verdict(
        expected=len(site.listed),
        found=len(told),
        hit=len(hits),
        organizations=(len(names) - len(wrong_names), len(names)),
        periods=(len(periods) - len(wrong_periods), len(periods)),
        missing=[truth.path for truth in site.listed if truth.path not in hit],
        wrong_links=[_readable(place) for place in told if place not in known],
        mistaken=[(t.path, t.organization, told) for t, told in wrong_names]
        + [(t.path, t.period, told) for t, told in wrong_periods],
    )


def total(verdicts: Iterable[Verdict]) -> Verdict:
    """Several sites as one: each PDF counts the same."""
    every = list(verdicts)
    return Verdict(
        expected=sum(v.expected for v in every),
        found=sum(v.found for v in every),
        hit=sum(v.hit for v in every),
        organizations=(
            sum(v.organizations[0] for v in every),
            sum(v.organizations[1] for v in every),
        ),
        periods=(sum(v.periods[0] for v in every), sum(v.periods[1] for v in every)),
        missing=[path for v in every for path in v.missing],
        wrong_links=[path for v in every for path in v.wrong_links],
        mistaken=[mistake for v in every for mistake in v.mistaken],
    )


def same_organization(true: str | None, told: str | None) -> bool:
    """Whether two texts name one organisation.

    Width, case, spaces and marks do not matter. One may have, beyond the other, an abbreviation
    in brackets or the kind and size of the file; any other word makes it another name.
    """
    if true is None or told is None:
        return true == told
    return _bare(true) == _bare(told) or _bare(true, short=True) == _bare(told, short=True)


def _bare(name: str, *, short: bool = False) -> str:
    folded = unicodedata.normalize("NFKC", name).casefold()
    folded = _ABOUT_A_FILE.sub(" ", folded)
    if short:
        folded = _ABBREVIATION.sub(" ", folded)
    return _MARKS.sub("", folded)


Place = tuple[bool, Key]


def _place(address: str, base: str) -> Place:
    """Whether an address is on another host, and what is asked for there."""
    if address.startswith("/"):
        return False, key(address)
    if address == base or address.startswith(base + "/"):
        return False, key(address[len(base) :] or "/")
    parts = urlsplit(address)
    return True, key(f"{parts.path}?{parts.query}")


def _readable(place: Place) -> str:
    elsewhere, (path, pairs) = place
    query = b"&".join(name + b"=" + value for name, value in pairs)
    text = (path + (b"?" + query if query else b"")).decode("utf-8", "replace")
    return (ELSEWHERE if elsewhere else "") + text


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
