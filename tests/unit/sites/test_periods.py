from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fonds.sites.periods import reporting_period

FORM = re.compile(r"(19|20)\d\d-(Q[1-4]|H[12]|0[1-9]|1[0-2]|annual)")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("令和6年分", "2024-annual"),
        ("平成元年", "1989-annual"),
        ("令和六年分", "2024-annual"),
        ("令和６年分", "2024-annual"),
        ("昭和六十三年", "1988-annual"),
        ("平成三十一年", "2019-annual"),
        ("平成十年", "1998-annual"),
        ("令和二十年", "2038-annual"),
        ("R6収支報告書", "2024-annual"),
        ("https://www.x.jp/r6/teiki.pdf", "2024-annual"),
        ("/h31_teiki.pdf", "2019-annual"),
        ("R06nen.pdf", "2024-annual"),
        ("/s63/x.pdf", "1988-annual"),
        ("R6年分", "2024-annual"),
        ("令和6年第1四半期", "2024-Q1"),
        ("令和5年度第４四半期", "2023-Q4"),
        ("令和6年下期", "2024-H2"),
        ("H2 2024", "2024-H2"),
        ("令和5年度", "2023-annual"),
        ("令和6年5月分", "2024-05"),
        ("令和6年1月～3月", "2024-Q1"),
        ("令和6年1月1日から12月31日まで", "2024-annual"),
        ("令和6年4月1日～令和7年3月31日", "2024-annual"),
        ("令和6年分（令和7年11月28日公表）", "2024-annual"),
        ("公表日：令和7年11月28日 令和6年分収支報告書", "2024-annual"),
        ("令和7年公表 令和6年分", "2024-annual"),
        ("令和7年11月公表 令和6年分", "2024-annual"),
        ("令和６年（２０２４年）分", "2024-annual"),
        ("%E4%BB%A4%E5%92%8C6%E5%B9%B4.pdf", "2024-annual"),
        ("平成30年分", "2018-annual"),
    ],
)
def test_years_of_an_emperor_are_counted_in_ours(text: str, expected: str) -> None:
    assert reporting_period([text]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Q1 2024", "2024-Q1"),
        ("2024 Q3", "2024-Q3"),
        ("2024q2.pdf", "2024-Q2"),
        ("report-2024-q4.pdf", "2024-Q4"),
        ("First quarter 2024", "2024-Q1"),
        ("2nd Quarter of 2023", "2023-Q2"),
        ("第二四半期 2024年", "2024-Q2"),
        ("1. Quartal 2024", "2024-Q1"),
        ("Drittes Quartal 2023", "2023-Q3"),
        ("IV. Quartal 2022", "2022-Q4"),
        ("2024-Quartal-2", "2024-Q2"),
        ("1er trimestre 2024", "2024-Q1"),
        ("deuxième trimestre 2024", "2024-Q2"),
        ("T3 2024", "2024-Q3"),
        ("Primer trimestre de 2024", "2024-Q1"),
        ("Cuarto trimestre de 2023", "2023-Q4"),
        ("3.º trimestre de 2024", "2024-Q3"),
        ("III kwartał 2024", "2024-Q3"),
        ("2024년 1분기", "2024-Q1"),
        ("January–March 2024", "2024-Q1"),
        ("January - March 2024", "2024-Q1"),
        ("July to September 2023", "2023-Q3"),
        ("2024年4月〜6月", "2024-Q2"),
        ("01.01.2024 - 31.03.2024", "2024-Q1"),
        ("Januar bis März 2024", "2024-Q1"),
        ("enero a marzo de 2024", "2024-Q1"),
        ("quarter ended 31 March 2024", "2024-Q1"),
        ("2024年分 第3四半期", "2024-Q3"),
        ("Donations 2024 Quarter 3", "2024-Q3"),
        ("Jan. – Mar. 2024", "2024-Q1"),
        ("Oct-Dec 2023", "2023-Q4"),
        ("2024_1Q.pdf", "2024-Q1"),
    ],
)
def test_quarters_are_read_in_many_languages(text: str, expected: str) -> None:
    assert reporting_period([text]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024年上半期", "2024-H1"),
        ("second half of 2024", "2024-H2"),
        ("1. Halbjahr 2024", "2024-H1"),
        ("2e semestre 2023", "2023-H2"),
        ("Segundo semestre de 2024", "2024-H2"),
        ("2024년 하반기", "2024-H2"),
        ("I półrocze 2024", "2024-H1"),
        ("Jan-Jun 2024", "2024-H1"),
        ("2024-01-01 to 2024-06-30", "2024-H1"),
    ],
)
def test_halves_are_read_in_many_languages(text: str, expected: str) -> None:
    assert reporting_period([text]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("May 2024", "2024-05"),
        ("Mai 2024", "2024-05"),
        ("März 2023", "2023-03"),
        ("février 2024", "2024-02"),
        ("diciembre de 2023", "2023-12"),
        ("2024年5月", "2024-05"),
        ("2024-05", "2024-05"),
        ("/2024/05/report.pdf", "2024-05"),
        ("05/2024", "2024-05"),
        ("report_202405.pdf", "2024-05"),
        ("lipiec 2024", "2024-07"),
        ("2024년 5월", "2024-05"),
        ("20240515_report.pdf", "2024-05"),
        ("March 2024 quarter", "2024-03"),
        ("2024年4月～翌年3月", "2024-04"),
    ],
)
def test_months_are_read_in_many_languages(text: str, expected: str) -> None:
    assert reporting_period([text]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FY 2023-24", "2023-annual"),
        ("2023/24", "2023-annual"),
        ("FY2023/2024", "2023-annual"),
        ("2023–24 annual return", "2023-annual"),
        ("FY 2011-12", "2011-annual"),
        ("FY2024", "2024-annual"),
        ("FY24", "2024-annual"),
        ("Haushaltsjahr 2022/2023", "2022-annual"),
        ("1999/00", "1999-annual"),
        ("April 2023 – March 2024", "2023-annual"),
        ("1 April 2023 to 31 March 2024", "2023-annual"),
        ("Published 28 November 2025: Annual report 2024", "2024-annual"),
        ("Annual report 2024 (updated May 3, 2025)", "2024-annual"),
        ("for the year ended 31 December 2024", "2024-annual"),
        ("Statement of accounts 2022", "2022-annual"),
        ("Rapport annuel 2023", "2023-annual"),
        ("Rechenschaftsbericht 2021 (PDF, 1.2 MB)", "2021-annual"),
        ("2024-2025", "2024-annual"),
        ("Published: May 2025. Accounts for 2023/24", "2023-annual"),
        ("Oct 2023 - Mar", "2024-annual"),
        ("October to March 2024", "2024-annual"),
        ("2019年分～2021年分", "2019-annual"),
    ],
)
def test_a_year_alone_and_a_fiscal_year_are_annual(text: str, expected: str) -> None:
    assert reporting_period([text]) == expected


@pytest.mark.parametrize(
    "text",
    [
        "https://s3.amazonaws.com/x/report.pdf",
        "令和7年11月28日公表",
        "Published: 2025-11-28",
        "report (2024 KB)",
        "20240012.pdf",
        "Tel. 03-2024-5678",
        "id=1202401",
        "¥2024",
        "2,024 pages",
        "(03)2024-1999",
        "",
        "平成99年",
    ],
)
def test_what_is_no_period_is_none(text: str) -> None:
    assert reporting_period([text]) is None


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["令和7年11月28日公表", "令和6年分"], "2024-annual"),
        (["第1四半期", "2024年度"], "2024-Q1"),
        (["May", "2024"], "2024-05"),
        (["2024", "https://x/y/q3.pdf"], "2024-Q3"),
        (["令和6年分", "https://x/2025/06/a.pdf"], "2024-annual"),
        (["2024", "/2024/05/x.pdf"], "2024-annual"),
        (["収支報告書", "https://x.jp/r5/h.pdf"], "2023-annual"),
        ([], None),
    ],
)
def test_texts_are_believed_in_their_order(texts: list[str], expected: str | None) -> None:
    assert reporting_period(texts) == expected


def test_a_day_that_may_be_of_publication_is_believed_last() -> None:
    assert reporting_period(["2025-11-28", "report 2024"]) == "2024-annual"
    assert reporting_period(["2025-11-28"]) == "2025-11"


@settings(max_examples=60)
@given(st.integers(1, 31))
def test_every_year_of_heisei_is_the_same_in_all_forms(number: int) -> None:
    year = 1988 + number
    tens, ones = divmod(number, 10)
    kanji = ("" if tens < 2 else "〇一二三"[tens]) + "十" * (tens > 0) + " 一二三四五六七八九"[ones]
    full_width = str(number).translate(str.maketrans("0123456789", "０１２３４５６７８９"))
    for told in (number, kanji.strip(), full_width):
        assert reporting_period([f"平成{told}年分"]) == f"{year}-annual"
    assert reporting_period([f"https://a.example/h{number:02}/x.pdf"]) == f"{year}-annual"


@settings(max_examples=100)
@given(st.integers(1950, 2040), st.integers(1, 4))
def test_every_quarter_is_the_same_in_all_forms(year: int, number: int) -> None:
    months = ("January–March", "April–June", "July–September", "October–December")[number - 1]
    forms = (
        f"Q{number} {year}",
        f"{year}-q{number}.pdf",
        f"{year}年第{number}四半期",
        f"{number}. Quartal {year}",
        f"{months} {year}",
        f"{year}년 {number}분기",
    )
    assert {reporting_period([form]) for form in forms} == {f"{year}-Q{number}"}


@settings(max_examples=100)
@given(st.integers(1950, 2040), st.integers(1, 12))
def test_every_month_is_the_same_in_all_forms(year: int, month: int) -> None:
    forms = (
        f"{year}-{month:02}",
        f"{year}年{month}月",
        f"{month:02}/{year}",
        f"x_{year}{month:02}.pdf",
    )
    assert {reporting_period([form]) for form in forms} == {f"{year}-{month:02}"}


@settings(max_examples=100)
@given(st.integers(10**8, 10**15))
def test_long_numbers_are_no_years(number: int) -> None:
    assert reporting_period([f"https://a.example/file/{number}.pdf"]) is None


PIECES = st.sampled_from(
    [
        "令和",
        "平成",
        "年",
        "年度",
        "元",
        "十十",
        "6",
        "2024",
        "24",
        "1",
        "31",
        "月",
        "日",
        "-",
        "/",
        ".",
        "~",
        "から",
        "Q1",
        "第1",
        "四半期",
        "half",
        "FY",
        "May",
        "to",
        "bis",
        "公表",
        "published",
        "ended",
        "%E4",
        "http://",
        "r6",
        "h2",
        "(",
        ")",
        "４",
    ]
)


@settings(max_examples=200)
@given(
    st.lists(
        st.one_of(st.text(max_size=20), st.lists(PIECES, max_size=12).map("".join)), max_size=4
    )
)
@example(["平成十十年"])
@example(["99/2024 " * 500])
@example(["january to " * 500])
@example(["1" * 5000])
def test_whatever_is_read_the_answer_has_a_known_form(texts: list[str]) -> None:
    found = reporting_period(texts)
    assert found is None or FORM.fullmatch(found)
