"""The commands about citations, as a user types them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import structlog
from sqlalchemy import insert
from tests.support.libraries.notes import NoteOffice, ingest, note_library
from tests.support.upstreams.misbehaving import MisbehavingServer

from fonds.cli.main import main
from fonds.stores.tables import document_aliases


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Fonds = Callable[..., Outcome]


@pytest.fixture
def fonds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Fonds]:
    """The command on a library of two notes, the first of which cites the second."""
    with MisbehavingServer() as server:
        office = NoteOffice(server, 2)
        words = "# Law\n\nUnder 42 U.S.C. 1983(a), 89 Fed. Reg. 12345 and 42 USC [1983]."
        office.change(1, title="First & {foremost}", text=words)
        with note_library(tmp_path, server) as library:
            ingest(library)
            with library.database.write() as connection:
                name = {"alias": "89 FR 12345", "document_id": "fake:2"}
                connection.execute(insert(document_aliases).values(name))

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr("sys.argv", ["fonds", "--home", str(tmp_path), *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        assert isinstance(ended.value.code, int)
        return Outcome(ended.value.code, printed.out, printed.err)

    yield run
    structlog.reset_defaults()


def test_before_the_queue_is_drained_the_command_that_helps_is_named(fonds: Fonds) -> None:
    outcome = fonds("cites", "fake:1")
    assert (outcome.code, outcome.out) == (0, "")
    assert "2 documents are queued" in outcome.err
    assert "fonds citations" in outcome.err


def test_queue_is_drained_and_counted(fonds: Fonds) -> None:
    first = fonds("citations", "--limit", "1", "--json")
    assert first.code == 0
    assert (first.json["done"], first.json["waiting"]) == (1, 1)
    second = fonds("citations")
    assert second.code == 0
    assert "in 1 documents" in second.out


def test_what_a_document_cites_is_shown_once_for_each_target(fonds: Fonds) -> None:
    fonds("citations")
    statute, register = fonds("cites", "fake:1", "--json").json
    assert (statute["target"], statute["count"], statute["document_id"]) == (
        "42 USC 1983",
        1,
        None,
    )
    assert (register["target"], register["document_id"]) == ("89 FR 12345", "fake:2")
    assert register["citations"][0]["locator"]["heading_path"] == ["Law"]
    shown = fonds("cites", "Note 1")
    assert "not in the library" in shown.out
    assert "fake:2" in shown.out


def test_document_that_cites_nothing_says_so(fonds: Fonds) -> None:
    fonds("citations")
    assert "no recognised citations" in fonds("cites", "fake:2").err
    assert "is not cited by any document" in fonds("cited-by", "fake:1").err


def test_documents_that_cite_one_are_shown_with_their_passages(fonds: Fonds) -> None:
    fonds("citations")
    (citing,) = fonds("cited-by", "89 FR 12345", "--json").json
    assert (citing["document_id"], citing["count"]) == ("fake:1", 1)
    assert citing["passages"][0]["raw"] == "89 Fed. Reg. 12345"
    shown = fonds("cited-by", "fake:2").out
    assert "First & {foremost}" in shown
    assert "89 Fed. Reg. 12345" in shown


def test_citation_is_printed_in_three_formats(fonds: Fonds) -> None:
    assert fonds("cite", "fake:1").out == "Note No. 1 (2026).\n"
    (item,) = fonds("cite", "fake:1", "--format", "csl-json").json
    assert (item["id"], item["title"]) == ("fake:1", "First & {foremost}")
    entry = fonds("cite", "fake:1", "--format", "bibtex").out
    assert r"{{First \& \textbraceleft{}foremost\textbraceright{}}}" in entry


@pytest.mark.parametrize("command", ["cite", "cites", "cited-by"])
def test_unknown_document_is_a_usage_error(fonds: Fonds, command: str) -> None:
    outcome = fonds(command, "fake:99")
    assert outcome.code == 2
    assert "fake:99" in outcome.err


def test_unknown_format_is_a_usage_error(fonds: Fonds) -> None:
    assert fonds("cite", "fake:1", "--format", "mla").code == 2
