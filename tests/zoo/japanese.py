"""Japanese prefectures whose pages are plain: a list below each era year, and tables."""

from __future__ import annotations

from tests.zoo.site import ZooSite, fill, lines, reports

# One page for one year; the year stands in the heading only, the kind of organisation in the next.

_KITAURA = {
    "政党の支部": (
        ("自由みらい党北浦県支部連合会", "000123401"),
        ("自由みらい党北浦県第一選挙区支部", "000123402"),
        ("立憲市民党北浦県総支部連合会", "000123403"),
        ("公正党北浦県本部", "000123404"),
    ),
    "資金管理団体": (
        ("青山たろう後援会", "000123411"),
        ("佐伯みどりと歩む会", "000123412"),
        ("北浦政経研究会", "000123413"),
    ),
    "その他の政治団体": (
        ("北浦県医師政治連盟", "000123421"),
        ("北浦県歯科医師政治連盟", "000123422"),
        ("北浦県農政協議会", "000123423"),
        ("北浦県商工政治連盟", "000123424"),
        ("明日の北浦をつくる会", "000123425"),
    ),
}


def _kitaura_groups() -> str:
    return lines(
        f"<h3>{kind}</h3>\n<ul>\n"
        + lines(
            f'<li><a class="icon_pdf" href="/uploaded/attachment/{number}.pdf">{name}'
            f"（PDFファイル：{int(number[-2:]) * 13}KB）</a></li>"
            for name, number in groups
        )
        + "\n</ul>"
        for kind, groups in _KITAURA.items()
    )


_KITAURA_PAGE = """<!DOCTYPE html>
<html lang="ja">
<head><meta charset="UTF-8">
<title>政治資金収支報告書（令和6年分定期公表） - 北浦県ホームページ</title>
<meta name="keywords" content="政治資金,収支報告書,選挙管理委員会"></head>
<body>
<p class="voice"><a href="#skip">本文へスキップします。</a></p>
<div id="header"><a href="/"><img src="/img/common/logo.png" alt="北浦県"></a>
<ul id="size"><li><a href="javascript:void(0);">文字サイズ拡大</a></li><li>
<a href="/foreign/">Language</a></li></ul>
<form action="/search/result.html" method="get"><input type="text" name="q" title="サイト内検索">
<input type="submit" value="検索"></form></div>
<ul id="gnav"><li><a href="/life/">くらし・環境</a></li><li><a href="/sangyo/">産業・雇用</a></li>
<li><a href="/kensei/">県政情報</a></li></ul>
<div id="pankuzu"><a href="/">トップページ</a> &gt; <a href="/kensei/">県政情報</a> &gt;
<a href="/senkyo/">選挙管理委員会</a> &gt; 政治資金収支報告書（令和6年分定期公表）</div>
<div id="main"><a id="skip"></a>
<p class="update">更新日：2025年11月28日</p>
<h1>政治資金収支報告書（令和6年分定期公表）</h1>
<p>政治資金規正法第20条の規定により、令和6年分の収支報告書の要旨を次のとおり公表します。</p>
{groups}
<div class="adobe"><a href="https://get.adobe.example/jp/reader/">Adobe Reader</a>が必要です。</div>
<h2>お問い合わせ先</h2><p>北浦県選挙管理委員会 電話：000-123-4567
<a href="/senkyo/inquiry.html">お問い合わせフォーム</a></p>
</div>
<div id="side"><h2>関連情報</h2><ul>
<li><a href="/uploaded/attachment/000100001.pdf">収支報告書の手引き</a></li>
<li><a href="/uploaded/attachment/000100002.pdf">設立届の様式</a></li></ul></div>
<div id="footer"><a href="/privacy.html">個人情報の取り扱い</a>
<a href="/uploaded/attachment/000100009.pdf">
ウェブアクセシビリティ方針</a><address>北浦県庁</address></div>
</body></html>"""

KITAURA = ZooSite(
    id="kitaura-list",
    name="北浦県選挙管理委員会",
    start="/senkyo/seijishikin/r6.html",
    listed=reports(
        (f"/uploaded/attachment/{number}.pdf", name, "2024-annual")
        for groups in _KITAURA.values()
        for name, number in groups
    ),
    unwanted=frozenset(f"/uploaded/attachment/00010000{n}.pdf" for n in (1, 2, 9)),
    pages={"/senkyo/seijishikin/r6.html": fill(_KITAURA_PAGE, groups=_kitaura_groups())},
    notes="organisation in the link text, era year in the heading, published later",
)

# A table: number, organisation, representative, and one link for each year in its own column.

_MINATO = (
    (1, "自由みらい党港県ふ頭支部", "山本一郎", "r5_0001", "r4_0001"),
    (2, "立憲市民党港県第2区総支部", "中川春子", "r5_0002", "r4_0002"),
    (3, "港湾政策フォーラム", "石田実", "r5_0003", None),
    (4, "港県宅建政治連盟", "木下勝", "r5_0004", "r4_0004"),
    (5, "港県トラック政治連盟", "小野寺進", "r5_0005", "r4_0005"),
    (6, "はるかぜ後援会", "春日彩", None, "r4_0006"),
    (7, "新しい港の会", "西村学", "r5_0007", "r4_0007"),
    (8, "港県看護連盟", "東野幸子", "r5_0008", "r4_0008"),
)
_MINATO_YEARS = {"r5": "2023-annual", "r4": "2022-annual"}


def _minato_cell(file: str | None) -> str:
    if file is None:
        return "<td>－</td>"
    return f'<td><a href="./pdf/{file}.pdf" target="_blank">収支報告書</a></td>'


_MINATO_PAGE = """<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN"
"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">
<html xmlns="http://www.w3.org/1999/xhtml" lang="ja"><head>
<meta http-equiv="Content-Type" content="text/html; charset=utf-8" />
<title>収支報告書の公表｜港県選挙管理委員会</title></head><body>
<div id="tmp_wrap"><noscript><p>このページではJavaScriptを使用しています。</p></noscript>
<div id="tmp_header"><p><a href="/index.html">港県</a></p>
<ul><li><a href="/bosai/">防災</a></li><li><a href="/kosodate/">子育て</a></li>
<li><a href="/kensei/">県政</a></li></ul></div>
<div id="tmp_contents"><h1>政治団体の収支報告書</h1>
<p>名簿の番号順に掲載しています。報告書はPDF形式です。</p>
<table class="datatable" summary="政治団体別の収支報告書">
<tr><th scope="col">番号</th><th scope="col">政治団体の名称</th><th scope="col">代表者</th>
<th scope="col">令和5年分</th><th scope="col">令和4年分</th></tr>
{rows}
</table>
<p><a href="#tmp_header">このページの先頭へ戻る</a></p></div>
<div id="tmp_footer"><p><a href="./pdf/yoshiki_dai1.pdf">様式第1号（PDF：88KB）</a></p>
<address>港県選挙管理委員会事務局　〒000-0000　港市1-1</address></div></div></body></html>"""

MINATO = ZooSite(
    id="minato-columns",
    name="港県選挙管理委員会",
    start="/senkyo/shushi/index.html",
    listed=reports(
        (f"/senkyo/shushi/pdf/{file}.pdf", name, _MINATO_YEARS[file[:2]])
        for _, name, _, *files in _MINATO
        for file in files
        if file
    ),
    unwanted=frozenset({"/senkyo/shushi/pdf/yoshiki_dai1.pdf"}),
    pages={
        "/senkyo/shushi/index.html": fill(
            _MINATO_PAGE,
            rows=lines(
                f"<tr><td>{number}</td><td>{name}</td><td>{head}</td>"
                f"{_minato_cell(this)}{_minato_cell(last)}</tr>"
                for number, name, head, this, last in _MINATO
            ),
        )
    },
    notes="a column for each year, the year in its heading; representatives beside organisations",
)

# Year, then party, then reports: three levels of pages.

_HAYAMA_YEARS = (("r6", "令和6年分", 2024), ("r5", "令和5年分", 2023), ("h30", "平成30年分", 2018))
_HAYAMA_PARTIES = (
    ("jimirai", "自由みらい党", ("葉山県支部連合会", "葉山市支部", "参議院選挙区第一支部")),
    ("rikken", "立憲市民党", ("葉山県総支部連合会", "第1区総支部")),
    ("kosei", "公正党", ("葉山県本部",)),
)

_HAYAMA_PAGE = """<!DOCTYPE html><html lang="ja"><head><meta charset="utf-8">
<title>{title} | 葉山県</title></head><body><header><a href="/">葉山県公式ウェブサイト</a>
<nav><a href="/kurashi/">くらし</a><a href="/kanko/">観光</a>
<a href="/senkyo/">選挙</a></nav></header>
<nav class="topicpath"><ol><li><a href="/">ホーム</a></li><li><a href="/senkyo/">選挙</a></li>
<li>{title}</li></ol></nav><main><h1>{title}</h1>
{content}
</main><aside class="banner"><a href="https://ad.example/click?id=3">
<img alt="広告" src="/ad.gif"></a>
</aside><footer><a href="/sitepolicy.html">サイトポリシー</a>
<a href="/sitemap.html">サイトマップ</a>
<a href="/pdf/shisetsu_annai.pdf">庁舎案内図</a></footer></body></html>"""


def _hayama_years() -> str:
    items = (
        f'<li><a href="/senkyo/shikin/{code}/">{era}の収支報告書</a></li>'
        for code, era, _ in _HAYAMA_YEARS
    )
    return fill(_HAYAMA_PAGE, title="政治資金収支報告書", content=f"<ul>{lines(items)}</ul>")


def _hayama_year(code: str, era: str) -> str:
    items = (
        f'<li><a href="/senkyo/shikin/{code}/{party}.html">{name}</a></li>'
        for party, name, _ in _HAYAMA_PARTIES
    )
    return fill(_HAYAMA_PAGE, title=f"{era}の収支報告書", content=f"<ul>{lines(items)}</ul>")


def _hayama_party(code: str, party: str, name: str, branches: tuple[str, ...]) -> str:
    items = (
        f'<li><a href="/pdf/{code}/{party}{number:02}.pdf">{name}{branch}</a> [PDF]</li>'
        for number, branch in enumerate(branches, start=1)
    )
    return fill(_HAYAMA_PAGE, title=name, content=f"<ul>{lines(items)}</ul>")


HAYAMA = ZooSite(
    id="hayama-nested",
    name="葉山県選挙管理委員会",
    start="/senkyo/shikin/",
    listed=reports(
        (f"/pdf/{code}/{party}{number:02}.pdf", name + branch, f"{year}-annual")
        for code, _, year in _HAYAMA_YEARS
        for party, name, branches in _HAYAMA_PARTIES
        for number, branch in enumerate(branches, start=1)
    ),
    unwanted=frozenset({"/pdf/shisetsu_annai.pdf"}),
    pages={"/senkyo/shikin/": _hayama_years()}
    | {f"/senkyo/shikin/{code}/": _hayama_year(code, era) for code, era, _ in _HAYAMA_YEARS}
    | {
        f"/senkyo/shikin/{code}/{party}.html": _hayama_party(code, party, name, branches)
        for code, _, _ in _HAYAMA_YEARS
        for party, name, branches in _HAYAMA_PARTIES
    },
    notes="year, party, report; the year stands in the way to the page and in the address",
)

# An accordion for each row of the syllabary, closed until a button is pressed.

_AKITSU = {
    "あ行": (("あかつき政経塾", "a01"), ("秋津県医師連盟", "a02"), ("新しい風の会", "a03")),
    "か行": (("かもめ会", "k01"), ("県民第一の会", "k02"), ("公正党秋津総支部", "k03")),
    "さ行": (("さくら未来会議", "s01"), ("佐藤こうじ後援会", "s02")),
    "た行": (("谷口あやを支える会", "t01"), ("東海道フォーラム", "t02")),
}

_AKITSU_PAGE = """<!doctype html><html lang="ja"><head><meta charset="utf-8">
<title>令和４年分　政治資金収支報告書 - 秋津県</title>
<script>$(function(){ $(".acc-btn").on("click", function(){ $(this).next().slideToggle(); });
});</script>
</head><body><div class="l-header"><a href="/">秋津県</a><ul class="gnav">
<li><a href="/kinkyu/">緊急情報</a></li><li><a href="/soshiki/">組織から探す</a></li></ul></div>
<div class="l-main"><h1>令和４年分　政治資金収支報告書</h1>
<p>名称の五十音順です。見出しを押すと一覧が開きます。</p>
{groups}
</div><div class="l-footer"><small>Copyright (C) Akitsu Prefecture.</small></div></body></html>"""

AKITSU = ZooSite(
    id="akitsu-accordion",
    name="秋津県選挙管理委員会",
    start="/soshiki/senkan/r4shikin.html",
    listed=reports(
        (f"/fs/7/1/{code}/_/houkokusho.pdf", name, "2022-annual")
        for groups in _AKITSU.values()
        for name, code in groups
    ),
    pages={
        "/soshiki/senkan/r4shikin.html": fill(
            _AKITSU_PAGE,
            groups=lines(
                f'<button class="acc-btn" aria-expanded="false">{row}</button>'
                f'<div class="acc-body" style="display:none"><ul>'
                + lines(
                    f'<li><span class="name">{name}</span> '
                    f'<a href="/fs/7/1/{code}/_/houkokusho.pdf">'
                    f"PDF（別画面で開きます）</a></li>"
                    for name, code in groups
                )
                + "</ul></div>"
                for row, groups in _AKITSU.items()
            ),
        )
    },
    notes="button and hidden div; full-width era year in the title; the same file name for all",
)

SITES = (KITAURA, MINATO, HAYAMA, AKITSU)
