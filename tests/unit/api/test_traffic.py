from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families
from tests.unit.api.calling import Api, api_of

from fonds.api.middleware import UNROUTED
from fonds.library import Library

COUNT = "fonds_http_request_seconds_count"


def counted(api: Api) -> dict[tuple[str, ...], float]:
    text = api.get("/metrics", by=api.token("admin", "admin")).text
    return {
        (sample.labels["method"], sample.labels["route"], sample.labels["status"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == COUNT
    }


def test_requests_are_counted_by_route_and_not_by_path(library: Library) -> None:
    with api_of(library) as api:
        for number in range(3):
            api.get(f"/api/documents/nobody-has-{number}")
            api.get(f"/nowhere-{number}")
        api.get("/health")
        found = counted(api)
    assert found["GET", "/api/documents/{document_id:path}", "404"] == 3
    assert found["GET", UNROUTED, "404"] == 3
    assert found["GET", "/health", "200"] == 1
    assert not any("nowhere" in part or "nobody" in part for key in found for part in key)


def test_figures_of_the_library_and_of_the_server_are_told_together(library: Library) -> None:
    with api_of(library) as api:
        text = api.get("/metrics", by=api.token("admin", "admin")).text
    names = [family.name for family in text_string_to_metric_families(text)]
    assert len(names) == len(set(names))
    assert {"fonds_runs", "fonds_queue_depth", "fonds_upload_jobs"} <= set(names)
