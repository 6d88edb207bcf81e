from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.errors import FondsError, WrongContentError
from fonds.sites.pages.page import Link, read_page

URL = "https://example.gov/list/index.html"


def links(markup: str) -> list[Link]:
    return read_page(markup.encode(), URL, "text/html; charset=utf-8").links()


def pairs(markup: str) -> list[tuple[str, str, str]]:
    return [
        (link.url.removeprefix("https://example.gov"), link.text, link.kind)
        for link in links(markup)
    ]


def test_links_are_absolute_and_told_as_a_reader_sees_them() -> None:
    found = pairs(
        "<a href=' a.pdf\n'>Report <b>of</b>\n 2024</a><a href='../b.pdf'><img alt='B'></a>"
        "<a href='c.pdf' aria-label='C'></a><a href='#x'>no</a><a href='mailto:x@y.z'>no</a>"
    )
    assert found == [
        ("/list/a.pdf", "Report of 2024", "anchor"),
        ("/b.pdf", "B", "anchor"),
        ("/list/c.pdf", "C", "anchor"),
    ]


def test_the_base_of_a_page_is_honoured() -> None:
    assert pairs("<base href='/files/'><a href='a.pdf'>a</a>")[0][0] == "/files/a.pdf"


def test_frames_and_refreshes_lead_on() -> None:
    found = pairs(
        "<meta http-equiv=Refresh content='0; URL=go.html'><iframe src=in.html title=List></iframe>"
    )
    assert found == [("/list/go.html", "", "meta"), ("/list/in.html", "List", "frame")]


def test_a_form_offers_each_choice_it_leaves() -> None:
    found = pairs(
        "<form action='/find'><select name=y><option value=''>-<option>2024<option value=23>2023"
        "</select><input type=hidden name=k value=r><input type=radio name=q value=1> one"
        "<input type=radio name=q value=2> two<input type=submit name=go></form>"
    )
    assert [url for url, _, kind in found if kind == "form"] == [
        "/find?k=r&q=1&y=2024",
        "/find?k=r&q=2&y=2024",
        "/find?k=r&q=1&y=23",
        "/find?k=r&q=2&y=23",
    ]
    assert found[0][1] == "2024 one"


@pytest.mark.parametrize("method", ["<form method=post>", "<form><input name=q type=text>"])
def test_forms_that_are_sent_or_written_into_offer_nothing(method: str) -> None:
    assert pairs(f"{method}<select name=y><option>1<option>2</select></form>") == []


def test_a_form_of_many_fields_is_not_multiplied_out() -> None:
    field = "".join(f"<option>{number}" for number in range(50))
    assert len(links(f"<form><select name=a>{field}</select></form>")) == 50
    many = "".join(f"<select name=s{number}>{field}</select>" for number in range(9))
    assert len(links(f"<form>{many}</form>")) == 200


def test_a_menu_that_jumps_leads_to_its_places() -> None:
    found = pairs(
        "<select onchange='go(this)'><option value='/r6.html'>R6<option value=x>-</select>"
    )
    assert found == [("/r6.html", "R6", "form")]


@pytest.mark.parametrize(
    "element",
    [
        "<a href=\"javascript:window.open('/a.pdf','_blank')\">R</a>",
        "<a href='#' onclick=\"window.open('/a.pdf'); return false\">R</a>",
        "<button onclick=\"location.href='/a.pdf'\">R</button>",
        "<button onclick=\"show('x', '/a.pdf')\">R</button>",
        "<tr data-href='/a.pdf'><td>R</td></tr>",
        "<div data-file-url='/a.pdf'>R</div>",
    ],
)
def test_clicks_with_a_literal_address_are_links(element: str) -> None:
    found = links(f"<table>{element}</table>" if element.startswith("<tr") else element)
    assert [(link.url, link.text) for link in found] == [("https://example.gov/a.pdf", "R")]


def test_data_in_a_script_gives_its_addresses_with_what_stands_beside_them() -> None:
    data = (
        '{"year": 2024, "rows": [{"party": "Greens", "file": "\\/f\\/g.pdf"}, {"x": "/no/file"}]}'
    )
    for script in (
        f"<script type='application/json'>{data}</script>",
        f"<script>window.x = {data};</script>",
        f"<script>render({data})</script>",
    ):
        [link] = links(script)
        assert link.url == "https://example.gov/f/g.pdf"
        assert (link.fields["party"], link.fields["year"]) == ("Greens", "2024")
        assert link.element is None


def test_literals_that_are_no_json_show_their_pdfs() -> None:
    [link] = links(
        "<script>var a = [{name: 'x', url: '/f/a\\u002d1.pdf'}]; var b = 'words.pdf here'</script>"
    )
    assert link.url == "https://example.gov/f/a-1.pdf"


@pytest.mark.parametrize(
    ("encoding", "declared", "media"),
    [
        ("cp932", "Shift_JIS", "text/html"),
        ("euc_jp", "EUC-JP", "text/html"),
        ("cp932", "UTF-8", "text/html; charset=utf-8"),
        ("euc_jp", "Shift_JIS", None),
    ],
)
def test_japanese_pages_are_read_whatever_they_declare(
    encoding: str, declared: str, media: str | None
) -> None:
    text = f"<meta charset={declared}><title>収支報告書</title>"
    text += "<a href=a.pdf>政治団体の収支報告書の要旨</a>"
    page = read_page(
        (text + "<p>これは令和六年分の報告書です。</p>" * 5).encode(encoding), URL, media
    )
    assert page.title() == "収支報告書"
    assert page.links()[0].text == "政治団体の収支報告書の要旨"


@pytest.mark.parametrize(
    ("data", "media"),
    [
        (b"%PDF-1.7 ...", "text/html"),
        (b"<html>", "application/pdf"),
        (b"just words", None),
        (b"<?xml version='1.0'?><urlset><url/></urlset>", "text/xml"),
        (b"\x89PNG\r\n\x1a\n....", None),
    ],
)
def test_what_is_no_page_is_refused(data: bytes, media: str | None) -> None:
    with pytest.raises(WrongContentError):
        read_page(data, URL, media)


def test_fonts_that_are_never_closed_do_not_hide_links() -> None:
    page = read_page(b"<body>" + b"<font>" * 3000 + b"<a href=z.pdf>z</a>", URL, None)
    assert page.links()[-1].url.endswith("/z.pdf")


@settings(max_examples=60)
@given(
    st.lists(
        st.sampled_from(
            [
                "<a href=x.pdf",
                ">",
                "<script>",
                '{"a":[',
                "</",
                "<form><select name=a>",
                "<option>",
                "\x00",
                "<base href='//['>",
                "javascript:open('",
                "<table><tr><td>",
                "&#xD800;",
                "<!--",
                "\"'",
                "<svg>",
                "令和",
            ]
        ),
        max_size=30,
    )
)
def test_no_markup_makes_it_stumble(pieces: list[str]) -> None:
    try:
        page = read_page("".join(["<p>", *pieces]).encode("utf-8", "surrogatepass"), URL, None)
    except FondsError:
        return
    assert all(link.url.startswith("http") for link in page.links())
