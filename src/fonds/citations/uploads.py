"""How an uploaded file is cited: by its name, and by the hash that tells it from all others."""

from __future__ import annotations

from datetime import date

from fonds.citations.dates import bluebook_date


def cite_upload(*, name: str, sha256: str, uploaded: date) -> str:
    """`policy.pdf (uploaded Nov. 16, 2026; SHA-256 3fa9c1d2e4b5).`, which no other file has."""
    return f"{name} (uploaded {bluebook_date(uploaded)}; SHA-256 {sha256[:12]})."
