from __future__ import annotations

from fonds.chunk.chunker import Chunker
from fonds.model import NormalizedBody, UncertainText
from fonds.stores.documents import body_map, stored_text
from fonds.stores.passages import chunk_meta

TEXT = "# Received\n\nOne Ada Palmer gave 30,000 yen.\n\n# Paid\n\nNothing.\n"


def uncertain(*texts: str) -> tuple[UncertainText, ...]:
    starts = [TEXT.index(text) for text in texts]
    return tuple(
        UncertainText(start=start, end=start + len(text), confidence=0.4)
        for start, text in zip(starts, texts, strict=True)
    )


def test_a_passage_names_its_uncertain_texts_and_amounts_first() -> None:
    body = NormalizedBody(markdown=TEXT, uncertain=uncertain("Ada Palmer", "30,000"))
    received, paid = Chunker().chunk(body)
    assert received.uncertain == ("30,000", "Ada Palmer")
    assert paid.uncertain == ()


def test_a_locator_has_uncertain_texts_only_where_there_are_some() -> None:
    body = NormalizedBody(markdown=TEXT, uncertain=uncertain("30,000"))
    received, paid = map(chunk_meta, Chunker().chunk(body))
    assert received["locator"]["uncertain"] == ["30,000"]
    assert "uncertain" not in paid["locator"]


def test_a_stored_text_keeps_what_is_uncertain() -> None:
    body = NormalizedBody(markdown=TEXT, uncertain=uncertain("Ada Palmer", "30,000"))
    assert stored_text(TEXT, body_map(body)).uncertain == body.uncertain


def test_a_text_that_is_cut_in_two_is_uncertain_in_both_passages() -> None:
    text = "word " * 40 + "12 " * 40
    whole = UncertainText(start=0, end=len(text), confidence=0.4)
    first, *others = Chunker(max_tokens=64, overlap_tokens=0).chunk(
        NormalizedBody(markdown=text, uncertain=(whole,))
    )
    assert others
    assert first.uncertain == (first.text,)
    assert all(chunk.uncertain == (chunk.text,) for chunk in others)
