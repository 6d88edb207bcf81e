"""Texts are rendered once for each body, kept in files, and read from there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from tests.support.libraries.uploads import TEXT, make_user, send, work

from fonds import ids
from fonds.library import Library
from fonds.stores.tables import documents
from fonds.web import document_html
from fonds.web.document_html import FOLDER, HtmlTexts

LONG = "\n\n".join(
    f"## Part {number}\n\nThis is paragraph {number} of a long text, {'and on it goes ' * 40}."
    for number in range(30)
)


def stored(library: Library, text: str = TEXT, name: str = "policy.md") -> dict[str, Any]:
    """A document that was uploaded and published."""
    user = make_user(library)
    job = send(library, user, text.encode(), name)
    work(library)
    return library.document(ids.upload_id(job.document_id), owner=user, with_text=False)


def files(library: Library) -> list[Path]:
    folder = library.settings.home / FOLDER
    return sorted(path for path in folder.rglob("*") if path.is_file())


class NoDatabase:
    """Fails whoever asks it."""

    def read(self) -> Any:
        raise AssertionError("the database was asked")


def without_database(library: Library) -> HtmlTexts:
    return HtmlTexts(NoDatabase(), library.settings.home)  # type: ignore[arg-type]  # that is the point


def test_a_text_is_rendered_once_and_then_read(library: Library) -> None:
    document = stored(library)
    first = HtmlTexts(library.database, library.settings.home).part(document, 1)
    assert first is not None
    assert (first.number, first.parts) == (1, 1)
    assert [each.text for each in first.headings] == ["Flood policy", "Cover", "Excess"]
    assert b"up to the sum insured" in first.html
    again = without_database(library).part(document, 1)
    assert again == first


def test_documents_of_the_same_text_share_what_was_rendered(library: Library) -> None:
    one, other = stored(library), stored(library)
    assert one["id"] != other["id"]
    made = HtmlTexts(library.database, library.settings.home).part(one, 1)
    assert without_database(library).part(other, 1) == made


def test_another_text_and_another_recipe_are_rendered_anew(library: Library) -> None:
    document = stored(library)
    context = HtmlTexts(library.database, library.settings.home)
    context.part(document, 1)
    count = len(files(library))
    context.part({**document, "recipe": "another"}, 1)
    assert len(files(library)) == 2 * count
    with library.database.write() as connection:
        same = documents.c.id == document["id"]
        connection.execute(update(documents).where(same).values(body_text="Something else."))
    changed = context.part({**document, "body_text_sha256": "f" * 64}, 1)
    assert changed is not None
    assert b"Something else." in changed.html


def test_a_document_without_a_text_has_no_part(library: Library) -> None:
    document = {**stored(library), "body_text_sha256": None}
    context = HtmlTexts(library.database, library.settings.home)
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
    context = HtmlTexts(library.database, library.settings.home)
    whole = context.part(document, 1)
    before = {path: path.read_bytes() for path in files(library)}
    assert len(before) == 3
    path = files(library)[which]
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage(before[path]))
    assert context.part(document, 1) == whole
    assert {path: path.read_bytes() for path in files(library)} == before


def test_a_cache_that_cannot_be_written_to_costs_only_time(library: Library) -> None:
    document = stored(library)
    blocked = library.settings.home / FOLDER
    blocked.parent.mkdir(parents=True, exist_ok=True)
    blocked.write_text("a file where the folder would be")
    context = HtmlTexts(library.database, library.settings.home)
    part = context.part(document, 1)
    assert part is not None
    assert b"sum insured" in part.html
    assert context.part(document, 1) == part


def test_a_long_text_is_shown_in_parts_that_together_are_the_whole(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_html, "PART_LENGTH", 5000)
    document = stored(library, LONG)
    context = HtmlTexts(library.database, library.settings.home)
    first = context.part(document, 1)
    assert first is not None
    assert first.parts > 2
    parts = [context.part(document, number) for number in range(1, first.parts + 1)]
    html = b"".join(part.html for part in parts if part).decode()
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
    context = HtmlTexts(library.database, library.settings.home)
    found = 0
    for number in range(1, 100):
        part = context.part(document, number)
        assert part is not None
        if part.number < number:
            break
        for passage in re.findall(rb'id="p(\d+)"', part.html):
            assert context.part_of(document, int(passage)) == number
            found += 1
    assert found > 5
    last = context.part(document, 10**9)
    assert last is not None
    assert last.number == last.parts == context.part_of(document, 10**9)
    lowest = context.part(document, -1)
    assert lowest is not None
    assert lowest.number == 1
