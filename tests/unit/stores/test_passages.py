from __future__ import annotations

from fonds.chunk.chunker import whole_document_chunk
from fonds.model import Chunk
from fonds.stores.passages import chunk_meta


def test_meta_holds_the_place() -> None:
    chunk = Chunk(
        ordinal=3,
        text="abc",
        start=5,
        end=8,
        tokens=1,
        heading_path=("A", "B"),
        section="I.B",
        page="102",
    )
    assert chunk_meta(chunk) == {
        "start": 5,
        "end": 8,
        "tokens": 1,
        "locator": {"heading_path": ["A", "B"], "section": "I.B", "page": "102"},
    }


def test_meta_leaves_out_what_is_unknown() -> None:
    assert chunk_meta(whole_document_chunk("abc")) == {
        "start": 0,
        "end": 3,
        "tokens": 1,
        "locator": {"heading_path": []},
    }
