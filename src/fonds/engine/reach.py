"""Libraries that are opened by an item, on whatever machine it lands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from fonds.errors import SettingsError
from fonds.settings import Settings

_SQLITE: Final = "sqlite:///"


def on_the_way(settings: Settings) -> Settings:
    """The same settings for a process that stands in another folder."""
    return replace(
        settings,
        home=settings.home.absolute(),
        database=settings.database_url,
        blobs=settings.blobs_url,
        indexes=settings.indexes_url,
    )


def require_here(settings: Settings) -> None:
    """Raise where the library is in files that this machine does not have."""
    files = [settings.database.removeprefix(_SQLITE)] * settings.database.startswith(_SQLITE)
    folders = [settings.blobs] if "://" not in settings.blobs else []
    for path in (*files, *folders):
        if not Path(path).exists():
            raise SettingsError(
                f"{path} is not on every machine of the cluster: share the library with PostgreSQL"
                " and an object store, or set FONDS_ENGINE=local"
            )
    settings.home.mkdir(parents=True, exist_ok=True)
