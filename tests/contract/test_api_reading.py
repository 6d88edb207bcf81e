"""What reading over HTTP promises, on every database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from lxml import etree
from tests.support.libraries.documents import hold, hold_edition, labelled
from tests.unit.api.calling import BASE, Api, api_of, refusal

from fonds.api.app import make_app
from fonds.library import Library
from fonds.stores.documents import mark_withdrawn
from fonds.testing import ManualClock

ATOM: Final = "{http://www.w3.org/2005/Atom}"
NOBODY: Final[dict[str, str]] = {}
HOSTILE: Final = "</title><script>alert(1)</script> & \x01 \u202e ]]>"


@pytest.fixture
def api(library: Library) -> Iterator[Api]:
    with api_of(library) as api:
        yield api


def read(api: Api, path: str) -> Any:
    answer = api.get(path, by=NOBODY)
    assert answer.status_code == 200, answer.text
    return answer.json()


# Documents --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/api/documents/note:1", "/api/documents/note:1?text=true"])
def test_document_that_is_as_it_was_is_not_sent_again(
    api: Api, library: Library, clock: ManualClock, path: str
) -> None:
    hold(library, "note:1", "First.")
    first = api.get(path, by=NOBODY)
    tag = first.headers["etag"]
    assert tag.startswith('"')
    assert first.headers["cache-control"] == "no-cache"
    for sent in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        again = api.get(path, by=NOBODY, headers={"If-None-Match": sent})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
    clock.move(hours=1)
    hold(library, "note:1", "Second.")
    changed = api.get(path, by=NOBODY, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


def test_document_with_and_without_its_text_are_two_things(api: Api, library: Library) -> None:
    hold(library, "note:1", "First.")
    tags = {
        api.get(f"/api/documents/note:1{query}", by=NOBODY).headers["etag"]
        for query in ("", "?text=true")
    }
    assert len(tags) == 2


def test_withdrawn_document_is_another_answer(
    api: Api, library: Library, clock: ManualClock
) -> None:
    hold(library, "note:1", "First.")
    tag = api.get("/api/documents/note:1", by=NOBODY).headers["etag"]
    with library.database.write() as connection:
        mark_withdrawn(connection, ["note:1"], clock.now())
    again = api.get("/api/documents/note:1", by=NOBODY, headers={"If-None-Match": tag})
    assert again.status_code == 200
    assert again.json()["gone_at"] is not None


def test_links_and_editions_stand_beside_a_document(api: Api, library: Library) -> None:
    section = hold_edition(library, "2025", "1", "See 91 FR 1201.", published="2025-01-01")
    other = hold_edition(library, "2026", "1", "Nothing.", published="2026-01-01")
    hold(library, "note:1", "First.", aliases=("91 FR 1201",))
    library.extract_citations()
    links = read(api, f"/api/documents/{section}")["links"]
    cited = read(api, links["links"])
    assert [(one["target"], one["document_id"]) for one in cited["cites"]] == [
        ("91 FR 1201", "note:1")
    ]
    citing = read(api, "/api/documents/91 FR 1201/links?direction=cited-by")
    assert citing["id"] == "note:1"
    assert [one["document_id"] for one in citing["cited_by"]] == [section]
    shapes = read(api, links["editions"])
    assert [one["document"]["id"] for one in shapes["editions"]] == [other, section]
    assert [one["is_asked"] for one in shapes["editions"]] == [False, True]


# Codes ------------------------------------------------------------------------------------


def test_codes_that_are_held_are_listed(api: Api, library: Library) -> None:
    assert read(api, "/api/codes") == {"codes": []}
    hold_edition(library, "2025", "1", "Text.", published="2025-01-01")
    (code,) = read(api, "/api/codes")["codes"]
    assert (code["id"], [one["id"] for one in code["editions"]]) == ("code", ["code/2025"])
    assert read(api, "/api/codes/code")["code"] == code


@pytest.mark.parametrize("path", ["nope", "code/2019", "code/2025/root/title-9"])
def test_place_of_a_code_that_is_not_held_is_not_found(
    api: Api, library: Library, path: str
) -> None:
    hold_edition(library, "2025", "1", "Text.", published="2025-01-01")
    answer = api.get(f"/api/codes/{path}", by=NOBODY)
    assert refusal(answer) == (404, "unknown-document")


# Citations --------------------------------------------------------------------------------


def test_document_is_cited_in_three_styles(api: Api, library: Library) -> None:
    hold(library, "note:1", "First.", citation_string="Note 1 (2026).")
    assert read(api, "/api/cite?id=note:1")["citation"] == "Note 1 (2026)."
    (item,) = json.loads(read(api, "/api/cite?id=note:1&style=csl")["citation"])
    assert item["note"] == "Note 1 (2026)."
    assert read(api, "/api/cite?id=note:1&style=bibtex")["citation"].startswith("@misc{note:1,")
    assert refusal(api.get("/api/cite?id=note:1&style=mla", by=NOBODY))[0] == 422
    assert refusal(api.get("/api/cite?id=note:9", by=NOBODY)) == (404, "unknown-document")


def test_passage_is_cited_with_its_place(api: Api, library: Library) -> None:
    hold(library, "note:1", "First.", normalized=labelled("# Part\n\nFirst."))
    cited = read(api, "/api/cite?id=note:1%230")
    assert (cited["id"], cited["passage"]) == ("note:1", 0)
    assert cited["locator"]["heading_path"] == ["Part"]


def test_citation_is_resolved_as_of_a_day(api: Api, library: Library) -> None:
    old = hold_edition(library, "2025", "1", "Old.", published="2025-01-01")
    new = hold_edition(library, "2026", "1", "New.", published="2026-01-01")
    assert read(api, "/api/resolve?citation=1 U.S.C. § 1")["document"]["id"] == new
    dated = read(api, "/api/resolve?citation=1 USC 1&as_of=2025-06-01")
    assert dated["document"]["id"] == old
    assert read(api, "/api/resolve?citation=9 USC 9")["problem"] == "not_held"


def test_two_editions_are_compared(api: Api, library: Library) -> None:
    old = hold_edition(library, "2025", "1", "The fee is ten dollars.", published="2025-01-01")
    new = hold_edition(library, "2026", "1", "The fee is two dollars.", published="2026-01-01")
    found = read(api, f"/api/compare?from={old}&to={new}")
    assert found["is_changed"]
    changed = [(one["op"], one["text"].strip()) for one in found["redline"] if one["op"] != "keep"]
    assert changed == [("delete", "ten"), ("insert", "two")]
    assert (found["before"]["document"]["id"], found["after"]["document"]["id"]) == (old, new)
    same = read(api, f"/api/compare?from={old}&to={old}")
    assert (same["is_changed"], same["redline"]) == (False, [])


# Search -----------------------------------------------------------------------------------


def test_search_tells_facets_if_it_is_asked(api: Api, library: Library) -> None:
    hold(library, "note:1", "A trout.", published_at="2026-01-01")
    assert "facets" not in read(api, "/api/search?q=trout")
    found = read(api, "/api/search?q=trout&facets=true&year=2026")
    assert found["facets"]["years"] == [{"value": "2026", "label": "2026", "count": 1}]
    assert read(api, "/api/search?q=trout&year=2025")["results"] == []
    refused = api.get("/api/search?q=trout&jurisdiction=Atlantis", by=NOBODY)
    assert refusal(refused) == (422, "bad-request")


# Changes and feeds ------------------------------------------------------------------------


def test_changes_are_read_page_by_page(api: Api, library: Library, clock: ManualClock) -> None:
    for number in range(3):
        hold(library, f"note:{number}", "Text.")
        clock.move(seconds=1)
    seen = []
    query = "/api/changes?since=2020-01-01&limit=2"
    cursor = None
    while True:
        page = read(api, query + (f"&cursor={cursor}" if cursor else ""))
        seen += [one["id"] for one in page["changes"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == ["note:0", "note:1", "note:2"]
    newest = read(api, "/api/changes?since=2020-01-01&order=newest&limit=1")["changes"]
    assert [one["id"] for one in newest] == ["note:2"]
    moment = newest[0]["at"]
    assert [one["id"] for one in read(api, f"/api/changes?since={moment}")["changes"]] == ["note:2"]
    assert refusal(api.get("/api/changes", by=NOBODY))[0] == 422
    assert refusal(api.get(f"{query}&source=nope", by=NOBODY))[0] == 422
    assert refusal(api.get(f"{query}&cursor=mine", by=NOBODY))[0] == 422


def feed(api: Api, path: str) -> Any:
    answer = api.get(path, by=NOBODY)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/atom+xml"
    return etree.fromstring(answer.content)


def test_feed_is_atom_with_absolute_links(api: Api, library: Library, clock: ManualClock) -> None:
    hold(library, "fr:1", "First.", source="federal_register", title="One & two")
    clock.move(hours=1)
    hold(library, "fr:2", "Second.", source="federal_register", title=HOSTILE)
    hold(library, "note:1", "Third.")
    found = feed(api, "/feeds/federal_register.atom")
    for name in ("id", "title", "updated", "author"):
        assert len(found.findall(ATOM + name)) == 1
    links = {each.get("rel"): each.get("href") for each in found.findall(f"{ATOM}link")}
    assert links["self"] == f"{BASE}/feeds/federal_register.atom"
    entries = found.findall(f"{ATOM}entry")
    assert [each.find(f"{ATOM}link").get("href") for each in entries] == [
        f"{BASE}/d/fr%3A2",
        f"{BASE}/d/fr%3A1",
    ]
    assert entries[1].findtext(f"{ATOM}title") == "Added: One & two"
    assert "<script>alert(1)</script> & \ufffd" in entries[0].findtext(f"{ATOM}title")
    assert entries[0].findtext(f"{ATOM}updated") == found.findtext(f"{ATOM}updated")
    assert len({each.findtext(f"{ATOM}id") for each in entries}) == 2


def test_feed_that_is_as_it_was_is_not_sent_again(
    api: Api, library: Library, clock: ManualClock
) -> None:
    hold(library, "fr:1", "First.", source="federal_register")
    path = "/feeds/federal_register.atom"
    first = api.get(path, by=NOBODY).headers
    for sent in (
        {"If-None-Match": first["etag"]},
        {"If-Modified-Since": first["last-modified"]},
        {"If-None-Match": first["etag"], "If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
    ):
        assert api.get(path, by=NOBODY, headers=sent).status_code == 304
    for other in (
        {"If-None-Match": '"x"', "If-Modified-Since": first["last-modified"]},
        {"If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
        {"If-Modified-Since": "yesterday"},
    ):
        assert api.get(path, by=NOBODY, headers=other).status_code == 200
    clock.move(hours=1)
    hold(library, "fr:2", "Second.", source="federal_register")
    sent = {"If-None-Match": first["etag"]}
    assert api.get(path, by=NOBODY, headers=sent).status_code == 200


def test_feed_of_a_path_has_what_stands_below_it(api: Api, library: Library) -> None:
    for edition in ("2025", "2026"):
        for name in ("1", "10"):
            section = f"usc/{edition}/root/title-1/section-{name}"
            hold(library, section, f"Of {edition}.", source="usc")
    found = feed(api, "/feeds/c/usc/2026/root/title-1/section-1.atom")
    addresses = [each.get("href") for each in found.findall(f"{ATOM}entry/{ATOM}link")]
    assert addresses == [f"{BASE}/d/usc/2026/root/title-1/section-1"]
    assert len(feed(api, "/feeds/c/usc.atom").findall(f"{ATOM}entry")) == 4


@pytest.mark.parametrize(
    "path", ["/feeds/nope.atom", "/feeds/uploads.atom", "/feeds/c/nope/x.atom"]
)
def test_feed_of_nothing_is_not_found(api: Api, path: str) -> None:
    assert refusal(api.get(path, by=NOBODY)) == (404, "unknown-source")


def test_feed_without_a_change_is_a_feed(api: Api) -> None:
    found = feed(api, "/feeds/gao.atom")
    assert found.findall(f"{ATOM}entry") == []
    assert found.findtext(f"{ATOM}updated") == "1970-01-01T00:00:00.000Z"


# For models -------------------------------------------------------------------------------


def test_llms_tells_what_is_held_and_every_route_to_read_it(api: Api, library: Library) -> None:
    hold(library, "fr:1", "First.", source="federal_register", published_at="2026-01-12")
    hold_edition(library, "2025", "1", "Text.", published="2025-01-01")
    answer = api.get("/llms.txt", by=NOBODY)
    lines = answer.text.splitlines()
    assert answer.headers["content-type"].startswith("text/plain")
    assert lines[0].startswith("# ")
    assert lines[2].startswith("> ")
    assert any("Federal Register" in line and "2026-01-12" in line for line in lines)
    assert any(line.startswith("- [code]") and "2025" in line for line in lines)
    told = {line.partition(f"({BASE}")[2].partition("?")[0].partition(")")[0] for line in lines}
    paths = make_app(library).openapi()["paths"]
    reading = {
        path.replace("{document_id}", "{id}")
        for path in paths
        if path.startswith("/api/") and not path.startswith("/api/admin")
    }
    assert reading - told == {"/api/codes", "/api/documents/{id}/raw"}
