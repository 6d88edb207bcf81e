"""Who may see a document; every path that reads one asks here."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import ColumnElement

from fonds.stores.tables import documents


def visible_to(owner: UUID | None) -> ColumnElement[bool]:
    """What is public, and a user's own uploads; to nobody in particular, only what is public."""
    public = documents.c.owner.is_(None)
    return public if owner is None else public | (documents.c.owner == owner)
