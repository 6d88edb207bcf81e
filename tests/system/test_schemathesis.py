"""Schemathesis against the OpenAPI document: no answer breaks, and none is undocumented."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.support.admin_routes import ADMIN
from tests.support.libraries.uploads import TEXT, upload_library, work
from tests.unit.api.calling import Api, api_of

from fonds.api.app import make_app
from fonds.library import Library
from fonds.runs.state import Run, RunRequest, RunStatus
from fonds.uploads.users import Scope

OPERATIONS: Final = [
    "POST /uploads",
    "POST /uploads/{document_id}/complete",
    "POST /webhooks/llamaparse",
    "GET /jobs",
    "GET /jobs/{document_id}",
    "GET /jobs/{document_id}/events",
    "POST /jobs/{document_id}/retry",
    "POST /jobs/{document_id}/advance",
    "GET /api/search",
    "GET /api/documents/{document_id}",
    "GET /api/documents/{document_id}/raw",
    "GET /api/documents/{document_id}/links",
    "GET /api/documents/{document_id}/editions",
    "GET /api/codes",
    "GET /api/codes/{path}",
    "GET /api/cite",
    "GET /api/resolve",
    "GET /api/compare",
    "GET /api/changes",
    "GET /feeds/{source}.atom",
    "GET /feeds/c/{path}.atom",
    "GET /llms.txt",
    "GET /files/{key}",
    "PUT /files/{key}",
    "GET /health",
    "GET /metrics",
    *ADMIN,
    "DELETE /uploads/{document_id}",  # last, since others need the jobs
]
CHECKS: Final = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES: Final = 25


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    home: Path = tmp_path_factory.mktemp("library")
    with upload_library(home) as library, api_of(library) as api:
        api.upload(TEXT.encode())
        api.upload(b"???\n", "fails.txt")
        work(library)
        yield api


@pytest.fixture(scope="module")
def schema(api: Api) -> Any:
    return schemathesis.openapi.from_asgi("/openapi.json", make_app(api.library))


def test_every_operation_is_tried(schema: Any) -> None:
    found = {each.ok().label for each in schema.get_all_operations()}
    assert found == set(OPERATIONS)


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("label", OPERATIONS)
def test_every_answer_is_documented(
    label: str, mode: GenerationMode, api: Api, schema: Any
) -> None:
    method, path = label.split()
    scope: Scope = "service" if path.endswith(("/advance", "/metrics")) else "user"
    scope = "admin" if path.startswith("/api/admin/") else scope
    caller = api.token("maria", scope)
    jobs = api.get("/jobs").json()["jobs"]
    # Whoever follows one that has not ended waits for it.
    known = [job["document_id"] for job in jobs if job["ended"] or "events" not in path]
    operation = schema[path][method]
    if mode is GenerationMode.NEGATIVE and not _takes_anything(operation):
        return

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def attack(case: Any) -> None:
        if mode is GenerationMode.POSITIVE and path.startswith(("/jobs/", "/uploads/")):
            # By chance nobody would ever name a job that there is.
            case.path_parameters["document_id"] = known[len(str(case.headers)) % len(known)]
        if mode is GenerationMode.POSITIVE and "{run_id}" in path:
            case.path_parameters["run_id"] = str(ended_run(api.library))
        if mode is GenerationMode.POSITIVE and "/sources/{name}" in path:
            case.path_parameters["name"] = "federal_register"
        case.call_and_validate(headers=caller, checks=CHECKS)

    attack()


@cache
def ended_run(library: Library) -> UUID:
    """A run that can be looked at; whoever follows one that has not ended waits for it."""
    clock = library.seams.clock
    run = Run(source="fake", request=RunRequest(), database=library.database, clock=clock)
    run.start()
    run.log("info", "a line")
    run.finish(RunStatus.SUCCESS)
    return run.id


def _takes_anything(operation: Any) -> bool:
    return bool(list(operation.iter_parameters())) or bool(operation.body)
