"""What the document of a leaf is called, how it is cited, and where a person reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from fonds.citations.cfr import cite_appendix, cite_cfr, cite_level
from fonds.citations.forms import cfr_form, cfr_part_form
from fonds.sources.jurisdiction import FRONT, Leaf, Shard, Step

_SITE: Final = "https://www.ecfr.gov"
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_YEAR: Final = re.compile(r"(?:17|18|19|20|21)\d\d(?!\d)")
_NAMED: Final = ("subtitle", "chapter", "subchapter", "part", "subpart", "section", "appendix")
_OF_PART: Final = frozenset({"part", "subpart", "section", "appendix"})
_BELONGS: Final = re.compile(
    r"\b(?:to|of)\s+"
    r"(?:(?P<section>§\s*\S+)|Subpart\s+(?P<subpart>[A-Za-z0-9]+)\b|Part\s+(?P<part>[\w-]+))",
    re.IGNORECASE,
)
_PLURAL: Final = re.compile(r"§§|(?:sub)?(?:chapters|parts)\b", re.IGNORECASE)
_DESIGNATION: Final = re.compile(r"\s*(?:[—–\[]|\s-\s|--).*", re.DOTALL)


def shard(leaf: Leaf) -> Shard:
    """All of it; a front goes by the name of the level it stands in."""
    steps = [step for step in _steps(leaf) if step.kind in _NAMED]
    title = leaf.lineage[0].number
    return Shard(
        title=leaf.label,
        citation_string=cite_cfr(title, *_places(leaf, steps), year=_year(leaf)),
        source_url=_address(leaf, title, steps),
        normalizer="uslm_v1" if leaf.identifier.startswith("/us/cfr/") else "ecfr_xml_v1",
        format="xml",
        aliases=tuple(_aliases(leaf, title)),
        published_at=leaf.version if _DAY.fullmatch(leaf.version) else leaf.published_at,
    )


def _steps(leaf: Leaf) -> list[Step]:
    own = Step(kind=leaf.kind, number=leaf.number, label=leaf.label)
    return [*leaf.lineage[1:], *([] if leaf.kind == FRONT else [own])]


def _places(leaf: Leaf, steps: list[Step]) -> Iterator[str]:
    """From the part down if there is one: its number is unique in the title, a chapter's too."""
    if leaf.kind == "section":
        yield _cited(steps[-1])
    elif leaf.kind == "appendix":
        yield from _around_appendix(leaf.label, steps[:-1])
        yield cite_appendix(leaf.number)
    else:
        for step in _from_part(steps):
            if step.number:
                yield _cited(step)


def _cited(step: Step) -> str:
    several = _PLURAL.match(step.label) is not None
    return cite_level(step.kind, step.number, several=several)


def _around_appendix(label: str, steps: list[Step]) -> Iterator[str]:
    """What it is appended to, as its heading says; where it stands does not always tell."""
    found = _BELONGS.finditer(_designation(label))
    said = {name: text for match in found for name, text in match.groupdict("").items() if text}
    if "section" in said:
        yield cite_level("section", said["section"].lstrip("§ "))
        return
    stands = {step.kind: step.number for step in _from_part(steps)}
    if part := said.get("part") or stands.pop("part", ""):
        subpart = said.get("subpart", "") if said else stands.get("subpart", "")
        stands = {"part": part, "subpart": subpart}
    for kind, number in stands.items():
        if number:
            yield cite_level(kind, number)


def _from_part(steps: list[Step]) -> list[Step]:
    inner = [step for step in steps if step.kind in _OF_PART]
    return inner or steps


def _address(leaf: Leaf, title: str, steps: list[Step]) -> str:
    when = f"on/{leaf.version}" if _DAY.fullmatch(leaf.version) else "current"
    levels = steps[-1:] if leaf.kind == "section" else _from_part(steps)
    if leaf.kind == "appendix" and "subpart" not in _designation(leaf.label).lower():
        levels = [step for step in levels if step.kind != "subpart"]
    return "/".join([_SITE, when, f"title-{title}", *map(_segment, levels)])


def _segment(step: Step) -> str:
    number = _designation(step.label) if step.kind == "appendix" else step.number
    return f"{step.kind}-{quote(number.replace('–', '-'), safe='()')}"


def _designation(label: str) -> str:
    return _DESIGNATION.sub("", label)


def _year(leaf: Leaf) -> int | None:
    match = _YEAR.match(leaf.version) or _YEAR.match(leaf.published_at or "")
    return int(match[0]) if match else None


def _aliases(leaf: Leaf, title: str) -> Iterator[str]:
    above = leaf.lineage[-1]
    is_first_front = leaf.id.endswith(f"/{FRONT}")
    if leaf.kind == "section" and leaf.number:
        yield cfr_form(title, leaf.number)
    elif leaf.kind == "part":
        yield cfr_part_form(title, leaf.number)
    elif is_first_front and above.kind == "part":
        yield cfr_part_form(title, above.number)
    is_own = leaf.identifier and not leaf.identifier.endswith("/")
    if is_own and (leaf.kind != FRONT or is_first_front):
        yield leaf.identifier
