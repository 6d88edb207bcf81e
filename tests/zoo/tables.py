"""Tables: one row for each report, cells that span rows, and tables within tables."""

from __future__ import annotations

from itertools import groupby

from tests.zoo.site import ZooSite, fill, lines, reports

# A register: organisation, kind, period and a link that says only "View".

_STATEMENTS = (
    (4101, "Liffey Labour Group", "Annual statement", "FY 2023/24", "2023-annual"),
    (4102, "Liffey Labour Group", "Annual statement", "FY 2022/23", "2022-annual"),
    (4107, "Western Independents", "Annual statement", "FY 2023/24", "2023-annual"),
    (4111, "Civic Forum", "Donation report", "Q1 2024", "2024-Q1"),
    (4112, "Civic Forum", "Donation report", "Q2 2024", "2024-Q2"),
    (4113, "Civic Forum", "Donation report", "Q3 2024", "2024-Q3"),
    (4120, "Island Conservation Union", "Annual statement", "FY 2023/24", "2023-annual"),
    (4121, "Island Conservation Union", "Donation report", "Q1 2024", "2024-Q1"),
    (4133, "People Before Roads", "Donation report", "Q2 2024", "2024-Q2"),
    (4134, "People Before Roads", "Annual statement", "FY 2022/23", "2022-annual"),
)

_REGISTER_PAGE = """<!DOCTYPE html>
<html lang="en-IE"><head><meta charset="UTF-8"/><title>Register of statements of accounts</title>
<link href="/sites/default/files/css/css_9fK.css" rel="stylesheet"/></head>
<body class="path-register">
<div class="visually-hidden-focusable"><a href="#main-content">Skip to main content</a></div>
<header role="banner"><a href="/" rel="home">Standards in Elections Commission</a>
<nav role="navigation"><ul class="menu">
<li><a href="/about">About us</a></li><li><a href="/guidance">Guidance</a></li>
<li><a href="/register" class="is-active">Register</a></li></ul></nav></header>
<main><a id="main-content"></a><h1 class="page-title">Register of statements of accounts</h1>
<p>Political parties send us a statement of accounts each year and report donations each quarter.
You may also <a href="/files/register-export.xlsx">download the register as a spreadsheet</a>.</p>
<div class="view-content"><table class="cols-5 table"><caption>All statements</caption>
<thead><tr><th id="view-ref">Ref.</th><th>Party</th><th>Type</th><th>Period</th>
<th>Document</th></tr></thead>
<tbody>
{rows}
</tbody></table></div></main>
<footer role="contentinfo"><a href="/files/freedom-of-information-guide.pdf">FOI guide</a>
<a href="/cookies">Cookies</a></footer></body></html>"""

REGISTER = ZooSite(
    id="register-table",
    name="Standards in Elections Commission",
    start="/register",
    listed=reports(
        (f"/files/statements/soa-{number}.pdf", party, period)
        for number, party, _, _, period in _STATEMENTS
    ),
    unwanted=frozenset({"/files/freedom-of-information-guide.pdf", "/files/register-export.xlsx"}),
    pages={
        "/register": fill(
            _REGISTER_PAGE,
            rows=lines(
                f'<tr><td headers="view-ref">{number}</td><td>{party}</td><td>{kind}</td>'
                f'<td>{told}</td><td><a href="/files/statements/soa-{number}.pdf" '
                f'aria-label="View document {number}">View</a></td></tr>'
                for number, party, kind, told, _ in _STATEMENTS
            ),
        )
    },
    notes="table with header row; link text says nothing; a spreadsheet beside it",
)

# The party's name stands once, in a cell that spans its rows.

_BERICHTE = (
    ("Bürgerbund Nord (BBN)", 2023, "bbn_2023"),
    ("Bürgerbund Nord (BBN)", 2022, "bbn_2022"),
    ("Bürgerbund Nord (BBN)", 2021, "bbn_2021"),
    ("Freie Mitte", 2023, "fm_2023"),
    ("Freie Mitte", 2022, "fm_2022"),
    ("Ökologische Heimatpartei (ÖHP)", 2023, "oehp_2023"),
    ("Ökologische Heimatpartei (ÖHP)", 2022, "oehp_2022"),
    ("Ökologische Heimatpartei (ÖHP)", 2021, "oehp_2021"),
    ("Liste Küste", 2023, "lk_2023"),
)


def _spanned() -> str:
    rows = []
    for party, group in groupby(_BERICHTE, key=lambda row: row[0]):
        years = list(group)
        for index, (_, year, file) in enumerate(years):
            name = f'<td rowspan="{len(years)}" valign="top">{party}</td>' if index == 0 else ""
            rows.append(
                f'<tr>{name}<td>Rechenschaftsbericht</td><td class="jahr">{year}</td>'
                f'<td><a class="download" href="/blob/{file}-data.pdf">'
                f"PDF | {year % 100 * 40} KB</a></td></tr>"
            )
    return lines(rows)


_SPANNED_PAGE = """<!DOCTYPE html>
<html lang="de"><head><meta charset="utf-8"><title>Präsidium – Rechenschaftsberichte der
Parteien</title></head>
<body>
<nav class="meta"><a href="/leichte-sprache">Leichte Sprache</a>
<a href="/gebaerdensprache">Gebärdensprache</a></nav>
<header><a href="/"><img src="/adler.png" alt="Landtag – zur Startseite"></a>
<form action="/suche"><input name="suchbegriff" placeholder="Suchbegriff eingeben"></form></header>
<ol class="brotkrumen"><li><a href="/">Start</a></li><li><a href="/parlament">Parlament</a></li>
<li>Parteienfinanzierung</li></ol>
<article><h1>Rechenschaftsberichte der Parteien</h1>
<p>Die Parteien haben über Herkunft und Verwendung ihrer Mittel zum Ende des Kalenderjahres
öffentlich
Rechenschaft zu geben.</p>
<table border="1" class="tabelle"><thead><tr><th>Partei</th><th>Art</th><th>Jahr</th>
<th>Datei</th></tr></thead>
<tbody>
{rows}
</tbody></table>
<p class="stand">Stand: 17. März 2025</p></article>
<section class="weiteres"><h2>Weitere Informationen</h2>
<ul><li><a href="/blob/merkblatt-spenden-data.pdf">Merkblatt Spenden (PDF)</a></li>
<li><a href="https://www.gesetze.example/partg/">Parteiengesetz</a></li></ul></section>
<footer><a href="/impressum">Impressum</a> <a href="/datenschutz">Datenschutz</a></footer>
</body></html>"""

SPANNED = ZooSite(
    id="landtag-rowspan",
    name="Präsidium des Landtags",
    start="/parlament/parteienfinanzierung",
    listed=reports(
        (f"/blob/{file}-data.pdf", party, f"{year}-annual") for party, year, file in _BERICHTE
    ),
    unwanted=frozenset({"/blob/merkblatt-spenden-data.pdf"}),
    pages={"/parlament/parteienfinanzierung": fill(_SPANNED_PAGE, rows=_spanned())},
    notes="the organisation spans rows, with its abbreviation; umlauts",
)

# A county's page of the nineties: upper-case tags, fonts, tables for the layout, unclosed cells.

_COMMITTEES = (
    ("Friends of Alma Reyes", "REYES", ("0124", "0424", "0724", "1024")),
    ("Citizens for Better Schools PAC", "CBS", ("0124", "0724")),
    ("Committee to Elect Dan Okafor", "OKAFOR", ("0424", "0724", "1024")),
    ("Taxpayers of Marrow County", "TMC", ("0124", "0424", "0724", "1024")),
)
_QUARTERS = {
    "0124": ("January - March 2024", "2024-Q1"),
    "0424": ("April - June 2024", "2024-Q2"),
    "0724": ("July - September 2024", "2024-Q3"),
    "1024": ("October - December 2024", "2024-Q4"),
}


def _filings(code: str, filed: tuple[str, ...]) -> str:
    return lines(
        f"<TR><TD WIDTH=20>&nbsp;<TD><FONT FACE=Arial SIZE=2>{_QUARTERS[each][0]}</FONT>"
        f'<TD><A HREF="filings/{code}{each}.PDF"><FONT COLOR=Blue>Campaign Statement</FONT></A>'
        for each in filed
    )


_NINETIES_PAGE = """<HTML>
<HEAD><TITLE>Marrow County Clerk - Campaign Finance</TITLE>
<META NAME="GENERATOR" CONTENT="Microsoft FrontPage 3.0"></HEAD>
<BODY BGCOLOR="#FFFFFF" TEXT="#000000" LINK="#0000CC">
<TABLE WIDTH=760 BORDER=0 CELLPADDING=0><TR><TD COLSPAN=2><IMG SRC="images/seal.gif" ALT="Seal">
<FONT FACE="Times New Roman" SIZE=6><B>Marrow County Clerk</B></FONT></TD></TR>
<TR><TD WIDTH=140 VALIGN=TOP BGCOLOR="#CCCCFF"><FONT SIZE=2>
<A HREF="index.htm">Home</A><BR><A HREF="dogs.htm">Dog Licenses</A><BR>
<A HREF="marriage.htm">Marriage</A><BR><A HREF="forms/dogapp.pdf">Dog application</A><BR>
<A HREF="mailto:clerk@marrow.example">E-mail the Clerk</A></FONT></TD>
<TD VALIGN=TOP><CENTER><FONT SIZE=5>Campaign Finance Statements</FONT></CENTER>
<P><FONT SIZE=2>Get the free Acrobat Reader <A HREF="http://www.adobe.example/">here</A>.</FONT>
{tables}
<HR><FONT SIZE=1>You are visitor number <IMG SRC="/cgi-bin/count.gif?df=clerk"> since
4/1/1998</FONT>
</TD></TR></TABLE>
</BODY></HTML>"""

NINETIES = ZooSite(
    id="county-nineties",
    name="Marrow County Clerk",
    start="/clerk/finance.htm",
    listed=reports(
        (f"/clerk/filings/{code}{each}.PDF", name, _QUARTERS[each][1])
        for name, code, filed in _COMMITTEES
        for each in filed
    ),
    unwanted=frozenset({"/clerk/forms/dogapp.pdf"}),
    pages={
        "/clerk/finance.htm": fill(
            _NINETIES_PAGE,
            tables=lines(
                f"<TABLE BORDER=0 WIDTH=100%><TR BGCOLOR=#EEEEEE><TD COLSPAN=3><B><FONT FACE=Arial>"
                f"{name}</FONT></B></TD></TR>\n{_filings(code, filed)}\n</TABLE><BR>"
                for name, code, filed in _COMMITTEES
            ),
        )
    },
    encoding="windows-1252",
    media="text/html",
    validators=False,
    notes="nested tables, unclosed cells, upper-case tags and .PDF; quarters as months",
)

SITES = (REGISTER, SPANNED, NINETIES)
