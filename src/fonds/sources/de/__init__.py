"""German federal law, as gesetze-im-internet.de consolidates it: one file for each act.

Quirks of the publisher:
- An act is a flat list of norms. The first one is the act itself; a norm with a
  `gliederungseinheit` begins a division, one with an `enbez` is a provision of the last division.
  A division is below the one whose key (`gliederungskennzahl`, three digits a level) is the
  beginning of its own; levels may be skipped. So annexes at an act's end are listed below its last
  division, though they belong to the act.
- `(XXXX) §§ 92 bis 98` is a run of provisions that are gone. Others say `(weggefallen)` as their
  title, or as their text. Some numbers stand twice, an older and a newer wording.
- `jurabk` is the documentation office's abbreviation, often with a year (`UWG 2004`); `amtabk` is
  the official one (`UWG`), and often missing. The folder of an act is made of the former.
- Nothing is stamped: the site serves each act as it stands today. `builddate` is when a file was
  made, and a file is made anew when its act changes. The edition of a folder is the newest such
  day, that of the site the day on which its list was fetched.
- Some acts are only announced: a norm without text, which says where the act can be read.

Ids: `act-bgb/buch-2/abschnitt-8/titel-1/untertitel-1/section-433`. The level is the division's own
name; a number in words stays in words (`abschnitt-Erster`); a division that is only numbered is a
`gliederung` (`gliederung-II`), one that has only a name is `gliederung-Geldstrafe`. A `§` is
a `section`, an `Art` an `article`, an `Anlage` an `annex`, everything else is called what it is
(`eingangsformel`, `anhang-EV`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from fonds.citations.de import cite_provision, provision
from fonds.errors import MalformedError, SuspiciousYieldError
from fonds.sources.base import Rate
from fonds.sources.de.names import NORM, SITE, Name, address_of, slug_of
from fonds.sources.de.norms import NormListener
from fonds.sources.families import xml_files
from fonds.sources.families.act_files import ActFiles, ActListener
from fonds.sources.jurisdiction import FRONT, CodeInfo, Leaf, Page, Shard, TocNode

_MEMBER: Final = "xml.zip"
_BUILT: Final = re.compile(r"(\d{4})(\d\d)(\d\d)")
# A label as this adapter makes it: `UWG 2004 (UWG) – Gesetz gegen den unlauteren Wettbewerb`.
_UNIT: Final = re.compile(r"(?P<act>.*?)(?: \((?P<official>.*?)\))? – ")


class GermanFederalLaw(ActFiles):
    """The source `de`."""

    info = CodeInfo(
        name="de",
        title="German federal law",
        organisation="Bundesministerium der Justiz, Bundesamt für Justiz",
        version="1.0.0",
        schedule=None,
        rate=Rate(per_second=2, burst=4),
        tables=(),
        published_at="day on which the file was made (builddate)",
        base=SITE,
        jurisdiction="Germany",
        unit="act",
        language="de",
    )
    roots = ("dokumente",)
    metadata = "metadaten"
    index = "gii-toc.xml"

    def act(self, name: str, head: Any) -> TocNode:
        """An act by its abbreviations and title."""
        metadata = head.find(".//metadaten")
        short, official, title = (
            xml_files.text(metadata, path) or "" for path in ("jurabk", "amtabk", "kurzue")
        )
        title = title or xml_files.text(metadata, "langue") or ""
        if not short:
            raise MalformedError("the act has no abbreviation (jurabk), by which it is named")
        named = f"{short} ({official})" if official not in {"", short} else short
        return TocNode(
            kind=self.info.unit,
            number=slug_of(name, short),
            label=f"{named} – {title or short}",
            pages=(name,),
            identifier=head.get("doknr", ""),
            published_at=_day(head.get("builddate", "")),
        )

    def number_of(self, path: str) -> str:
        """The publisher's folder, if the file is in one."""
        return slug_of(path, "")

    def listener(self, unit: TocNode) -> ActListener:
        """Lists divisions and norms."""
        del unit
        return NormListener()

    def listed(self, index: Page) -> Iterator[TocNode]:
        """The acts that the publisher's list links to."""
        items = xml_files.read(index.read(), "items").findall("item")
        if not items:
            raise SuspiciousYieldError(f"{self.index} lists no act; it always has thousands")
        for item in items:
            slug = _slug(xml_files.required(item, "link"))
            label = xml_files.text(item, "title") or slug
            page = f"{slug}/{_MEMBER}!*.xml"
            yield TocNode(kind=self.info.unit, number=slug, label=label, pages=(page,))

    def stamp(self, index: Page) -> str:
        """The day on which the list was fetched."""
        return index.archived.retrieved_at.date().isoformat()

    def shardify(self, leaf: Leaf) -> Shard:
        """A provision, by its number and the act's abbreviation."""
        unit, *divisions = leaf.lineage
        found = _UNIT.match(unit.label)
        act, official = (found["act"], found["official"]) if found else (unit.label, None)
        above = divisions[-1] if divisions else None
        article = above.number if above and above.kind == "article" else ""
        if leaf.kind == NORM:
            names = [f"{act}, {leaf.label}"]
        elif leaf.kind == FRONT:
            names = [f"{act}, {above.label}" if above else act]
        else:
            name = {"kind": leaf.kind, "number": leaf.number, "article": article}
            names = [cite_provision(act=short, **name) for short in (act, official) if short]
            names.append(f"{act} {provision(**name)}")
        return Shard(
            title=leaf.label,
            citation_string=names[0],
            source_url=address_of(unit.number, Name(leaf.kind, leaf.number), article),
            normalizer="gii_v1",
            format="xml",
            aliases=tuple(dict.fromkeys(filter(None, [*names, leaf.identifier]))),
            published_at=leaf.published_at,
        )


source: Final = GermanFederalLaw()


def _day(built: str) -> str | None:
    found = _BUILT.match(built)
    return "-".join(found.groups()) if found else None


def _slug(link: str) -> str:
    """The folder in `http://www.gesetze-im-internet.de/bgb/xml.zip`."""
    folder, _, file = unquote(urlsplit(link).path).strip("/").rpartition("/")
    if file != _MEMBER or not folder or "/" in folder:
        raise MalformedError(f"the list of acts has a link that leads to no act: {link[:120]!r}")
    return folder
