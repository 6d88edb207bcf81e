"""Whose feeds there are: the members of the current list, and where their feeds should be."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fonds.citations.legislators import title_for
from fonds.sources.families import fields, yaml_files
from fonds.sources.families.addresses import parts_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A member and the feed of the member's office."""

    bioguide: str
    name: str
    """`Rep. Cornelius F. Pettibone`."""
    site: str | None
    feed: str
    is_guessed: bool = False

    def to_params(self) -> dict[str, Any]:
        """The JSON a task carries."""
        return asdict(self)

    def is_of_the_office(self, address: str) -> bool:
        """Whether an address is the office's own, or at least one of a chamber's."""
        host = bare_host(address)
        known = {bare_host(self.feed), bare_host(self.site or "")}
        return host in known or host.endswith((".house.gov", ".senate.gov"))


def read_members(data: bytes) -> Iterator[Member]:
    """The members of `legislators-current.yaml` who have a feed, or may have one."""
    for entry in yaml_files.items(data):
        terms = fields.sections(fields.mapping(entry), "terms")
        if not terms:
            continue
        member = _member(entry, terms[-1])
        if member is not None:
            yield member


def bare_host(address: str) -> str:
    """The host of an address, without the `www.` that half of the links leave out."""
    return (parts_of(address).hostname or "").removeprefix("www.")


def _member(entry: Mapping[str, Any], term: Mapping[str, Any]) -> Member | None:
    site = fields.text(term, "url")
    # Some addresses in the list are escaped as if they stood in a page.
    listed = html.unescape(fields.text(term, "rss_url") or "")
    feed = listed or _guess(site)
    if not feed.startswith(("http://", "https://")):
        return None
    person = {**fields.section(entry, "name"), "type": fields.text(term, "type")}
    row = {**person, "state": fields.text(term, "state")}
    return Member(
        bioguide=fields.required(fields.section(entry, "id"), "bioguide"),
        name=title_for(row).partition(" (")[0],
        site=site,
        feed=feed,
        is_guessed=not listed,
    )


def _guess(site: str | None) -> str:
    # The House's own platform puts every member's feed here; senators' sites have no such custom.
    if site and bare_host(site).endswith(".house.gov"):
        return f"{site.rstrip('/')}/rss.xml"
    return ""
