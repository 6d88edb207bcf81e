"""More Japanese prefectures: pages of twenty, scans of many, spanning cells, scripts."""

from __future__ import annotations

from itertools import groupby

from tests.zoo.site import Answer, Ask, ZooSite, fill, lines, reports

# Ten at a time, by an offset; the first page only refreshes to the second.

_SHIOMI = tuple(
    (f"/documents/{4400 + n}/r{era}_{n:02}.pdf", f"汐見県第{n}選挙区{kind}", era)
    for era in (6, 5)
    for n, kind in enumerate(
        ("支部", "総支部", "後援会", "振興会", "研究会", "連合会", "県民会議"), 1
    )
)

_SHIOMI_PAGE = """<!DOCTYPE html><html lang="ja"><head><meta charset="utf-8">
<title>収支報告書検索結果 | 汐見県</title></head><body><div id="hd"><a href="/">汐見県</a></div>
<form action="/shikin/list" method="get"><input type="text" name="word" placeholder="団体名">
<input type="submit" value="検索"></form>
<p>全14件</p><ul class="kekka">
{items}
</ul><p class="pager">{pager}</p>
<div id="ft"><a href="/documents/12/annai.pdf">窓口のご案内（PDF）</a></div></body></html>"""


def _shiomi_page(ask: Ask) -> str:
    offset = int(ask.query.get("offset", "0"))
    items = lines(
        f'<li><p class="dantai">{name}</p><p class="nen">令和{era}年分</p>'
        f'<p><a href="{path}">収支報告書を見る</a></p></li>'
        for path, name, era in _SHIOMI[offset : offset + 5]
    )
    pager = []
    if offset:
        pager.append(f'<a href="/shikin/list?offset={offset - 5}">前の5件</a>')
    if offset + 5 < len(_SHIOMI):
        pager.append(f'<a href="/shikin/list?offset={offset + 5}">次の5件</a>')
    return fill(_SHIOMI_PAGE, items=items, pager="｜".join(pager))


SHIOMI = ZooSite(
    id="shiomi-offset",
    name="汐見県選挙管理委員会",
    start="/shikin/",
    listed=reports((path, name, f"{2018 + era}-annual") for path, name, era in _SHIOMI),
    unwanted=frozenset({"/documents/12/annai.pdf"}),
    pages={
        "/shikin/": '<html><head><meta http-equiv="refresh" content="0; url=/shikin/list"></head>'
        "<body>自動的に移動します。</body></html>",
        "/shikin/list": _shiomi_page,
    },
    notes="meta refresh; pages by an offset; the link says nothing",
)

# Scans of many reports in one file: no organisation is named.

_NATORI = {
    "令和5年分（令和6年11月公表）": ("R5", ("a-1", "a-2", "ka-1", "sa-1", "ta-1", "na-1", "ha-1")),
    "令和4年分（令和5年11月公表）": ("R4", ("a-1", "ka-1", "ka-2", "sa-1", "ha-1")),
}
_KANA = {"a": "あ行", "ka": "か行", "sa": "さ行", "ta": "た行", "na": "な行", "ha": "は行"}


def _natori_links(code: str, parts: tuple[str, ...]) -> str:
    return lines(
        f'<span class="bunkatsu"><a href="{code}/shushi-{part}.pdf">{_KANA[part.split("-")[0]]}'
        f"その{part[-1]}（PDF：{index * 2 + 5}.1MB）</a></span><br>"
        for index, part in enumerate(parts)
    )


_NATORI_PAGE = """<!DOCTYPE html><html lang="ja"><head><meta charset="utf-8">
<title>政治資金収支報告書の
公開／名取野県</title></head><body><div class="wrap"><h1>政治資金収支報告書の公開</h1>
<p>ファイルの容量が大きいため、五十音順に分割しています。</p>
{years}
<h2>届出の様式</h2><p><a href="form/setsuritsu.docx">設立届（Word）</a>
<a href="form/setsuritsu.pdf">設立届の記載例</a></p></div></body></html>"""

NATORI = ZooSite(
    id="natorino-scans",
    name="名取野県選挙管理委員会",
    start="/senkan/shikin/",
    listed=reports(
        (f"/senkan/shikin/{code}/shushi-{part}.pdf", None, f"{2018 + int(code[1])}-annual")
        for code, parts in _NATORI.values()
        for part in parts
    ),
    unwanted=frozenset(
        {"/senkan/shikin/form/setsuritsu.docx", "/senkan/shikin/form/setsuritsu.pdf"}
    ),
    pages={
        "/senkan/shikin/": fill(
            _NATORI_PAGE,
            years=lines(
                f"<h2>{era}</h2>\n<div>{_natori_links(*told)}</div>"
                for era, told in _NATORI.items()
            ),
        )
    },
    notes="no organisation; the year of the report beside the year in which it was published",
)

# A kind of organisation spans rows before the name; two files in each row.

_SUGIURA = (
    ("政党", "自由みらい党杉浦県連", 11),
    ("政党", "立憲市民党杉浦県連", 12),
    ("資金管理団体", "杉浦政策研究所", 21),
    ("資金管理団体", "小池けんじ後援会", 22),
    ("資金管理団体", "みなみ会", 23),
    ("その他", "杉浦県司法書士政治連盟", 31),
    ("その他", "杉浦県消防政治連盟", 32),
)


def _sugiura_rows() -> str:
    rows = []
    for kind, group in groupby(_SUGIURA, key=lambda row: row[0]):
        members = list(group)
        for index, (_, name, number) in enumerate(members):
            first = f'<th rowspan="{len(members)}">{kind}</th>' if index == 0 else ""
            rows.append(
                f'<tr>{first}<td>{name}</td><td><a href="yoshi/{number}.pdf">要旨</a></td>'
                f'<td><a href="hokoku/{number}.pdf">報告書</a></td></tr>'
            )
    return lines(rows)


_SUGIURA_PAGE = """<!DOCTYPE html><html lang="ja"><head><meta charset="utf-8">
<title>杉浦県公報</title></head>
<body><div id="mainnav"><a href="/">杉浦県</a> <a href="/koho/">県公報</a></div>
<table class="hyo"><caption>令和二年分の政治団体の収支に関する報告書</caption>
<tr><th>区分</th><th>団体の名称</th><th>要旨</th><th>報告書</th></tr>
{rows}
</table><p><a href="ichiran.xls">一覧（Excel）</a></p></body></html>"""

SUGIURA = ZooSite(
    id="sugiura-kinds",
    name="杉浦県選挙管理委員会",
    start="/senkyo/r02/index.html",
    listed=reports(
        (f"/senkyo/r02/{folder}/{number}.pdf", name, "2020-annual")
        for folder in ("yoshi", "hokoku")
        for _, name, number in _SUGIURA
    ),
    unwanted=frozenset({"/senkyo/r02/ichiran.xls"}),
    pages={"/senkyo/r02/index.html": fill(_SUGIURA_PAGE, rows=_sugiura_rows())},
    notes="the first column is a kind, the second the name; era year in Chinese numerals",
)

# Names as terms, era years as links; a function of the page's own opens the files.

_WAKABA = (
    ("若葉県私立幼稚園政治連盟", "youchien", ("令和5年分", "令和4年分", "令和3年分")),
    ("若葉の森を育てる会", "mori", ("令和5年分", "令和3年分")),
    ("公正党若葉総支部", "kosei", ("令和5年分", "令和4年分")),
    ("前田ひろし後援会", "maeda", ("令和4年分",)),
)
_WAKABA_YEARS = {"令和5年分": 2023, "令和4年分": 2022, "令和3年分": 2021}


def _wakaba_terms(slug: str, eras: tuple[str, ...]) -> str:
    return lines(
        f"<dd><a href=\"javascript:openPdf('/pdf/{slug}{_WAKABA_YEARS[era]}.pdf')\">{era}</a></dd>"
        for era in eras
    )


_WAKABA_PAGE = """<!DOCTYPE html><html lang="ja"><head><meta charset="utf-8"><title>若葉県
収支報告書</title>
<script>function openPdf(u){ window.open(u, "pdf", "width=800"); }</script></head><body>
<ul class="menu"><li><a href="/">ホーム</a></li><li>
<a href="javascript:history.back()">戻る</a></li></ul>
<h1>収支報告書（団体別）</h1><dl>
{terms}
</dl></body></html>"""

WAKABA = ZooSite(
    id="wakaba-script",
    name="若葉県選挙管理委員会",
    start="/shushi.html",
    listed=reports(
        (f"/pdf/{slug}{_WAKABA_YEARS[era]}.pdf", name, f"{_WAKABA_YEARS[era]}-annual")
        for name, slug, eras in _WAKABA
        for era in eras
    ),
    pages={
        "/shushi.html": fill(
            _WAKABA_PAGE,
            terms=lines(
                f"<dt>{name}</dt>\n{_wakaba_terms(slug, eras)}" for name, slug, eras in _WAKABA
            ),
        )
    },
    validators=False,
    notes="javascript: addresses with a literal path; list of definitions",
)

# The news of an office: reports among other notices, each on a page of its own.

_NOTICES = (
    (9, "令和6年分収支報告書を公表しました（多摩野県看護政治連盟）", "多摩野県看護政治連盟", 2024),
    (8, "選挙啓発ポスターコンクールの入賞作品について", None, 0),
    (7, "令和6年分収支報告書を公表しました（たまの市民会議）", "たまの市民会議", 2024),
    (
        6,
        "令和6年分収支報告書を公表しました（自由みらい党多摩野支部）",
        "自由みらい党多摩野支部",
        2024,
    ),
    (5, "期日前投票所の変更について", None, 0),
    (4, "令和5年分収支報告書を公表しました（多摩野県看護政治連盟）", "多摩野県看護政治連盟", 2023),
    (3, "令和5年分収支報告書を公表しました（たまの市民会議）", "たまの市民会議", 2023),
)

_NOTICE_PAGE = """<!DOCTYPE html><html lang="ja"><head><meta charset="utf-8"><title>{title} -
多摩野県</title>
</head><body><header><a href="/">多摩野県選挙管理委員会</a></header><main><h1>{title}</h1>
{content}
</main></body></html>"""


def _notice(number: int, title: str, organization: str | None) -> str:
    content = "<p>お知らせします。</p>"
    if organization:
        content = (
            f"<p>次のとおり公表します。</p><h2>{organization}</h2>"
            f'<p><a href="/attach/{number}/houkokusho.pdf">収支報告書（PDF形式）</a></p>'
        )
    return fill(_NOTICE_PAGE, title=title, content=content)


NOTICES = ZooSite(
    id="tamano-notices",
    name="多摩野県選挙管理委員会",
    start="/news/",
    listed=reports(
        (f"/attach/{number}/houkokusho.pdf", organization, f"{year}-annual")
        for number, _, organization, year in _NOTICES
        if organization
    ),
    pages={
        "/news/": fill(
            _NOTICE_PAGE,
            title="新着情報",
            content="<ul>"
            + lines(
                f"<li><time>2025年{number}月1日</time> "
                f'<a href="/news/{number}.html">{title}</a></li>'
                for number, title, _, _ in _NOTICES
            )
            + "</ul>",
        ),
        "/favicon.ico": Answer(body=b"\0\0\1\0", media="image/x-icon"),
        **{
            f"/news/{number}.html": _notice(number, title, organization)
            for number, title, organization, _ in _NOTICES
        },
    },
    notes="one file on each page, pages among other notices; the date of the notice is no period",
)

SITES = (SHIOMI, NATORI, SUGIURA, WAKABA, NOTICES)
