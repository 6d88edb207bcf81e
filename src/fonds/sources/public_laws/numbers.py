"""Laws as files, citations and addresses name them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from fonds import ids
from fonds.citations.public_laws import law_number

# `Public Law 119–1`, `P.L. 116–326`, `Private Law 112–1`; some compilations state `116–326` alone.
_WRITTEN: Final = re.compile(
    r"(?:P(?:ub(?:lic)?|(?P<private>riv(?:ate)?))?\.?\s*L(?:aw)?\.?\s*(?:No\.\s*)?)?"
    r"(?P<congress>[0-9]{1,3})\s?[-\u2010-\u2014]\s?(?P<number>[0-9]{1,4})(?![0-9])"
)
_FILE: Final = re.compile(r"PLAW-([0-9]{1,3})(publ|pvtl)([0-9]{1,4})(?:\.xml)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class LawNumber:
    """A public or private law of some Congress."""

    congress: int
    number: int
    is_private: bool = False

    @property
    def id(self) -> str:
        """The law's document: `plaw:119-21`."""
        return ids.law_id(self.congress, self.number, private=self.is_private)

    @property
    def package(self) -> str:
        """`PLAW-119publ21`, its name at govinfo."""
        return f"PLAW-{self.congress}{'pvtl' if self.is_private else 'publ'}{self.number}"

    @property
    def cited(self) -> str:
        """`Pub. L. No. 119-21`."""
        return law_number(congress=self.congress, number=self.number, is_private=self.is_private)


def read_law_number(text: str) -> LawNumber | None:
    """The law a text begins with, or None where it begins otherwise."""
    found = _WRITTEN.match(text.strip())
    if found is None:
        return None
    return LawNumber(
        congress=int(found["congress"]),
        number=int(found["number"]),
        is_private=found["private"] is not None,
    )


def read_file_name(name: str) -> LawNumber | None:
    """The law a file of the bulk folders holds, or None for other files."""
    found = _FILE.fullmatch(name)
    if found is None:
        return None
    return LawNumber(congress=int(found[1]), number=int(found[3]), is_private=found[2] == "pvtl")
