"""The application: all routes over one library."""

from __future__ import annotations

from importlib import metadata
from typing import Any, Final

from fastapi import FastAPI

from fonds.api import (
    admin,
    admin_actions,
    changes,
    documents,
    events,
    health,
    jobs,
    problems,
    uploads,
)
from fonds.api.dependencies import AppState, make_limits
from fonds.api.middleware import Edge, Watched
from fonds.api.problems import Present
from fonds.api.schemas import Complaint, Problem
from fonds.api.sessions import Sessions
from fonds.library import Library
from fonds.uploads.signing import Signer, server_secret

ROUTERS: Final = (
    jobs.router,
    uploads.router,
    events.job_router,
    documents.router,
    documents.codes_router,
    documents.citations_router,
    changes.router,
    changes.feeds_router,
    health.llms_router,
    uploads.files_router,
    health.router,
    events.run_router,
    admin.router,
    admin_actions.router,
)

_DESCRIPTION: Final = (
    "Public documents in, cited answers out. Uploads become documents that only their user finds. "
    "Errors are `application/problem+json`; `kind` is for programs."
)


class _App(FastAPI):
    def openapi(self) -> dict[str, Any]:
        return _described(super().openapi())


def make_app(
    library: Library,
    *,
    is_exposed: bool = True,
    needs_login: bool = False,
    present: Present | None = None,
) -> FastAPI:
    """The library over HTTP; `is_exposed` unless only this machine reaches it."""
    secret = server_secret(library.settings)
    # Neither page of documentation: both would load scripts from elsewhere.
    app = _App(
        title="fonds",
        version=metadata.version("fonds"),
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    desk = app.state.desk = AppState(
        library=library,
        context=library.context,
        signer=Signer(secret),
        sessions=Sessions(secret, is_secure=library.settings.public_url.startswith("https:")),
        is_exposed=is_exposed,
        needs_login=needs_login,
    )
    app.state.limits = make_limits(library.seams.clock)
    problems.install(app, present)
    app.add_middleware(Edge)
    app.add_middleware(Watched, traffic=desk.traffic, clock=library.seams.clock)
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
