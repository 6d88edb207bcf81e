"""Words that the glossary replaces become fewer, never more."""

from __future__ import annotations

import runpy
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]

MODULE: Final = '''\
"""What somebody told us."""
import os as places

LONGEST_NAME = "#1 is no name"  # told by nobody


class Desk:
    """One."""

    place: int
    """Where it stands."""

    def hold(self, asked, *, found=f"held by {LONGEST_NAME} at once"):
        self.kept = [each for each in asked if (seen := each)]
        try:
            return asked.given
        except OSError as trouble:
            print("told", "is told", trouble)
'''


@cache
def _script() -> Any:
    return SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "count-words")))


@cache
def _texts() -> list[Any]:
    return list(_script().texts())


@cache
def _counted() -> dict[str, Any]:
    counts: dict[str, Any] = _script().count(_texts())
    return counts


def _of(texts: Iterable[Any], kind: str) -> list[str]:
    return [text.text for text in texts if text.kind == kind]


# The ratchet ------------------------------------------------------------------------------


def test_no_count_rises() -> None:
    script = _script()
    changed = script.differences(script.stored_counts(), _counted())
    rose = [str(each) for each in changed if each.counted > each.stored]
    assert rose == [], f"{script.COMMAND} --show WORD prints each place"


def test_counts_that_fall_are_stored() -> None:
    script = _script()
    changed = script.differences(script.stored_counts(), _counted())
    fell = [str(each) for each in changed if each.counted < each.stored]
    assert fell == [], f"store them: {script.COMMAND} --write"


def test_words_of_the_file_are_those_of_the_glossary() -> None:
    script = _script()
    for heading in (script.PRIVATE, script.ORDINARY, script.OPENINGS):
        labels = {row.label for row in script.rows(heading)}
        assert labels == set(script.stored_counts()[heading])


def test_no_form_is_listed_twice() -> None:
    script = _script()
    for heading in (script.PRIVATE, script.ORDINARY):
        forms = [form for row in script.rows(heading) for form in row.forms]
        assert sorted(forms) == sorted(set(forms))


def test_every_word_has_a_replacement_and_every_exception_a_reason() -> None:
    script = _script()
    for heading in (script.PRIVATE, script.ORDINARY, script.OPENINGS, script.STAY):
        incomplete = [cells[0] for cells in script.table(heading) if not all(cells[:2])]
        assert incomplete == []


def test_every_exception_is_needed() -> None:
    script = _script()
    used = {script.stays(text) for text in _texts()}
    prose = "\n".join(text.text.lower() for text in _texts() if text.kind == "messages")
    used |= {entry for entry in script.staying() if " " in entry and entry in prose}
    assert set(script.staying()) - used == set()


def test_nouns_are_in_alphabetical_order() -> None:
    nouns = [first for first, *_ in _script().table("Nouns")]
    assert nouns == sorted(set(nouns))


# What is counted --------------------------------------------------------------------------


@pytest.fixture
def module(tmp_path: Path) -> list[Any]:
    (path := tmp_path / "found_things.py").write_text(MODULE, "utf-8")
    return list(_script().texts_of_module(path))


def test_names_that_are_bound_are_counted(module: list[Any]) -> None:
    names = (
        "LONGEST_NAME Desk place hold self asked found kept each seen trouble places found_things"
    )
    assert sorted(_of(module, "names")) == sorted(names.split())


def test_members_and_parameters_know_what_they_belong_to(module: list[Any]) -> None:
    owned = {(text.owner, text.text) for text in module if text.kind == "names"}
    assert {("Desk", "place"), ("Desk", "hold"), ("hold", "asked"), ("", "kept")} <= owned


def test_docstrings_comments_and_messages_are_separate(module: list[Any]) -> None:
    assert sorted(_of(module, "docstrings")) == [
        "One.",
        "What somebody told us.",
        "Where it stands.",
    ]
    assert _of(module, "comments") == ["# told by nobody"]
    assert sorted(_of(module, "messages")) == ["#1 is no name", "held by {} at once", "is told"]


def test_words_are_counted_where_the_glossary_says(module: list[Any]) -> None:
    counts = _script().count(module)
    private, ordinary = counts["Private words"], counts["Ordinary words"]
    told = {"names": 0, "docstrings": 1, "comments": 1, "messages": 1, "pages": 0, "docs": 0}
    assert private["told"] == {"all": 3, **told}
    assert private["is no …"]["messages"] == 1
    assert ordinary["held, hold, holds"] == 1
    assert ordinary["longest, shortest"] == 1
    assert ordinary["at once"] == 0
    assert counts["Openings of docstrings"] == {"What": 1, "Where": 1, "Who": 0, "Whether": 0}


def test_words_of_a_name_are_separated_by_case_and_underscores() -> None:
    words = _script().words_of
    assert words("_is_HTTPServer2At_Once") == "is http server at once"


def test_there_is_no_is_allowed() -> None:
    pattern = _script().pattern("is no …")
    assert pattern.search("this is no archive")
    assert not pattern.search("there is no archive")
    assert not pattern.search("it is no longer there")


def test_names_in_rows_and_files_stay() -> None:
    script = _script()
    text = script.Text("names", ROOT, 1, "body_raw_sha256")
    assert script.stays(text) == "body_*"
    assert script.stays(text._replace(text="gone")) is None
    assert script.stays(text._replace(text="gone", owner="Counts")) == "Counts.gone"


def test_modules_that_differ_by_an_ending_have_one_stem() -> None:
    stem = _script().stem
    assert stem("audit") == stem("audits")
    assert stem("schedule") == stem("scheduler")
    assert stem("run") == stem("running")
    assert stem("entry") == stem("entries")
    assert stem("state") != stem("stage")


def test_new_words_are_distinguished_from_rises() -> None:
    script = _script()
    before = {"Ordinary words": {"found": 1}}
    rose, new = script.differences(before, {"Ordinary words": {"found": 2, "way": 1}})
    assert str(rose) == "Ordinary words: found: 1 -> 2"
    assert not script.is_new(rose, before)
    assert script.is_new(new, before)
