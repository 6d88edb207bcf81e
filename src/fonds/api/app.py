"""The FastAPI application with all routes of one library."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
from fonds.api.clients import ClientAddresses, parse_networks
from fonds.api.dependencies import AppState, make_search_limiter
from fonds.api.hidden_clients import HiddenClientsMiddleware
from fonds.api.middleware import MetricsMiddleware, ResponseGuard
from fonds.api.problems import ErrorRenderer
from fonds.api.readings import ReadingQueue
from fonds.api.schemas import FieldError, Problem
from fonds.api.sessions import LoginLink, Sessions
from fonds.api.spools import make_spool_slots
from fonds.library import Library
from fonds.maintenance.store_monitor import StoreMonitor
from fonds.uploads.signing import Signer, server_secret
from fonds.uploads.webhook import require_long_secrets

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
    "Public documents in, cited answers out. Only the user who uploads a document can see it. "
    "Errors are `application/problem+json`; `kind` is for programs."
)


class _App(FastAPI):
    def openapi(self) -> dict[str, Any]:
        return _complete_schema(super().openapi())


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    try:
        yield
    finally:
        app.state.shared.store_monitor.stop()


def make_app(
    library: Library,
    *,
    is_exposed: bool = True,
    needs_login: bool = False,
    login_link: LoginLink | None = None,
    render_error: ErrorRenderer | None = None,
) -> FastAPI:
    """Make the application; `is_exposed` unless only this machine can reach it."""
    require_long_secrets(library.settings.webhook_secrets)
    secret = server_secret(library.settings, library.database, library.seams.clock.now())
    # No built-in documentation pages: both load scripts from other hosts.
    app = _App(
        title="fonds",
        version=metadata.version("fonds"),
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    shared = app.state.shared = AppState(
        library=library,
        context=library.context,
        signer=Signer(secret),
        sessions=Sessions(secret, is_secure=library.settings.public_url.startswith("https:")),
        addresses=ClientAddresses(parse_networks(library.settings.trusted_proxies)),
        is_exposed=is_exposed,
        needs_login=needs_login,
        login_link=login_link,
        store_monitor=StoreMonitor(library.blobs),
    )
    app.state.search_limiter = make_search_limiter(library.seams.clock)
    app.state.reading_queue = ReadingQueue()
    app.state.spool_slots = make_spool_slots()
    problems.install(app, render_error)
    app.add_middleware(ResponseGuard)
    app.add_middleware(
        MetricsMiddleware, request_metrics=shared.request_metrics, clock=library.seams.clock
    )
    app.add_middleware(
        HiddenClientsMiddleware,
        addresses=shared.addresses,
        database=library.database,
        clock=library.seams.clock,
    )
    for router in ROUTERS:
        app.include_router(router)
    return app


def _complete_schema(document: dict[str, Any]) -> dict[str, Any]:
    """Add the schemas of errors and of authentication to the OpenAPI document."""
    components: dict[str, Any] = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for model in (Problem, FieldError):
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schema.pop("$defs", None)
        schemas[model.__name__] = schema
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    components["securitySchemes"] = {
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": "A token made with `fonds token create`.",
        }
    }
    return document
