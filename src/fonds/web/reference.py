"""The API, described for people from its own OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from fonds.web.frame import page

router: Final = APIRouter()


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One thing that a program can ask for."""

    group: str
    method: str
    path: str
    summary: str
    description: str
    parameters: list[Mapping[str, Any]]
    takes_body: bool
    statuses: list[str]
    takes_token: bool
    needs_token: bool


@router.get("/docs")
def show_reference(request: Request) -> Response:
    """All operations of the API."""
    described = request.app.openapi()
    groups: dict[str, list[Operation]] = {}
    for operation in operations(described):
        groups.setdefault(operation.group, []).append(operation)
    return page(request, "reference.html", groups=groups, version=described["info"]["version"])


def operations(described: Mapping[str, Any]) -> Iterator[Operation]:
    """All that an OpenAPI document describes."""
    for path, methods in described["paths"].items():
        for method, told in methods.items():
            security = told.get("security", [])
            yield Operation(
                group=(told.get("tags") or ["other"])[0],
                method=method.upper(),
                path=path,
                summary=told.get("summary", ""),
                description=told.get("description", ""),
                parameters=told.get("parameters", []),
                takes_body="requestBody" in told,
                statuses=sorted(told["responses"]),
                takes_token=bool(security),
                needs_token=bool(security) and {} not in security,
            )
