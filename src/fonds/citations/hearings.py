"""How a hearing is cited.

`Hearing Title: Hearing Before the Subcomm. on Y of the H. Comm. on X, 119th Cong. (2025).`
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from fonds.citations.committees import congress_ranges

_CHAMBER_LETTERS: Final = {"H": "H.", "S": "S."}
# congress.gov writes `House Agriculture Committee` for the Committee on Agriculture of the House.
_INVERTED: Final = re.compile(
    r"^(?:House|Senate) (?!.*\b(?:Select|Special)\b)(.+?) Committee$"
    r"|^(?:House|Senate) (.+?) (Subcommittee on .+)$"
)
# Catalogued titles of old prints go on with who held the hearings.
_SELF_DESCRIBED: Final = re.compile(r":\s*hearings? before\b.*", re.IGNORECASE | re.DOTALL)
_OWN_CHAMBER: Final = re.compile(r"^(?:United States )?(?:House|Senate)\s+")
_SHORT: Final = (
    (re.compile(r"\bSubcommittee\b", re.IGNORECASE), "Subcomm."),
    (re.compile(r"\bCommittee\b", re.IGNORECASE), "Comm."),
    (re.compile(r"^Joint\b", re.IGNORECASE), "J."),
)

CitedCommittee = tuple[str | None, str, Sequence[str]]
"""The letter of its chamber, its name, and the names of those of its subcommittees that sat."""


def cite_hearings(
    *,
    title: str,
    committees: Iterable[CitedCommittee],
    congress: int | None,
    year: str | None,
    host: str | None = None,
) -> str:
    """The citation of a hearing, ready to paste.

    `host` is who held it where no committee did. What is unknown is left out.
    """
    before = " and the ".join(_each_once(map(_committee, committees))) or host
    held = f"Hearing Before the {before}" if before else "Hearing"
    cited = f"{_SELF_DESCRIBED.sub('', title).rstrip(' .:')}: {held}"
    if congress:
        cited += f", {congress_ranges([congress])}"
    return f"{cited} ({year})." if year else f"{cited.removesuffix('.')}."


def _each_once(cited: Iterable[str]) -> list[str]:
    """Without committees that are there for a subcommittee of theirs."""
    listed = list(dict.fromkeys(cited))
    return [one for one in listed if not any(other.endswith(f" of the {one}") for other in listed)]


def _committee(committee: CitedCommittee) -> str:
    chamber, name, below = committee
    if inverted := _INVERTED.match(name):
        name = f"Committee on {inverted[1] or inverted[2]}"
        below = below or ([inverted[3]] if inverted[3] else [])
    named = _shortened(_OWN_CHAMBER.sub("", name))
    prefix = _CHAMBER_LETTERS.get(chamber or "", "")
    whole = named if named.startswith("J.") else f"{prefix} {named}".strip()
    if not below:
        return whole
    return f"{' and the '.join(map(_shortened, below))} of the {whole}"


def _shortened(name: str) -> str:
    for pattern, short in _SHORT:
        name = pattern.sub(short, name)
    return name
