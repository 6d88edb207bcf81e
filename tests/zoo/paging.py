"""Lists over several pages: by links, by a query, by a form, without end, and loaded on demand."""

from __future__ import annotations

from collections.abc import Sequence

from tests.zoo.site import Answer, Ask, ZooSite, fill, lines, reports

# Links to /page/2/ and so on, with "Older reports" at the foot, as blogs have them.

_COMMITTEES = (
    "Bay State Teachers PAC",
    "Committee for Cleaner Rivers",
    "Duarte for Senate",
    "Elm Street Business Alliance",
    "Friends of Nadia Holm",
    "Granite Workers Local 12",
    "Healthy Harbor Committee",
    "Independent Voters Union",
)
_MONTHS = ("January", "February", "March")
_BLOG = tuple(
    (f"/wp-content/uploads/2024/{month:02}/report-{index}{month}.pdf", name, month)
    for month in (3, 2, 1)
    for index, name in enumerate(_COMMITTEES)
)

_BLOG_PAGE = """<!DOCTYPE html><html lang="en-US"><head><meta charset="UTF-8"/>
<title>Monthly reports – Office of Campaign Disclosure</title>
<link rel="https://api.w.org/" href="/wp-json/"/></head>
<body class="archive category wp-theme"><a class="skip-link screen-reader-text" href="#content">Skip
to content</a><header class="site-header"><p class="site-title"><a href="/">Office of Campaign
Disclosure</a></p><ul id="primary-menu"><li><a href="/filers/">For filers</a></li>
<li><a href="/calendar/">Deadlines</a></li><li><a href="/reports/">Reports</a></li></ul></header>
<main id="content"><h1 class="page-title">Monthly reports</h1>
{posts}
<nav class="navigation pagination" aria-label="Posts pagination"><div class="nav-links">
{links}
</div></nav></main>
<aside class="widget-area"><section class="widget"><h2>Resources</h2><ul>
<li><a href="/wp-content/uploads/2019/08/filer-manual.pdf">Filer manual</a></li>
<li><a href="/wp-content/uploads/2020/01/form-cf-2.pdf">Form CF-2 (blank)</a></li></ul></section>
</aside><footer><p>Proudly run by the State</p></footer></body></html>"""


def _blog_posts(rows: Sequence[tuple[str, str, int]]) -> str:
    return lines(
        f'<article class="post"><h2 class="entry-title">{name}</h2><div class="entry-meta">Report '
        f'for {_MONTHS[month - 1]} 2024</div><p><a href="{path}" class="wp-block-file">Download'
        f"</a></p></article>"
        for path, name, month in rows
    )


def _blog_page(number: int, of: int = 4, each: int = 6) -> str:
    links = [f'<a class="page-numbers" href="/reports/page/{n}/">{n}</a>' for n in (1, of)]
    if number > 1:
        links.append(f'<a class="prev" href="/reports/page/{number - 1}/">Newer reports</a>')
    if number < of:
        links.append(f'<a class="next" href="/reports/page/{number + 1}/">Older reports »</a>')
    rows = _BLOG[(number - 1) * each : number * each]
    return fill(_BLOG_PAGE, posts=_blog_posts(rows), links=lines(links))


BLOG = ZooSite(
    id="disclosure-pages",
    name="Office of Campaign Disclosure",
    start="/reports/",
    listed=reports((path, name, f"2024-{month:02}") for path, name, month in _BLOG),
    unwanted=frozenset(
        {
            "/wp-content/uploads/2019/08/filer-manual.pdf",
            "/wp-content/uploads/2020/01/form-cf-2.pdf",
        }
    ),
    pages={"/reports/": _blog_page(1)}
    | {f"/reports/page/{number}/": _blog_page(number) for number in range(1, 5)},
    notes="pages by links of which only neighbours, the first and the last are shown; months",
)

# ?pageIndex=N as Korean boards have it: numbers only, the current one is no link.

_BOARD_PARTIES = ("한강시민당", "푸른미래당", "전국농민연합", "새길정당", "바다평화당")
_BOARD = tuple(
    (300 - index, party, year, half)
    for index, (year, half, party) in enumerate(
        (year, half, party) for year in (2024, 2023) for half in (2, 1) for party in _BOARD_PARTIES
    )
)

_BOARD_PAGE = """<!DOCTYPE html><html lang="ko"><head><meta charset="utf-8">
<title>정당 회계보고 | 중앙선거관리사무소</title></head><body>
<div id="accessibility"><a href="#contents">본문 바로가기</a></div>
<div id="gnb"><ul><li><a href="/vote/">투표안내</a></li><li><a href="/data/">자료실</a></li>
<li><a href="/about/">기관소개</a></li></ul></div>
<div id="contents"><h3>정당 회계보고</h3>
<form name="searchForm" action="/data/board.do" method="get"><input type="text" name="keyword">
<button>검색</button></form>
<table class="board"><thead><tr><th>번호</th><th>정당명</th><th>보고기간</th>
<th>첨부</th></tr></thead>
<tbody>
{rows}
</tbody></table>
<div class="paging">{pager}</div></div>
<div id="footer"><a href="/policy/privacy.do">개인정보처리방침</a>
<a href="/upload/privacy_policy.pdf">개인정보처리방침(PDF)</a></div></body></html>"""


def _board_page(ask: Ask) -> str:
    number = min(max(int(ask.query.get("pageIndex", "1")), 1), 4)
    pager = (
        f"<strong>{n}</strong>" if n == number else f'<a href="?menu=acc&pageIndex={n}">{n}</a>'
        for n in range(1, 5)
    )
    rows = lines(
        f"<tr><td>{no}</td><td class='tit'>{party}</td>"
        f"<td>{year}년 {'상' if half == 1 else '하'}반기</td>"
        f"<td><a href='/upload/acc/{no}.pdf'><span class='ico'>파일</span></a></td></tr>"
        for no, party, year, half in _BOARD[(number - 1) * 5 : number * 5]
    )
    return fill(_BOARD_PAGE, rows=rows, pager="".join(pager))


BOARD = ZooSite(
    id="board-query",
    name="중앙선거관리사무소",
    start="/data/board.do?menu=acc",
    listed=reports(
        (f"/upload/acc/{no}.pdf", party, f"{year}-H{half}") for no, party, year, half in _BOARD
    ),
    unwanted=frozenset({"/upload/privacy_policy.pdf"}),
    pages={"/data/board.do": _board_page},
    notes="pages by query; half years in Korean",
)

# A GET form with the year to choose; nothing links to the other years.

_FORM_YEARS = (2024, 2023, 2022)
_FORM_PARTIES = (
    ("Partia Nadodrzańska", "nadodrzanska"),
    ("Sojusz Samorządowy", "sojusz"),
    ("Ruch Ochrony Łąk", "roll"),
    ("Wspólny Dom", "dom"),
)

_FORM_PAGE = """<!DOCTYPE html><html lang="pl"><head><meta charset="utf-8">
<title>Sprawozdania finansowe partii – Biuro Wyborcze</title></head><body>
<header><a href="/">Biuro Wyborcze</a><nav><ul><li><a href="/wybory">Wybory</a></li>
<li><a href="/prawo">Prawo wyborcze</a></li></ul></nav></header>
<main><h1>Sprawozdania finansowe partii politycznych</h1>
<form action="/sprawozdania" method="get"><label>Rok <select name="rok">{options}</select></label>
<input type="hidden" name="typ" value="roczne"><button type="submit">Pokaż</button></form>
<h2>Rok {year}</h2><table><tr><th>Lp.</th><th>Partia</th><th>Sprawozdanie</th></tr>
{rows}
</table></main><footer><a href="/rodo.pdf">Klauzula RODO</a></footer></body></html>"""


def _form_page(ask: Ask) -> str:
    year = int(ask.query.get("rok", "2024"))
    options = (
        f'<option value="{y}"{" selected" if y == year else ""}>{y}</option>' for y in _FORM_YEARS
    )
    rows = lines(
        f"<tr><td>{number}.</td><td>{name}</td>"
        f'<td><a href="/pliki/{year}/{slug}.pdf">Pobierz</a></td></tr>'
        for number, (name, slug) in enumerate(_FORM_PARTIES, start=1)
    )
    return fill(_FORM_PAGE, year=str(year), options="".join(options), rows=rows)


FORM = ZooSite(
    id="biuro-form",
    name="Biuro Wyborcze",
    start="/sprawozdania",
    listed=reports(
        (f"/pliki/{year}/{slug}.pdf", name, f"{year}-annual")
        for year in _FORM_YEARS
        for name, slug in _FORM_PARTIES
    ),
    unwanted=frozenset({"/rodo.pdf"}),
    pages={"/sprawozdania": _form_page},
    notes="years behind a GET form with a select and a hidden field",
)

# "Load more" fetches fragments of HTML, each of which names the next one.

_LOKALE = (
    "Fjordlista",
    "Bygdepartiet",
    "Nordre Samling",
    "Kystens Venner",
    "Byfolket",
    "Skoglaget",
)
_FEED = tuple(
    (f"/media/{year}/{name.lower().replace(' ', '-')}.pdf", name, year)
    for year in (2023, 2022, 2021)
    for name in _LOKALE
)

_FEED_PAGE = """<!doctype html><html lang="nb"><head><meta charset="utf-8">
<title>Partiregnskap | Valgtilsynet</title></head><body><header><a href="/">Valgtilsynet</a>
<a href="/ordbok">Ordbok</a><a href="/om-oss">Om oss</a></header>
<main><h1>Innsendte partiregnskap</h1><ul id="results" class="results">
{items}
</ul>
{more}
</main><footer><a href="/tilgjengelighet">Tilgjengelighetserklæring</a></footer>
<script src="/js/load-more.js" defer></script></body></html>"""


def _feed_items(number: int) -> str:
    return lines(
        f'<li class="result"><h3><a href="{path}">{name}</a></h3><p>Regnskapsår: {year}</p></li>'
        for path, name, year in _FEED[(number - 1) * 6 : number * 6]
    )


def _feed_more(number: int) -> str:
    if number == 3:
        return ""
    address = f"/api/fragments/regnskap?side={number + 1}"
    return f'<button class="load-more" type="button" data-url="{address}">Vis flere</button>'


def _feed_fragment(ask: Ask) -> Answer | str:
    number = int(ask.query.get("side", "0"))
    if number not in {2, 3}:
        return Answer(status=404, body=b"")
    return _feed_items(number) + "\n" + _feed_more(number)


FEED = ZooSite(
    id="valgtilsynet-more",
    name="Valgtilsynet",
    start="/partiregnskap",
    listed=reports((path, name, f"{year}-annual") for path, name, year in _FEED),
    pages={
        "/partiregnskap": fill(_FEED_PAGE, items=_feed_items(1), more=_feed_more(1)),
        "/api/fragments/regnskap": _feed_fragment,
    },
    notes="infinite list: a button's data-url leads to a fragment without head or body",
)

# There is always a next page; after the third they are empty, and say so to no machine.

_ENDLESS = tuple(
    (f"/docs/{number:03}-declaration.pdf", name, 2020 + number % 3)
    for number, name in enumerate(("Ilinden Bloc", "River Coalition", "Old Town List") * 6)
)

_ENDLESS_PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
<title>Declarations</title>
</head><body><div class="top"><a href="/">Agency for Prevention of Electoral Fraud</a></div>
<div class="region-content"><h1>Financial declarations</h1><div class="view">
{rows}
</div><ul class="pager"><li class="pager__item--next"><a href="?page={next}" rel="next">Next
›</a></li>
</ul></div><div class="bottom"><a href="/imprint">Imprint</a></div></body></html>"""


def _endless_page(ask: Ask) -> str:
    number = int(ask.query.get("page", "0"))
    rows = lines(
        f'<div class="views-row"><span class="field-party">{name}</span> '
        f'<span class="field-year">{year}</span> <a href="{path}">declaration</a></div>'
        for path, name, year in _ENDLESS[number * 6 : number * 6 + 6]
    )
    return fill(_ENDLESS_PAGE, rows=rows or "<p>No results.</p>", next=str(number + 1))


ENDLESS = ZooSite(
    id="declarations-endless",
    name="Agency for Prevention of Electoral Fraud",
    start="/declarations",
    listed=reports((path, name, f"{year}-annual") for path, name, year in _ENDLESS),
    pages={"/declarations": _endless_page},
    notes="every page has a next one, for ever",
)

# Sixty pages with three reports each, of which a page shows the neighbours only.

_LONG_PAGES = 60
_LONG_NAMES = ("Harbour List", "Meadow Party", "Citizens of the Old Mill")
_LONG = tuple(
    (f"/archive/{number:03}-{index}.pdf", name, 2025 - (number + 3) // 4, (-number % 4) + 1)
    for number in range(1, _LONG_PAGES + 1)
    for index, name in enumerate(_LONG_NAMES)
)

_LONG_PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
<title>Accounts, page {number}</title></head><body><header><a href="/">County Registrar</a>
</header><main><h1>Quarterly accounts</h1><table><thead><tr><th>Party</th><th>Quarter</th>
<th>Accounts</th></tr></thead><tbody>
{rows}
</tbody></table><p class="pages">{links}</p></main><footer>County Registrar</footer></body>
</html>"""


def _long_page(ask: Ask) -> str:
    number = min(max(int(ask.query.get("page", "1")), 1), _LONG_PAGES)
    rows = lines(
        f"<tr><td>{name}</td><td>{year} Q{quarter}</td>"
        f"<td><a href='{path}'>Accounts (PDF)</a></td></tr>"
        for path, name, year, quarter in _LONG[(number - 1) * 3 : number * 3]
    )
    neighbours = [each for each in (number - 1, number + 1) if 1 <= each <= _LONG_PAGES]
    links = " ".join(f'<a href="/accounts?page={each}">{each}</a>' for each in neighbours)
    return fill(_LONG_PAGE, number=str(number), rows=rows, links=links)


LONG = ZooSite(
    id="accounts-sixty",
    name="川西県選挙管理委員会",
    start="/accounts",
    listed=reports((path, name, f"{year}-Q{quarter}") for path, name, year, quarter in _LONG),
    pages={"/accounts": _long_page},
    notes="a list of sixty pages",
)

SITES = (BLOG, BOARD, FORM, FEED, ENDLESS, LONG)
