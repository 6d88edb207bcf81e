"""Japanese prefectures with old encodings, wrong declarations, and addresses full of Japanese."""

from __future__ import annotations

from tests.zoo.site import Truth, ZooSite, fill, lines, reports

# Shift_JIS, declared in the page alone; era years as headings, organisations in the links.

_TSUBAKI = {
    "平成29年分": (("椿県柔道整復師連盟", "h29/judo"), ("㈱ではない政治の会", "h29/kabu")),
    "平成30年分": (
        ("椿県柔道整復師連盟", "h30/judo"),
        ("髙橋会", "h30/takahashi"),
        ("能登ソーラー政治連盟", "h30/solar"),
    ),
    "令和元年分": (
        ("椿県柔道整復師連盟", "r1/judo"),
        ("髙橋会", "r1/takahashi"),
        ("表現の自由を守る会", "r1/hyogen"),
    ),
}
_TSUBAKI_YEARS = {"h29": 2017, "h30": 2018, "r1": 2019}

_TSUBAKI_PAGE = """<HTML LANG="ja"><HEAD>
<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=Shift_JIS">
<META NAME="GENERATOR" CONTENT="IBM HomePage Builder V5">
<TITLE>椿県選管－政治資金</TITLE></HEAD>
<BODY BACKGROUND="kabe.gif"><CENTER><H1>政治資金収支報告書</H1></CENTER>
<P><A HREF="../index.htm">選管トップへ</A>｜<A HREF="../link.htm">リンク集</A></P>
<P>下記の団体名をクリックすると報告書（ＰＤＦ）が表示されます。</P>
{years}
<HR><P><IMG SRC="../mail.gif"><A HREF="mailto:senkan@tsubaki.example">ご意見・ご要望</A></P>
</BODY></HTML>"""

TSUBAKI = ZooSite(
    id="tsubaki-sjis",
    name="椿県選挙管理委員会",
    start="/senkan/shikin/houkoku.htm",
    encoding="cp932",
    media="text/html",
    listed=reports(
        (f"/senkan/shikin/{file}.pdf", name, f"{_TSUBAKI_YEARS[file.split('/')[0]]}-annual")
        for groups in _TSUBAKI.values()
        for name, file in groups
    ),
    pages={
        "/senkan/shikin/houkoku.htm": fill(
            _TSUBAKI_PAGE,
            years=lines(
                f"<H3>{era}</H3>\n<UL>\n"
                + lines(f'<LI><A HREF="{file}.pdf">{name}</A>' for name, file in groups)
                + "\n</UL>"
                for era, groups in _TSUBAKI.items()
            ),
        )
    },
    validators=False,
    notes="Shift_JIS with its vendor's ㈱ and 髙, and second bytes like a backslash (能, 表)",
)

# EUC-JP and frames: the menu of years on the left leads the frame on the right.

_OKIMI_YEARS = (("h20", "平成20年", 2008), ("h19", "平成19年", 2007))
_OKIMI = (
    ("沖見県漁業政治連盟", "gyogyo"),
    ("沖見県土地改良政治連盟", "tochi"),
    ("海と島を語る会", "umi"),
    ("渡辺たけし後援会", "watanabe"),
)

_OKIMI_FRAMES = """<html><head><title>沖見県選挙管理委員会</title></head>
<frameset cols="180,*" frameborder="no"><frame src="menu.html" name="menu">
<frame src="h20.html" name="main"><noframes>
<body>フレーム対応のブラウザでご覧ください。</body></noframes>
</frameset></html>"""
_OKIMI_MENU = """<html><head><meta http-equiv="content-type" content="text/html; charset=euc-jp">
<base target="main"></head><body bgcolor="#ffffcc"><b>公表年別</b><br>
{years}
<hr><a href="../index.html" target="_top">トップへ戻る</a><br>
<a href="sitsumon.html">よくある質問</a></body></html>"""
_OKIMI_YEAR = """<html><head><meta http-equiv="content-type" content="text/html; charset=euc-jp">
<title>{era}分</title></head><body><h2>{era}分収支報告書</h2>
<table border cellspacing=0>{rows}</table></body></html>"""


def _okimi_year(code: str, era: str) -> str:
    rows = lines(
        f'<tr><td nowrap>{name}<td><a href="../pdf/{code}{slug}.pdf">表示</a></tr>'
        for name, slug in _OKIMI
    )
    return fill(_OKIMI_YEAR, era=era, rows=rows)


OKIMI = ZooSite(
    id="okimi-frames",
    name="沖見県選挙管理委員会",
    start="/shikin/html/index.html",
    encoding="euc_jp",
    media="text/html",
    listed=reports(
        (f"/shikin/pdf/{code}{slug}.pdf", name, f"{year}-annual")
        for code, _, year in _OKIMI_YEARS
        for name, slug in _OKIMI
    ),
    pages={
        "/shikin/html/index.html": _OKIMI_FRAMES,
        "/shikin/html/menu.html": fill(
            _OKIMI_MENU,
            years=lines(f'<a href="{code}.html">{era}分</a><br>' for code, era, _ in _OKIMI_YEARS),
        ),
    }
    | {f"/shikin/html/{code}.html": _okimi_year(code, era) for code, era, _ in _OKIMI_YEARS},
    notes="EUC-JP in a frameset; the second year only by the menu's frame",
)

# The server says Latin-1 and the page says UTF-8; its bytes are Shift_JIS.

_MIDORIKAWA = (
    ("緑川県建設業政治連盟", "01"),
    ("緑川県薬剤師連盟", "02"),
    ("緑川県税理士政治連盟", "03"),
    ("水と緑の会緑川県本部", "04"),
    ("大河原まさる後援会", "05"),
    ("緑川県自治労連政治活動委員会", "06"),
)

_MIDORIKAWA_PAGE = """<!DOCTYPE html><html lang="ja"><head><meta charset="UTF-8">
<title>政治資金収支報告書（令和３年分）</title></head><body><div id="container">
<div id="head"><a href="/">緑川県庁ホームページ</a></div>
<h1>政治資金収支報告書（令和３年分）</h1>
<p>公表日：令和４年11月30日</p>
<ol>
{items}
</ol>
<div id="foot"><a href="/webmaster.html">このサイトについて</a></div></div></body></html>"""

MIDORIKAWA = ZooSite(
    id="midorikawa-mislabelled",
    name="緑川県選挙管理委員会",
    start="/senkyo/r3.html",
    encoding="cp932",
    media="text/html; charset=ISO-8859-1",
    listed=reports(
        (f"/senkyo/data/R03_{number}.pdf", name, "2021-annual") for name, number in _MIDORIKAWA
    ),
    pages={
        "/senkyo/r3.html": fill(
            _MIDORIKAWA_PAGE,
            items=lines(
                f'<li>{name}　<a href="data/R03_{number}.pdf"><img alt="PDF" src="p.gif"></a></li>'
                for name, number in _MIDORIKAWA
            ),
        )
    },
    notes="two wrong charsets; the link is a picture, the organisation stands before it",
)

# Japanese and spaces in addresses: raw, in UTF-8, and percent-encoded from Shift_JIS.

_FUJINO_RAW = (
    ("藤野県不動産政治連盟", "/files/令和5年/藤野県不動産政治連盟 収支報告書.pdf"),
    ("ふじの未来塾", "/files/令和5年/ふじの未来塾 収支報告書.pdf"),
    ("藤野県酪農政治連盟", "/files/令和5年/藤野県酪農政治連盟（訂正後）.pdf"),
)
_FUJINO_ENCODED = (
    ("藤野県美容政治連盟", "/files/%E4%BB%A4%E5%92%8C4%E5%B9%B4/%E7%BE%8E%E5%AE%B9.pdf"),
    ("藤野県調理師連盟", "/files/%E4%BB%A4%E5%92%8C4%E5%B9%B4/%E8%AA%BF%E7%90%86.pdf"),
)
_FUJINO_SJIS = (
    ("藤野県遺族政治連盟", "/old/%95%BD%90%AC30%94N/%88%E2%91%B0.pdf"),
    ("藤野県たばこ販売政治連盟", "/old/%95%BD%90%AC30%94N/%82%BD%82%CE%82%B1.pdf"),
)


def _fujino_rows(files: tuple[tuple[str, str], ...]) -> str:
    return lines(
        f'<p class="link"><a href="{path}">{name}</a>（PDF／{len(name) * 37}KB）</p>'
        for name, path in files
    )


_FUJINO_PAGE = """<!DOCTYPE html><html lang="ja"><head><meta charset="utf-8">
<title>収支報告書｜藤野県
</title></head><body><header id="h"><a href="/">藤野県</a></header>
<article><h1>政治団体の収支報告書</h1>
<section><h2>令和5年分</h2>
{raw}
</section><section><h2>令和4年分</h2>
{encoded}
</section><section><h2>平成30年分</h2>
{sjis}
</section></article>
<footer>
<a href="/files/プライバシー ポリシー.pdf">プライバシーポリシー</a></footer></body></html>"""

FUJINO = ZooSite(
    id="fujino-addresses",
    name="藤野県選挙管理委員会",
    start="/shushi",
    listed=(
        *(Truth(path=path, organization=name, period="2023-annual") for name, path in _FUJINO_RAW),
        *(
            Truth(path=path, organization=name, period="2022-annual")
            for name, path in _FUJINO_ENCODED
        ),
        *(Truth(path=path, organization=name, period="2018-annual") for name, path in _FUJINO_SJIS),
    ),
    unwanted=frozenset({"/files/プライバシー ポリシー.pdf"}),
    pages={
        "/shushi": fill(
            _FUJINO_PAGE,
            raw=_fujino_rows(_FUJINO_RAW),
            encoded=_fujino_rows(_FUJINO_ENCODED),
            sjis=_fujino_rows(_FUJINO_SJIS),
        )
    },
    notes="raw Japanese and spaces in addresses; bytes of Shift_JIS that are no UTF-8",
)

# A base address, and files named R05_… whose era year stands nowhere else.

_MIYAMA = (
    ("自由みらい党深山県支部", "jimirai", ("R05", "R04", "H31")),
    ("深山県森林政治連盟", "shinrin", ("R05", "R04")),
    ("山の暮らしを守る会", "yama", ("R05",)),
    ("深山県旅館ホテル政治連盟", "ryokan", ("R04", "H31")),
)
_MIYAMA_YEARS = {"R05": 2023, "R04": 2022, "H31": 2019}

_MIYAMA_PAGE = """<!DOCTYPE html><html lang="ja"><head><meta charset="utf-8">
<base href="/kensei/senkyo/"><title>政治資金の公表 / 深山県</title></head><body>
<div id="navi"><a href="../index.html">県政</a>｜<a href="index.html">選挙</a>｜
<a href="../koho/index.html">広報</a></div>
<div id="honbun"><h1>政治資金の公表</h1>
{groups}
</div><div id="bottom"><a href="../../copyright.html">著作権・リンク</a></div></body></html>"""

MIYAMA = ZooSite(
    id="miyama-base",
    name="深山県選挙管理委員会",
    start="/page/1034.html",
    listed=reports(
        (f"/kensei/files/{era}_{slug}.pdf", name, f"{_MIYAMA_YEARS[era]}-annual")
        for name, slug, eras in _MIYAMA
        for era in eras
    ),
    pages={
        "/page/1034.html": fill(
            _MIYAMA_PAGE,
            groups=lines(
                f'<div class="dantai"><strong>{name}</strong>\n'
                + lines(
                    f'<a href="../files/{era}_{slug}.pdf">要旨{number}</a>'
                    for number, era in enumerate(eras, start=1)
                )
                + "</div>"
                for name, slug, eras in _MIYAMA
            ),
        )
    },
    notes="base href, ../ links, the period only in the file's name",
)

# Shift_JIS, though the server and the page claim UTF-8; hardly more than names.

_KUSUNOKI = (
    "楠野県医師連盟",
    "民社協会",
    "岐南後援会",
    "楠野県商工政治連盟",
    "能登ソーラー政治連盟",
)
_KUSUNOKI_PAGE = """<html lang="ja"><head><meta charset="utf-8"><title>楠野県</title></head><body>
<h1>楠野県</h1>
{years}
</body></html>"""

KUSUNOKI = ZooSite(
    id="kusunoki-claims-utf8",
    name="楠野県選挙管理委員会",
    start="/shikin/",
    encoding="cp932",
    listed=reports(
        (f"/shikin/h{era}/{number}.pdf", name, f"{1988 + era}-annual")
        for era in (29, 30)
        for number, name in enumerate(_KUSUNOKI)
    ),
    pages={
        "/shikin/": fill(
            _KUSUNOKI_PAGE,
            years=lines(
                f"<h2>平成{era}年分</h2><ul>"
                + lines(
                    f'<li><a href="h{era}/{number}.pdf">{name}</a></li>'
                    for number, name in enumerate(_KUSUNOKI)
                )
                + "</ul>"
                for era in (29, 30)
            ),
        )
    },
    notes="bytes in Shift_JIS, and UTF-8 in the header and in the page",
)

SITES = (KUSUNOKI, TSUBAKI, OKIMI, MIDORIKAWA, FUJINO, MIYAMA)
