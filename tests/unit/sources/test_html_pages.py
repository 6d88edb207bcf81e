from __future__ import annotations

import pytest

from fonds.errors import MalformedError, ParseError, WrongContentError
from fonds.sources.formats.html import by_class, canonical_address, read_page, text_of

PAGE = b"""<!DOCTYPE html><html><head><link rel="canonical" href="https://x.example/1"></head>
<body><nav>Menu</nav><div class="a b">One <b>two</b></div><main><p>Caf\xc3\xa9</p></main>
<footer>Foot</footer></body></html>"""


def test_facts_are_found_by_class_and_head() -> None:
    root = read_page(PAGE)
    assert [text_of(found) for found in by_class(root, "b")] == ["One two"]
    assert canonical_address(root) == "https://x.example/1"
    assert text_of(None) is None


def test_a_word_is_not_cut_where_its_face_changes() -> None:
    root = read_page(b"<body><p>fi<b>ve</b>.<br>six</p>seven</body>")
    assert text_of(root.find(".//p")) == "five. six"


def test_pages_may_nest_as_deep_as_they_like() -> None:
    assert text_of(read_page(b"<body>" + b"<div>" * 200 + b"deep")) == "deep"


@pytest.mark.parametrize(
    ("data", "error"), [(b"%PDF-1.7", WrongContentError), (b" ", MalformedError)]
)
def test_what_is_no_page_is_refused(data: bytes, error: type[ParseError]) -> None:
    with pytest.raises(error):
        read_page(data)
