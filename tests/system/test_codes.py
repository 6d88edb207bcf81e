"""Codes by the real command: planned, ingested in invocations, looked at, compared, mended."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest
import structlog
from tests.support.code_commands import ask, contents, ingest, run
from tests.support.upstreams.codes import (
    Amendments,
    Damage,
    FolderServer,
    dc_index,
    dc_numbers,
    dc_section,
    usc_archive,
    write_dc_code,
    write_usc_site,
    write_usc_title,
)

from fonds.cli.main import main
from fonds.library import open_library

CONNECTICUT = Path(__file__).parents[1] / "sources" / "cgs" / "files" / "mirror"
SECTIONS, PER_CHAPTER, WORDS = 550, 200, 24
NODES = 1 + 3 + SECTIONS
TITLE = "usc/2024/root/title-91"
OATH = "Whoever lights the quinquereme shall swear the zephyrine oath."
LATER = Amendments(
    added={7: OATH, 333: "This section ends in five years."},
    omitted={20, 21},
    renumbered={400: "400a"},
)


class Look(Protocol):
    """What a command prints, or says as JSON, that is run in this process."""

    def __call__(self, home: Path, *arguments: str, code: int = 0) -> Any: ...


@pytest.fixture
def look(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Iterator[Look]:
    monkeypatch.setenv("FONDS_ALLOW_PRIVATE", "1")
    monkeypatch.setenv("FONDS_RATE_FACTOR", "0")

    def printed(home: Path, *arguments: str, code: int = 0) -> Any:
        monkeypatch.setattr("sys.argv", ["fonds", "--home", str(home), *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == code
        out = capsysbinary.readouterr().out
        return json.loads(out) if "--json" in arguments else out.decode()

    yield printed
    structlog.reset_defaults()


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with its tables and nothing in them."""
    home = tmp_path_factory.mktemp("empty")
    with open_library(home):
        return home


@pytest.fixture
def home(empty: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(empty, tmp_path / "home"))


@pytest.fixture(scope="module")
def titles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One title, in two editions."""
    folder = tmp_path_factory.mktemp("titles")
    for year, amendments in (("2024", Amendments()), ("2025", LATER)):
        write_usc_title(
            folder / f"{year}.xml",
            sections=SECTIONS,
            words=WORDS,
            per_chapter=PER_CHAPTER,
            amendments=amendments,
        )
    return folder


@pytest.fixture(scope="module")
def held(
    empty: Path, titles: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    """A library with the older edition, for reading only, and what its ingest reported."""
    home = Path(shutil.copytree(empty, tmp_path_factory.mktemp("held") / "home"))
    budget = ("--budget", "worker")
    units = ingest(home, "usc", titles / "2024.xml", "--version", "2024", *budget)
    assert list(units) == [TITLE]
    return home, units[TITLE]


# Planning ---------------------------------------------------------------------------------


def test_plan_says_what_it_would_cost_and_creates_nothing(titles: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    told = ask(home, "code", "plan", "usc", "--from", str(titles / "2024.xml"), "--version", "2024")
    [unit] = told["units"]
    assert (unit["id"], unit["nodes"], unit["shards"]) == (TITLE, NODES, SECTIONS)
    size = (titles / "2024.xml").stat().st_size
    assert size * 0.6 < unit["bytes"] < size
    assert 0 < unit["subrequests"] <= 1000
    assert unit["invocations"] == 1
    assert not home.exists()


def test_unit_whose_walk_passes_the_budget_is_refused_with_advice_that_helps(
    tmp_path: Path, look: Look
) -> None:
    home = tmp_path / "home"
    with FolderServer(CONNECTICUT) as upstream:
        plan = ("code", "plan", "cgs", "--from", upstream.address, "--json")
        few = look(home, *plan, "--budget", "4,8192", code=1)["units"]
        units = {unit["id"]: unit for unit in few}
        refused = units["cgs/2026/root/title-3"]["error"]
        assert refused.startswith("UnitTooLargeError: title-3 cannot be walked in one")
        assert "one batch of title-4c" in units["cgs/2026/root/title-4c"]["error"]
        part = re.findall(r"--unit (title-3/[\w-]+)", refused)[0]
        [split] = look(home, *plan, "--budget", "1000,8192", "--unit", part)["units"]
    assert split["id"] == f"cgs/2026/root/{part}"
    assert not home.exists()


@pytest.mark.long
def test_walk_that_takes_too_much_memory_is_refused_too(titles: Path, tmp_path: Path) -> None:
    plan = ("code", "plan", "usc", "--from", str(titles / "2024.xml"), "--budget", "1000,32")
    code, out, err = run(tmp_path / "home", *plan)
    assert code == 1
    assert "UnitTooLargeError: title-91 cannot be walked in one" in err
    assert "--budget" in err
    assert TITLE not in out


def test_plan_refuses_a_budget_that_no_batch_fits_in(titles: Path, home: Path, look: Look) -> None:
    tight = ("--from", str(titles / "2024.xml"), "--budget", "16,8192")
    [failed] = look(home, "code", "ingest", "usc", *tight, "--json", code=1)["units"]
    assert failed["error"].startswith("UnitTooLargeError: title-91: one batch needs more than")
    [refused] = look(home, "code", "plan", "usc", *tight, "--json", code=1)["units"]
    assert refused["error"].startswith("UnitTooLargeError")


# Ingesting --------------------------------------------------------------------------------


def assert_within(unit: dict[str, Any], *, subrequests: int, memory_mib: int) -> None:
    for one in unit["invocations"]:
        assert one["subrequests"] == one["http"] + one["database"] + one["blobs"]
        assert 0 < one["subrequests"] <= subrequests
        assert 0 < one["peak_mib"] <= memory_mib
        assert one["seconds"] >= 0
    assert [one["remaining_batches"] for one in unit["invocations"]][-1] == 0
    assert sum(one["inserted"] for one in unit["invocations"]) == unit["inserted"]


@pytest.mark.smoke
def test_ingest_reports_every_invocation_within_its_limits(
    held: tuple[Path, dict[str, Any]],
) -> None:
    _, unit = held
    assert (unit["nodes"], unit["shards"]) == (NODES, SECTIONS)
    assert (unit["inserted"], unit["skipped"]) == (NODES, 0)
    assert (unit["error"], unit["failures"]) == (None, [])
    assert_within(unit, subrequests=1000, memory_mib=128)


def test_small_budget_takes_several_invocations_and_gives_the_same_rows(
    held: tuple[Path, dict[str, Any]], titles: Path, home: Path
) -> None:
    given = (titles / "2024.xml", "--version", "2024", "--budget", "130,128")
    unit = ingest(home, "usc", *given)[TITLE]
    assert len(unit["invocations"]) >= 2
    assert_within(unit, subrequests=130, memory_mib=128)
    assert unit["inserted"] == NODES
    assert contents(home) == contents(held[0])


def test_second_run_inserts_nothing(
    held: tuple[Path, dict[str, Any]], titles: Path, tmp_path: Path
) -> None:
    home = Path(shutil.copytree(held[0], tmp_path / "home"))
    unit = ingest(home, "usc", titles / "2024.xml", "--version", "2024")[TITLE]
    assert (unit["inserted"], unit["skipped"]) == (0, NODES)
    assert len(unit["invocations"]) == 1
    assert contents(home) == contents(held[0])


# Looking ----------------------------------------------------------------------------------


@pytest.mark.smoke
def test_tree_nests_nodes_in_the_order_of_the_code(
    held: tuple[Path, dict[str, Any]], look: Look
) -> None:
    [title] = look(held[0], "code", "tree", "usc", "2024", "--depth", "3", "--json")
    assert (title["id"], title["kind"]) == (TITLE, "title")
    assert title["label"].startswith("Title 91—")
    chapters = title["children"]
    assert [chapter["id"] for chapter in chapters] == [f"{TITLE}/chapter-{n}" for n in (1, 2, 3)]
    sections = [section for chapter in chapters for section in chapter["children"]]
    assert [section["id"].rpartition("-")[2] for section in sections] == [
        str(number) for number in range(1, SECTIONS + 1)
    ]
    assert {(section["kind"], *section["children"]) for section in sections} == {("section",)}


@pytest.mark.smoke
def test_section_is_shown_by_id_as_text_and_as_served(
    held: tuple[Path, dict[str, Any]], titles: Path, look: Look
) -> None:
    section = f"{TITLE}/chapter-2/section-333"
    code, out, _ = run(held[0], "show", section)
    assert code == 0
    assert "91 U.S.C. § 333 (2024)." in out
    assert "(Pub. L. 90–333, Jan. 2, 1967, 81 Stat. 333.)" in out
    served = look(held[0], "show", section, "--raw")
    assert served.startswith('<section id="s333"')
    assert served.endswith("</section>")
    assert served in (titles / "2024.xml").read_text("utf-8")


def test_code_is_in_the_status_and_in_the_list(
    held: tuple[Path, dict[str, Any]], look: Look
) -> None:
    [status] = [one for one in look(held[0], "status", "--json") if one["source"] == "usc"]
    assert (status["documents"], status["last_status"]) == (SECTIONS, "success")
    [listed] = [one for one in look(held[0], "code", "list", "--json") if one["name"] == "usc"]
    [edition] = listed["editions"]
    assert (edition["version"], edition["units"], edition["complete"]) == ("2024", 1, 1)


def test_editions_stand_side_by_side_and_differ_where_they_were_amended(
    held: tuple[Path, dict[str, Any]], titles: Path, tmp_path: Path, look: Look
) -> None:
    home = Path(shutil.copytree(held[0], tmp_path / "home"))
    ingest(home, "usc", titles / "2025.xml", "--version", "2025")
    [found] = look(home, "code", "diff", "usc", "2024", "2025", "--json")["units"]
    assert found["added"] == []
    assert [each["id"].rpartition("/")[2] for each in found["removed"]] == [
        "section-20",
        "section-21",
    ]
    moved = [(each["old"]["id"], each["new"]["id"]) for each in found["moved"]]
    before = f"{TITLE}/chapter-2/section-400"
    assert moved == [(before, f"{before}a".replace("2024", "2025", 1))]
    changed = {each["new"]["id"].rpartition("/")[2]: each for each in found["changed"]}
    assert list(changed) == ["section-7", "section-333"]
    inserted = [words for op, words in changed["section-7"]["redline"] if op == "insert"]
    assert "".join(inserted).split() == OATH.split()
    assert found["unchanged"] == SECTIONS - 5
    [hit, *_] = look(home, "search", "zephyrine quinquereme", "--source", "usc", "--json")
    assert hit["id"] == "usc/2025/root/title-91/chapter-1/section-7"
    assert hit["citation"]["citation_string"] == "91 U.S.C. § 7 (2025)."
    assert hit["citation"]["locator"]["heading_path"][0].startswith("Title 91—")


# Publishers that misbehave ----------------------------------------------------------------

CAUSES: dict[Damage, str] = {
    "gone": "NotFoundError: .*does not exist (404)",
    "moved": "WrongContentError: .*an HTML page instead of XML",
    "apology": "WrongContentError: .*an HTML page instead of XML",
    "empty": "MalformedError: .*the file is empty",
    "malformed": "MalformedError: .*not well-formed XML",
    "cut": "IncompleteBodyError: .*broke off",
}


def is_cause(told: str, damage: Damage) -> bool:
    kind, _, words = CAUSES[damage].partition(".*")
    return told.startswith(kind) and words in told


@contextmanager
def council(folder: Path, titles: int) -> Iterator[FolderServer]:
    """The D.C. Code with so many small titles."""
    write_dc_code(folder, {str(number): 8 for number in range(1, titles + 1)}, words=12)
    with FolderServer(folder) as upstream:
        yield upstream


def test_unit_whose_page_is_bad_fails_alone_and_is_completed_once_it_is_mended(
    home: Path, tmp_path: Path, look: Look
) -> None:
    damages = dict(enumerate(CAUSES, 1))
    whole, faltering = len(damages) + 1, len(damages) + 2
    with council(tmp_path / "site", faltering) as upstream:
        for number, damage in damages.items():
            upstream.damage(dc_index(str(number)), damage)
        upstream.damage(dc_index(str(faltering)), "falters")
        given = (upstream.address, "--version", "2016")
        units = ingest(home, "dc", *given, code=3)
        audit = look(home, "audit", "dc", "--json", code=3)["audit"]
        upstream.mend_all()
        mended = ingest(home, "dc", *given)
    names = [f"dc/2016/root/title-{number}" for number in range(1, faltering + 1)]
    assert list(units) == names
    for number, damage in damages.items():
        assert is_cause(units[names[number - 1]]["error"], damage), damage
    for number in (whole, faltering):
        assert (units[names[number - 1]]["inserted"], units[names[number - 1]]["error"]) == (
            10,
            None,
        )
    assert [known for known, _ in audit["failures"]] == names[: len(damages)]
    assert {scope["name"] for scope in audit["scopes"]} == set(names[len(damages) :])
    assert [unit["inserted"] for unit in mended.values()] == [10] * len(damages) + [0, 0]
    clean = look(home, "audit", "dc", "--json")
    assert (clean["expected"], clean["missing"], clean["open_errors"]) == (8 * faltering, 0, 0)


def test_section_whose_page_is_bad_is_missing_alone_and_comes_with_the_next_run(
    home: Path, tmp_path: Path, look: Look
) -> None:
    bad = {number: how for (_, number), how in zip(dc_numbers("1", 6), CAUSES, strict=True)}
    with council(tmp_path / "site", 2) as upstream:
        for number, damage in bad.items():
            upstream.damage(dc_section(number), damage)
        given = (upstream.address, "--version", "2016")
        first, second = ingest(home, "dc", *given, code=3).values()
        audit = look(home, "audit", "dc", "--json", code=3)
        upstream.mend_all()
        mended, unchanged = ingest(home, "dc", *given).values()
    names = {f"dc/2016/root/title-1/chapter-1/section-{number}": how for number, how in bad.items()}
    failures = {failure["id"]: failure["error"] for failure in first["failures"]}
    assert failures.keys() == names.keys()
    assert all(is_cause(failures[known], how) for known, how in names.items())
    assert (second["inserted"], second["failures"]) == (10, [])
    assert [scope["missing"] for scope in audit["audit"]["scopes"]] == [sorted(names), []]
    assert (mended["failures"], unchanged["inserted"]) == ([], 0)
    assert look(home, "audit", "dc", "--json")["missing"] == 0


@pytest.mark.long
@pytest.mark.parametrize("how", [(), ("--budget", "worker")])
def test_title_whose_archive_is_bad_fails_alone(
    home: Path, tmp_path: Path, look: Look, how: tuple[str, ...]
) -> None:
    damages = dict(enumerate(CAUSES, 91))
    (tmp_path / "site").mkdir()
    write_usc_site(tmp_path / "site", dict.fromkeys([*damages, 98], 8), words=20)
    with FolderServer(tmp_path / "site") as upstream:
        for title, damage in damages.items():
            upstream.damage(usc_archive(title), damage)
        units = ingest(home, "usc", upstream.address, *how, code=3)
        failures = look(home, "audit", "usc", "--json", code=3)["audit"]["failures"]
        upstream.mend_all()
        mended = ingest(home, "usc", upstream.address, *how)
    names = [f"usc/119-36/root/title-{title}" for title in damages]
    assert [known for known, _ in failures] == names
    assert all(units[name]["error"] for name in names)
    assert units["usc/119-36/root/title-98"]["inserted"] == 10
    assert [unit["inserted"] for unit in mended.values()] == [10] * len(damages) + [0]
    assert look(home, "audit", "usc", "--json")["missing"] == 0
