"""The code that a page builds in a few lines walks its example, and real acts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from lxml import etree
from tests.sources.statutes import outline, sections, unit_roots, walk_unit

from fonds.errors import MalformedError
from fonds.sources.jurisdiction import JurisdictionAdapter

pytestmark = pytest.mark.smoke

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "add-a-code.md"
VERSION: Final = "2024-07-01"
MOST_LINES: Final = 60


def block(name: str) -> str:
    found = re.search(
        rf"^```\w+ {re.escape(name)}\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert found is not None, f"the page shows no {name}"
    return found[1]


@pytest.fixture(scope="module")
def source() -> Any:
    module = ModuleType("canada")
    exec(compile(block("canada.py"), "canada.py", "exec"), module.__dict__)
    return module.source


@pytest.fixture
def acts(tmp_path: Path) -> Path:
    (tmp_path / "L-99.xml").write_text(block("acts/L-99.xml"), "utf-8")
    return tmp_path


def test_a_code_takes_fewer_lines_than_the_page_promises(source: Any) -> None:
    assert isinstance(source, JurisdictionAdapter)
    assert block("canada.py").count("\n") < MOST_LINES


def test_the_example_is_walked_as_the_page_shows(source: Any, acts: Path) -> None:
    (root,) = unit_roots(source, acts, VERSION)
    walked = walk_unit(source, root, acts, VERSION)
    shown = re.search(r"^```output\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert outline(walked) == shown[1].replace(" | ", "  ").splitlines()


def test_the_example_becomes_documents(source: Any, acts: Path) -> None:
    (root,) = unit_roots(source, acts, VERSION)
    walked = walk_unit(source, root, acts, VERSION)
    found = {one.leaf.number: one for one in sections(source, walked, acts, VERSION)}
    assert list(found) == ["", "1", "2", "3 and 4"]  # the schedule has no number either
    duty = found["2"]
    assert duty.shard.citation_string == "Lighthouses Act, s. 2"
    assert duty.shard.source_url.endswith("/eng/acts/L-99/section-2.html")
    assert "Every coast has a light." in duty.normalized().markdown


def test_an_act_that_is_cut_off_fails(source: Any, acts: Path) -> None:
    act = acts / "L-99.xml"
    act.write_text(act.read_text("utf-8")[:1500], "utf-8")
    (root,) = unit_roots(source, acts, VERSION)
    with pytest.raises(MalformedError):
        walk_unit(source, root, acts, VERSION)


def test_real_acts_give_all_their_sections(source: Any, corpus: Callable[[str], Path]) -> None:
    folder = corpus("codes/ca") / "eng" / "acts"
    for root in unit_roots(source, folder, VERSION):
        act = etree.parse(folder / root.pages[0]).getroot()
        labels = [
            "".join(map(str, label.itertext())) for label in act.findall("Body/Section/Label")
        ]
        tree = walk_unit(source, root, folder, VERSION).tree
        nodes = [node for node in tree.in_reading_order() if tree.kind(node) == "section"]
        assert [tree.number(node) for node in nodes] == labels
        beside = [node for node in tree.in_reading_order() if tree.is_leaf(node)]
        others = len(act.findall("Schedule")) + len(act.findall("Introduction"))
        assert len(beside) - len(nodes) == others
