"""Sites that are hard to fetch from: redirects, refusals, delays, lies about what is there."""

from __future__ import annotations

from urllib.parse import urlsplit

from tests.zoo.site import NOT_FOUND, Answer, Ask, Route, Truth, ZooSite, fill, lines, pdf, reports

# Each link leads through /go?id=… to the file.

_GO = tuple(
    (7000 + 11 * index, name, year)
    for index, (name, year) in enumerate(
        (name, year)
        for name in ("Partido da Ribeira", "Aliança do Interior", "Bloco Atlântico")
        for year in (2023, 2022, 2021)
    )
)

_GO_PAGE = """<!DOCTYPE html><html lang="pt"><head><meta charset="utf-8"><title>Contas anuais |
Entidade das Contas</title></head><body><header><a href="/">Entidade das Contas</a><ul>
<li><a href="/go?id=1">Facebook</a></li><li><a href="/go?id=2">Legislação</a></li></ul></header>
<main><h1>Contas anuais dos partidos</h1><table><thead><tr><th>Partido</th><th>Ano</th>
<th></th></tr>
</thead><tbody>
{rows}
</tbody></table></main><footer>Rua da Prata, 2020</footer></body></html>"""


def _go(ask: Ask) -> Answer:
    number = ask.query.get("id", "")
    targets = {str(n): f"/arquivo/{n}/contas.pdf" for n, _, _ in _GO}
    targets |= {"1": "https://social.example/contas", "2": "/legislacao.html"}
    if number not in targets:
        return Answer(status=404, body=b"?")
    return Answer(status=302, media=None, headers={"Location": targets[number]})


REDIRECTS = ZooSite(
    id="contas-redirects",
    name="Entidade das Contas",
    start="/contas-anuais",
    listed=tuple(
        Truth(
            path=f"/go?id={number}",
            aliases=(f"/arquivo/{number}/contas.pdf",),
            organization=name,
            period=f"{year}-annual",
        )
        for number, name, year in _GO
    ),
    unwanted=frozenset({"/go?id=1", "/go?id=2"}),
    pages={
        "/contas-anuais": fill(
            _GO_PAGE,
            rows=lines(
                f'<tr><td>{name}</td><td>{year}</td><td><a href="/go?id={number}">'
                f"Descarregar PDF</a></td></tr>"
                for number, name, year in _GO
            ),
        ),
        "/legislacao.html": "<title>Legislação</title><p>Lei dos partidos.</p>",
    }
    | {f"/go?id={number}": _go for number in (1, 2, *(n for n, _, _ in _GO))},
    notes="302 to a relative address; the menu uses the same redirector for other things",
)

# No extension; the name stands in Content-Disposition, for one of them in RFC 5987's way.

_DOWNLOADS = (
    (501, "Mouvement Léman", "2024-Q1", "1er trimestre 2024"),
    (502, "Mouvement Léman", "2024-Q2", "2e trimestre 2024"),
    (503, "Parti Jurassien du Centre", "2024-Q1", "1er trimestre 2024"),
    (504, "Parti Jurassien du Centre", "2024-Q2", "2e trimestre 2024"),
    (505, "Alliance des Cantons", "2024-Q1", "1er trimestre 2024"),
    (506, "Alliance des Cantons", "2024-Q2", "2e trimestre 2024"),
)


def _disposition(path: str) -> dict[str, str]:
    number = path.rpartition("/")[2]
    if number == "505":
        return {"Content-Disposition": f"attachment; filename*=UTF-8''donn%C3%A9es-{number}.pdf"}
    return {"Content-Disposition": f'attachment; filename="declaration {number}.pdf"'}


_DOWNLOADS_PAGE = """<!DOCTYPE html><html lang="fr-CH"><head><meta charset="utf-8">
<title>Transparence du
financement</title></head><body><div class="mod-nav"><a href="/">Contrôle des finances</a>
<a href="/themes">Thèmes</a><a href="/download/90">Organigramme</a></div><div class="mod-text">
<h1>Transparence du financement politique</h1><p>Déclarations reçues, par acteur
politique.</p></div>
<ul class="mod-list">
{items}
</ul><div class="mod-foot"><a href="/impressum">Informations juridiques</a></div></body></html>"""

DOWNLOADS = ZooSite(
    id="finances-downloads",
    name="Contrôle des finances",
    start="/fr/declarations",
    listed=reports((f"/download/{number}", name, period) for number, name, period, _ in _DOWNLOADS),
    unwanted=frozenset({"/download/90"}),
    pdf_headers=_disposition,
    pages={
        "/fr/declarations": fill(
            _DOWNLOADS_PAGE,
            items=lines(
                f'<li><strong>{name}</strong>, {told} <a href="/download/{number}" '
                f'title="Télécharger">Déclaration (PDF)</a></li>'
                for number, name, _, told in _DOWNLOADS
            ),
        )
    },
    notes="no extension; Content-Disposition with spaces and in RFC 5987",
)

# Some of the links answer 200 with a page of regret: as a PDF by its type, or as what it is.

_AGENCIES = (
    ("Volta Progress Party", 2022, True),
    ("Volta Progress Party", 2021, True),
    ("National Renewal Congress", 2022, True),
    ("National Renewal Congress", 2021, False),
    ("Savannah Farmers Union", 2022, True),
    ("Savannah Farmers Union", 2021, True),
    ("Coastal Youth Movement", 2022, False),
    ("Coastal Youth Movement", 2021, True),
)
_REGRET = b"<html><body><h1>Sorry</h1><p>The document you want was not found.</p></body></html>"


def _agency_path(name: str, year: int) -> str:
    return f"/resources/{year}/{name.split(maxsplit=1)[0].upper()}_AUDITED_ACCOUNTS_{year}.pdf"


_AGENCY_PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Audited
accounts</title>
</head><body><div class="container"><div class="navbar"><a href="/">Electoral Commission</a>
<a href="/news">News</a></div><h2>Audited accounts of political parties</h2><div class="row">
{rows}
</div></div></body></html>"""


def _agency() -> str:
    rows = lines(
        f'<div class="col-md-6"><h5>{name}</h5><p>Audited accounts for the year ended 31 December '
        f'{year}</p><a class="btn" href="{_agency_path(name, year)}">Download</a></div>'
        for name, year, _ in _AGENCIES
    )
    return fill(_AGENCY_PAGE, rows=rows)


def _agency_site(site: str, *, regret: Answer, missing: Answer, notes: str) -> ZooSite:
    return ZooSite(
        id=site,
        name="Electoral Commission",
        start="/accounts",
        listed=tuple(
            Truth(
                path=_agency_path(name, year),
                organization=name,
                period=f"{year}-annual",
                downloads=good,
            )
            for name, year, good in _AGENCIES
        ),
        pages={"/accounts": _agency()}
        | {_agency_path(name, year): regret for name, year, good in _AGENCIES if not good},
        missing=missing,
        notes=notes,
    )


APOLOGIES = _agency_site(
    "commission-apologies",
    regret=Answer(body=_REGRET, media="application/pdf"),
    missing=NOT_FOUND,
    notes="an HTML page served as application/pdf",
)
SOFT_404 = _agency_site(
    "commission-soft-404",
    regret=Answer(body=_REGRET),
    missing=Answer(body=_REGRET),
    notes="200 and an HTML page for whatever is missing, robots.txt too",
)

# A firewall that lets in browsers and agents that name a contact, and nobody else.

_WALLED = tuple((f"/rapport/{n:02}.pdf", f"Østlig Liste {n}", 2019 + n % 4) for n in range(1, 11))

_WALLED_PAGE = """<!DOCTYPE html><html lang="da"><head><meta charset="utf-8">
<title>Partiregnskaber</title>
</head><body><nav><a href="/">Folketingets regnskabskontor</a></nav><h1>Partiregnskaber</h1><ul>
{items}
</ul></body></html>"""


def _wall(ask: Ask) -> Answer | None:
    agent = ask.headers.get("user-agent", "")
    if urlsplit(ask.target).path == "/robots.txt" or "Mozilla/" in agent or "+http" in agent:
        return None
    return Answer(status=403, body=b"<title>403 Forbidden</title><p>Blocked.</p>")


WALLED = ZooSite(
    id="regnskab-403",
    name="Folketingets regnskabskontor",
    start="/regnskaber",
    listed=reports((path, name, f"{year}-annual") for path, name, year in _WALLED),
    gate=_wall,
    pages={
        "/robots.txt": Answer(body=b"User-agent: *\nAllow: /\n", media="text/plain"),
        "/regnskaber": fill(
            _WALLED_PAGE,
            items=lines(
                f'<li><a href="{path}">{name}, regnskab {year}</a></li>'
                for path, name, year in _WALLED
            ),
        ),
    },
    notes="403 to python-httpx and its like; fonds names a contact",
)

# A server that sends a few bytes at a time.

_SLOW = tuple(
    (f"/pdf/r4-{n}.pdf", f"小川県{name}政治連盟") for n, name in enumerate("茶桃梨柿栗", 1)
)

_SLOW_PAGE = """<!DOCTYPE html><html lang="ja"><head><meta charset="utf-8">
<title>収支報告書</title></head>
<body><h1>令和4年分収支報告書</h1><ul>
{items}
</ul></body></html>"""

SLOW = ZooSite(
    id="ogawa-drip",
    name="小川県選挙管理委員会",
    start="/r4.html",
    listed=reports((path, name, "2022-annual") for path, name in _SLOW),
    drip=64,
    pages={
        "/r4.html": fill(
            _SLOW_PAGE, items=lines(f'<li><a href="{path}">{name}</a></li>' for path, name in _SLOW)
        )
    },
    notes="PDFs come in pieces of 64 bytes",
)

# Too many requests, said once of every third file, with the seconds to wait.

_BUSY = tuple((f"/filings/{n}.pdf", f"Ward {n} Voters League", 1 + n % 4) for n in range(1, 10))

_BUSY_PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
<title>Filings</title></head>
<body><h1>City Ethics Board: quarterly filings of 2023</h1><table><tr><th>Committee</th>
<th>Quarter</th>
<th>Filing</th></tr>
{rows}
</table></body></html>"""


def _too_many(ask: Ask) -> Answer | None:
    if ask.path in {path for path, _, _ in _BUSY[::3]} and ask.count == 1:
        return Answer(status=429, headers={"Retry-After": "1"}, body=b"Too many requests")
    return None


BUSY = ZooSite(
    id="ethics-429",
    name="City Ethics Board",
    start="/filings",
    listed=reports((path, name, f"2023-Q{quarter}") for path, name, quarter in _BUSY),
    gate=_too_many,
    pages={
        "/filings": fill(
            _BUSY_PAGE,
            rows=lines(
                f'<tr><td>{name}</td><td>Q{quarter} 2023</td><td><a href="{path}">PDF</a></td></tr>'
                for path, name, quarter in _BUSY
            ),
        )
    },
    notes="429 with Retry-After once for every third file",
)

# Documents behind addresses that do not say what they are: by type, by a redirect of any kind to
# the file server, by a page that refreshes itself. Beside them are pages of the same form.

_BEHIND = (
    ("/show?doc=11", "Green Valley Alliance", 2023, "type"),
    ("/show?doc=12", "Green Valley Alliance", 2022, "type"),
    ("/show?doc=21", "Upper Town Movement", 2023, "301"),
    ("/show?doc=22", "Upper Town Movement", 2022, "302"),
    ("/show?doc=31", "Pier and Port List", 2023, "303"),
    ("/show?doc=32", "Pier and Port List", 2022, "307"),
    ("/show?doc=41", "Old Quarter Union", 2023, "308"),
    ("/show?doc=42", "Old Quarter Union", 2022, "refresh"),
    ("/show?doc=51", "Hillside Citizens", 2023, "refresh"),
    ("/show?doc=52", "Hillside Citizens", 2022, "disposition"),
    ("/show?doc=61", "Weir Keepers League", 2023, "large"),
    ("/show?doc=62", "Weir Keepers League", 2022, "large, without a type"),
)

_BEHIND_PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Accounts</title>
</head><body><nav><a href="/show?doc=1">About</a> <a href="/show?doc=2">Contact</a></nav><main>
<h1>Accounts of parties</h1><table><tr><th>Party</th><th>Year</th><th></th></tr>
{rows}
</table></main></body></html>"""
_REFRESH = """<html><head><meta http-equiv="refresh" content="0; url={target}"></head>
<body><a href="{target}">Continue</a></body></html>"""


def _behind(path: str, how: str) -> Route:
    target = f"/store/{path.rpartition('=')[2]}"
    body = pdf(path)
    if how == "type":
        return Answer(body=body, media="application/pdf")
    if how.startswith("large"):
        media = "application/octet-stream" if "without" in how else "application/pdf"
        return lambda _ask: Answer(body=pdf(path, padding=17 << 20), media=media)
    if how == "disposition":
        headers = {"Content-Disposition": 'attachment; filename="accounts.pdf"'}
        return Answer(body=body, media="application/octet-stream", headers=headers)
    if how == "refresh":
        return Answer(body=fill(_REFRESH, target=target).encode())
    return Answer(status=int(how), headers={"Location": target}, media=None)


BEHIND = ZooSite(
    id="accounts-behind",
    name="Registry of Associations",
    start="/accounts",
    listed=tuple(
        Truth(
            path=path,
            organization=name,
            period=f"{year}-annual",
            aliases=(f"/store/{path.rpartition('=')[2]}",),
        )
        for path, name, year, _ in _BEHIND
    ),
    pages={
        "/accounts": fill(
            _BEHIND_PAGE,
            rows=lines(
                f'<tr><td>{name}</td><td>{year}</td><td><a href="{path}">View</a></td></tr>'
                for path, name, year, _ in _BEHIND
            ),
        ),
        "/show?doc=1": "<title>About</title><h1>About the registry</h1><p>We keep accounts.</p>",
        "/show?doc=2": "<title>Contact</title><h1>Contact</h1><p>By letter only.</p>",
    }
    | {path: _behind(path, how) for path, _, _, how in _BEHIND}
    | {
        f"/store/{path.rpartition('=')[2]}": Answer(body=pdf(path), media="application/pdf")
        for path, _, _, how in _BEHIND
        if how not in {"type", "disposition"} and "large" not in how
    },
    notes="PDFs behind addresses without an ending, redirects of any kind and refreshing pages",
)

SITES = (BEHIND, REDIRECTS, DOWNLOADS, APOLOGIES, SOFT_404, WALLED, SLOW, BUSY)
