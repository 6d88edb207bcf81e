"""Sites in which a crawler may lose itself: cycles, session ids, calendars; and robots.txt."""

from __future__ import annotations

import re

from tests.zoo.site import Answer, Ask, Route, Truth, ZooSite, fill, lines, reports

# Every answer writes a session id of its own into every link; two pages link to each other.

_SESSION = tuple(
    (group, f"/share/{group}{number}.pdf", f"Grupo {name}", year)
    for group, names in (("a", ("Norte", "Sur", "Este")), ("b", ("Oeste", "Centro")))
    for number, (name, year) in enumerate(((n, y) for n in names for y in (2022, 2021)), start=1)
)

_SESSION_PAGE = """<!DOCTYPE html><html lang="es"><head><meta charset="utf-8">
<title>Agrupaciones</title></head>
<body><div><a href="/list/a;jsessionid={sid}">Grupo A</a> <a href="/list/b;jsessionid={sid}">Grupo
B</a>
<a href="/list/{group};jsessionid={sid}?orden=nombre">Ordenar</a></div>
<h1>Junta Electoral Provincial: cuentas de agrupaciones, grupo {label}</h1>
<table><tr><th>Agrupación</th><th>Ejercicio</th><th>Documento</th></tr>
{rows}
</table></body></html>"""


def _session_page(ask: Ask, group: str) -> str:
    sid = f"{ask.number:08X}F00D"
    rows = lines(
        f'<tr><td>{name}</td><td>{year}</td><td><a href="{path};jsessionid={sid}">ver</a></td></tr>'
        for each, path, name, year in _SESSION
        if each == group
    )
    return fill(_SESSION_PAGE, sid=sid, group=group, label=group.upper(), rows=rows)


def _without_session(ask: Ask) -> Answer | None:
    """The server takes an address with a session id for the one without it."""
    if ";jsessionid=" not in ask.target:
        return None
    bare = re.sub(r";jsessionid=[0-9A-F]+", "", ask.target)
    return SESSIONS.answer(Ask(target=bare, headers=ask.headers, number=ask.number))


SESSIONS = ZooSite(
    id="junta-sessions",
    name="Junta Electoral Provincial",
    start="/list/a",
    listed=reports((path, name, f"{year}-annual") for _, path, name, year in _SESSION),
    gate=_without_session,
    pages={
        "/list/a": lambda ask: _session_page(ask, "a"),
        "/list/b": lambda ask: _session_page(ask, "b"),
    },
    notes="session ids that change with every answer; a ↔ b",
)

# A calendar of hearings whose months never end, beside the list.

_CALENDAR = tuple(
    (f"/files/annual-{name.lower()}-{year}.pdf", f"{name} County Party", year)
    for name in ("Ash", "Birch", "Cedar", "Dogwood")
    for year in (2024, 2023)
)

_CALENDAR_PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
<title>{title}</title></head>
<body><div id="nav"><a href="/">State Board of Elections</a>
<a href="/events/2026/01/">Calendar</a></div>
<div id="body"><h1>{title}</h1>
{content}
</div></body></html>"""


def _month(ask: Ask) -> Answer | str:
    told = re.fullmatch(r"/events/(\d{4})/(\d\d)/", ask.path)
    if not told:
        return Answer(status=404, body=b"?")
    year, month = int(told[1]), int(told[2])
    after = f"{year + month // 12}/{month % 12 + 1:02}"
    before = f"{year - (month == 1)}/{(month - 2) % 12 + 1:02}"
    days = "".join(
        f'<a href="/events/{year}/{month:02}/{day:02}/">{day}</a> ' for day in range(1, 29)
    )
    links = f'<a href="/events/{before}/">« Prev</a> <a href="/events/{after}/">Next »</a>'
    return fill(_CALENDAR_PAGE, title=f"Events in {month}/{year}", content=days + links)


def _events(ask: Ask) -> Answer | None:
    if not ask.path.startswith("/events/"):
        return None
    answer = _month(ask)
    if isinstance(answer, str):
        return Answer(body=answer.encode(), media="text/html; charset=utf-8")
    return answer


CALENDAR = ZooSite(
    id="board-calendar",
    name="State Board of Elections",
    start="/",
    listed=reports((path, name, f"{year}-annual") for path, name, year in _CALENDAR),
    gate=_events,
    pages={
        "/": fill(
            _CALENDAR_PAGE,
            title="Annual reports",
            content="<ul>"
            + lines(
                f'<li><a href="{path}">{name}, {year} annual report</a></li>'
                for path, name, year in _CALENDAR
            )
            + "</ul><h2>Upcoming</h2><a href='/events/2026/02/'>February 2026</a>",
        )
    },
    notes="a calendar without end, linked from every page",
)

# robots.txt keeps a folder from everybody, and asks for a pause between requests.

_OPEN = tuple(
    (f"/publik/{year}/bericht-{n}.pdf", n, year) for n in (1, 2, 3) for year in (2023, 2022)
)
_GRUPPEN = {1: "Wählergruppe Tal", 2: "Liste Bergdorf", 3: "Aktive Gemeinde"}
_CLOSED = tuple(f"/intern/{year}/entwurf.pdf" for year in (2023, 2022))

_ROBOTS = b"""# Automatische Abrufe bitte mit Bedacht
User-agent: *
Disallow: /intern/
Crawl-delay: 0.2

User-agent: BadBot
Disallow: /
"""
_OPEN_PAGE = """<!DOCTYPE html><html lang="de-AT"><head><meta charset="utf-8">
<title>Berichte</title></head>
<body><h1>Bezirkswahlbehörde: Berichte der Wählergruppen</h1>
{groups}
<h2>Entwürfe</h2><ul>
{closed}
</ul></body></html>"""

ROBOTS = ZooSite(
    id="bezirk-robots",
    name="Bezirkswahlbehörde",
    start="/berichte.html",
    listed=reports((path, _GRUPPEN[number], f"{year}-annual") for path, number, year in _OPEN),
    forbidden=frozenset(_CLOSED),
    pages={
        "/robots.txt": Answer(body=_ROBOTS, media="text/plain"),
        "/berichte.html": fill(
            _OPEN_PAGE,
            groups=lines(
                f"<h2>{name}</h2><ul>"
                + lines(
                    f'<li><a href="{path}">Jahresbericht {year}</a></li>'
                    for path, each, year in _OPEN
                    if each == number
                )
                + "</ul>"
                for number, name in _GRUPPEN.items()
            ),
            closed=lines(f'<li><a href="{path}">Entwurf</a></li>' for path in _CLOSED),
        ),
    },
    notes="a forbidden folder whose files are listed; Crawl-delay of 0.2 s",
)

# Old addresses still work: the same file below two addresses, linked from two pages in a circle.

_TWICE = ("Demokratiska Skärgården", "Landsbygdens Röst", "Framtidslistan", "Fria Kommuner")

_TWICE_PAGE = """<!DOCTYPE html><html lang="sv"><head><meta charset="utf-8">
<title>Intäktsredovisning</title>
</head><body><p class="spar"><a href="/">Start</a> / <a href="/intakter">Intäkter</a> /
<a href="/arkiv">Arkiv</a></p><h1>{title}</h1><ul>
{items}
</ul><p>Se även <a href="{other}">{other}</a>.</p></body></html>"""


def _twice_page(title: str, folder: str, other: str) -> str:
    items = lines(
        f'<li><a href="{folder}/{number}-2022.pdf">{name}, intäktsredovisning 2022</a></li>'
        for number, name in enumerate(_TWICE, start=1)
    )
    return fill(_TWICE_PAGE, title=title, other=other, items=items)


TWICE = ZooSite(
    id="kammarkontoret-twice",
    name="Kammarkontoret",
    start="/intakter",
    listed=tuple(
        Truth(
            path=f"{folder}/{number}-2022.pdf",
            organization=name,
            period="2022-annual",
            copy_of=f"/filer/{number}-2022.pdf" if folder == "/arkiv/filer" else None,
        )
        for folder in ("/filer", "/arkiv/filer")
        for number, name in enumerate(_TWICE, start=1)
    ),
    pages={
        "/intakter": _twice_page("Intäktsredovisning", "/filer", "/arkiv"),
        "/arkiv": _twice_page("Arkiv", "/arkiv/filer", "/intakter"),
    },
    notes="each file below two addresses; two pages that link to each other",
)

# Listed files that lead into the folder that robots.txt forbids: by each kind of redirect.

_LED = {301: "moved", 302: "found", 307: "temporary", 308: "permanent"}

_LED_PAGES: dict[str, Route] = {
    "/robots.txt": Answer(body=_ROBOTS, media="text/plain"),
    "/liste.html": fill(
        _OPEN_PAGE,
        groups="<h2>Liste Nord</h2><p><a href='/offen/2023.pdf'>Bericht 2023</a></p>",
        closed=lines(
            f'<li><a href="/{folder}/{name}.pdf">Bericht {2010 + at}</a></li>'
            for at, name in enumerate(_LED.values())
            for folder in ("abruf", "intern")
        ),
    ),
    **{
        f"/abruf/{name}.pdf": Answer(
            status=status, headers={"Location": f"/intern/{name}.pdf"}, media=None
        )
        for status, name in _LED.items()
    },
}

REDIRECTED_INTO = ZooSite(
    id="amt-umleitung",
    name="Amt für Parteien",
    start="/liste.html",
    listed=(
        *reports([("/offen/2023.pdf", "Liste Nord", "2023-annual")]),
        *(
            Truth(path=f"/abruf/{name}.pdf", organization=None, period=None, downloads=False)
            for name in _LED.values()
        ),
    ),
    forbidden=frozenset(f"/intern/{name}.pdf" for name in _LED.values()),
    pages=_LED_PAGES,
    notes="redirects from allowed addresses into a forbidden folder",
)

SITES = (REDIRECTED_INTO, SESSIONS, CALENDAR, ROBOTS, TWICE)
