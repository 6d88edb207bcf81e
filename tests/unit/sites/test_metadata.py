"""Organisations and periods of PDFs, from the texts around their links."""

from __future__ import annotations

from fonds.sites.pages.listing import PdfList
from fonds.sites.pages.metadata import Metadata
from fonds.sites.pages.page import read_page

PARTIES = ("Green Alliance", "Pier List", "Old Union", "Hill Citizens")


def periods(body: str) -> list[str | None]:
    markup = f"<html><title>Accounts</title><body><h1>Accounts</h1>{body}</body></html>"
    page = read_page(markup.encode(), "https://example.org/accounts/", "text/html")
    listing = PdfList(page)
    metadata = Metadata(listing)
    fields = metadata.read(listing.links, metadata.expressions(listing.links))
    return [each.period for each in fields]


def test_the_year_of_a_neighbouring_pdf_is_not_taken_for_that_of_the_file_name() -> None:
    rows = (
        f"<div><a href='f/{name[:4]}2018.pdf'>{name} 2018</a>"
        f"<a href='f/{name[:4]}2019.pdf'>{name}</a></div>"
        for name in PARTIES
    )
    assert periods(f"<div>{''.join(rows)}</div>") == ["2018-annual", "2019-annual"] * 4


def test_the_year_of_another_link_in_an_item_is_not_taken_for_that_of_the_file_name() -> None:
    rows = (
        f"<li>{name} <a href='f/a{number}_2018.pdf'>accounts_2018.pdf</a>"
        f" <a href='f/b{number}_2019.pdf'>Audit</a></li>"
        for number, name in enumerate(PARTIES)
    )
    assert periods(f"<ul>{''.join(rows)}</ul>") == ["2018-annual", "2019-annual"] * 4


def test_a_pdf_whose_name_has_no_year_has_that_of_its_row() -> None:
    rows = (
        f"<tr><td>{name}</td><td><a href='f/a{number}.pdf'>Accounts 2018</a></td>"
        f"<td><a href='f/annex{number}x.pdf'>Annex</a></td></tr>"
        for number, name in enumerate(PARTIES)
    )
    assert periods(f"<table>{''.join(rows)}</table>") == ["2018-annual"] * 8


def test_what_only_the_page_or_a_file_name_says_is_a_guess() -> None:
    rows = "".join(f"<li><a href='f/{year}.pdf'>Accounts</a></li>" for year in (2018, 2019))
    markup = f"<html><title>x</title><body><h1>Green Party</h1><ul>{rows}</ul></body></html>"
    page = read_page(markup.encode(), "https://example.org/accounts/", "text/html")
    listing = PdfList(page)
    (first, _) = Metadata(listing).read(listing.links, {})
    assert (first.organization, first.period) == ("Green Party", "2018-annual")
    assert first.guesses == ("organization", "period")


def test_what_a_row_says_is_no_guess() -> None:
    rows = (
        f"<tr><td>{name}</td><td>2018</td><td><a href='f/a{number}.pdf'>Accounts</a></td></tr>"
        for number, name in enumerate(PARTIES)
    )
    page = read_page(
        f"<html><body><table>{''.join(rows)}</table></body></html>".encode(),
        "https://example.org/accounts/",
        "text/html",
    )
    listing = PdfList(page)
    metadata = Metadata(listing)
    fields = metadata.read(listing.links, metadata.expressions(listing.links))
    assert [(each.organization, each.guesses) for each in fields] == [
        (name, ()) for name in PARTIES
    ]
