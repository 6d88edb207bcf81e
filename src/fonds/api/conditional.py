"""Answers that are sent only to whoever does not have them yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any, Final

from fastapi import Request
from starlette.responses import Response

from fonds import ids

_KEPT: Final = {"Cache-Control": "no-cache", "Vary": "Authorization, Cookie"}
"""An answer may be kept, and is asked about again before it is used."""
UNCHANGED: Final = {"description": "It is as you have it."}
"""For the `responses` of a route that answers so."""


def etag_of(*parts: Any) -> str:
    """A strong tag: the same for the same bytes, another for any other."""
    return f'"{ids.json_sha256([*parts])[:32]}"'


def answered(
    request: Request,
    tag: str,
    make: Callable[[], Response],
    *,
    changed_at: datetime | None = None,
) -> Response:
    """What `make` gives, or 304 to a client that has it."""
    headers = {**_KEPT, "ETag": tag}
    if changed_at is not None:
        headers["Last-Modified"] = format_datetime(changed_at.astimezone(UTC), usegmt=True)
    if _is_held(request.headers, tag, changed_at):
        return Response(status_code=304, headers=headers)
    response = make()
    response.headers.update(headers)
    return response


def _is_held(sent: Mapping[str, str], tag: str, changed_at: datetime | None) -> bool:
    if (given := sent.get("if-none-match")) is not None:
        tags = {each.strip().removeprefix("W/") for each in given.split(",")}
        return tag in tags or tags == {"*"}
    since = sent.get("if-modified-since")
    if since is None or changed_at is None:
        return False
    try:
        held = parsedate_to_datetime(since)
    except ValueError:
        return False
    # The header knows whole seconds only; one without a zone means nothing.
    return held.tzinfo is not None and changed_at.replace(microsecond=0) <= held
