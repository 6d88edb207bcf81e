"""Accordions, nested lists, and lists beside menus that are full of other files."""

from __future__ import annotations

from tests.zoo.site import ZooSite, fill, lines, reports

# details and summary: the party in the summary, years inside.

_STRANY = (
    ("Strana Horského Kraje", "shk", (2023, 2022, 2021)),
    ("Občanské Fórum Moravy", "ofm", (2023, 2022)),
    ("Zelená Alternativa", "za", (2023, 2022, 2021)),
    ("Hnutí Pro Vesnici", "hpv", (2023,)),
    ("Nezávislí Starostové", "ns", (2023, 2022, 2021)),
)


def _zpravy(slug: str, years: tuple[int, ...]) -> str:
    return lines(
        f'<li><a href="/dokumenty/vfz/{slug}/vfz-{year}.pdf">Finanční zpráva {year}</a></li>'
        for year in years
    )


_DETAILS_PAGE = """<!doctype html><html lang="cs"><head><meta charset="utf-8">
<title>Výroční finanční zprávy stran a hnutí – Úřad pro dohled</title></head><body>
<a class="preskocit" href="#obsah">Přeskočit na obsah</a>
<header><a href="/">Úřad pro dohled nad hospodařením stran</a><nav><a href="/urad">Úřad</a>
<a href="/strany">Strany a hnutí</a><a href="/volby">Volby</a>
<a href="/en">English</a></nav></header>
<main id="obsah"><h1>Výroční finanční zprávy</h1><p>Zprávy se podávají do 1. dubna.</p>
{parties}
<details class="napoveda"><summary>Jak zprávu podat</summary><p>Použijte
<a href="/dokumenty/vzor-vfz.pdf">vzor zprávy</a> a <a href="/dokumenty/vzor.docx">přílohu</a>.</p>
</details></main><footer><a href="/gdpr">GDPR</a></footer></body></html>"""

DETAILS = ZooSite(
    id="urad-details",
    name="Úřad pro dohled nad hospodařením stran",
    start="/strany/zpravy",
    listed=reports(
        (f"/dokumenty/vfz/{slug}/vfz-{year}.pdf", name, f"{year}-annual")
        for name, slug, years in _STRANY
        for year in years
    ),
    unwanted=frozenset({"/dokumenty/vzor-vfz.pdf", "/dokumenty/vzor.docx"}),
    pages={
        "/strany/zpravy": fill(
            _DETAILS_PAGE,
            parties=lines(
                f"<details><summary>{name}</summary><ul>\n{_zpravy(slug, years)}\n</ul></details>"
                for name, slug, years in _STRANY
            ),
        )
    },
    notes="details and summary; a template inside an accordion of the same kind",
)

# Bootstrap's accordion: the period on the button, parties in the panel.

_PERIODS = (
    ("q4-2023", "Fourth quarter 2023", "2023-Q4"),
    ("q3-2023", "Third quarter 2023", "2023-Q3"),
    ("q2-2023", "Second quarter 2023", "2023-Q2"),
)
_RIDINGS = (
    ("Prairie Voice Association", "pva"),
    ("Lakeshore Democrats", "lsd"),
    ("Northern Liberty League", "nll"),
    ("Parti Communautaire", "pc"),
)


def _panel(code: str, label: str) -> str:
    items = lines(
        f'<p><a href="/getmedia/{code}/{slug}.pdf">{name}</a> <small>PDF {size} kB</small></p>'
        for size, (name, slug) in enumerate(_RIDINGS, start=311)
    )
    return (
        f'<div class="accordion-item"><h2 class="accordion-header"><button class="accordion-button '
        f'collapsed" type="button" data-bs-target="#{code}">{label}</button></h2><div id="{code}" '
        f'class="accordion-collapse collapse"><div class="accordion-body">'
        f"{items}</div></div></div>"
    )


_PANELS_PAGE = """<!DOCTYPE html><html lang="en-CA"><head><meta charset="utf-8"><title>Quarterly
returns - Elections Assiniboia</title></head><body vocab="http://schema.org/" typeof="WebPage">
<ul id="wb-tphp"><li class="wb-slc"><a class="wb-sl" href="#wb-cont">Skip to main
content</a></li></ul>
<header><section id="wb-lng"><a lang="fr" href="/fr/rapports">Français</a></section>
<a href="/en"><img src="/sig-blk-en.svg" alt="Elections Assiniboia"></a></header>
<main property="mainContentOfPage"><h1 id="wb-cont">Quarterly returns of registered parties</h1>
<div class="accordion" id="returns">
{panels}
</div></main>
<footer id="wb-info"><nav><h2>About this site</h2><ul><li><a href="/en/terms">Terms</a></li>
<li><a href="/getmedia/site/accessibility-plan-2023.pdf">Accessibility plan 2023</a></li></ul></nav>
</footer></body></html>"""

PANELS = ZooSite(
    id="assiniboia-panels",
    name="Elections Assiniboia",
    start="/en/returns",
    listed=reports(
        (f"/getmedia/{code}/{slug}.pdf", name, period)
        for code, _, period in _PERIODS
        for name, slug in _RIDINGS
    ),
    unwanted=frozenset({"/getmedia/site/accessibility-plan-2023.pdf"}),
    pages={
        "/en/returns": fill(
            _PANELS_PAGE, panels=lines(_panel(code, label) for code, label, _ in _PERIODS)
        )
    },
    notes="button and collapsed div; the quarter in words on the button, the party in the link",
)

# Everything in one nested list: year, party, report.

_NESTED = {
    2024: {"Lista Laguna": ("bilancio", "donazioni"), "Alleanza Alpina": ("bilancio",)},
    2023: {
        "Lista Laguna": ("bilancio", "donazioni"),
        "Alleanza Alpina": ("bilancio", "donazioni"),
        "Insieme per il Porto": ("bilancio",),
    },
}
_KINDS = {"bilancio": "Rendiconto di esercizio", "donazioni": "Elenco dei contributi"}
_LISTA = tuple(
    (f"/doc/{year}/{party.lower().replace(' ', '_')}_{kind}.pdf", party, year, kind)
    for year, parties in _NESTED.items()
    for party, kinds in parties.items()
    for kind in kinds
)


def _nested_party(year: int, party: str) -> str:
    items = lines(
        f'<li><a href="{path}">{_KINDS[kind]}</a></li>'
        for path, name, when, kind in _LISTA
        if (when, name) == (year, party)
    )
    return f"<li><b>{party}</b><ul>{items}</ul></li>"


_NESTED_PAGE = """<!DOCTYPE html><html lang="it"><head><meta charset="utf-8"><title>Rendiconti dei
partiti politici</title></head><body><div class="menu"><ul><li><a href="/">Home</a></li><li>
<a href="/commissione">La Commissione</a><ul><li><a href="/doc/regolamento.pdf">Regolamento</a></li>
<li><a href="/doc/organigramma.pdf">Organigramma</a></li></ul></li><li>
<a href="/registro">Registro</a>
</li></ul></div><div class="contenuto"><h1>Rendiconti dei partiti politici</h1><ul class="albero">
{years}
</ul></div><div class="pie"><p>Commissione di garanzia – tel. 06 1984
2001</p></div></body></html>"""

NESTED = ZooSite(
    id="garanzia-tree",
    name="Commissione di garanzia",
    start="/rendiconti",
    listed=reports((path, party, f"{year}-annual") for path, party, year, _ in _LISTA),
    unwanted=frozenset({"/doc/regolamento.pdf", "/doc/organigramma.pdf"}),
    pages={
        "/rendiconti": fill(
            _NESTED_PAGE,
            years=lines(
                f"<li>Anno {year}<ul>"
                + lines(_nested_party(year, party) for party in parties)
                + "</ul></li>"
                for year, parties in _NESTED.items()
            ),
        )
    },
    notes="one nested list, and a menu that is a nested list with PDFs of its own",
)

# A big menu and footer with more PDFs than the list has.

_MENU = tuple(f"/media/forms/form-{number}.pdf" for number in range(1, 13))
_FOOT = tuple(f"/media/corporate/{name}.pdf" for name in ("privacy", "slavery", "gifts", "pay-gap"))
_RETURNS = (
    ("Barossa Reform", "PRT-0091", "FY 2022-23"),
    ("Coastal Shooters", "PRT-0092", "FY 2022-23"),
    ("Dry Creek Residents", "PRT-0093", "FY 2022-23"),
    ("Eyre First", "PRT-0094", "FY 2022-23"),
    ("Grain and Graze Party", "PRT-0095", "FY 2022-23"),
)

_MEGA_PAGE = """<!DOCTYPE html><html lang="en-AU"><head><meta charset="utf-8"><title>Annual returns
-
Funding and disclosure</title></head><body><div class="mega-menu"><div class="mega-col">
<h4>Forms</h4>
<ul>
{menu}
</ul></div><div class="mega-col"><h4>Guides</h4><ul><li><a href="/guides">All guides</a></li></ul>
</div></div><div class="wrap"><div class="crumbs"><a href="/">Home</a> / Annual returns</div>
<h1>Annual returns</h1><table class="returns">
<tr><th>Return</th><th>Name of party</th><th>Financial year</th></tr>
{rows}
</table></div><div class="fat-footer"><ul>
{foot}
</ul><p>ABN 00 000 000 000</p></div></body></html>"""

MEGA = ZooSite(
    id="funding-megamenu",
    name="Funding and Disclosure Branch",
    start="/annual-returns",
    listed=reports(
        (f"/media/returns/{code}.pdf", name, "2022-annual") for name, code, _ in _RETURNS
    ),
    unwanted=frozenset(_MENU + _FOOT),
    pages={
        "/annual-returns": fill(
            _MEGA_PAGE,
            menu=lines(f'<li><a href="{path}">Form {path[18:-4]}</a></li>' for path in _MENU),
            rows=lines(
                f'<tr><td><a href="/media/returns/{code}.pdf">{code}</a></td><td>{name}</td>'
                f"<td>{told}</td></tr>"
                for name, code, told in _RETURNS
            ),
            foot=lines(f'<li><a href="{path}">{path[17:-4].title()}</a></li>' for path in _FOOT),
        )
    },
    notes="more PDFs in menu and footer than in the list; the link is a number",
)

SITES = (DETAILS, PANELS, NESTED, MEGA)
