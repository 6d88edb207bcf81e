"""What the pages name is there, what is there is named, and links lead somewhere."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import fields
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
import typer.main

from fonds import errors
from fonds.cli.main import MENU, OTHER_NAMES, app
from fonds.seams import Seams
from fonds.settings import Settings, read_settings
from fonds.sources.registry import SourceRegistry, builtin_sources
from fonds.stores.blobs import open_blobs

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
WRITTEN: Final = [
    ROOT / "README.md",
    *sorted(page for page in DOCS.rglob("*.md") if page.parent.name != "reference"),
]
PAGES: Final = [*WRITTEN, *sorted((DOCS / "reference").glob("*.md"))]

_FENCE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_TYPED: Final = re.compile(r"^```(?:sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN: Final = re.compile(r"`([^`\n]+)`")
_COMMAND: Final = re.compile(r"(?:^|[ /])fonds(?: --home \S+)? ((?:[a-z][\w-]* ?)+)(.*)")
_LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING: Final = re.compile(r"^#+ (.*)$", re.MULTILINE)
_MACHINE: Final = re.compile(r"(?<![\w.])/(?:work|tmp|root|home|Users|mnt|opt)/|\.pyenv")


def _text(page: Path) -> str:
    return page.read_text("utf-8")


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@cache
def _make_reference() -> ModuleType:
    loader = SourceFileLoader("make_reference", str(ROOT / "scripts" / "make-reference"))
    # Compiled code beside a script would be litter.
    module = module_from_spec(spec_from_loader(loader.name, loader) or pytest.fail("no script"))
    exec(loader.get_code(loader.name) or "", module.__dict__)
    return module


@cache
def _commands() -> dict[str, Any]:
    """Every command by its name, `db upgrade` included; those of most words first."""
    found: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [("", typer.main.get_command(app))]
    while waiting:
        name, command = waiting.pop()
        below = getattr(command, "commands", {})
        waiting += [(f"{name} {part}".strip(), each) for part, each in below.items()]
        is_one = not below or getattr(command, "invoke_without_command", False)
        found |= {name: command} if name and is_one else {}
    return dict(sorted(found.items(), key=lambda item: -len(item[0].split())))


def _uses(page: Path) -> list[tuple[str, str]]:
    """Each command that a page spells out in code, with the rest of its line."""
    text = _text(page)
    typed = [line for block in _TYPED.findall(text) for line in block.splitlines()]
    code = [*typed, *_SPAN.findall(_FENCE.sub("", text))]
    found = [match.groups() for line in code if (match := _COMMAND.search(line))]
    return [(words.strip(), rest) for words, rest in found]


def test_reference_says_what_the_code_says() -> None:
    assert _make_reference().stale() == [], "run .venv/bin/python scripts/make-reference"


def test_changed_missing_and_surplus_pages_are_stale(tmp_path: Path) -> None:
    for page in (DOCS / "reference").glob("*.md"):
        (tmp_path / page.name).write_text(_text(page), "utf-8")
    (tmp_path / "settings.md").write_text("# Settings\n", "utf-8")
    (tmp_path / "errors.md").unlink()
    (tmp_path / "old.md").write_text("# Old\n", "utf-8")
    assert {"settings.md", "errors.md", "old.md"} <= set(_make_reference().stale(tmp_path))


@pytest.mark.parametrize("command", sorted(_commands()))
def test_command_is_in_the_readme(command: str) -> None:
    assert f"`fonds {command}`" in _text(ROOT / "README.md")


@pytest.mark.parametrize("source", sorted(builtin_sources()))
def test_source_is_in_the_readme_and_in_the_reference(source: str) -> None:
    assert f"| `{source}` |" in _text(ROOT / "README.md")
    assert f"\n## {source}\n" in _text(DOCS / "reference" / "sources.md")


@pytest.mark.parametrize("source", sorted(SourceRegistry().feeds()))
def test_reference_names_the_addresses_that_a_feed_is_read_from(source: str) -> None:
    page = (
        (DOCS / "reference/sources.md").read_text().split(f"\n## {source}\n")[1].split("\n## ")[0]
    )
    addresses = builtin_sources()[source].info.addresses
    assert addresses
    assert all(f"`{address}`" in page for address in addresses)


@pytest.mark.parametrize("setting", [each.name for each in fields(Settings)])
def test_setting_is_documented_by_both_its_names(setting: str) -> None:
    assert f"| `{setting}` | `FONDS_{setting.upper()}` |" in _text(DOCS / "reference/settings.md")


@pytest.mark.parametrize("page", WRITTEN, ids=_name)
def test_every_command_and_option_a_page_spells_out_exists(page: Path) -> None:
    for words, rest in _uses(page):
        words = OTHER_NAMES.get(words, words)  # noqa: PLW2901 — another name of the same command
        name = next((n for n in _commands() if f"{words} ".startswith(f"{n} ")), None)
        assert name is not None, f"there is no command: fonds {words}"
        known = {option for each in _commands()[name].params for option in each.opts}
        used = set(re.findall(r"(?<!\S)--[a-z][a-z-]*", rest)) - {"--home"}
        assert used <= known, f"fonds {words} {rest}"


def test_commands_are_found_in_pages() -> None:
    tutorial, adding = _uses(DOCS / "tutorial.md"), _uses(DOCS / "how-to" / "add-a-source.md")
    assert ("search", '"salary level for exempt employees" --limit 1 --per-document 1') in tutorial
    assert ("bootstrap", "--since 2026-11-01") in tutorial
    assert ("run harbour_notices", "") in adding


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_variable_a_page_names_is_a_setting(page: Path) -> None:
    known = {f"FONDS_{each.name.upper()}" for each in fields(Settings)}
    assert set(re.findall(r"\bFONDS_[A-Z_]+\b", _text(page))) <= known


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in _LINK.findall(_FENCE.sub("", _text(page))):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target), link


def _anchors(page: Path) -> set[str]:
    headings = _HEADING.findall(_FENCE.sub("", _text(page)))
    return {re.sub(r"[^\w\- ]", "", text).strip().lower().replace(" ", "-") for text in headings}


def test_every_page_is_linked_once_from_the_index() -> None:
    links = _LINK.findall(_text(DOCS / "index.md"))
    linked = Counter((DOCS / link).resolve() for link in links)
    pages = {page for page in DOCS.rglob("*.md") if page.name != "index.md"}
    assert pages <= set(linked)
    assert [str(page) for page, count in linked.items() if count > 1] == []


@pytest.mark.parametrize("page", WRITTEN, ids=_name)
def test_every_figure_a_page_names_is_told(page: Path) -> None:
    told = set(re.findall(r"^\| `(fonds_\w+)`", _text(DOCS / "reference/metrics.md"), re.MULTILINE))
    assert set(re.findall(r"\bfonds_[a-z]+_[a-z_]+[a-z]\b", _text(page))) <= told


@pytest.mark.parametrize("page", WRITTEN, ids=_name)
def test_every_route_a_page_names_is_there(page: Path) -> None:
    reference = _text(DOCS / "reference" / "http.md")
    known = re.findall(r"^\| `[A-Z]+ (/[^`]*)`", reference, re.MULTILINE)
    named = re.findall(r"\b(?:GET|POST|PUT) (/[^\s`?]*)", _text(page))
    assert {path for path in named if not any(_is_of(route, path) for route in known)} == set()


def _is_of(route: str, path: str) -> bool:
    pattern = ".+".join(map(re.escape, re.split(r"\{\w+\}", route)))
    return re.fullmatch(pattern, path) is not None


def test_every_tool_is_in_the_table_for_those_who_connect_agents() -> None:
    told = re.findall(r"^## (\w+)$", _text(DOCS / "reference" / "mcp.md"), re.MULTILINE)
    rows = re.findall(r"^\| `(\w+)` \|", _text(DOCS / "how-to" / "agents.md"), re.MULTILINE)
    assert set(told) <= set(rows)


def test_the_readme_groups_commands_as_the_help_does() -> None:
    section = _text(ROOT / "README.md").partition("\n## Commands\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([\w ,]+) \| (.*`.*) \|$", section, re.MULTILINE)
    listed = {
        group: [name.split()[0] for name in re.findall(r"`fonds ([^`]+)`", row)]
        for group, row in rows
    }
    grouped = {
        group: [name for name, entry in MENU.items() if entry.group == group]
        for group in dict.fromkeys(entry.group for entry in MENU.values())
    }
    assert {group: list(dict.fromkeys(names)) for group, names in listed.items()} == grouped
    assert list(listed) == list(grouped)


def test_the_map_in_the_readme_names_every_folder_and_a_file_in_it() -> None:
    section = _text(ROOT / "README.md").partition("\n## Map of the source code\n")[2]
    package = ROOT / "src" / "fonds"
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    rows = [_LINK.findall(line) for line in section.splitlines() if line.startswith("| [")]
    mapped = [Path(link).name for row in rows for link in row if (ROOT / link).parent == package]
    assert sorted(name for name in mapped if name in folders) == sorted(folders)
    assert all(any(link.endswith(".py") for link in row) for row in rows)


def test_the_architecture_names_a_module_for_each_stage() -> None:
    page = _text(DOCS / "explanation" / "architecture.md")
    assert "```mermaid\n" in page
    rows = re.findall(r"^\| [^|]+ \| .* \|$", page, re.MULTILINE)
    assert len(rows) > 20
    assert [
        row
        for row in rows
        if not row.startswith(("| stage", "| question")) and "](../../src/fonds/" not in row
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_page_holds_no_path_of_a_machine(page: Path) -> None:
    assert _MACHINE.findall(_text(page)) == []


def test_every_test_that_watches_over_security_exists() -> None:
    page = (DOCS / "explanation" / "security.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", page)
    assert len(named) > 30
    missing = [name for name in named if f"def {name[1]}(" not in (ROOT / name[0]).read_text()]
    assert missing == []
    # Of some only the name is given, behind a test of the same file or where it is the only one.
    bare = set(re.findall(r"`(test_\w+)`", page))
    tests = "".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
    assert bare <= set(re.findall(r"def (test_\w+)\(", tests))


def test_error_tree_is_drawn_as_it_is() -> None:
    drawn = re.findall(r"^([│ ├└─]*)(\w+Error)\b", errors.__doc__ or "", re.MULTILINE)
    depths = [(len(indent) // 4, name) for indent, name in drawn]
    kinds = list(_make_reference().error_types())
    assert depths == [(kind.__mro__.index(errors.FondsError), kind.__name__) for kind in kinds]


def test_settings_file_on_the_postgresql_page_is_accepted(tmp_path: Path) -> None:
    page = _text(DOCS / "how-to" / "use-postgresql-and-s3.md")
    example = re.search(r"^```toml fonds\.toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert example is not None
    (tmp_path / "fonds.toml").write_text(example[1], "utf-8")
    settings = read_settings({"home": tmp_path}, environ={})
    assert settings.database_url.startswith("postgresql://")
    open_blobs(settings.blobs_url, seams=Seams())


def test_addresses_on_the_postgresql_page_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")
    page = _text(DOCS / "how-to" / "use-postgresql-and-s3.md")
    addresses = re.findall(r"^\| `((?:memory|s3|az|gs)://[^`]*)`", page, re.MULTILINE)
    assert len(addresses) == 5
    for address in addresses:
        open_blobs(address, seams=Seams())
