"""Norms: the headings that only their metadata tell, and the text below."""

from __future__ import annotations

from typing import Any, Final

from fonds.model import NormalizedBody
from fonds.normalize.gii.walker import TextWalker, words_of

_DEEPEST_HEADING: Final = 6
# The publisher's types of a note on the state of the text; a new version is a state, too.
_STATES: Final = {"Neuf": "Stand"}
_NO_TITLES: Final = frozenset({"", "-"})


class NormWalker(TextWalker):
    """Writes one norm, or all norms of an act under the headings of their divisions."""

    def walk(self, warnings: tuple[str, ...]) -> NormalizedBody:
        """The Markdown, with the given warnings and those met on the way."""
        norms = self._root.iterchildren("norm") if self._root.tag == "dokumente" else [self._root]
        division = 1
        for norm in norms:
            key = norm.findtext("metadaten/gliederungseinheit/gliederungskennzahl")
            division = 1 + len(key) // 3 if key else division
            self._level = 1 if norm is self._root else min(division + 1, _DEEPEST_HEADING)
            self._norm(norm, self._level if norm is self._root else division)
        warned = [f"{cause} ({count}×)" for cause, count in sorted(self._warned.items())]
        return self._out.finish((*warnings, *warned))

    def _norm(self, norm: Any, division: int) -> None:
        metadata = norm.find("metadaten")
        if metadata is not None:
            self._headings(metadata, min(division, _DEEPEST_HEADING))
        former = self._in_contents
        self._in_contents = words_of(norm.find("metadaten/enbez")).startswith("Inhalts")
        for text in norm.iterchildren("textdaten"):
            for part in text.iterchildren("*"):
                self._notes_of(part) if part.tag == "fussnoten" else self._child(part)
        self._in_contents = former
        self._out.end()

    def _headings(self, metadata: Any, division: int) -> None:
        unit = metadata.find("gliederungseinheit")
        if unit is not None:
            number, title = unit.find("gliederungsbez"), unit.find("gliederungstitel")
            self._heading(division, number, title)
        name, title = metadata.find("enbez"), metadata.find("titel")
        if name is not None or (title is not None and unit is None):
            self._heading(self._level, name, title)
        if metadata.find("langue") is not None:
            self._act(metadata)

    def _heading(self, level: int, number: Any, title: Any) -> None:
        label = words_of(number)
        self._out.begin(level=level, section=label or None)
        self._out.run(label)
        if words_of(title) not in _NO_TITLES:
            self._out.space()
            self._flow(title)
        self._out.end()

    def _act(self, metadata: Any) -> None:
        """What the publisher prints above an act."""
        self._out.begin(level=1)
        self._flow(metadata.find("langue"))
        self._out.end()
        names = [words_of(metadata.find(name)) for name in ("kurzue", "amtabk", "jurabk")]
        self._line(" – ".join(dict.fromkeys(name for name in names if name)))
        if issued := words_of(metadata.find("ausfertigung-datum")):
            self._line(f"Ausfertigungsdatum: {issued}")
        for place in metadata.iterchildren("fundstelle"):
            self._line(
                f"Fundstelle: {' '.join(words_of(part) for part in place.iterchildren('*'))}"
            )
        for state in metadata.iterchildren("standangabe"):
            kind = words_of(state.find("standtyp"))
            self._line(f"{_STATES.get(kind, kind)}: {words_of(state.find('standkommentar'))}")

    def _line(self, text: str) -> None:
        self._out.begin()
        self._out.run(text)
        self._out.end()

    def _notes_of(self, element: Any) -> None:
        """Remarks of the documentation office, which the publisher prints under this word."""
        if words_of(element):
            self._out.begin(level=min(self._level + 1, _DEEPEST_HEADING))
            self._out.run("Fußnote")
            self._out.end()
        self._group(element)
