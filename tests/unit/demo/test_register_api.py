"""The Federal Register's API over the bundled catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from fonds.demo.bundle import DATA, BundledRegister
from fonds.demo.federal_register_api import RegisterApi
from fonds.demo.server import DemoUpstream

HOST = "www.federalregister.gov"
GTE, LTE = "conditions[publication_date][gte]", "conditions[publication_date][lte]"
IS, YEAR = "conditions[publication_date][is]", "conditions[publication_date][year]"
TYPE = "conditions[type][]"
LIST = "/api/v1/documents.json"


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with (
        DemoUpstream() as upstream,
        httpx.Client(base_url=upstream.hosts[HOST], trust_env=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def capped() -> Iterator[httpx.Client]:
    site = RegisterApi(BundledRegister(DATA / HOST), cap=7)
    with (
        DemoUpstream({HOST: site}) as upstream,
        httpx.Client(base_url=upstream.hosts[HOST], trust_env=False) as client,
    ):
        yield client


def _page(client: httpx.Client, **params: Any) -> Any:
    answer = client.get(LIST, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _numbers(page: Any) -> list[str]:
    return [result["document_number"] for result in page["results"]]


def test_a_range_of_days_includes_both_ends_and_nothing_else(client: httpx.Client) -> None:
    page = _page(client, **{GTE: "2026-01-13", LTE: "2026-01-20", "order": "oldest"})

    days = [result["publication_date"] for result in page["results"]]
    assert set(days) == {"2026-01-13", "2026-01-20"}
    assert days == sorted(days)
    assert page["count"] == len(days) == 9


def test_one_day_one_year_and_no_condition(client: httpx.Client) -> None:
    assert _page(client, **{IS: "2026-01-12"})["count"] == 5
    assert _page(client, **{YEAR: "2000"})["count"] == 2
    assert _page(client)["count"] == 25


def test_types_are_asked_for_by_code_and_named_by_label(client: httpx.Client) -> None:
    page = _page(client, **{TYPE: ["RULE", "PRESDOCU"], "per_page": "1000"})

    assert {result["type"] for result in page["results"]} == {"Rule", "Presidential Document"}
    assert page["count"] == len(page["results"]) == 10


def test_newest_first_is_the_default_and_the_mirror_of_oldest_first(client: httpx.Client) -> None:
    newest, oldest = _page(client, per_page=100), _page(client, per_page=100, order="oldest")

    assert _numbers(newest) == _numbers(oldest)[::-1]
    assert newest["results"][0]["publication_date"] == "2026-02-17"


def test_pages_are_followed_by_their_address_until_there_is_none(client: httpx.Client) -> None:
    params = {"per_page": 7, "order": "oldest", "fields[]": ["document_number", "title"]}
    page = _page(client, **params)
    whole = _numbers(_page(client, **{**params, "per_page": 1000}))
    seen = _numbers(page)
    assert page["total_pages"] == 4

    while following := page.get("next_page_url"):
        assert following.startswith("https://www.federalregister.gov/api/v1/documents?")
        parts = urlsplit(following)
        page = client.get(f"{parts.path}?{parts.query}").json()
        assert set(page["results"][0]) == {"document_number", "title"}
        seen += _numbers(page)

    assert seen == whole
    assert len(seen) == 25


def test_a_page_beyond_the_last_is_empty(client: httpx.Client) -> None:
    page = _page(client, page=9)

    assert page["results"] == []
    assert "next_page_url" not in page


def test_twenty_a_page_unless_a_number_up_to_a_thousand_is_asked_for(client: httpx.Client) -> None:
    assert len(_page(client)["results"]) == 20
    assert len(_page(client, per_page=1000)["results"]) == 25
    assert len(_page(client, per_page=1001)["results"]) == 20


def test_the_default_fields_are_the_short_ones(client: httpx.Client) -> None:
    first = _page(client, per_page=1)["results"][0]

    assert list(first) == [
        "title",
        "type",
        "abstract",
        "document_number",
        "html_url",
        "pdf_url",
        "public_inspection_pdf_url",
        "publication_date",
        "agencies",
        "excerpts",
    ]


def test_count_stops_at_the_cap_and_so_do_the_pages(capped: httpx.Client) -> None:
    first = _page(capped, per_page=5, order="oldest")
    second = _page(capped, per_page=5, order="oldest", page=2)
    newest = _page(capped, per_page=5, page=2)

    assert (first["count"], first["total_pages"]) == (7, 2)
    assert (len(first["results"]), len(second["results"])) == (5, 2)
    assert "next_page_url" not in second
    assert len(newest["results"]) == 2
    assert _page(capped, **{IS: "2026-01-12"})["count"] == 5


@pytest.mark.parametrize(
    "query",
    [
        "conditions[type][]=LAW",
        "conditions[publication_date][is]=2026-13-01",
        "conditions[publication_date][year]=20x6",
        "conditions[publication_date][year]=0",
        "conditions[term]=smoke",
        "order=executive_order_number",
        "per_page=many",
        "fields[]=colour",
    ],
)
def test_what_is_not_understood_is_refused_and_named(client: httpx.Client, query: str) -> None:
    answer = client.get(f"{LIST}?{query}")

    assert answer.status_code == 400
    assert answer.json()["message"]


def test_nothing_found_is_a_count_of_zero(client: httpx.Client) -> None:
    page = _page(client, **{IS: "2026-01-17"})

    assert (page["count"], page["results"]) == (0, [])


def test_one_document_has_all_fields_and_only_the_chosen_ones_if_chosen(
    client: httpx.Client,
) -> None:
    whole = client.get("/api/v1/documents/2026-00101.json").json()
    part = client.get("/api/v1/documents/2026-00101.json?fields[]=title&fields[]=volume").json()

    assert whole["citation"] == "91 FR 1201"
    assert whole["cfr_references"] == [{"title": 29, "part": 541, "chapter": "V"}]
    assert part == {"title": whole["title"], "volume": 91}


def test_a_missing_number_is_a_404_in_json(client: httpx.Client) -> None:
    answer = client.get("/api/v1/documents/2026-99999.json")

    assert answer.status_code == 404
    assert answer.json() == {"status": 404, "message": "Record Not Found"}


def test_of_several_numbers_the_missing_ones_are_named_beside_the_rest(
    client: httpx.Client,
) -> None:
    found = client.get("/api/v1/documents/2026-00101,2026-99999,2026-00105.json").json()

    assert found["count"] == 2
    assert _numbers(found) == ["2026-00101", "2026-00105"]
    assert found["errors"] == {"not_found": ["2026-99999"]}
    assert "errors" not in client.get("/api/v1/documents/2026-00101,2026-00105.json").json()


def test_a_number_given_out_twice_is_told_apart_by_its_date(client: httpx.Client) -> None:
    rule = client.get("/api/v1/documents/00-111.json").json()
    notice = client.get("/api/v1/documents/00-111.json?publication_date=2000-01-18").json()

    assert (rule["type"], rule["publication_date"]) == ("Rule", "2000-01-14")
    assert (notice["type"], notice["publication_date"]) == ("Notice", "2000-01-18")
    assert (
        client.get("/api/v1/documents/00-111.json?publication_date=2000-01-19").status_code == 404
    )


def test_full_text_is_dated_xml_and_conditional(client: httpx.Client) -> None:
    path = "/documents/full_text/xml/2026/01/12/2026-00101.xml"
    answer = client.get(path)

    assert answer.headers["content-type"] == "text/xml"
    assert answer.headers["last-modified"] == "Mon, 12 Jan 2026 12:45:00 GMT"
    assert answer.text.startswith("<RULE>")
    again = client.get(path, headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304


@pytest.mark.parametrize(
    "path",
    [
        "/documents/full_text/xml/2026/01/13/2026-00101.xml",
        "/documents/full_text/xml/2026/01/13/2026-00124.xml",
        "/documents/full_text/xml/2026/01/12/..%2Fagencies.xml",
        "/documents/full_text/xml/2026/01/12/2026-99999.xml",
        "/api/v2/documents.json",
        "/",
    ],
)
def test_what_is_not_there_is_a_404(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_an_impossible_date_in_a_path_is_refused(client: httpx.Client) -> None:
    assert client.get("/documents/full_text/xml/2026/13/12/2026-00101.xml").status_code == 400


def test_agencies_are_listed_and_found_by_slug_and_by_number(client: httpx.Client) -> None:
    agencies = client.get("/api/v1/agencies").json()
    one = next(agency for agency in agencies if agency["slug"] == "wage-and-hour-division")

    assert client.get("/api/v1/agencies.json").json() == agencies
    assert client.get("/api/v1/agencies/wage-and-hour-division").json() == one
    assert client.get(f"/api/v1/agencies/{one['id']}.json").json() == one
    assert client.get("/api/v1/agencies/nobody").status_code == 404


def test_the_current_issue_is_the_last_one(client: httpx.Client) -> None:
    current = client.get("/api/v1/issues/current.json").json()

    assert current == client.get("/api/v1/issues/2026-02-17.json").json()


def test_a_day_without_an_issue_has_no_contents(client: httpx.Client) -> None:
    assert client.get("/api/v1/issues/2026-01-19.json").status_code == 404


def test_contents_name_the_department_above_and_an_agency_nobody_matched(
    client: httpx.Client,
) -> None:
    agencies = {
        agency["name"]: agency
        for agency in client.get("/api/v1/issues/2026-01-20.json").json()["agencies"]
    }

    unmatched = agencies["TRI-RIVER BASIN COMPACT COMMISSION"]
    assert unmatched["slug"] == "tri-river-basin-compact-commission"
    department = agencies["Transportation Department"]
    assert department["document_categories"] == []
    assert department["see_also"] == [
        {"name": "Federal Aviation Administration", "slug": "federal-aviation-administration"}
    ]
    assert agencies["Federal Aviation Administration"]["document_categories"] == [
        {
            "type": "Proposed Rule",
            "documents": [
                {
                    "subject_1": "Airworthiness Directives:",
                    "subject_2": "Northgale Aerostructures Airplanes",
                    "document_numbers": ["2026-00141"],
                }
            ],
        }
    ]
