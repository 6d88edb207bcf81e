"""What acts, divisions and norms are called: kinds and numbers out of the publisher's names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

SITE: Final = "https://www.gesetze-im-internet.de/"
DIVISION: Final = "gliederung"
"""The kind of a division that the law numbers without naming its level: `II.`, `a)`."""
NORM: Final = "norm"
"""The kind of a norm that has no name."""

_LEVEL: Final = (
    r"(?P<kind>(?:Unter|Haupt|Ober)*(?:[Bb]uch|[Tt]eil|[Kk]apitel|[Aa]bschnitt|[Tt]itel|[Ss]tück"
    r"|[Aa]bteilung|[Gg]ruppe))"
)
_NUMBER: Final = r"(?P<number>\d+ ?[a-z]{0,2}|[IVXLC]+ ?[a-z]?|[A-Z]{1,2}\d*)"
# "Buch 2", "Teil I", also "Teil 1 Allgemeine Vorschriften"; "1. Unterabschnitt"; "Erster
# Abschnitt", "Allgemeiner Teil"; "II.", "IV a.", "a)".
_DIVISIONS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_LEVEL} {_NUMBER}(?![^\W_]).*",
        rf"{_NUMBER}\.? {_LEVEL}",
        rf"(?P<number>\w+) {_LEVEL}",
        r"(?P<number>\d+ ?[a-z]?|[IVXLC]+ ?[a-z]?|[A-Z]|[a-z]{1,2})[.)]?",
    )
)
_LONGEST_NAME: Final = 60

_OMITTED: Final = re.compile(r"\(X+\)\s*")
_KINDS: Final = {
    "section": re.compile(r"§+\s*(.*)"),
    "article": re.compile(r"Art(?:ikel|\.|(?=\s))\s*(.*)"),
    "annex": re.compile(r"Anlagen?(?:\s+(.*))?"),
}
_OTHER: Final = re.compile(r"([^\W\d_]+)\s+((?:\d|[IVXLC]+\b|[A-Z]{1,3}\b).*)")
_PARENTHESIS: Final = re.compile(r"\s*\(.*\)\s*$")

_GONE: Final = re.compile(r"\W*(?:weggefallen|aufgehoben|gestrichen|entfallen)\W*", re.IGNORECASE)
_STATUSES: Final = (
    (_GONE, "repealed"),
    (re.compile(r"\W*gegenstandslos\W*", re.IGNORECASE), "obsolete"),
    (re.compile(r"\(?.*zukünftig in Kraft\W*", re.IGNORECASE), "not in force"),
)

_SLUG: Final = re.compile(r"[a-z0-9_-]+")
_PLAIN_NUMBER: Final = re.compile(r"\d+[a-z]{0,2}")


@dataclass(frozen=True, slots=True)
class Name:
    """The kind and number of a node."""

    kind: str
    number: str


def of_division(name: str, key: str) -> Name:
    """`Buch 2`, `1. Unterabschnitt`, `Erster Abschnitt`, `II.`, `Art 229`, or words of its own.

    A number in words stays as it is (`abschnitt-Erster`). A division without level and number is
    called by its name; if that is long, by the last three digits of its key.
    """
    if article := _KINDS["article"].fullmatch(name):
        return Name("article", article[1])
    for pattern in _DIVISIONS:
        if found := pattern.fullmatch(name):
            kind = found.groupdict().get("kind") or DIVISION
            return Name(kind.lower(), " ".join(found["number"].split()))
    return Name(DIVISION, name if len(name) <= _LONGEST_NAME else key[-3:])


def of_norm(name: str) -> Name:
    """`§ 433`, `(XXXX) §§ 92 bis 98`, `Art 1`, `Anlage 1`, `Anhang EV`, `Eingangsformel`."""
    plain = without_mark(name)
    for kind, pattern in _KINDS.items():
        if found := pattern.fullmatch(plain):
            return Name(kind, _PARENTHESIS.sub("", found[1] or "").rstrip("."))
    if found := _OTHER.fullmatch(plain):
        return Name(found[1].lower(), _PARENTHESIS.sub("", found[2]).rstrip("."))
    if not plain or not plain[0].isalpha():
        return Name(NORM, plain)
    return Name(plain.lower(), "")


def without_mark(name: str) -> str:
    """The name without the documentation office's `(XXXX)`, by which it marks what is gone."""
    return _OMITTED.sub("", name)


def status_of(name: str, title: str, beginning: str) -> str:
    """Why a norm is not in force, by its name, its title, or its text if that is short."""
    for words in (title, beginning):
        for pattern, status in _STATUSES:
            if words and pattern.fullmatch(words):
                return status
    return "repealed" if _OMITTED.match(name) else ""


def slug_of(page: str, abbreviation: str) -> str:
    """The publisher's folder of an act: as the page lies in one, or made as the publisher does.

    `BImSchV 1 2010` is in `bimschv_1_2010`, `1-DM-GoldmünzG` in `1-dm-goldm_nzg`.
    """
    path = PurePosixPath(page.partition("!")[0])
    folder = path.parent.name
    if folder and path.stem in {folder, "xml"} and _SLUG.fullmatch(folder):
        return folder
    made = "".join(
        sign if _SLUG.fullmatch(sign) else "_" for sign in " ".join(abbreviation.lower().split())
    )
    return made or path.stem


def address_of(slug: str, norm: Name, article: str) -> str:
    """The page a person would open: the norm's own where its name follows from the number."""
    act = f"{SITE}{slug}/"
    if not _PLAIN_NUMBER.fullmatch(norm.number):
        return act
    if norm.kind == "section" and _PLAIN_NUMBER.fullmatch(article):
        return f"{act}art_{article}__{norm.number}.html"
    prefix = {"section": "__", "article": "art_", "annex": "anlage_"}.get(norm.kind)
    return act if prefix is None or article else f"{act}{prefix}{norm.number}.html"
