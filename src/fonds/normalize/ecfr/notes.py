"""Footnotes of the Code of Federal Regulations: which reference belongs to which note."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from fonds.normalize.ecfr.vocabulary import DIVISIONS
from fonds.normalize.fr.notes import is_reference, leading_sign, signs

# Tables have notes of their own, which print the sign and nothing more.
_ASIDE: Final = ("FTNT", "GPOTABLE", "TABLE")


class Footnotes:
    """Gives a reference and its note the same label; numbering starts again in each division."""

    def __init__(self, root: Any) -> None:
        self._within: dict[Any, Counter[str]] = {}
        for note in root.iter("FTNT"):
            division = next(note.iterancestors(*DIVISIONS), root)
            sign = leading_sign(note)
            if sign is not None:
                self._within.setdefault(division, Counter())[signs(sign)[0]] += 1
        self._promoted: frozenset[Any] = self._promote(root) if self._within else frozenset()
        self._scopes: list[Any] = [root]
        self._labels: dict[tuple[Any, str, int], str] = {}
        self._used: Counter[str] = Counter()
        self._referred: Counter[tuple[Any, str]] = Counter()
        self._noted: Counter[tuple[Any, str]] = Counter()
        self._references: set[str] = set()
        self._notes: set[str] = set()

    def refers(self, element: Any) -> bool:
        """Whether a raised sign refers to a note, rather than being an exponent."""
        return is_reference(element) or element in self._promoted

    def enter(self, division: Any) -> None:
        """What follows stands in that division."""
        self._scopes.append(division)

    def leave(self) -> None:
        """The innermost division is over."""
        self._scopes.pop()

    def reference(self, sign: str) -> str:
        """The label for a reference; a lone note in its division takes them all."""
        scope = self._scope(sign)
        self._referred[scope, sign] += 1
        notes = self._within.get(scope, Counter())[sign]
        label = self._label(scope, sign, min(self._referred[scope, sign], max(notes, 1)))
        self._references.add(label)
        return label

    def note(self, sign: str) -> str:
        """The label for a note."""
        scope = self._scopes[-1]
        self._noted[scope, sign] += 1
        label = self._label(scope, sign, self._noted[scope, sign])
        self._notes.add(label)
        return label

    def unlinked(self) -> list[str]:
        """A warning for each reference without its note, and each note without a reference."""
        return [
            f"footnote {label}: {'no note' if label in self._references else 'no reference'}"
            for label in sorted(self._references ^ self._notes)
        ]

    def _promote(self, root: Any) -> frozenset[Any]:
        """For each note nothing refers to, the first bare sign like it in its division.

        Signs in headings lack the FTREF that marks a reference.
        """
        marked: set[tuple[Any, str]] = set()
        bare: dict[tuple[Any, str], Any] = {}
        settings: dict[Any, tuple[Any, bool]] = {}
        for element in root.iter("SU"):
            parent = element.getparent()
            if parent not in settings:
                settings[parent] = _setting(parent, root)
            division, is_aside = settings[parent]
            keys = [(division, sign) for sign in signs(element)]
            if is_reference(element):
                marked.update(keys)
            elif len(keys) == 1 and not is_aside:
                bare.setdefault(keys[0], element)
        noted = {(division, sign) for division, found in self._within.items() for sign in found}
        return frozenset(bare[key] for key in noted - marked if key in bare)

    def _scope(self, sign: str) -> Any:
        for scope in reversed(self._scopes):
            if sign in self._within.get(scope, ()):
                return scope
        return self._scopes[-1]

    def _label(self, scope: Any, sign: str, index: int) -> str:
        key = (scope, sign, index)
        if key not in self._labels:
            self._used[sign] += 1
            count = self._used[sign]
            self._labels[key] = sign if count == 1 else f"{sign}-{count}"
        return self._labels[key]


def _setting(parent: Any, root: Any) -> tuple[Any, bool]:
    """The division a sign stands in, and whether it is part of a note or table."""
    is_aside = False
    for element in (parent, *parent.iterancestors(*DIVISIONS, *_ASIDE)):
        if element.tag in DIVISIONS:
            return element, is_aside
        is_aside = is_aside or element.tag in _ASIDE
    return root, is_aside
