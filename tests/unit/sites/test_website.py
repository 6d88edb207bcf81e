"""A website as a source: what becomes of a PDF that was collected."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from fonds.errors import MalformedError
from fonds.model import Archived, Raw, RawPart
from fonds.sites.frontier import Listed
from fonds.sites.models import WebsiteConfiguration
from fonds.sites.website import PDF, Website

ADDRESS = "https://registry.example/reports/7.pdf"
WEBSITE = Website(
    WebsiteConfiguration(id="registry", name="Registry", base_url="https://registry.example/")
)
TASK = WEBSITE.task_of(
    Listed(
        url=ADDRESS,
        text="Annual report of the committee",
        organization="Committee 7",
        period="2024-annual",
        found_on="https://registry.example/",
        origin=None,
    )
)
COLLECTED = Archived(
    url=ADDRESS,
    key="corpus/site-registry/pdfs/7.pdf",
    sha256="7" * 64,
    size=3 << 30,
    retrieved_at=datetime(2026, 3, 4, tzinfo=UTC),
)


def test_a_document_is_made_of_what_is_known_of_a_pdf_without_its_bytes() -> None:
    part = RawPart(name=PDF, archived=COLLECTED, data=b"")
    (record,) = WEBSITE.parse(Raw(task=TASK, parts=(part,)))
    assert record.payload["sha256"] == COLLECTED.sha256
    assert record.payload["size"] == COLLECTED.size
    assert record.document is not None
    assert record.document.title == "Annual report of the committee"
    assert record.document.raw == COLLECTED


def test_a_task_without_its_pdf_is_refused() -> None:
    with pytest.raises(MalformedError, match="without its PDF"):
        list(WEBSITE.parse(Raw(task=TASK, parts=())))


def test_guesses_are_called_so_and_not_cited() -> None:
    guessed = replace(
        TASK,
        params={**TASK.params, "text": "View", "guesses": ["organization", "period"]},
    )
    part = RawPart(name=PDF, archived=COLLECTED, data=b"")
    (record,) = WEBSITE.parse(Raw(task=guessed, parts=(part,)))
    assert record.document is not None
    assert record.payload["guesses"] == "organization period title"
    assert record.document.title == "7 (file name)"
    assert record.document.citation_string == f"Registry, {ADDRESS}"
    assert record.document.summary == (
        "Guessed from the website, not stated by it: organization Committee 7, period 2024-annual."
    )


def test_what_a_website_states_is_cited() -> None:
    part = RawPart(name=PDF, archived=COLLECTED, data=b"")
    (record,) = WEBSITE.parse(Raw(task=TASK, parts=(part,)))
    assert record.document is not None
    assert (record.payload["guesses"], record.document.summary) == (None, None)
    assert record.document.citation_string == (
        f"Committee 7, Annual report of the committee, 2024-annual, Registry, {ADDRESS}"
    )
