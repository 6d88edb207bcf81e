"""Loose files, told apart by their bytes: a status file, a text, or what it is instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fonds.errors import MalformedError, WrongContentError
from fonds.model import FetchTask, ParsedRecord, RawPart
from fonds.sources.bills.names import package_parts
from fonds.sources.bills.status import (
    bill_of_api,
    name_of_bill,
    read_status,
    status_record,
    title_of,
)
from fonds.sources.bills.texts import loose_record, text_tasks
from fonds.sources.families import fields, xml_files, yaml_files

_ZIP: Final = b"PK\x03\x04"
_BOM: Final = b"\xef\xbb\xbf"
_TEXTS: Final = frozenset({"bill", "resolution", "amendment-doc", "engrossedAmendment"})
_OTHER_XML: Final = {
    "mods": "a MODS file, the companion that describes a govinfo package; its text is in the "
    "package's XML",
    "opml": "a list of feeds",
    "rss": "a feed, which names files but holds no bill",
    "sitemapindex": "an index of sitemaps",
    "urlset": "a sitemap, which names files but holds no bill",
    "BillSummaries": "a file of summaries alone; the status file holds them with the bill",
}
# By a key that only such files have.
_OTHER_JSON: Final = {
    "files": "a listing of govinfo's folders",
    "bills": "a list of bills from api.congress.gov, without their details",
    "packages": "govinfo's list of a collection",
    "granules": "govinfo's list of a package's parts",
    "collections": "govinfo's list of its collections",
    "packageId": "govinfo's description of a package, a companion of its text",
    "bill_version_id": "a file derived by the unitedstates/congress tools",
    "bill_id": "a file derived by the unitedstates/congress tools",
    "bill_type": "a file derived by the unitedstates/congress tools",
    "acted_at": "a file derived by the unitedstates/congress tools",
    "billnumber_version": "a file derived by the unitedstates/congress tools",
    "actions": "one part of a bill from api.congress.gov; the bill's status file has all parts",
    "committees": "one part of a bill from api.congress.gov; the bill's status file has all parts",
    "textVersions": "one part of a bill from api.congress.gov; the bill's status file has all "
    "parts",
    "summaries": "a list of summaries from api.congress.gov",
}


def read_loose(part: RawPart) -> Iterator[ParsedRecord | FetchTask]:
    """All records of one file, whose name counts only for texts that do not say what they are."""
    start = part.data[:512].removeprefix(_BOM).lstrip()
    if not start:
        raise MalformedError("the file is empty")
    if start.startswith(_ZIP):
        raise WrongContentError("a ZIP archive; unpack it and read its XML files")
    if start.startswith((b"{", b"[")):
        yield from _json(part)
    elif start.startswith(b"<") and not _is_page(start):
        yield from _xml(part)
    elif package_parts(part.archived.url.rpartition("/")[2]):
        yield loose_record(part)
    else:
        what = "an HTML page" if _is_page(start) else "no XML"
        raise WrongContentError(
            f"{what}, and its name is not that of a bill's text (BILLS-119hr1ih.htm)"
        )


def read_status_part(part: RawPart, key: str | None) -> Iterator[ParsedRecord | FetchTask]:
    """The bill, then a task for each version of its text; `key` is the bill that was asked for."""
    yield from _bill(read_status(part.data), part, key)


def _bill(bill: Any, part: RawPart, key: str | None = None) -> Iterator[ParsedRecord | FetchTask]:
    name = name_of_bill(bill)
    if key is not None and name.id != key:
        raise WrongContentError(f"the status file of {key} is about {name.id}")
    yield status_record(bill, part.archived)
    yield from text_tasks(bill, name, title_of(bill, name), part.archived)


def _is_page(start: bytes) -> bool:
    return start[:15].lower().startswith((b"<!doctype html", b"<html"))


def _xml(part: RawPart) -> Iterator[ParsedRecord | FetchTask]:
    root = xml_files.read(part.data)
    name = xml_files.local_name(root)
    if name == "billStatus":
        yield from read_status_part(part, None)
    elif name in _TEXTS and root.get("session") and root.get("updated"):
        raise WrongContentError("GovTrack's record of a bill, derived from THOMAS or BILLSTATUS")
    elif name in _TEXTS:
        yield loose_record(part)
    else:
        what = _OTHER_XML.get(name, f"XML whose root is <{name}>")
        raise WrongContentError(f"neither a status file nor a bill's text: {what}")


def _json(part: RawPart) -> Iterator[ParsedRecord | FetchTask]:
    content = yaml_files.load(part.data)
    bill = content.get("bill") if isinstance(content, dict) else None
    if isinstance(bill, dict):
        yield from _bill(bill_of_api(bill), part)
        return
    keys = content if isinstance(content, dict) else {}
    what = next((why for key, why in _OTHER_JSON.items() if key in keys), fields.describe(content))
    raise WrongContentError(f"neither a status file nor a bill's text: {what}")
