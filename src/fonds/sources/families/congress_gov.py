"""Lists and records of api.congress.gov, version 3.

Quirks of the publisher:
- It wants a key of api.data.gov. Without one it answers 403, and so it does with a wrong one;
  stand-ins pass the same refusal on with status 200, as `{"error": {"code": …}}`.
- It gives at most 250 entries at a time, and does not say so when more are asked for.
- Its lists are not sorted by anything that stands still: one that changes while it is read
  repeats entries of earlier pages and leaves others out.
- `next` and the `url` of entries may name hosts that do not exist (`https://v3/crsreport/…`), so
  addresses are always made here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from fonds import ids
from fonds.errors import (
    MalformedError,
    MissingKeyError,
    RateLimitedError,
    RefusedError,
    SuspiciousYieldError,
    WrongContentError,
)
from fonds.sources.base import Ask
from fonds.sources.families import fields

HOST: Final = "api.congress.gov"
API: Final = f"https://{HOST}/v3"
PER_PAGE: Final = 250
Entry = Mapping[str, Any]

_NO_KEY: Final = (
    "`data_gov_key` is missing or not valid: set it in fonds.toml or FONDS_DATA_GOV_KEY; get one "
    "at https://api.data.gov/signup/"
)


def list_address(resource: str, offset: int) -> str:
    """One page of a list: `crsreport`, `house-vote/119`."""
    query = {"format": "json", "limit": PER_PAGE, "offset": offset}
    return f"{API}/{resource}?{urlencode(query)}"


async def read_list(
    ask: Ask,
    resource: str,
    name: str,
    *,
    path: str,
    identify: Callable[[Entry], Hashable] = ids.json_sha256,
) -> list[Entry]:
    """All entries that stand under `name` in the pages of a list, whole and each once.

    The pages are archived as `<path>-<offset>.json`. An empty list, a page that is short, and an
    entry that comes twice are errors: nothing may be concluded from half a list.
    """
    found: dict[Hashable, Entry] = {}
    count = 1
    while len(found) < count:
        offset = len(found)
        data = await _page(ask, resource, offset, f"{path}-{offset}.json")
        count, entries = read_page(data, name)
        _check_length(resource, offset, len(entries), count)
        for entry in entries:
            known = identify(entry)
            if known in found:
                raise SuspiciousYieldError(
                    f"{HOST} repeats an entry of /{resource} on the page from {offset} on; the "
                    "list changed while it was read, or its pages are all the same: try again"
                )
            found[known] = entry
    return list(found.values())


def read_page(data: bytes, name: str) -> tuple[int, list[Entry]]:
    """What a page says of the length of its list, and the entries it has under `name`."""
    content = read_object(data, HOST)
    count = fields.whole(fields.section(content, "pagination"), "count")
    if count is None or name not in content:
        raise WrongContentError(
            f"{HOST} answered with {fields.describe(content)} instead of a list of {name}"
        )
    return count, fields.sections(content, name)


def read_object(data: bytes, where: str) -> Entry:
    """A JSON object that is no report of an error; what else it is, is said by the error."""
    try:
        content = json.loads(data)
    except ValueError as error:
        if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
            raise WrongContentError(f"{where}: a page of HTML or XML instead of JSON") from None
        raise MalformedError(f"{where}: not JSON: {error}") from error
    if not isinstance(content, Mapping):
        raise WrongContentError(f"{where}: {fields.describe(content)} instead of a record")
    if "error" in content:
        raise _refusal(content["error"], where)
    return content


async def _page(ask: Ask, resource: str, offset: int, path: str) -> bytes:
    try:
        return (await ask(list_address(resource, offset), path=path)).data
    except RefusedError as error:
        raise RefusedError(f"{error}: {_NO_KEY}") from error


def _check_length(resource: str, offset: int, listed: int, count: int) -> None:
    due = min(PER_PAGE, count - offset)
    if not count or listed != due:
        raise SuspiciousYieldError(
            f"{HOST} counts {count} entries of /{resource} and lists {listed} from {offset} on, "
            f"where {max(due, 1)} are due"
        )


def _refusal(error: Any, where: str) -> Exception:
    said = error if isinstance(error, Mapping) else {"message": error}
    code, message = str(said.get("code") or ""), str(said.get("message") or "no reason")[:200]
    if code.startswith("API_KEY_"):
        return MissingKeyError(f"{where}: refused, {message} ({_NO_KEY})")
    if code == "OVER_RATE_LIMIT":
        return RateLimitedError(f"{where}: asks us to slow down, {message}")
    return WrongContentError(f"{where}: the report of an error, {message}")
