"""Every real file gives records, or says what it is and why it gives none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from tests.sources.packages import children, loose, outcome, parsed

from fonds.model import ParsedRecord
from fonds.sources.committee_reports import source

WITHOUT_RECORDS = ((r"congress_gov_api/committee-report-", "a listing"),)


def test_every_file_gives_records_or_its_reason(corpus: Callable[[str], Path]) -> None:
    folder = corpus("federal/committee_reports")
    found: dict[str, list[ParsedRecord]] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        reason = next((why for where, why in WITHOUT_RECORDS if re.match(where, name)), None)
        records, refusal = outcome(source, path)
        if reason is not None:
            assert reason in refusal, name
            continue
        assert records, f"{name}: {refusal}"
        found[name] = records
    assert sorted(found) == [
        "congress_gov_api/617-159b3e.json",
        "govinfo_htm/body-CRPT-119hrpt105.htm",
    ]


def test_a_report_of_the_api_has_its_bills(corpus: Callable[[str], Path]) -> None:
    path = corpus("federal/committee_reports") / "congress_gov_api" / "617-159b3e.json"
    described = json.loads(path.read_bytes())["committeeReports"]
    records, _ = parsed(source, loose(path))
    assert len(records) == len(described)
    for record, report in zip(records, described, strict=True):
        assert len(children(record, "committee_report_bills")) == len(report["associatedBill"])
        assert record.payload["title"] == report["title"]
        assert record.payload["is_conference_report"] is report["isConferenceReport"]


def test_no_word_of_a_real_text_is_lost(corpus: Callable[[str], Path]) -> None:
    path = corpus("federal/committee_reports") / "govinfo_htm" / "body-CRPT-119hrpt105.htm"
    [record], _ = parsed(source, loose(path))
    assert record.document is not None
    assert record.document.citation_string == "H.R. Rep. No. 119-105 (2025)."
    assert record.payload["bill_ref"] == "bill:119-hres-426"
    body = record.document.body
    assert body is not None
    assert body.normalized is not None
    text = path.read_text("latin-1").partition("<pre>")[2].partition("</pre>")[0]
    words = re.findall(r"[a-z]{4,}", text)
    written = body.normalized.markdown
    assert [word for word in set(words) if word not in written] == []
