"""Where pinpoints lead in a text."""

from __future__ import annotations

import pytest

from fonds.search.lookup import locate

TEXT = """# SECTION 1. SHORT TITLE.

This may be cited as the Harbour Act.

# SEC. 2. RULES.

(a) **In general.—** The Secretary shall—

(1) issue rules; and

(2) report—

(A) to the House; and

(B) to the Senate.

(b) **Deadline.—** Within a year.

# SEC. 12. RULES.

(a) Other rules.

(b) Yet others.
"""
MAP = {
    "sections": [
        [0, "SECTION 1"],
        [TEXT.index("# SEC. 2"), "SEC. 2"],
        [TEXT.index("# SEC. 12"), "SEC. 12"],
    ],
    "pages": [[0, None, 1], [0, "140 STAT. 12", 2], [TEXT.index("(2) report"), "140 STAT. 13"]],
}


@pytest.mark.parametrize(
    ("pinpoint", "begins", "ends", "reached"),
    [
        ("(a)", "(a) **In general", "to the Senate.", "(a)"),
        ("(a)(2)", "(2) report", "to the Senate.", "(a)(2)"),
        ("(a)(2)(B)", "(B) to the Senate.", "(B) to the Senate.", "(a)(2)(B)"),
        ("(a)(2)(B)(iv)", "(B) to the Senate.", "(B) to the Senate.", "(a)(2)(B)"),
        ("(a)(1)-(2)", "(1) issue", "rules; and", "(a)(1)"),
        ("(b)", "(b) **Deadline", "a year.", "(b)"),
        ("§ 2", "# SEC. 2", "a year.", "§ 2"),
        ("§ 2(a)(1)", "(1) issue", "rules; and", "§ 2(a)(1)"),
        ("§ 12(b)", "(b) Yet", "Yet others.", "§ 12(b)"),
        ("§ 1(c)", "# SECTION 1", "Harbour Act.", "§ 1"),
        ("13", "(2) report", "Yet others.", "13"),
        ("13-14 n. 3", "(2) report", "Yet others.", "13"),
    ],
)
def test_pinpoint_leads_to_its_stretch(pinpoint: str, begins: str, ends: str, reached: str) -> None:
    place = locate(TEXT, MAP, pinpoint)
    assert place is not None
    assert TEXT[place.start :].startswith(begins)
    assert TEXT[: place.end].rstrip().endswith(ends)
    assert place.reached == reached


@pytest.mark.parametrize("pinpoint", ["(z)", "§ 3", "§ 3(a)", "99", "pt. 2", "subpt. Kb", ""])
def test_what_the_text_does_not_mark_leads_nowhere(pinpoint: str) -> None:
    assert locate(TEXT, MAP, pinpoint) is None
