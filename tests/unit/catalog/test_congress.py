"""Bills and members, as the bundled library has them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.libraries.demo import demo

from fonds.catalog.bills import bill
from fonds.catalog.members import member, sponsored, statements, votes_cast
from fonds.errors import UnknownDocumentError
from fonds.library import Library
from fonds.mcp.server import open_for_reading
from fonds.settings import read_settings


@pytest.fixture(scope="module")
def library() -> Iterator[Library]:
    made = demo()
    assert made.code == 0, made.err
    with open_for_reading(read_settings({"home": made.home}, environ={})) as opened:
        yield opened


def test_bill_tells_who_brought_it_in_and_what_happened(library: Library) -> None:
    found = bill(library.database, "bill:119-hr-2101")
    assert (found.congress, found.type, found.number) == (119, "HR", 2101)
    assert [each.member_id for each in found.sponsors] == ["legislator:P901004"]
    assert [each.withdrawn for each in found.cosponsors] == [None, None, "2025-04-01"]
    assert [each.is_subcommittee for each in found.committees] == [False, True]
    assert found.actions.items[0].text == "Received in the Senate."
    assert found.latest_action is not None
    assert found.latest_action.date == "2025-12-10"
    assert [each.code for each in found.texts] == ["rh", "ih"]
    assert [each.id for each in found.votes] == ["vote:senate/119-2/3", "vote:house/119-1/362"]
    assert [each.id for each in found.related] == ["bill:119-s-880"]
    assert [each.id for each in found.reports] == ["crpt:CRPT-119hrpt100"]
    assert [each.id for each in found.estimates] == ["cbo:61234"]


def test_actions_of_a_bill_come_in_pages(library: Library) -> None:
    whole = bill(library.database, "bill:119-hr-2101").actions
    first = bill(library.database, "bill:119-hr-2101", limit=3).actions
    assert first.items == whole.items[:3]
    assert first.next_offset == 3
    rest = bill(library.database, "bill:119-hr-2101", limit=100, offset=3).actions
    assert (rest.items, rest.next_offset) == (whole.items[3:], None)


def test_bill_that_became_law_names_it(library: Library) -> None:
    (law,) = bill(library.database, "bill:119-hr-2102").laws
    assert (law.id, law.kind, law.number) == ("plaw:119-21", "Public Law", "119-21")


def test_member_tells_terms_seats_bills_votes_and_statements(library: Library) -> None:
    found = member(library.database, "legislator:H901001")
    assert (found.name, found.state, found.in_office) == ("Beatrix L. Harrowgate", "OR", True)
    assert [each.type for each in found.terms] == ["sen", "sen", "sen", "rep"]
    assert found.roles[0].title == "Senate Minority Whip"
    assert [each.title for each in found.seats] == [None, "Ranking Member"]
    assert [each.id for each in found.sponsored.items] == ["bill:119-s-880"]
    assert [(each.position, each.vote.number) for each in found.votes.items] == [
        ("Nay", 3),
        ("Nay", 98),
        ("Yea", 12),
    ]
    assert len(found.statements.items) == 2


def test_lists_of_a_member_come_in_pages(library: Library) -> None:
    name = "legislator:H901001"
    found = member(library.database, name)
    assert votes_cast(library.database, name, limit=2).next_offset == 2
    assert votes_cast(library.database, name, limit=2, offset=2).items == found.votes.items[2:]
    assert (
        statements(library.database, name, limit=1, offset=1).items == (found.statements.items[1:])
    )
    assert sponsored(library.database, name).items == found.sponsored.items


@pytest.mark.parametrize("name", ["bill:119-hr-9999", "fr:2026-00101", "legislator:H901001"])
def test_what_is_no_bill_is_refused(library: Library, name: str) -> None:
    with pytest.raises(UnknownDocumentError):
        bill(library.database, name)


@pytest.mark.parametrize("name", ["legislator:X000000", "executive:990201"])
def test_who_is_no_member_is_refused(library: Library, name: str) -> None:
    with pytest.raises(UnknownDocumentError):
        member(library.database, name)
