"""Every real file gives records, or says what it is and why it gives none."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.sources.publishing import loose, records_of

from fonds.errors import ParseError
from fonds.sources.member_statements import read_members, source

# Names, and what the error must say.
WITHOUT_RECORDS = (
    # Pages that list press releases; each office had a form of its own.
    (r"html_rss/.*\.html", "an HTML page; whose statement it is"),
    # Texts of many releases run together by somebody else, without titles and addresses.
    (r"happycongress_txt/.*Press\.txt", "not XML"),
    # What was left over from a word processor.
    (r"happycongress_txt/frankPalloneJunkText\.txt", "not well-formed"),
)


def test_every_file_gives_records_or_its_reason(corpus: Callable[[str], Path]) -> None:
    folder = corpus("federal/member_statements")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert len(files) > 10
    for path in files:
        name = path.relative_to(folder).as_posix()
        raw = loose(path.read_bytes(), path.name)
        reason = next((why for where, why in WITHOUT_RECORDS if re.fullmatch(where, name)), None)
        if reason is None:
            items = len(re.findall(rb"<item>", path.read_bytes()))
            assert len(records_of(source, raw)) == items > 0, name
        else:
            with pytest.raises(ParseError, match=reason):
                records_of(source, raw)


def test_statements_of_a_real_feed_have_their_addresses_and_days(
    corpus: Callable[[str], Path],
) -> None:
    path = corpus("federal/member_statements") / "html_rss" / "richard_burr.xml"
    days = re.findall(rb"<pubdate>\w+, (\d\d) (\w+) (\d{4})", path.read_bytes())
    months = [b"Jan", b"Feb", b"Mar", b"Apr", b"May"]
    expected = {f"{int(y)}-{months.index(m) + 1:02}-{int(d):02}" for d, m, y in days}
    records = records_of(source, loose(path.read_bytes()))
    assert {record.document.published_at for record in records if record.document} == expected
    for record in records:
        assert record.payload["link"].startswith("http://www.burr.senate.gov/public/index.cfm?")


def test_every_feed_the_list_of_members_names_is_asked_for(corpus: Callable[[str], Path]) -> None:
    for path in corpus("federal/legislators").rglob("legislators-current.yaml"):
        members = list(read_members(path.read_bytes()))
        known = [member for member in members if not member.is_guessed]
        people = path.read_text(encoding="utf-8").split("\n- id:")
        last_terms = [person.rpartition("\n  - type: ")[2] for person in people]
        assert len(known) == sum("rss_url: http" in term for term in last_terms) > 100
        assert not [member.feed for member in members if "&amp;" in member.feed]
