"""`fonds resolve`, `fonds check-quote` and `fonds verify` as somebody types them."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest
from sqlalchemy import select, update
from tests.unit.cli.conftest import Fonds
from tests.unit.codes.trees import plenty

import fonds.demo
from fonds.codes.run import CodeRequest
from fonds.library import open_library
from fonds.stores.tables import document_chunk_buffer, documents

RELEASES = Path(fonds.demo.__file__).parent / "data/uscode.house.gov/download/releasepoints/us/pl"
OLD = "usc/118-250/root/title-53/chapter-1/section-103"
NEW = "usc/119-36/root/title-53/chapter-1/section-103"
CITE = "53 U.S.C. § 103(a)"


@pytest.fixture(scope="module")
def statutes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two editions of a title, for reading only."""
    home = tmp_path_factory.mktemp("statutes")
    with open_library(home) as library:
        for release in ("118/250", "119/36"):
            request = CodeRequest(given=str(RELEASES / release), budget=plenty())
            asyncio.run(library.ingest_code("usc", request))
    return str(home)


# Citations --------------------------------------------------------------------------------


def test_citation_is_led_to_its_edition_and_passage(fonds: Fonds, statutes: str) -> None:
    shown = fonds("--home", statutes, "resolve", CITE)
    assert shown.code == 0
    for words in ("53 USC 103 at (a)", "53 U.S.C. § 103 (2026).", f"{NEW}#0", "119-36", OLD):
        assert words in shown.out
    told = fonds("--home", statutes, "resolve", CITE, "--as-of", "2025-06-01", "--json").json
    assert told["document"]["id"] == OLD
    assert told["document"]["edition"] == "118-250"
    assert [edition["id"] for edition in told["editions"]] == [NEW, OLD]


def test_day_before_all_editions_is_remarked(fonds: Fonds, statutes: str) -> None:
    shown = fonds("--home", statutes, "resolve", CITE, "--as-of", "2001-01-01")
    assert shown.code == 0
    assert "2001-01-01 is before 2025-01-10" in shown.err
    assert "not the newest in the library" in shown.out


def test_several_and_none_have_exit_codes_of_their_own(fonds: Fonds) -> None:
    several = fonds("resolve", "172 Cong. Rec. H501 (daily ed. Feb. 3, 2026).")
    assert several.code == 3
    assert "crec:CREC-2026-02-03-pt1-PgH501-2" in several.out
    assert "may be any of 3 documents" in several.err
    for typed in ("42 USC 1396a", "an old saying"):
        nothing = fonds("resolve", typed)
        assert (nothing.code, nothing.out) == (1, "")
        assert nothing.err
    assert fonds("resolve", "42 USC 1396a", "--json").json["problem"] == "not_held"
    assert fonds("resolve", "91 FR 1201", "--as-of", "soon").code == 2


# Quotations -------------------------------------------------------------------------------


def test_quotation_is_exact_changed_or_not_found(fonds: Fonds, statutes: str) -> None:
    def check(quote: str, *more: str) -> tuple[int, str]:
        said = fonds("--home", statutes, "check-quote", "--cite", CITE, quote, *more)
        return said.code, said.out

    code, out = check("within ten   working days.")
    assert code == 0
    assert out.startswith(f"EXACT these words are in {NEW}\n")
    assert f"{NEW}#0" in out
    code, out = check("within thirty working days")
    assert code == 3
    assert out.startswith("CHANGED these words were in edition 118-250 (2025-01-10)")
    assert "119-36" in out
    assert check("within thirty working days", "--as-of", "2025-06-01")[0] == 0
    code, out = check("The keeper shall reply to a request within ten working days")
    assert code == 1
    assert out.startswith("NOT FOUND")
    assert "The keeper shall [-reply to-] {+answer+} a request" in out


def test_quotation_as_data_has_span_and_edition(fonds: Fonds, statutes: str) -> None:
    home = ("--home", statutes)
    told = fonds(*home, "check-quote", "--cite", CITE, "ten working days", "--json").json
    assert (told["verdict"], told["passage"], told["at_pinpoint"]) == ("exact", 0, True)
    with open_library(statutes) as library:
        text = library.document(NEW)["body_text"]
    assert text[told["start"] : told["end"]] == told["text"] == "ten working days"
    assert told["found_in"]["edition"] == "119-36"


def test_quotation_is_read_from_standard_input(
    fonds: Fonds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("no such words, I fear\n"))
    said = fonds("check-quote", "--cite", "91 FR 1201", "-")
    assert (said.code, said.out.splitlines()[0][:9]) == (1, "NOT FOUND")


def test_quotation_of_nothing_or_from_nowhere_is_a_usage_error(fonds: Fonds) -> None:
    nowhere = fonds("check-quote", "--cite", "42 USC 1396a", "words")
    assert (nowhere.code, nowhere.out) == (2, "")
    assert "is not in this library" in nowhere.err
    assert fonds("check-quote", "--cite", "91 FR 1201", " … ").code == 2


# Proofs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["fr:2026-00101", "91 FR 1201", "fr:2026-00101#3", "bill:119-hr-2101", "cbo:61234"]
)
def test_what_the_archive_gives_again_matches(fonds: Fonds, name: str) -> None:
    shown = fonds("verify", name)
    assert shown.code == 0
    assert shown.out.startswith("MATCH ")
    assert "  raw        match: corpus/" in shown.out
    assert fonds("verify", name, "--json").json["verdict"] == "match"


def test_section_is_proven_from_its_pack(fonds: Fonds, statutes: str) -> None:
    shown = fonds("--home", statutes, "verify", f"{NEW}#0")
    assert shown.code == 0
    assert "packs/" in shown.out


def test_every_kind_of_document_matches_or_says_why_not(fonds: Fonds) -> None:
    sources = ("federal_register", "congressional_record", "crs", "public_laws", "legislators")
    for source in sources:
        shown = fonds("verify", "--source", source, "--sample", "3")
        assert shown.code == 0
        assert shown.out == f"{source}: 3 match, 0 differ, 0 unproven\n"
    told = fonds("verify", "--source", "committees", "--sample", "100", "--json")
    verdicts = {each["id"]: each["verdict"] for each in told.json}
    assert told.code == 3
    assert set(verdicts.values()) == {"match", "unproven"}


def test_tampered_passage_differs(fonds: Fonds, home: Path) -> None:
    table = document_chunk_buffer
    with open_library(home) as library, library.database.write() as connection:
        uid = connection.scalar(select(documents.c.uid).where(documents.c.id == "fr:2026-00101"))
        chosen = (table.c.document_id == uid) & (table.c.chunk_ord == 3)
        connection.execute(update(table).where(chosen).values(text="A forged passage."))
    shown = fonds("--home", str(home), "verify", "fr:2026-00101#3")
    assert shown.code == 1
    assert shown.out.startswith("DIFFERS fr:2026-00101#3\n")
    assert "passage 3 has other words: at character 0: stored “A forged passage.”" in shown.out


def test_pdf_is_proven_in_a_process_of_its_own(fonds: Fonds, home: Path) -> None:
    waiting = fonds("--home", str(home), "verify", "gao:GAO-26-108233T")
    assert waiting.code == 3
    assert "fonds normalize --drain" in waiting.out
    with open_library(home) as library:
        library.normalize_queued(workers=1)
    assert fonds("--home", str(home), "verify", "gao:GAO-26-108233T").code == 0


def test_nothing_and_too_much_to_prove_are_usage_errors(fonds: Fonds) -> None:
    assert fonds("verify").code == 2
    assert fonds("verify", "fr:2026-00101", "--source", "crs").code == 2
    assert fonds("verify", "--source", "nobody").code == 2
    unknown = fonds("verify", "fr:2026-00101#999")
    assert unknown.code == 2
    assert "has no passage 999" in unknown.err
