from __future__ import annotations

from fonds.model import NormalizedBody, PageMark
from fonds.stores.documents import body_map, stored_text


def test_pages_are_stored_with_both_numbers_and_read_back() -> None:
    marks = (
        PageMark(offset=0, page=None, pdf_page=1),
        PageMark(offset=3, page="ii", pdf_page=2),
        PageMark(offset=5, page="14203"),
    )
    places = body_map(NormalizedBody(markdown="a b c d", pages=marks))
    assert places["pages"] == [[0, None, 1], [3, "ii", 2], [5, "14203"]]
    assert stored_text("a b c d", places).pages == marks
