from __future__ import annotations

from datetime import date

import pytest
from tests.sources.bills.test_parse import FILES, GOLDEN, status
from tests.sources.golden import assert_golden, json_lines
from tests.sources.publishing import archived, assert_rows_fit, fetched, loose, records_of

from fonds.errors import WrongContentError
from fonds.model import FetchTask, ParsedRecord, Raw
from fonds.sources.bills import source
from fonds.sources.bills.names import code_of, kind_of, stage_chamber
from fonds.sources.formats.congress import cite_bill, cite_bill_text, ordinal

TEXT = (FILES / "BILLS-118hr77ih.xml").read_bytes()

ENROLLED = b"""<?xml version="1.0"?>
<!DOCTYPE bill PUBLIC "-//US Congress//DTDs/bill.dtd//EN" "bill.dtd">
<bill bill-stage="Enrolled-Bill" dms-id="H1" public-private="public">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dublinCore>
<dc:title> HR 77 ENR: Orchard Act</dc:title><dc:date></dc:date></dublinCore></metadata>
<form><congress>One Hundred %s Congress of the United States of America</congress>
<session>At the First Session</session><legis-num>H. R. 77</legis-num>
<legis-type>AN ACT</legis-type><official-title>To plant orchards.</official-title></form>
<legis-body><section id="s1"><enum>1.</enum><header>Trees</header>
<text>Trees shall be planted.</text></section></legis-body></bill>"""

USLM = b"""<resolution xmlns="http://schemas.gpo.gov/xml/uslm" xmlns:dc="http://purl.org/dc/elements/1.1/">
<meta><dc:title>116 SCONRES 88 RS: On bells.</dc:title>
<dc:type>Senate Concurrent Resolution</dc:type><docNumber>88</docNumber>
%s<docStage>%s</docStage><congress>116</congress></meta>
<preface><action><date date="2019-11-11">November 11, 2019</date></action>
<action><date>December 9 (legislative day, December 8), 2019</date></action></preface>
<main><section><num value="1">1.</num><content>The bells may ring.</content></section></main>
</resolution>"""


def only(raw: Raw) -> ParsedRecord:
    [record] = records_of(source, raw)
    assert record.document is not None
    return record


def task(code: str) -> FetchTask:
    _, tasks = status("BILLSTATUS-118hr77.xml")
    [found] = [one for one in tasks if one.key.endswith(f"/{code}")]
    return found


# Tasks ------------------------------------------------------------------------------------


def test_each_version_is_a_task_of_its_own_oldest_first() -> None:
    _, tasks = status("BILLSTATUS-118hr77.xml")
    assert [one.key for one in tasks] == [
        "bill:118-hr-77/ih",
        "bill:118-hr-77/rh",
        "bill:118-hr-77/eh",
        "bill:118-hr-77/enr",
    ]


def test_the_xml_is_preferred_and_archived_below_its_bill() -> None:
    [part] = task("ih").parts
    assert part.url == "https://www.govinfo.gov/content/pkg/BILLS-118hr77ih/xml/BILLS-118hr77ih.xml"
    assert part.path == "text/118/hr/BILLS-118hr77ih.xml"
    [part] = task("eh").parts
    assert part.path == "text/118/hr/BILLS-118hr77eh.pdf"


def test_nothing_is_fetched_from_hosts_that_do_not_publish_bills() -> None:
    assert task("rh").parts == ()
    assert task("rh").params["version"]["formats"] == []


def test_a_task_stays_the_same_until_its_entry_changes() -> None:
    data = (FILES / "BILLSTATUS-118hr77.xml").read_bytes()
    more_news = data.replace(b"Became Public Law No: 118-3.", b"Celebrated.")
    other_date = data.replace(b"<date>2023-01-09T05", b"<date>2023-01-10T05")

    def prints(data: bytes) -> list[str | None]:
        found = source.parse(loose(data))
        return [item.fingerprint for item in found if isinstance(item, FetchTask)]

    assert prints(more_news) == prints(data)
    changed = [a != b for a, b in zip(prints(other_date), prints(data), strict=True)]
    assert changed == [True, False, False, False]


def test_versions_without_files_keep_apart() -> None:
    _, tasks = status("BILLSTATUS-116sconres88.xml")
    assert [one.key for one in tasks] == [
        "bill:116-sconres-88/es",
        "bill:116-sconres-88/es~2",
        "bill:116-sconres-88/star-print-errata",
    ]


def test_a_version_that_is_listed_twice_is_one_with_its_date() -> None:
    item = "<item><type>Enrolled Bill</type>{}<formats>{}</formats></item>"
    address = "https://www.govinfo.gov/content/pkg/BILLS-118hr77enr/xml/BILLS-118hr77enr.xml"
    listed = f"<item><url>{address}</url></item>"
    dated = "<date>2023-05-20T04:00:00Z</date>"
    for both in (
        item.format("<date/>", listed) + item.format(dated, listed),
        item.format("<date/>", listed) + item.format(dated, ""),
    ):
        data = (
            "<billStatus><bill><number>77</number><type>HR</type><congress>118</congress>"
            f"<textVersions>{both}</textVersions></bill></billStatus>"
        )
        [_, only_task] = source.parse(loose(data.encode()))
        assert isinstance(only_task, FetchTask)
        assert only_task.params["version"]["date"] == "2023-05-20"
        assert [part.url for part in only_task.parts] == [address]


def test_an_empty_item_is_no_version_and_no_row() -> None:
    data = (FILES / "BILLSTATUS-118hr77.xml").read_bytes()
    empty = b"<item/><item><type/><date/><formats/></item>"
    dated = b"<item><type/><date>2023-05-20T04:00:00Z</date><formats/></item>"
    filled = data.replace(b"<textVersions>", b"<textVersions>" + empty + dated)
    assert filled != data
    before, after = (list(source.parse(loose(each))) for each in (data, filled))
    assert [item.key for item in after] == [item.key for item in before]
    sponsored = data.replace(b"<sponsors>", b"<sponsors><item/>")
    assert sponsored != data
    [record] = [item for item in source.parse(loose(sponsored)) if isinstance(item, ParsedRecord)]
    rows = [child for child in record.children if child.table == "bill_sponsors"]
    assert rows
    assert all(child.payload["full_name"] for child in rows)


# Records ----------------------------------------------------------------------------------


def test_a_fetched_text_gives_the_reviewed_record() -> None:
    raw = fetched(task("ih"), text=TEXT)
    assert_golden(json_lines(source.parse(raw)), GOLDEN / "118hr77ih.jsonl")
    assert_rows_fit(source, records_of(source, raw))


def test_a_version_without_a_file_is_recorded_all_the_same() -> None:
    record = only(Raw(task=task("rh"), parts=()))
    assert record.payload["type"] == "Reported in House"
    assert record.payload["date"] == "2023-03-15"
    assert record.document is not None
    assert record.document.body is None
    assert record.document.raw.url == "BILLSTATUS-118hr77.xml"
    assert record.document.citation_string == (
        "H.R. 77, 118th Cong. (as reported in House, Mar. 15, 2023)."
    )


def test_a_pdf_is_left_to_the_queue() -> None:
    document = only(fetched(task("eh"), text=b"%PDF-1.4 ...")).document
    assert document is not None
    assert document.body is not None
    assert (document.body.format, document.body.normalized) == ("pdf", None)


def test_an_enrolled_text_without_a_date_is_cited_without_one() -> None:
    document = only(fetched(task("enr"), text=ENROLLED % b"Eighteenth")).document
    assert document is not None
    assert document.citation_string == "H.R. 77, 118th Cong. (as enrolled)."
    assert document.published_at is None
    assert document.source_org == "U.S. Congress"


def test_the_text_of_another_bill_is_refused() -> None:
    with pytest.raises(WrongContentError, match=r"S\. 12"):
        only(fetched(task("ih"), text=TEXT.replace(b"H. R. 77", b"S. 12")))


def test_a_page_in_place_of_the_text_is_refused() -> None:
    page = b"<!DOCTYPE html><html><head><title>Page Not Found</title></head><p>Sorry</p></html>"
    with pytest.raises(WrongContentError, match="page of its own"):
        only(fetched(task("ih"), text=page))
    with pytest.raises(WrongContentError, match="page of its own"):
        only(fetched(task("eh"), text=page))


# Loose files ------------------------------------------------------------------------------


def test_a_loose_text_says_itself_what_it_is() -> None:
    record = only(loose(TEXT, "anything.xml"))
    assert record.key == "bill:118-hr-77/ih"
    assert record.payload["date"] == "2023-01-09"
    assert record.payload["official_title"] == "To plant orchards."
    assert record.document is not None
    assert record.document.title == "Orchard Act (Introduced in House)"
    assert "BILLS-118hr77ih" in record.document.aliases
    assert record.document.source_url.endswith("/118th-congress/house-bill/77/text/ih")


@pytest.mark.parametrize(
    ("section", "title"),
    [
        # The metadata of the enrolled H.R. 1 of 2025 has the short title of one of its sections.
        (b"<text>This section may be cited as the <quote><short-title>", "To plant orchards."),
        (b"<text>This title may be cited as the <quote><short-title>", "To plant orchards."),
        (b"<text>This Act may be cited as the <quote><short-title>", "Tree Act"),
        (b"<text>This joint resolution may be cited as the <quote><short-title>", "Tree Act"),
    ],
)
def test_a_bill_is_called_by_its_own_short_title_or_its_official_one(
    section: bytes, title: str
) -> None:
    named = section + b"Tree Act</short-title></quote>.</text>"
    bill = (ENROLLED % b"Eighteenth").replace(b"Orchard Act", b"Tree Act")
    bill = bill.replace(b"<text>Trees shall be planted.</text>", named)
    document = only(loose(bill)).document
    assert document is not None
    assert document.title == f"{title} (Enrolled Bill)"


def test_the_short_title_of_a_quoted_act_is_not_the_bills() -> None:
    quoted = (
        b"<text>Insert:</text><quoted-block><section><text>This Act may be cited as the "
        b"<quote><short-title>Tree Act</short-title></quote>.</text></section></quoted-block>"
    )
    bill = (ENROLLED % b"Eighteenth").replace(b"<text>Trees shall be planted.</text>", quoted)
    document = only(loose(bill)).document
    assert document is not None
    assert document.title == "To plant orchards. (Enrolled Bill)"


@pytest.mark.parametrize(
    ("words", "congress"), [(b"Nineteenth", 119), (b"Twenty-First", 121), (b"and Twentieth", 120)]
)
def test_a_congress_may_be_spelled_out(words: bytes, congress: int) -> None:
    assert only(loose(ENROLLED % words)).key == f"bill:{congress}-hr-77/enr"


@pytest.mark.parametrize(
    ("cited", "stage", "name", "code"),
    [
        (b"<citableAs>116sconres88rs2</citableAs>", b"Reported in Senate", "x.xml", "rs2"),
        (b"", b"RS", "x.xml", "rs"),
        (b"", b"Pre-Introduced", "SC88_IS.XML", "rs"),
    ],
)
def test_uslm_names_its_version_in_several_ways(
    cited: bytes, stage: bytes, name: str, code: str
) -> None:
    record = only(loose(USLM % (cited, stage), name))
    assert record.key == f"bill:116-sconres-88/{code}"
    assert record.payload["date"] == "2019-12-09"


def test_the_name_of_a_file_stands_in_for_what_it_does_not_say() -> None:
    silent = (USLM % (b"", b"")).replace(b" RS:", b" :")
    assert only(loose(silent, "SC88_IS.XML")).key == "bill:116-sconres-88/is"
    with pytest.raises(WrongContentError, match="which version"):
        only(loose(silent, "x.xml"))
    page = b"<html><body><pre>\nH. R. 77\n\n    To plant orchards.\n</pre></body></html>"
    assert only(loose(page, "BILLS-118hr77ih.htm")).key == "bill:118-hr-77/ih"
    with pytest.raises(WrongContentError, match="name"):
        only(loose(page, "page.htm"))


# Names ------------------------------------------------------------------------------------


def test_stages_are_known_in_every_spelling() -> None:
    assert code_of("Introduced-in-House") == code_of("introduced in house") == code_of("IH") == "ih"
    assert code_of("Engrossed-Amendment-Senate") == "eas"
    assert code_of("Pre-Introduced") is None
    assert code_of(None) is None
    assert [stage_chamber(code) for code in ("rfs", "eas2", "enr", "odd")] == [
        "U.S. Senate",
        "U.S. Senate",
        "U.S. Congress",
        "U.S. Congress",
    ]


def test_types_are_known_in_every_spelling() -> None:
    assert kind_of("H. CON. RES.") == kind_of("House Concurrent Resolution") == "hconres"
    assert kind_of("S. J. RES.") == kind_of("Senate Joint Resolution") == "sjres"
    assert kind_of("House Simple Resolution") == kind_of("H. Res.") == "hres"
    assert kind_of("H. R.") == kind_of("House Bill") == "hr"
    assert kind_of("Senate Bill") == "s"
    assert kind_of("Treaty") is None


def test_bills_are_cited_as_the_bluebook_does() -> None:
    day = date(2025, 3, 4)
    cited = cite_bill(congress=119, kind="hr", number=1234, introduced=day)
    assert cited == "H.R. 1234, 119th Cong. (2025)."
    cited = cite_bill(congress=112, kind="hjres", number=4, introduced=None)
    assert cited == "H.R.J. Res. 4, 112th Cong. (2011)."
    cited = cite_bill(congress=122, kind="sconres", number=4, introduced=None)
    assert cited == "S. Con. Res. 4, 122d Cong. (2031)."
    for published, end in ((day, ", Mar. 4, 2025"), (None, "")):
        cited = cite_bill_text(
            congress=119,
            kind="hr",
            number=1234,
            stage="as introduced in House",
            published=published,
        )
        assert cited == f"H.R. 1234, 119th Cong. (as introduced in House{end})."
    assert [ordinal(n) for n in (101, 102, 103, 111, 112, 113, 121)] == [
        "101st",
        "102nd",
        "103rd",
        "111th",
        "112th",
        "113th",
        "121st",
    ]


def test_the_archive_names_where_a_record_came_from() -> None:
    record = only(loose(TEXT, "BILLS-118hr77ih.xml"))
    assert record.document is not None
    assert record.document.raw == archived("BILLS-118hr77ih.xml", TEXT)
