"""Lists: flat, below headings, of definitions, and cards that are no lists at all."""

from __future__ import annotations

from tests.zoo.site import ZooSite, fill, lines, reports

# One long list; organisation and period stand in the text of the link.

_RETURNS = (
    ("harbour-party", "Harbour Party", 2023, 214),
    ("harbour-party", "Harbour Party", 2022, 198),
    ("rural-alliance", "Rural Alliance", 2023, 611),
    ("rural-alliance", "Rural Alliance", 2022, 587),
    ("te-ara-hou", "Te Ara Hou", 2023, 92),
    ("new-centre", "New Centre", 2023, 340),
    ("new-centre", "New Centre", 2022, 338),
    ("social-credit-renewal", "Social Credit Renewal", 2023, 77),
    ("rivers-and-rail", "Rivers & Rail", 2023, 105),
    ("rivers-and-rail", "Rivers & Rail", 2022, 101),
    ("southern-greens", "Southern Greens", 2023, 433),
    ("southern-greens", "Southern Greens", 2022, 402),
)

_FLAT_PAGE = """<!DOCTYPE html>
<html lang="en-NZ">
<head>
<meta charset="utf-8">
<title>Party annual returns of donations | Electoral Office of Aotea</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/assets/site.css?v=71">
<script>window.dataLayer = window.dataLayer || []; function
gtag(){dataLayer.push(arguments);}</script>
</head>
<body class="page page--sidebar">
<a class="skip-link" href="#main">Skip to main content</a>
<div class="cookie-banner" role="region" aria-label="Cookies">
 <p>We use cookies to see how this site is used. <a href="/privacy">Read our privacy
statement</a>.</p>
 <button type="button">OK</button></div>
<header><a href="/" class="logo"><img src="/assets/logo.svg" alt="Electoral Office of Aotea"></a>
<form action="/search" method="get" role="search"><label for="q">Search</label>
<input id="q" name="q" type="text"><button>Go</button></form>
<nav aria-label="Main"><ul>
 <li><a href="/enrol">Enrol to vote</a></li>
 <li><a href="/voting">Voting</a></li>
 <li><a href="/parties">Parties and candidates</a></li>
 <li><a href="/results">Results</a></li></ul></nav></header>
<nav class="breadcrumb" aria-label="Breadcrumb"><a href="/">Home</a> ›
<a href="/parties">Parties</a> ›
 <span>Annual returns</span></nav>
<main id="main">
<h1>Party annual returns of donations</h1>
<p>Each registered party files a return of the donations and loans it received in a calendar year by
30 April of the next. Returns are published as we received them. See
<a href="/parties/handbook">the party secretary handbook</a> for what must be declared.</p>
<ul class="document-list">
{items}
</ul>
<p class="updated">Last updated: 14 May 2024</p>
</main>
<footer><ul>
 <li><a href="/docs/privacy-statement.pdf">Privacy statement (PDF)</a></li>
 <li><a href="/docs/accessibility.pdf">Accessibility statement (PDF)</a></li>
 <li><a href="https://twitter.example/electoral">Follow us</a></li></ul>
 <p>© Electoral Office of Aotea</p></footer>
<script src="/assets/site.js"></script>
</body></html>"""

FLAT = ZooSite(
    id="aotea-flat",
    name="Electoral Office of Aotea",
    start="/parties/annual-returns",
    listed=reports(
        (f"/assets/returns/{slug}-return-{year}.pdf", name, f"{year}-annual")
        for slug, name, year, _ in _RETURNS
    ),
    unwanted=frozenset({"/docs/privacy-statement.pdf", "/docs/accessibility.pdf"}),
    pages={
        "/parties/annual-returns": fill(
            _FLAT_PAGE,
            items=lines(
                f'<li><a class="pdf" href="/assets/returns/{slug}-return-{year}.pdf">'
                f"{name.replace('&', '&amp;')} – annual return {year} (PDF, {size} KB)</a></li>"
                for slug, name, year, size in _RETURNS
            ),
        ),
        "/": "<title>Electoral Office</title><a href='/parties/annual-returns'>Returns</a>",
    },
    notes="flat list; organisation and year in the link text",
)

# A heading for each party, a list of years below it.

_PARTIS = (
    ("Rassemblement des Communes", "rdc", (2023, 2022, 2021, 2020)),
    ("Union pour la Vallée", "upv", (2023, 2022, 2021)),
    ("Les Verts de l’Estuaire", "vde", (2023, 2022, 2021, 2020)),
    ("Alternative Citoyenne", "ac", (2022, 2021)),
    ("Parti Radical Rénové", "prr", (2023, 2021)),
)


def _comptes(slug: str, years: tuple[int, ...]) -> str:
    return lines(
        f'  <li><a href="../../IMG/pdf/{year}_{slug}_comptes.pdf" title="Télécharger le fichier">'
        f"Comptes d’ensemble de l’exercice {year}</a> <em>(PDF – {year % 90} Ko)</em></li>"
        for year in years
    )


_HEADINGS_PAGE = """<!DOCTYPE html>
<html dir="ltr" lang="fr"><head><meta charset="utf-8"><title>Publication des comptes des partis
- Commission des comptes de campagne</title><link rel="alternate" type="application/rss+xml"
href="/spip.php?page=backend"></head>
<body id="top" class="rubrique">
<div id="entete"><a href="/" rel="start home"><strong>Commission des comptes de
campagne</strong></a>
<ul class="nav"><li><a href="/fr/actualites/">Actualités</a></li><li>
<a href="/fr/candidats/">Candidats</a>
</li><li class="on"><a href="/fr/partis/">Partis politiques</a></li><li>
<a href="/fr/contact/">Contact</a></li>
</ul></div>
<p id="hierarchie"><a href="/">Accueil</a> &gt; <a href="/fr/partis/">Partis politiques</a> &gt;
<strong>Comptes</strong></p>
<div id="contenu">
<h1 class="surlignable">Publication des comptes des partis et groupements politiques</h1>
<p class="chapo">Les partis déposent leurs comptes certifiés avant le 30&nbsp;juin de l’année
suivant
celle de l’exercice. La Commission en assure la publication.</p>
{parties}
</div>
<div id="extra"><h2>À télécharger</h2>
<ul><li><a href="../../IMG/pdf/guide_du_mandataire.pdf">Guide du mandataire</a></li></ul>
<h2>Sur le même sujet</h2><ul><li><a href="/fr/partis/aide-publique/">L’aide
publique</a></li></ul></div>
<div id="pied"><a href="/fr/mentions/">Mentions légales</a> | <a href="/fr/plan/">Plan du site</a> |
<a href="../../IMG/pdf/declaration_accessibilite.pdf">Accessibilité : non conforme</a></div>
</body></html>"""

HEADINGS = ZooSite(
    id="comptes-titres",
    name="Commission des comptes de campagne",
    start="/fr/partis/comptes/",
    listed=reports(
        (f"/fr/IMG/pdf/{year}_{slug}_comptes.pdf", name, f"{year}-annual")
        for name, slug, years in _PARTIS
        for year in years
    ),
    unwanted=frozenset(
        {"/fr/IMG/pdf/guide_du_mandataire.pdf", "/fr/IMG/pdf/declaration_accessibilite.pdf"}
    ),
    pages={
        "/fr/partis/comptes/": fill(
            _HEADINGS_PAGE,
            parties=lines(
                f"<h2>{name}</h2>\n<ul class='spip'>\n{_comptes(slug, years)}\n</ul>"
                for name, slug, years in _PARTIS
            ),
        )
    },
    notes="heading above each list names the party; ../ links; guide in a side column",
)

# A list of definitions: the term is the party, each definition a quarter.

_PARTIDOS = (
    ("Movimiento Costa Unida", "mcu"),
    ("Partido del Altiplano", "pda"),
    ("Frente Cívico Independiente", "fci"),
    ("Alianza Agraria Nacional", "aan"),
)
_TRIMESTRES = ((1, "Primer"), (2, "Segundo"), (3, "Tercer"), (4, "Cuarto"))


def _trimestres(slug: str) -> str:
    return lines(
        f'<dd><a href="/transparencia/informes/{slug}/2024/t{number}.pdf" target="_blank">'
        f"{ordinal} trimestre de 2024</a></dd>"
        for number, ordinal in _TRIMESTRES
    )


_DEFINITIONS_PAGE = """<!doctype html>
<html lang="es"><head><meta charset="utf-8"><title>Informes trimestrales — Tribunal
Electoral</title></head>
<body><div class="barra-gobierno"><a href="https://gob.example/">Portal del Gobierno</a></div>
<header><h2 class="marca"><a href="/">Tribunal Electoral</a></h2>
<nav><a href="/el-tribunal">El Tribunal</a><a href="/elecciones">Elecciones</a>
<a href="/transparencia">Transparencia</a><a href="/prensa">Prensa</a></nav></header>
<main><h1>Informes trimestrales de ingresos y gastos, ejercicio 2024</h1>
<p>En cumplimiento del artículo 88 de la Ley de Partidos se publican los informes recibidos.</p>
<dl class="informes">
{parties}
</dl></main>
<aside><h3>Formularios</h3><a href="/formularios/f-07-balance.pdf">Formulario F-07 (en
blanco)</a></aside>
<footer><p>Av. del Puerto 1200 · Tel. 555&nbsp;2024</p><a href="/aviso-legal">Aviso
legal</a></footer>
</body></html>"""

DEFINITIONS = ZooSite(
    id="tribunal-definiciones",
    name="Tribunal Electoral",
    start="/transparencia/informes/",
    listed=reports(
        (f"/transparencia/informes/{slug}/2024/t{number}.pdf", name, f"2024-Q{number}")
        for name, slug in _PARTIDOS
        for number, _ in _TRIMESTRES
    ),
    unwanted=frozenset({"/formularios/f-07-balance.pdf"}),
    pages={
        "/transparencia/informes/": fill(
            _DEFINITIONS_PAGE,
            parties=lines(f"<dt>{name}</dt>\n{_trimestres(slug)}" for name, slug in _PARTIDOS),
        )
    },
    validators=False,
    notes="definition list; quarters in words; no validators",
)

# Cards made of divs; the whole card is a link, the period a badge in it.

_KAARTEN = (
    ("Waterschapspartij Delta", "2023", "wpd-jaarrekening-2023"),
    ("Waterschapspartij Delta", "2022", "wpd-jaarrekening-2022"),
    ("Polderbelang", "2023", "polderbelang-2023-def"),
    ("Polderbelang", "2022", "polderbelang-2022"),
    ("Groen Noordzee", "2023", "gnz_fin_verslag_2023"),
    ("Stem van de Stad", "2023", "svds-jaarverslag-2023"),
    ("Stem van de Stad", "2022", "svds-jaarverslag-2022"),
    ("Partij voor de Dijken", "2022", "pvdd_2022"),
)

_CARDS_PAGE = """<!DOCTYPE html><html lang="nl"><head><meta charset="utf-8">
<title>Financiële verslagen politieke partijen | Toezichthouder Partijfinanciën</title>
<style>.card{border:1px solid #ccc;padding:1rem}.badge{background:#154273;color:#fff}</style></head>
<body><div id="skip"><a href="#content">Direct naar inhoud</a></div>
<div class="header"><div class="logo"><a href="/">
<img alt="Toezichthouder Partijfinanciën" src="/l.svg"></a>
</div><div class="menu"><a href="/onderwerpen">Onderwerpen</a><a href="/nieuws">Nieuws</a>
<a href="/publicaties/brochure-giften.pdf">Brochure giften</a></div></div>
<div id="content"><h1>Financiële verslagen van politieke partijen</h1>
<div class="intro">Hier vindt u de verslagen die bij de toezichthouder zijn ingediend.</div>
<div class="cards">
{cards}
</div></div>
<div class="footer"><a href="/over">Over deze site</a>
<a href="/toegankelijkheid.pdf">Toegankelijkheid</a>
</div></body></html>"""

CARDS = ZooSite(
    id="partijen-kaarten",
    name="Toezichthouder Partijfinanciën",
    start="/verslagen",
    listed=reports(
        (f"/binaries/{file}.pdf", name, f"{year}-annual") for name, year, file in _KAARTEN
    ),
    unwanted=frozenset({"/publicaties/brochure-giften.pdf", "/toegankelijkheid.pdf"}),
    pages={
        "/verslagen": fill(
            _CARDS_PAGE,
            cards=lines(
                f'<div class="card"><a href="/binaries/{file}.pdf">'
                f'<div class="card-title">{name}</div>'
                f'<div class="card-text">Jaarrekening en overzicht van giften</div>'
                f'<span class="badge">{year}</span><span class="type">pdf</span></a></div>'
                for name, year, file in _KAARTEN
            ),
        )
    },
    notes="cards without lists; a PDF in the menu and one in the footer, all of it divs",
)

SITES = (FLAT, HEADINGS, DEFINITIONS, CARDS)
