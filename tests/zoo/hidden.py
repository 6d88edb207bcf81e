"""Lists that a plain reader of links does not see: sitemaps, data in scripts, clicks, frames."""

from __future__ import annotations

import gzip
import json

from tests.zoo.site import ELSEWHERE, HOME, Answer, Truth, ZooSite, fill, lines, reports

# The home page lists nothing. robots.txt names an index of sitemaps, one of them compressed.

_MAPPED = {
    "delta": ("Delta Unity Movement", (2023, 2022)),
    "highland": ("Highland People's Party", (2023, 2022, 2021)),
    "lake": ("Lake Region Democrats", (2022,)),
    "plains": ("Plains Workers Congress", (2023, 2021)),
}

_MAPPED_HOME = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Registrar of
Political
Parties</title></head><body><div id="app"></div><noscript>This site needs JavaScript.</noscript>
<script src="/static/js/main.4f1c.js"></script></body></html>"""
_MAPPED_PARTY = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{name} -
Registrar of
Political Parties</title></head><body><h1>{name}</h1><h2>Audited statements</h2><ul>
{items}
</ul></body></html>"""


def _urlset(paths: list[str]) -> bytes:
    entries = lines(
        f"<url><loc>{HOME}{path}</loc><lastmod>2025-01-07</lastmod></url>" for path in paths
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'
    ).encode()


_SITEMAP_INDEX = f"""<?xml version="1.0" encoding="UTF-8"?>
<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<sitemap><loc>{HOME}/sitemaps/pages.xml</loc></sitemap>
<sitemap><loc>{HOME}/sitemaps/parties.xml</loc></sitemap>
</sitemapindex>"""


def _mapped_party(slug: str, name: str, years: tuple[int, ...]) -> str:
    items = lines(
        f'<li><a href="/statements/{slug}/{year}.pdf">Statement of {year}</a></li>'
        for year in years
    )
    return fill(_MAPPED_PARTY, name=name, items=items)


SITEMAP = ZooSite(
    id="registrar-sitemap",
    name="Registrar of Political Parties",
    start="/",
    listed=reports(
        (f"/statements/{slug}/{year}.pdf", name, f"{year}-annual")
        for slug, (name, years) in _MAPPED.items()
        for year in years
    ),
    pages={
        "/": _MAPPED_HOME,
        "/robots.txt": Answer(
            body=f"User-agent: *\nDisallow:\nSitemap: {HOME}/sitemap.xml\n".encode(),
            media="text/plain",
        ),
        "/sitemap.xml": Answer(body=_SITEMAP_INDEX.encode(), media="application/xml"),
        "/sitemaps/pages.xml": Answer(body=_urlset(["/", "/about"]), media="application/xml"),
        "/sitemaps/parties.xml": Answer(
            body=_urlset([f"/parties/{slug}" for slug in _MAPPED]), media="application/xml"
        ),
        "/about": "<title>About us</title><h1>About us</h1><p>We register parties.</p>",
        **{f"/parties/{slug}": _mapped_party(slug, *told) for slug, told in _MAPPED.items()},
    },
    notes="an index of sitemaps; pages that nothing else links to",
)

_ZIPPED = tuple((f"/doc/{n}-{year}.pdf", year) for n in range(1, 5) for year in (2023, 2022))

SITEMAP_GZ = ZooSite(
    id="oversight-sitemap-gz",
    name="Office of Oversight",
    start="/",
    listed=reports((path, None, f"{year}-annual") for path, year in _ZIPPED),
    pages={
        "/": "<!doctype html><title>Office of Oversight</title><p>Search our site.</p>",
        "/robots.txt": Answer(
            body=f"User-agent: *\nAllow: /\nSitemap: {HOME}/sitemap.xml.gz".encode(),
            media="text/plain",
        ),
        "/sitemap.xml.gz": Answer(
            body=gzip.compress(_urlset([path for path, _ in _ZIPPED]), mtime=0),
            media="application/gzip",
        ),
    },
    validators=False,
    notes="a compressed sitemap that names the PDFs themselves; no organisation anywhere",
)

# The list is data inside the page, from which a script would draw it.

_RECORDS = tuple(
    {"id": 10 + n, "party": name, "period": f"Q{quarter} 2023", "file": f"/cdn/{n}{quarter}.pdf"}
    for n, name in enumerate(("Union Civique", "Parti du Fleuve", "Front des Métiers"))
    for quarter in (1, 2, 3)
)

_JSON_PAGE = """<!DOCTYPE html><html lang="fr-CA"><head><meta charset="utf-8"><title>Rapports
financiers
</title></head><body><h1>Rapports financiers trimestriels</h1><div id="root">Chargement…</div>
<script id="__NEXT_DATA__" type="application/json">{data}</script>
<script src="/_next/static/chunks/main.js" async></script></body></html>"""

_NEXT = {"props": {"pageProps": {"locale": "fr", "reports": _RECORDS}}, "page": "/rapports"}

JSON_FED = ZooSite(
    id="directeur-json",
    name="Directeur des élections",
    start="/rapports",
    listed=reports(
        (str(record["file"]), str(record["party"]), f"2023-{str(record['period'])[:2]}")
        for record in _RECORDS
    ),
    pages={"/rapports": fill(_JSON_PAGE, data=json.dumps(_NEXT, ensure_ascii=False))},
    notes="script of type application/json holds the list",
)

_ROWS = tuple(
    {"title": f"{name} – Cuentas anuales {year}", "url": f"/uploads/{slug}\\u002d{year}.pdf"}
    for name, slug in (("Coalición Serrana", "serrana"), ("Partido Vecinal", "vecinal"))
    for year in (2023, 2022, 2021)
)
_ASSIGNED_PAGE = """<!DOCTYPE html><html lang="es"><head><meta charset="utf-8"><title>Cuentas
anuales</title>
</head><body><header>Consejo Electoral</header><h1>Cuentas anuales</h1><div id="lista"></div>
<script>window.__DATA__ = {data};
document.addEventListener("DOMContentLoaded", function () { render(window.__DATA__.rows);
});</script>
</body></html>"""

ASSIGNED = ZooSite(
    id="consejo-assigned",
    name="Consejo Electoral",
    start="/cuentas",
    listed=reports(
        (f"/uploads/{slug}-{year}.pdf", name, f"{year}-annual")
        for name, slug in (("Coalición Serrana", "serrana"), ("Partido Vecinal", "vecinal"))
        for year in (2023, 2022, 2021)
    ),
    pages={
        "/cuentas": fill(
            _ASSIGNED_PAGE,
            data=json.dumps({"rows": _ROWS}).replace("\\\\u002d", "\\u002d").replace("/", "\\/"),
        )
    },
    notes="window.__DATA__ = {…} with escaped slashes and hyphens",
)

# Links that are clicks: window.open, location.href, and a row that is a link.

_CLICKS = (
    ("Partidul Dunării", "open", "/uploads/dunarea_2023.pdf"),
    ("Partidul Dunării", "open", "/uploads/dunarea_2022.pdf"),
    ("Uniunea Satelor", "location", "/uploads/sate_2023.pdf"),
    ("Uniunea Satelor", "location", "/uploads/sate_2022.pdf"),
    ("Alianța Orașelor", "row", "/uploads/orase_2023.pdf"),
    ("Alianța Orașelor", "row", "/uploads/orase_2022.pdf"),
)
_HOW = {
    "open": '<tr><td>{name}</td><td>{year}</td><td><a href="javascript:void(0)" '
    "onclick=\"window.open('{path}','_blank'); return false;\">Vezi raportul</a></td></tr>",
    "location": '<tr><td>{name}</td><td>{year}</td><td><button type="button" '
    "onclick=\"location.href='{path}'\">Vezi raportul</button></td></tr>",
    "row": '<tr data-href="{path}" class="clickable"><td>{name}</td><td>{year}</td><td>Vezi '
    "raportul</td></tr>",
}
_CLICKS_PAGE = """<!DOCTYPE html><html lang="ro"><head><meta charset="utf-8">
<title>Rapoarte</title></head>
<body><a href="#" onclick="history.back()">Înapoi</a><h1>Rapoarte de venituri și cheltuieli</h1>
<table><tr><th>Partid</th><th>An</th><th>Raport</th></tr>
{rows}
</table></body></html>"""

CLICKS = ZooSite(
    id="autoritatea-clicks",
    name="Autoritatea Electorală",
    start="/rapoarte",
    listed=reports((path, name, f"{path[-8:-4]}-annual") for name, _, path in _CLICKS),
    pages={
        "/rapoarte": fill(
            _CLICKS_PAGE,
            rows=lines(
                fill(_HOW[how], name=name, year=path[-8:-4], path=path)
                for name, how, path in _CLICKS
            ),
        )
    },
    notes="window.open, location.href and data-href",
)

# The list stands in an iframe, and the files on a server of their own, beside office files.

_FILED = (
    ("Kotimaan Liitto", "kotimaa", 2023),
    ("Kotimaan Liitto", "kotimaa", 2022),
    ("Järvien Puolue", "jarvi", 2023),
    ("Saariston Ääni", "saaristo", 2023),
    ("Saariston Ääni", "saaristo", 2022),
)
_IFRAME_OUTER = """<!DOCTYPE html><html lang="fi"><head><meta charset="utf-8">
<title>Puoluerahoitus</title>
</head><body><h1>Puoluerahoitusvalvonta</h1><iframe src="/upotus/lista.html" width="100%"
title="Tilinpäätökset"></iframe><footer>
<a href="/tietosuoja">Tietosuoja</a></footer></body></html>"""
_IFRAME_INNER = """<!DOCTYPE html><html lang="fi"><head><meta charset="utf-8"></head><body><table>
<tr><th>Puolue</th><th>Tilikausi</th><th>Tilinpäätös</th><th>Liitteet</th></tr>
{rows}
</table></body></html>"""


def _filed_row(name: str, slug: str, year: int) -> str:
    file = f"{ELSEWHERE}/julkinen/{year}/{slug}"
    return (
        f'<tr><td>{name}</td><td>{year}</td><td><a href="{file}.pdf">PDF</a></td>'
        f'<td><a href="{file}.xlsx">Excel</a> <a href="{file}.docx">Word</a></td></tr>'
    )


_FILE_SERVER = ZooSite(
    id="valvonta-files",
    name="Valvontavirasto, tiedostot",
    listed=reports(
        (f"/julkinen/{year}/{slug}.pdf", name, f"{year}-annual") for name, slug, year in _FILED
    ),
    unwanted=frozenset(
        f"/julkinen/{year}/{slug}.{ending}"
        for _, slug, year in _FILED
        for ending in ("xlsx", "docx")
    ),
    pages={"/": Answer(status=403, body=b"<h1>403</h1>")},
)

IFRAME = ZooSite(
    id="valvonta-iframe",
    name="Valvontavirasto",
    start="/puoluerahoitus",
    files=_FILE_SERVER,
    listed=tuple(
        Truth(path=ELSEWHERE + truth.path, organization=truth.organization, period=truth.period)
        for truth in _FILE_SERVER.listed
    ),
    unwanted=frozenset(ELSEWHERE + path for path in _FILE_SERVER.unwanted),
    pages={
        "/puoluerahoitus": _IFRAME_OUTER,
        "/upotus/lista.html": fill(_IFRAME_INNER, rows=lines(_filed_row(*row) for row in _FILED)),
    },
    notes="an iframe; PDFs, spreadsheets and texts on a second server",
)

SITES = (SITEMAP, SITEMAP_GZ, JSON_FED, ASSIGNED, CLICKS, IFRAME)
