"""The bulk folders of govinfo, as their JSON listings tell them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from fonds.errors import SuspiciousYieldError, WrongContentError
from fonds.model import Archived
from fonds.sources.base import Ask
from fonds.sources.families import fields, yaml_files

SITE: Final = "https://www.govinfo.gov"
BULK: Final = f"{SITE}/bulkdata"

_TIME: Final = re.compile(r"([0-9]{1,2})-([A-Z][a-z]{2})-([0-9]{4})(?: ([0-9]{2}):([0-9]{2}))?")
# Not by the locale of this machine.
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)


class Listing(NamedTuple):
    """The entries of one folder, and the archived file they stand in."""

    entries: list[Any]
    archived: Archived

    def names(self) -> list[str]:
        """What the entries are called."""
        return [name_of(entry) for entry in self.entries]


async def read_folder(ask: Ask, collection: str, *path: str | int) -> Listing:
    """A folder of a collection; links in it lead to either form, so addresses are built here."""
    url = "/".join(map(str, (BULK, "json", collection, *path)))
    name = "/".join(map(str, path)) if len(path) > 1 else "/".join([*map(str, path), "index"])
    answer = await ask(url, path=f"listings/{name}.json")
    content = yaml_files.load(answer.data)
    if not isinstance(content, dict) or "files" not in content:
        raise WrongContentError(f"{url} is not a listing: {fields.describe(content)}")
    return Listing(fields.sections(content, "files"), answer.archived)


async def offered_congresses(ask: Ask, collection: str) -> list[int]:
    """The Congresses that a collection has a folder for."""
    names = (await read_folder(ask, collection)).names()
    found = sorted({int(name) for name in names if name.isdecimal()})
    if not found:
        raise SuspiciousYieldError(f"govinfo's list of {collection} names no Congress")
    return found


def name_of(entry: Any) -> str:
    """What an entry of a listing is called."""
    return fields.text(entry, "name") or fields.text(entry, "justFileName") or ""


def modified_at(entry: Any) -> datetime | None:
    """When an entry was written, `18-Sep-2026 20:26` in GMT; None where it does not say."""
    found = _TIME.fullmatch(fields.text(entry, "formattedLastModifiedTime") or "")
    if found is None or found[2] not in _MONTHS:
        return None
    month = _MONTHS.index(found[2]) + 1
    hour, minute = int(found[4] or 0), int(found[5] or 0)
    try:
        return datetime(int(found[3]), month, int(found[1]), hour, minute, tzinfo=UTC)
    except ValueError:
        return None
