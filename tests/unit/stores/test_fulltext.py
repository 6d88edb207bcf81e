from __future__ import annotations

from fonds.stores.fulltext import visible_text


def test_what_a_reader_does_not_see_is_not_indexed() -> None:
    assert visible_text("the<!-- Page H11 --> House") == "the  House"
    assert visible_text("House of Representa\xadtives") == "House of Representatives"
    assert visible_text("plain text") == "plain text"
