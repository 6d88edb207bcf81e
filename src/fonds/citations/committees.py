"""How committees of Congress are named, described and cited.

Shortened as in the citation of a hearing or a report, with the code that names the committee in
every federal data set: `H. Comm. on Agriculture (HSAG).` A committee that is no more carries the
Congresses it is known from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_SHORT: Final = (
    (re.compile(r"\bSubcommittee\b"), "Subcomm."),
    (re.compile(r"\bCommittee\b"), "Comm."),
    (re.compile(r"^House\b"), "H."),
    (re.compile(r"^(?:United States )?Senate\b"), "S."),
    (re.compile(r"^Joint\b"), "J."),
)
# Most are listed without the words "Subcommittee on"; these already say what they are.
_SELF_NAMED: Final = re.compile(r"Subcommittee|Task Force|Panel", re.IGNORECASE)
_CHAMBERS: Final = {"house": "U.S. House of Representatives", "senate": "U.S. Senate"}
_TEENS: Final = frozenset({11, 12, 13})
_ENDINGS: Final = {1: "st", 2: "d", 3: "d"}


def citation_for(
    *, code: str, name: str, parent: str | None = None, congresses: Iterable[int] = ()
) -> str:
    """The committee ready to cite.

    `Subcomm. on Crop Insurance of the H. Comm. on Agriculture, 97th–103d Cong. (HSAG77).`
    """
    cited = _shortened(subcommittee_name(name) if parent else name)
    if parent:
        cited += f" of the {_shortened(parent)}"
    when = congress_ranges(congresses)
    return f"{cited}, {when} ({code})." if when else f"{cited} ({code})."


def subcommittee_name(name: str) -> str:
    """`Subcommittee on Defense` for `Defense`, which is all that the lists say."""
    return name if _SELF_NAMED.search(name) else f"Subcommittee on {name}"


def title_for(name: str, parent: str | None = None) -> str:
    """The committee's name, and in parentheses that of the one above it."""
    return f"{subcommittee_name(name)} ({parent})" if parent else name


def publisher_for(chamber: str) -> str:
    """The body whose committee it is; Congress for a joint one."""
    return _CHAMBERS.get(chamber, "U.S. Congress")


def summary_for(
    *,
    name: str,
    chamber: str,
    parent: str | None,
    is_current: bool | None,
    jurisdiction: str | None,
    congresses: Iterable[int],
    names: Iterable[str],
) -> str:
    """Whole sentences that a search for a field, a former name or a Congress finds."""
    what = f"Subcommittee of the {parent}" if parent else "Committee"
    known = congress_ranges(congresses)
    former = "; ".join(one for one in dict.fromkeys(names) if one not in name)
    sentences = [
        f"{what} ({publisher_for(chamber)})",
        jurisdiction,
        "No longer in existence" if is_current is False else None,
        f"Bills were referred to it in the {known}" if known else None,
        f"Listed as {former}" if former else None,
    ]
    return " ".join(f"{sentence.rstrip('.')}." for sentence in sentences if sentence)


def congress_ranges(congresses: Iterable[int]) -> str:
    """`93d, 97th–103d Cong.`, or nothing for none."""
    runs: list[list[int]] = []
    for number in sorted(set(congresses)):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    listed = ", ".join(_run(run) for run in runs)
    return f"{listed} Cong." if listed else ""


def _run(numbers: list[int]) -> str:
    first, last = _ordinal(numbers[0]), _ordinal(numbers[-1])
    return first if first == last else f"{first}–{last}"


def _ordinal(number: int) -> str:
    if number % 100 in _TEENS:
        return f"{number}th"
    return f"{number}{_ENDINGS.get(number % 10, 'th')}"


def _shortened(name: str) -> str:
    for pattern, short in _SHORT:
        name = pattern.sub(short, name)
    return name
