"""Listening to an act: a flat list of norms, whose divisions are told by keys alone."""

from __future__ import annotations

from typing import Final

from fonds.errors import MalformedError
from fonds.sources.de.names import of_division, of_norm, status_of, without_mark
from fonds.sources.families.act_files import ActListener, Element
from fonds.sources.jurisdiction import FRONT, TocNode

_SHORT: Final = 60
_NO_TITLES: Final = frozenset({"", "-"})


class NormListener(ActListener):
    """Lists the divisions and norms of one act."""

    heard = frozenset(
        {
            "langue",
            "standkommentar",
            "enbez",
            "titel",
            "gliederungskennzahl",
            "gliederungsbez",
            "gliederungstitel",
        }
    )
    breaks = frozenset({"BR"})

    def __init__(self) -> None:
        super().__init__()
        self._keys: list[str] = []
        """Those of the divisions that are open."""
        self._names: list[str] = []
        self._beginning = ""
        """Of the norm's text, as much as is needed to see that it is gone."""
        self._is_text = False

    def opened(self, element: Element) -> None:
        """A norm's text begins, or something in it that is seen but has no words."""
        if element.name == "norm":
            self._beginning = ""
        elif element.name == "text":
            self._is_text = True
        elif element.name in {"IMG", "FILE"}:
            element.has_text = True

    def text(self, data: str) -> None:
        """Some text; the first words of a norm are kept."""
        super().text(data)
        if self._is_text and len(self._beginning) <= _SHORT:
            self._beginning += data[: _SHORT + 1]

    def closed(self, element: Element) -> None:
        """Hand up what metadata said; list a norm when it ends."""
        if element.name == "text":
            self._is_text = False
        elif element.name in {"gliederungseinheit", "standangabe", "metadaten"}:
            self.above[-1].said.update(element.said)
        elif element.name == "textdaten" and element.has_text:
            self.above[-1].said["textdaten"] = "has words"
        elif element.name == "norm":
            self._norm(element)

    def _norm(self, norm: Element) -> None:
        said = norm.said
        has_words = "textdaten" in said
        name, title = said.get("enbez", ""), said.get("titel", "")
        if "gliederungsbez" in said or "gliederungskennzahl" in said:
            self._division(norm)
            if has_words and not name:
                self._front(norm, self._names[-1])
        elif "langue" in said and not name:
            if has_words or said.get("standkommentar"):
                self._front(norm, said["langue"])
            return
        elif not name and (has_words or title):
            self._leaf(norm, name, title)
        if name:
            self._leaf(norm, name, title)

    def _division(self, norm: Element) -> None:
        key = norm.said.get("gliederungskennzahl", "")
        label = headed(norm.said.get("gliederungsbez", ""), norm.said.get("gliederungstitel", ""))
        if not key:
            raise MalformedError(f"the division {label!r} has no key that says where it belongs")
        if self._keys and self._keys[-1] == key and self._names[-1] == label:
            return
        while self._keys and (key == self._keys[-1] or not key.startswith(self._keys[-1])):
            self._keys.pop()
            self._names.pop()
        self._keys.append(key)
        self._names.append(label or key)
        name = of_division(norm.said.get("gliederungsbez", ""), key)
        self.nodes.append(
            TocNode(
                kind=name.kind,
                number=name.number,
                label=self._names[-1],
                depth=len(self._keys),
                identifier=norm.attributes.get("doknr", ""),
            )
        )

    def _front(self, norm: Element, label: str) -> None:
        self._append(norm, FRONT, "", label, "")

    def _leaf(self, norm: Element, name: str, title: str) -> None:
        known = of_norm(name)
        printed = without_mark(name)
        heading = printed if title in _NO_TITLES else f"{printed} {title}".strip()
        label = heading or norm.attributes.get("doknr", known.kind)
        beginning = " ".join(self._beginning.split())
        status = status_of(name, title, beginning)
        self._append(norm, known.kind, known.number, label, status)

    def _append(self, norm: Element, kind: str, number: str, label: str, status: str) -> None:
        self.nodes.append(
            TocNode(
                kind=kind,
                number=number,
                label=label,
                depth=len(self._keys) + 1,
                is_leaf=True,
                span=norm.span,
                identifier=norm.attributes.get("doknr", ""),
                status=status,
            )
        )


def headed(number: str, title: str) -> str:
    """A division's number and title as one heading: `Buch 2 – Schuldrecht`, `II. Einkommen`."""
    if title in _NO_TITLES or not number:
        return number if title in _NO_TITLES else title
    return f"{number} {title}" if number[-1] in ".):" else f"{number} – {title}"
