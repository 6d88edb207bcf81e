"""Texts are rendered once for each body, kept in files, and read from there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import update
from tests.support.libraries.uploads import TEXT, make_user, send, work

from fonds import ids
from fonds.library import Library
from fonds.stores.tables import documents
from fonds.web import document_html
from fonds.web.document_html import FOLDER, HtmlTexts, RenderedSection, UnrenderedError

LONG = "\n\n".join(
    f"## Part {number}\n\nThis is paragraph {number} of a long text, {'and on it goes ' * 40}."
    for number in range(30)
)


def stored(library: Library, text: str = TEXT, name: str = "policy.md") -> dict[str, Any]:
    """A document that was uploaded and published."""
    user = make_user(library)
    job = send(library, user, text.encode(), name)
    work(library)
    document = library.document(ids.upload_id(job.document_id), owner=user, with_text=False)
    return {**document, "owner": None}


def files(library: Library) -> list[Path]:
    folder = library.settings.home / FOLDER
    return sorted(path for path in folder.rglob("*") if path.is_file())


def shown(texts: HtmlTexts, document: dict[str, Any], number: int) -> RenderedSection:
    """A part, rendered if it is not in the cache, as a page does."""
    try:
        part = texts.part(document, number)
    except UnrenderedError as unrendered:
        return texts.render(unrendered)
    assert part is not None
    return part


class NoDatabase:
    """Fails on every query."""

    def read(self) -> Any:
        raise AssertionError("the database was asked")


def without_database(library: Library) -> HtmlTexts:
    database: Any = NoDatabase()
    return HtmlTexts(replace(library.context, database=database))


def test_a_text_is_rendered_once_and_then_read(library: Library) -> None:
    document = stored(library)
    first = shown(HtmlTexts(library.context), document, 1)
    assert (first.number, first.parts) == (1, 1)
    assert [each.text for each in first.headings] == ["Flood policy", "Cover", "Excess"]
    assert b"up to the sum insured" in first.html
    again = shown(without_database(library), document, 1)
    assert again == first


def test_nothing_of_an_upload_is_cached(library: Library) -> None:
    document = stored(library) | {"owner": UUID(int=1)}
    assert b"up to the sum insured" in shown(HtmlTexts(library.context), document, 1).html
    assert files(library) == []


def test_documents_of_the_same_text_share_what_was_rendered(library: Library) -> None:
    one, other = stored(library), stored(library)
    assert one["id"] != other["id"]
    made = shown(HtmlTexts(library.context), one, 1)
    assert shown(without_database(library), other, 1) == made


def test_another_text_and_another_recipe_are_rendered_anew(library: Library) -> None:
    document = stored(library)
    context = HtmlTexts(library.context)
    shown(context, document, 1)
    count = len(files(library))
    shown(context, {**document, "recipe": "another"}, 1)
    assert len(files(library)) == 2 * count
    with library.database.write() as connection:
        same = documents.c.id == document["id"]
        connection.execute(update(documents).where(same).values(body_text="Something else."))
    changed = shown(context, {**document, "body_text_sha256": "f" * 64}, 1)
    assert b"Something else." in changed.html


def test_a_document_without_a_text_has_no_part(library: Library) -> None:
    document = {**stored(library), "body_text_sha256": None}
    context = HtmlTexts(library.context)
    assert context.part(document, 1) is None
    assert context.part_of(document, 5) == 1
    assert files(library) == []


def empty(content: bytes) -> bytes:
    return content[:0]


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def other(content: bytes) -> bytes:
    return b"x" * len(content)


def null(_content: bytes) -> bytes:
    return b"null"


def listed(_content: bytes) -> bytes:
    return json.dumps([{}]).encode()


@pytest.mark.parametrize("damage", [None, empty, half, other, null, listed])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_whatever_is_wrong_with_a_file_it_is_made_again(
    library: Library, which: int, damage: Callable[[bytes], bytes] | None
) -> None:
    document = stored(library)
    context = HtmlTexts(library.context)
    whole = shown(context, document, 1)
    before = {path: path.read_bytes() for path in files(library)}
    assert len(before) == 3
    path = files(library)[which]
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage(before[path]))
    assert shown(context, document, 1) == whole
    assert {path: path.read_bytes() for path in files(library)} == before


def test_a_cache_that_cannot_be_written_to_costs_only_time(library: Library) -> None:
    document = stored(library)
    blocked = library.settings.home / FOLDER
    blocked.parent.mkdir(parents=True, exist_ok=True)
    blocked.write_text("a file where the folder would be")
    context = HtmlTexts(library.context)
    part = shown(context, document, 1)
    assert b"sum insured" in part.html
    assert shown(context, document, 1) == part


def test_a_long_text_is_shown_in_parts_that_together_are_the_whole(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_html, "PART_LENGTH", 5000)
    document = stored(library, LONG)
    context = HtmlTexts(library.context)
    first = shown(context, document, 1)
    assert first.parts > 2
    parts = [shown(context, document, number) for number in range(1, first.parts + 1)]
    html = b"".join(part.html for part in parts).decode()
    for number in range(30):
        assert html.count(f"This is paragraph {number} of") == 1
    anchors = re.findall(r'id="p(\d+)"', html)
    assert anchors == sorted(anchors, key=int)
    assert list(map(int, anchors)) == list(range(len(anchors)))
    names = re.findall(r'id="(s[^"]+)"', html)
    assert len(names) == len(set(names)) == 30


def test_every_passage_is_in_the_part_that_it_is_said_to_be_in(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_html, "PART_LENGTH", 5000)
    document = stored(library, LONG)
    context = HtmlTexts(library.context)
    found = 0
    for number in range(1, 100):
        part = shown(context, document, number)
        if part.number < number:
            break
        for passage in re.findall(rb'id="p(\d+)"', part.html):
            assert context.part_of(document, int(passage)) == number
            found += 1
    assert found > 5
    last = shown(context, document, 10**9)
    assert last.number == last.parts == context.part_of(document, 10**9)
    lowest = shown(context, document, -1)
    assert lowest.number == 1
