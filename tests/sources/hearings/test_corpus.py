"""Every real file gives records, or says what it is and why it gives none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from tests.sources.packages import children, outcome

from fonds.sources.hearings import source

# Folder or name, and what the error must say.
WITHOUT_RECORDS = (
    (r"congress_gov_api/hearing-", "a listing"),
    (r"congress_gov_api/committee-meeting-", "a listing"),
    (r"congress_gov_api/115538-", "a meeting"),
    (r"docs_house_gov_xml/sample_hearing", "a meeting notice"),
    (r"docs_house_gov_xml/sample_witness", "a companion"),
    (r"govinfo_browse_html/", "a listing"),
)


def test_every_file_gives_records_or_its_reason(corpus: Callable[[str], Path]) -> None:
    folder = corpus("federal/hearings")
    with_records = 0
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        reason = next((why for where, why in WITHOUT_RECORDS if re.match(where, name)), None)
        records, refusal = outcome(source, path)
        if reason is not None:
            assert reason in refusal, name
            continue
        assert records, f"{name}: {refusal}"
        with_records += 1
        described = json.loads(path.read_bytes())["hearing"]
        [record] = records
        assert record.payload["title"] == described["title"]
        assert record.payload["held_dates"] == [day["date"] for day in described["dates"]]
        committees = children(record, "hearing_committees")
        assert [one["authority_id"] for one in committees] == [
            one["systemCode"] for one in described["committees"]
        ]
    assert with_records == 1
