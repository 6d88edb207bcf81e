from __future__ import annotations

from fonds.stores.fulltext import as_seen


def test_what_a_reader_does_not_see_is_not_indexed() -> None:
    assert as_seen("the<!-- Page H11 --> House") == "the  House"
    assert as_seen("House of Representa\xadtives") == "House of Representatives"
    assert as_seen("plain text") == "plain text"
