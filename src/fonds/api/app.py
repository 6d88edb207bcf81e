"""The application: all routes over one library."""

from __future__ import annotations

from importlib import metadata
from typing import Any, Final

from fastapi import FastAPI

from fonds.api import documents, events, files, health, jobs, problems, uploads
from fonds.api.answers import Complaint, Problem
from fonds.api.desk import Desk
from fonds.api.edge import Edge
from fonds.library import Library
from fonds.uploads.signing import Signer, server_secret

ROUTERS: Final = (
    jobs.router,
    uploads.router,
    events.router,
    documents.router,
    files.router,
    health.router,
)

_DESCRIPTION: Final = (
    "Public documents in, cited answers out. Uploads become documents that only their user finds. "
    "Errors are `application/problem+json`; `kind` is for programs."
)


class _App(FastAPI):
    def openapi(self) -> dict[str, Any]:
        return _described(super().openapi())


def make_app(library: Library, *, is_exposed: bool = True) -> FastAPI:
    """The library over HTTP; `is_exposed` unless only this machine reaches it."""
    # Neither page of documentation: both would load scripts from elsewhere.
    app = _App(
        title="fonds",
        version=metadata.version("fonds"),
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.desk = Desk(
        library=library,
        shelf=library.shelf(),
        signer=Signer(server_secret(library.settings)),
        is_exposed=is_exposed,
    )
    problems.install(app)
    app.add_middleware(Edge)
    for router in ROUTERS:
        app.include_router(router)
    return app


def _described(made: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI document with what all routes share."""
    parts: dict[str, Any] = made.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    for model in (Problem, Complaint):
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schema.pop("$defs", None)
        schemas[model.__name__] = schema
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    parts["securitySchemes"] = {
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": "A token of `fonds token create`.",
        }
    }
    return made
