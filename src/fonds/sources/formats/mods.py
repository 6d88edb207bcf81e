"""The MODS that describes a package of govinfo, read once for every collection.

A package is a printed thing (a jacket, a report, an issue), and its granules are what a person
cites. Quirks of the publisher:
- A package with one granule has no constituents: the granule's fields are among its own, the
  titles, locations and extensions twice. That granule may be called `…-pt1` all the same.
- Further extensions of a granule are left-overs of its references: a Congress, a chamber, and
  nothing that says whose. Only those with an `accessId` or a `collectionCode` describe it.
- Members are in the extension of a granule and again, by the hundred, inside its votes.
- Addresses of older files lead to the predecessor's host, so only their file names count.
- What is not offered as a `raw object` does not exist, whatever its address would be.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from fonds.errors import MalformedError, WrongContentError
from fonds.sources.formats import fields, xml
from fonds.sources.formats.congress import ABBREVIATIONS, bill_id, committee_id, legislator_id
from fonds.sources.formats.xml import text, texts, whole_text

SITE: Final = "https://www.govinfo.gov"

Rendition = Literal["html", "pdf"]

_LABELS: Final[dict[str, Rendition]] = {"HTML rendition": "html", "PDF rendition": "pdf"}
_ID: Final = re.compile(r"[A-Z]+-[A-Za-z0-9._-]+")
_FILE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_DIGITS: Final = re.compile(r"[0-9]{1,9}")
_CONSTITUENTS: Final = "relatedItem[@type='constituent']"
_OTHER_ROOTS: Final = {
    "mets": "a packaging list (METS), a companion of mods.xml",
    "premis": "preservation metadata (PREMIS), a companion of mods.xml",
    "urlset": "a sitemap, a listing of packages",
    "sitemapindex": "a sitemap index, a listing of sitemaps",
    "rss": "an RSS feed, a listing of packages",
    "committee-meeting": "a meeting notice of docs.house.gov, which has no transcript",
    "witness-list": "a witness list of docs.house.gov, a companion of its meeting notice",
}


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class ModsCommittee(_Frozen):
    """A committee named by a granule."""

    name: str
    authority_id: str | None = None
    chamber: str | None = None
    type: str | None = None
    short_name: str | None = None
    subcommittees: tuple[str, ...] = ()

    @classmethod
    def of_api(cls, entry: Mapping[str, Any]) -> ModsCommittee:
        """The committee that an entry of the congress.gov API names."""
        code = fields.required(entry, "systemCode")
        name = fields.text(entry, "name") or code
        return cls(name=name, authority_id=code, chamber=code[0].upper())

    @property
    def reference(self) -> str | None:
        """`committee:HSAG` for `hsag00`; None where the publisher found no authority."""
        if not self.authority_id:
            return None
        return committee_id(self.authority_id.upper().removesuffix("00"))


class ModsMember(_Frozen):
    """A member of Congress named by a granule."""

    name: str
    """First name first, as the authority has it, or as it was printed."""
    bioguide: str | None = None
    parsed: str | None = None
    last_first: str | None = None
    chamber: str | None = None
    congress: str | None = None
    party: str | None = None
    state: str | None = None
    role: str | None = None

    @property
    def reference(self) -> str | None:
        """`legislator:M000485`, where a bioguide is given."""
        return legislator_id(self.bioguide) if self.bioguide else None

    @property
    def surname(self) -> str:
        """The name by which a citation calls the member."""
        return (self.last_first or self.name.split()[-1]).partition(",")[0].strip()


class ModsBill(_Frozen):
    """A bill named by a granule, and where in it."""

    congress: int | None = None
    type: str | None = None
    number: int | None = None
    context: str | None = None

    @property
    def reference(self) -> str | None:
        """`bill:119-hr-1`, where it is one that can be looked up."""
        kind = (self.type or "").lower()
        if self.congress is None or self.number is None or kind not in ABBREVIATIONS:
            return None
        return bill_id(self.congress, kind, self.number)


class ModsItem(_Frozen):
    """One citable thing: a granule, or a package that is its own granule.

    It holds JSON values only, so that it can travel in the parameters of a task.
    """

    package: str
    id: str
    """The granule's own name."""
    has_package_name: bool = False
    """It goes by the name of its package: it has that name, or is the first and none has it."""
    title: str
    part_name: str | None = None
    date_issued: str | None = None
    """ISO 8601."""
    action_date: str | None = None
    """The day of this part's own action, ISO 8601."""
    citation: str | None = None
    """As the publisher prefers it: `H. Rept. 119-494,Part 2`."""
    abstract: str | None = None
    pages: tuple[str, ...] = ()
    """First and last."""
    renditions: dict[Rendition, str] = {}
    """Address of each that is offered."""
    fields: dict[str, tuple[str, ...]] = {}
    """The plain elements of the extensions, by name; the granule's own before the package's."""
    committees: tuple[ModsCommittee, ...] = ()
    members: tuple[ModsMember, ...] = ()
    bills: tuple[ModsBill, ...] = ()

    def field(self, name: str) -> str | None:
        """The first value of a field."""
        return next(iter(self.fields.get(name, ())), None)

    def texts(self, *columns: str) -> dict[str, str | None]:
        """Columns with the fields of the same names in camel case."""
        return {column: self.field(fields.camel_case(column)) for column in columns}

    def number(self, name: str) -> int | None:
        """The first value of a field as a whole number; None where it is none."""
        return _whole(self.field(name))

    def flag(self, name: str) -> bool | None:
        """A field that says true or false."""
        value = self.field(name)
        return None if value is None else value.lower() == "true"

    @property
    def page(self) -> str:
        """The page a person would open."""
        return details_page(self.package, self.id)


class ModsPackage(_Frozen):
    """The package and granules in one MODS file."""

    id: str
    title: str
    date_issued: str | None
    fields: dict[str, tuple[str, ...]]
    items: tuple[ModsItem, ...]


def details_page(package: str, granule: str) -> str:
    """The page of a granule, which for one called like its package is the package's."""
    below = "" if granule == package else f"/{granule}"
    return f"{SITE}/app/details/{package}{below}"


def content_address(package: str, rendition: Rendition, file: str) -> str:
    """The address of a rendition."""
    return f"{SITE}/content/pkg/{package}/{rendition}/{file}"


def mods_address(package: str) -> str:
    """The address of the MODS of a package."""
    return f"{SITE}/metadata/pkg/{package}/mods.xml"


def iso_day(value: str | None) -> str | None:
    """The day that a text states in ISO 8601; None where it states none."""
    try:
        return date.fromisoformat((value or "")[:10]).isoformat()
    except ValueError:
        return None


def read(data: bytes) -> ModsPackage:
    """The package and its granules, in the publisher's order."""
    root = xml.without_namespaces(xml.read(data))
    if root.tag != "mods":
        what = _OTHER_ROOTS.get(root.tag, f"XML whose root is <{root.tag}>")
        raise WrongContentError(f"expected MODS, found {what}")
    host = root.find("relatedItem[@type='host']")
    about = root if host is None else host
    package = _package_id(about)
    described = {
        "package": package,
        "date_issued": iso_day(text(about, "originInfo/dateIssued")),
    }
    constituents = root.findall(_CONSTITUENTS)
    common = _fields(about)
    items = [_item(element, described, common) for element in constituents or [root]]
    names = {item.id for item in items}
    leading = package if package in names or host is not None else items[0].id
    return ModsPackage(
        id=package,
        title=_title(about) or package,
        date_issued=described["date_issued"],
        fields=common,
        items=tuple(
            item.model_copy(update={"has_package_name": item.id == leading}) for item in items
        ),
    )


def _package_id(about: Any) -> str:
    identifier = text(about, "recordInfo/recordIdentifier")
    for extension in about.findall("extension"):
        if identifier is None and extension.find("docClass") is not None:
            identifier = text(extension, "accessId")
    return _safe(identifier, "the MODS names no package")


def _safe(name: str | None, missing: str) -> str:
    if name is None:
        raise MalformedError(missing)
    if not _ID.fullmatch(name):
        raise MalformedError(f"{name[:60]!r} is not the name of a package or granule")
    return name


def _item(element: Any, described: dict[str, Any], common: dict[str, tuple[str, ...]]) -> ModsItem:
    own = _extensions(element)
    package = described["package"]
    name = next(
        (identifier for extension in reversed(own) if (identifier := text(extension, "accessId"))),
        package,
    )
    granule = _safe(name, f"a granule of {package} has no name")
    return ModsItem(
        **described,
        id=granule,
        title=_title(element) or granule,
        part_name=text(element, "titleInfo/partName"),
        action_date=next((iso_day(action.get("date")) for action in _all(own, "action")), None),
        citation=next(reversed(_identifiers(element, "preferred citation")), None),
        abstract=text(element, "abstract"),
        pages=tuple(texts(element, "part/extent/start") + texts(element, "part/extent/end")),
        renditions=_renditions(element, package),
        fields={**common, **_fields(element), **_times(own)},
        committees=tuple(_committee(committee) for committee in _all(own, "congCommittee")),
        members=tuple(_member(member) for member in _all(own, "congMember")),
        bills=tuple(_bill(bill) for bill in _all(own, "bill")),
    )


def _extensions(element: Any) -> list[Any]:
    described = ("accessId", "collectionCode")
    return [
        extension
        for extension in element.findall("extension")
        if any(extension.find(name) is not None for name in described)
    ]


def _all(extensions: list[Any], name: str) -> Iterator[Any]:
    for extension in extensions:
        yield from extension.findall(name)


def _fields(element: Any) -> dict[str, tuple[str, ...]]:
    values: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    for extension in _extensions(element):
        # An extension further down describes the granule, and what it says counts.
        own: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
        for child in extension.iterchildren("*"):
            if len(child) == 0 and (value := whole_text(child)):
                own[child.tag] += (value,)
        values.update(own)
    return dict(values)


def _times(extensions: list[Any]) -> dict[str, tuple[str, ...]]:
    times = [time for time in _all(extensions, "time") if time.get("from")]
    if not times:
        return {}
    return {
        "time_from": (times[0].get("from"),),
        "time_to": (times[-1].get("to") or times[-1].get("from"),),
    }


def _title(element: Any) -> str | None:
    titles = (
        title_info for title_info in element.findall("titleInfo") if title_info.get("type") is None
    )
    return next((title for title_info in titles if (title := text(title_info, "title"))), None)


def _identifiers(element: Any, kind: str) -> list[str]:
    return texts(element, f"identifier[@type='{kind}']")


def _renditions(element: Any, package: str) -> dict[Rendition, str]:
    addresses: dict[Rendition, str] = {}
    for url in element.findall("location/url[@access='raw object']"):
        rendition = _LABELS.get(url.get("displayLabel") or "")
        file = (whole_text(url) or "").rpartition("/")[2]
        if rendition and _FILE.fullmatch(file):
            addresses[rendition] = content_address(package, rendition, file)
    return addresses


def _committee(element: Any) -> ModsCommittee:
    names = _names(element)
    name = names.get("authority-standard") or names.get("parsed") or names.get("authority-short")
    return ModsCommittee(
        name=name or element.get("authorityId") or "unnamed committee",
        authority_id=element.get("authorityId"),
        chamber=element.get("chamber"),
        type=element.get("type"),
        short_name=names.get("authority-short"),
        subcommittees=tuple(texts(element, "subCommittee/name")),
    )


def _member(element: Any) -> ModsMember:
    names = _names(element)
    first = next(iter(names.values()), None)
    return ModsMember(
        name=names.get("authority-fnf") or first or element.get("bioGuideId") or "unnamed member",
        bioguide=element.get("bioGuideId"),
        parsed=names.get("parsed"),
        last_first=names.get("authority-lnf"),
        chamber=element.get("chamber"),
        congress=element.get("congress"),
        party=element.get("party"),
        state=element.get("state"),
        role=element.get("role"),
    )


def _names(element: Any) -> dict[str, str]:
    names = ((name.get("type") or "", whole_text(name)) for name in element.findall("name"))
    return {kind: value for kind, value in names if value}


def _bill(element: Any) -> ModsBill:
    return ModsBill(
        congress=_whole(element.get("congress")),
        type=element.get("type"),
        number=_whole(element.get("number")),
        context=element.get("context"),
    )


def _whole(value: str | None) -> int | None:
    return int(value) if value and _DIGITS.fullmatch(value) else None
