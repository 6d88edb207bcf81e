"""Whether keys and programs are there that some sources and documents need."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress

from sqlalchemy import func, select

from fonds.errors import UsageError
from fonds.sites.tables import websites
from fonds.sources.registry import all_sources
from fonds.upkeep.findings import Finding, Patient, doubtful, fine


def check_sources(patient: Patient) -> Iterator[Finding]:
    """Which sources there are, and which of them lack a key."""
    sources = all_sources()
    yield fine("sources", ", ".join(sorted(sources)))
    lacking: dict[str, list[str]] = {}
    for name, source in sources.items():
        key = source.info.key
        if key is not None and key.required and not getattr(patient.settings, key.setting):
            lacking.setdefault(key.setting, []).append(name)
    for setting, names in lacking.items():
        signup = next(key.signup for name in names if (key := sources[name].info.key))
        advice = f"set {setting} in fonds.toml or FONDS_{setting.upper()}; get one at {signup}"
        yield doubtful("keys", f"{', '.join(names)}: no key", advice)
    if not lacking:
        yield fine("keys", "no source lacks one")


def check_model(patient: Patient) -> Iterator[Finding]:
    """Whether the model for vectors can be asked."""
    settings = patient.settings
    asks = settings.embedder.startswith("openai:")
    if asks and "api.openai.com" in settings.embed_url and not settings.embed_key:
        yield doubtful("model", f"{settings.embedder} without a key", "set FONDS_EMBED_KEY")
    else:
        yield fine("model", settings.embedder)


def check_programs(patient: Patient) -> Iterator[Finding]:
    """Whether there is a browser for pages that scripts build, and OCR for scanned ones."""
    yield _browser(patient)
    if program := shutil.which("tesseract"):
        yield fine("tesseract", program)
    else:
        advice = "scanned PDFs are read after apt-get install tesseract-ocr"
        yield fine("tesseract", "not installed", advice)


def _browser(patient: Patient) -> Finding:
    from fonds.sites.browser import find_program  # noqa: PLC0415 — few commands need it

    with suppress(UsageError):
        return fine("browser", find_program(patient.settings.browser))
    advice = "apt-get install chromium, or set FONDS_BROWSER to the path of one"
    query = select(func.count()).where(websites.c.rendered, websites.c.enabled)
    with patient.database.read() as connection:
        needing = connection.scalar(query)
    if needing:
        return doubtful("browser", f"none, and {needing} websites need one", advice)
    return fine("browser", "not installed; some websites would need one", advice)
