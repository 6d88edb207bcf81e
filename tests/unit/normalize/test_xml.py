"""XML of no known format, read by its shape."""

from __future__ import annotations

import pytest

from fonds.errors import MalformedError, WrongContentError
from fonds.normalize.xml import Xml


def markdown(data: str) -> str:
    return Xml().to_markdown(data.encode()).markdown


def test_elements_with_text_are_paragraphs_and_labels_lead_them_in() -> None:
    text = markdown(
        "<Section><MarginalNote>Duty of keepers</MarginalNote><Label>2</Label>"
        "<Sub><Label>(1)</Label><Text>A keeper shall keep the light.</Text></Sub>"
        "<Sub><Label>(2)</Label><Text>So shall <i>deputies</i>, by day.</Text></Sub></Section>"
    )
    assert text == (
        "Duty of keepers\n\n2 (1) A keeper shall keep the light.\n\n"
        "(2) So shall deputies, by day.\n"
    )


def test_words_of_neighbours_are_never_joined() -> None:
    assert markdown("<p>See <ref><a>one</a><b>two</b></ref>.</p>") == "See one two.\n"


def test_pieces_of_a_file_may_use_prefixes_that_they_do_not_declare() -> None:
    assert markdown('<lims:Text lims:id="1">One.</lims:Text><Text>Two.</Text>') == "One.\n\nTwo.\n"


def test_a_whole_file_is_read_too() -> None:
    assert markdown('<?xml version="1.0"?><Statute><Text>One.</Text></Statute>') == "One.\n"


def test_what_means_something_to_markdown_is_escaped() -> None:
    assert markdown("<p># 1 *not* a heading</p>") == "\\# 1 \\*not\\* a heading\n"


@pytest.mark.parametrize("data", ["<p>cut off", "<a>" * 300 + "x" + "</a>" * 300])
def test_what_is_cut_or_nested_without_end_is_refused(data: str) -> None:
    with pytest.raises(MalformedError):
        markdown(data)


def test_a_file_without_words_is_refused() -> None:
    with pytest.raises(WrongContentError, match="no text"):
        markdown("<p><b/></p>")
