"""Middleware that notices proxies which hide the addresses of clients."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import anyio.to_thread
import structlog
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from fonds.api.clients import ClientAddresses, proxy_trace
from fonds.seams import Clock
from fonds.stores.database import Database
from fonds.stores.server_values import HIDDEN_CLIENTS, store_value

STORE_EVERY: Final = timedelta(hours=1)

_log: Final = structlog.get_logger("fonds.api")


class HiddenClientsMiddleware:
    """Logs once, and stores for `fonds doctor`, that a proxy hides the addresses of clients."""

    def __init__(
        self, app: ASGIApp, addresses: ClientAddresses, database: Database, clock: Clock
    ) -> None:
        self._app = app
        self._addresses = addresses
        self._database = database
        self._clock = clock
        self._stored_at: datetime | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http":
            request = Request(scope)
            if self._addresses.are_hidden(request):
                await self._report(request)
        await self._app(scope, receive, send)

    async def _report(self, request: Request) -> None:
        now, last = self._clock.now(), self._stored_at
        if last is not None and now - last < STORE_EVERY:
            return
        self._stored_at = now  # before anything is awaited, so that one request reports it
        peer = request.client.host if request.client else ""
        trace = proxy_trace(request)
        if last is None:
            _log.warning(
                "clients_hidden",
                peer=peer,
                trace=trace,
                advice="a proxy hides the addresses of clients, so that limits count all of them "
                f"as one: let it send X-Forwarded-For, and set FONDS_TRUSTED_PROXIES={peer}",
            )
        await anyio.to_thread.run_sync(self._store, {"peer": peer, "trace": trace}, now)

    def _store(self, value: dict[str, str | None], now: datetime) -> None:
        try:
            with self._database.write() as connection:
                store_value(connection, HIDDEN_CLIENTS, value, now)
        except SQLAlchemyError as error:
            _log.warning("clients_hidden_not_stored", error=type(error).__name__)
