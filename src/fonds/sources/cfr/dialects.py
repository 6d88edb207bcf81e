"""The vocabularies in which the CFR is published: GPO's, which is eCFR's too, and USLM."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from fonds.sources.cfr.wording import KINDS

Part = Literal["number", "heading"]

_DIVISION: Final = re.compile(r"DIV([1-9])")
_BY_LEVEL: Final = dict(enumerate(KINDS.values(), start=1))
_RANKS: Final = {kind: rank for rank, kind in _BY_LEVEL.items()}


class Dialect(ABC):
    """Which elements are levels, which are their headings, and which hold no text of the code."""

    wrappers: ClassVar[frozenset[str]]
    """Elements around the outermost level."""
    unread: ClassVar[frozenset[str]]
    """Tables of contents and running heads: all they say is said elsewhere."""
    inner_heads: ClassVar[frozenset[str]] = frozenset()
    """Headings that stand within a table of contents."""
    pictures: ClassVar[frozenset[str]]
    """Elements that are something to see without holding a word."""

    @abstractmethod
    def kind(self, name: str, attributes: Mapping[str, str]) -> str | None:
        """The name of the level that an element is, if it is one."""

    @abstractmethod
    def head(self, name: str, attributes: Mapping[str, str]) -> Part | None:
        """What part of its level's heading an element is, if it can be one."""

    @abstractmethod
    def identifier(self, attributes: Mapping[str, str], around: str) -> str:
        """The publisher's own name of a level, or what it stands in, with a slash at its end."""

    def within(self, title: str) -> str:
        """What all of a title stands in, in such names."""
        del title
        return ""


class Gpo(Dialect):
    """eCFR's numbered divisions, and the annual edition's, which have names."""

    wrappers = frozenset(
        {"ECFR", "DLPSTEXTCLASS", "TEXT", "BODY", "ECFRBRWS", "CFRDOC", "CFRGRANULE"}
    )
    unread = frozenset({"CFRTOC", "CFRTITLE", "CONTENTS", "EAR", "LRH", "RRH", "TOC"})
    inner_heads = frozenset({"TITLEHD", "TOCHD"})
    pictures = frozenset({"img", "IMG", "GPH", "MATH"})

    def kind(self, name: str, attributes: Mapping[str, str]) -> str | None:
        """By `TYPE` where there is one; its values are those of the annual edition's elements."""
        numbered = _DIVISION.fullmatch(name)
        if numbered is None:
            return KINDS.get(name)
        stated = attributes.get("TYPE", "").strip()
        return KINDS.get(stated.upper()) or stated.lower() or _BY_LEVEL[int(numbered[1])]

    def head(self, name: str, attributes: Mapping[str, str]) -> Part | None:
        """`HEAD` in eCFR; in the annual edition a section's heading is in two elements."""
        if name == "SECTNO":
            return "number"
        is_head = name in {"HEAD", "SUBJECT", "RESERVED"}
        return "heading" if is_head or (name, attributes.get("SOURCE")) == ("HD", "HED") else None

    def identifier(self, attributes: Mapping[str, str], around: str) -> str:
        """Only bulk files have one, which tells the place in the file: `40:7.0.1.1.1`."""
        del around
        return attributes.get("NODE", "")


class Uslm(Dialect):
    """Volumes in United States Legislative Markup."""

    wrappers = frozenset({"cfrDoc", "main"})
    unread = frozenset({"toc", "ear", "leftRunningHead", "rightRunningHead"})
    pictures = frozenset({"img", "figure"})
    _KINDS: ClassVar[dict[str, str]] = {kind: kind for kind in KINDS.values()}

    def kind(self, name: str, attributes: Mapping[str, str]) -> str | None:
        """By the element, but subject groups are a kind of `level`."""
        if name == "level":
            is_group = "SUBJGRP" in attributes.get("style", "")
            return "subject-group" if is_group else "level"
        return self._KINDS.get(name)

    def head(self, name: str, attributes: Mapping[str, str]) -> Part | None:
        """Number and heading are elements of their own everywhere."""
        del attributes
        return "number" if name == "num" else "heading" if name == "heading" else None

    def identifier(self, attributes: Mapping[str, str], around: str) -> str:
        """`/us/cfr/t27/s447.1`, and `/us/cfr/t27/p447/` for a group in part 447."""
        return attributes.get("identifier") or f"{around.rstrip('/')}/"

    def within(self, title: str) -> str:
        """`/us/cfr/t27`."""
        return f"/us/cfr/t{title}"


def rank(kind: str) -> int:
    """How far in a level belongs: 1 for a title, 5 for a part; of others nobody knows."""
    return _RANKS.get(kind, 0)
