"""Bills, resolutions and amendments in the House and Senate DTD's XML as Markdown."""

from __future__ import annotations

from dataclasses import dataclass

from fonds.errors import WrongContentError
from fonds.model import BodyFormat, NormalizedBody
from fonds.normalize.billres.reader import read_bill
from fonds.normalize.billres.walker import Walker


@dataclass(frozen=True, slots=True)
class BillRes:
    """The normalizer `billres_v1`."""

    name: str = "billres_v1"
    version: str = "1.0.0"
    accepts_format: BodyFormat = "xml"

    @property
    def label(self) -> str:
        """Name and version as a document records them."""
        return f"{self.name}@{self.version}"

    def to_markdown(
        self,
        data: bytes,
        source_hint: str | None = None,  # noqa: ARG002 — the protocol's; one file is one bill
    ) -> NormalizedBody:
        """The whole document as Markdown; a section quoted by an amendment is no heading."""
        root, warnings = read_bill(data)
        body = Walker(root).walk(warnings)
        if not body.markdown:
            raise WrongContentError(f"<{root.tag}> holds no text")
        return body
