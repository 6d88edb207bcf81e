from __future__ import annotations

from fonds.normalize.cga import Cga


def markdown(html: str) -> str:
    return Cga().to_markdown(html.encode()).markdown


def test_the_catchline_is_the_heading_and_notes_have_their_own() -> None:
    assert markdown(
        '<p><span class="catchln" id="sec_3-1">Sec. 3-1. Lamps.</span> (a) One.</p>'
        "<p>(b) Two.</p>"
        '<p class="source-first">(P.A. 1-1.)</p><p class="source">*Note: Special.</p>'
        '<p class="history-first">History: P.A. 1-1.</p>'
        '<p class="cross-ref-first">See Sec. 3-2.</p><p class="cross-ref">See Sec. 3-3.</p>'
        '<p class="annotation-first">Cited. 1 C. 2.</p>'
    ) == (
        "# Sec. 3-1. Lamps.\n\n(a) One.\n\n(b) Two.\n\n"
        "## Source\n\n(P.A. 1-1.)\n\n\\*Note: Special.\n\n"
        "## History\n\nHistory: P.A. 1-1.\n\n"
        "## Cross references\n\nSee Sec. 3-2.\n\nSee Sec. 3-3.\n\n"
        "## Annotations\n\nCited. 1 C. 2.\n"
    )


def test_a_letter_in_italics_stays_part_of_its_number() -> None:
    body = Cga().to_markdown(
        b'<p><span class="catchln">Sec. 3-9<i>l</i>. Lamps.</span> Section 3-9<i>l</i>, and '
        b"<a href='chap_044.htm#x'>3-8<i>l</i></a>, not <i>l</i> nor 3<i>x</i>.</p>",
        "https://www.cga.ct.gov/current/pub/chap_044.htm",
    )
    assert body.markdown == (
        "# Sec. 3-9l. Lamps.\n\n"
        "Section 3-9l, and [3-8l](https://www.cga.ct.gov/current/pub/chap_044.htm#x), "
        "not *l* nor 3*x*.\n"
    )
    assert [heading.section for heading in body.headings] == ["Sec. 3-9l"]


def test_links_between_sections_are_left_out_and_the_text_around_them_is_kept() -> None:
    assert markdown(
        '<p>One.</p><table class="nav_tbl"><tr><td>(Return to<br/>List of Titles)</td></tr></table>'
        'tail<p class="toc_catchln">Sec. 3-1.</p><hr class="chaps_pg_bar"/><p>Two.</p>'
        "<table><tr><td>(Return to List of Titles)</td><td></td></tr></table>"
    ) == ("One.\n\ntail\n\nTwo.\n")


def test_control_characters_around_what_is_moved_or_left_out_leave_no_trace() -> None:
    page = (
        '<p>%s<span class="catchln">Sec. 3-1. Lamps.</span>%s One.</p>'
        '<table class="nav_tbl"><tr><td>Next</td></tr></table>%s<p>Two.</p>'
    )
    assert markdown(page % ("&#1;", "&#2;", "&#3;")) == markdown(page % ("", "", ""))


def test_tables_of_the_text_stay_tables() -> None:
    assert markdown(
        '<p><span class="catchln">Sec. 3-10. Fees.</span> As follows:</p><table><tbody>'
        '<tr><td><p class="tb-left">Tons</p></td><td><p class="tb-left">Fee</p></td></tr>'
        '<tr><td><p class="tb-left1">100</p></td><td><p class="tb-left1">$12</p></td></tr>'
        "</tbody></table>"
    ) == ("# Sec. 3-10. Fees.\n\nAs follows:\n\n| Tons | Fee |\n| --- | --- |\n| 100 | $12 |\n")


def test_a_catchline_outside_a_paragraph_is_a_heading_too() -> None:
    assert markdown('<span class="catchln">Sec. 3-1. Lamps.</span> One.') == (
        "# Sec. 3-1. Lamps.\n\nOne.\n"
    )
