"""Acts found among files, and listened to."""

from __future__ import annotations

import asyncio
import io
import zipfile
from pathlib import Path
from typing import Any, Final

import pytest

from fonds.codes.origin import LocalOrigin
from fonds.errors import (
    DuplicateKeyError,
    FondsError,
    MalformedError,
    UsageError,
    WrongContentError,
)
from fonds.sources.base import Rate
from fonds.sources.formats.act_files import ActFiles, ActHandler, Element, Levels
from fonds.sources.formats.xml import portions
from fonds.sources.jurisdiction import CodeInfo, Leaf, Shard, TocNode

BASE: Final = "https://acts.example/"


class RuleHandler(ActHandler):
    """A rule is `<rule><no>1</no><name>One<br/>rule</name>…</rule>`."""

    text_elements = frozenset({"no", "name"})
    breaks = frozenset({"br"})

    def closed(self, element: Element) -> None:
        if element.name == "rule" and not self.within("quoted"):
            self.nodes.append(
                TocNode(
                    kind="rule",
                    number=element.texts.get("no", ""),
                    label=element.texts.get("name", ""),
                    is_leaf=True,
                    span=element.span,
                    status="" if element.has_text else "empty",
                )
            )

    def finish(self) -> None:
        self.nodes.append(TocNode(kind="end", label="End", is_leaf=True))


class Rules(ActFiles):
    info = CodeInfo(
        name="rules",
        title="Rules",
        organisation="Office",
        version="1.0.0",
        schedule=None,
        rate=Rate(per_second=1),
        tables=(),
        base=BASE,
        jurisdiction="Example",
        unit="act",
    )
    roots = ("act", "order")
    metadata = "about"

    def act(self, name: str, head: Any) -> TocNode:
        about = head.find("about")
        return TocNode(
            kind="act",
            number=about.get("n"),
            label=about.get("title", about.get("n")),
            pages=(name,),
            published_at=about.get("day"),
        )

    def handler(self, unit: TocNode) -> ActHandler:
        del unit
        return RuleHandler()

    def shardify(self, leaf: Leaf) -> Shard:
        raise NotImplementedError(leaf.id)


def an_act(number: str, rules: str = "", *, day: str = "2024-05-06", root: str = "act") -> bytes:
    return f'<{root}><about n="{number}" day="{day}"/>{rules}</{root}>'.encode()


def folder(path: Path, **files: bytes) -> LocalOrigin:
    for name, data in files.items():
        (path / name.replace("_", ".")).write_bytes(data)
    return LocalOrigin(path, base=BASE)


def units(origin: LocalOrigin) -> list[TocNode]:
    async def collect() -> list[TocNode]:
        return [unit async for unit in Rules().discover_unit_roots(origin)]

    return asyncio.run(collect())


def expanded(origin: LocalOrigin, unit: TocNode) -> list[TocNode]:
    page = asyncio.run(origin.read(unit.pages[0]))
    return list(Rules().expand(unit, {unit.pages[0]: page}))


def test_acts_are_known_by_their_root_whatever_the_file_is_called(tmp_path: Path) -> None:
    origin = folder(
        tmp_path,
        a_xml=an_act("1"),
        b_dat=an_act("2", root="order"),
        c_xml=b"<other/>",
        d_txt=b"act",
    )
    assert [(unit.number, unit.pages) for unit in units(origin)] == [
        ("1", ("a.xml",)),
        ("2", ("b.dat",)),
    ]


def test_only_the_beginning_of_a_file_is_needed_to_know_it(tmp_path: Path) -> None:
    origin = folder(tmp_path, a_xml=an_act("1", "<rule>" * 100_000))
    assert [unit.number for unit in units(origin)] == ["1"]


def test_an_act_may_be_in_an_archive(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("1.xml", an_act("1"))
    origin = folder(tmp_path, a_zip=packed.getvalue())
    assert [unit.pages for unit in units(origin)] == [("a.zip!*.xml",)]


@pytest.mark.parametrize(
    ("name", "data", "error", "cause"),
    [
        ("x_xml", b"", MalformedError, "empty"),
        ("x_xml", b"<html><p>Moved</p></html>", WrongContentError, "HTML page"),
        ("x_xml", b"<act><rule/>", MalformedError, "ends before its <about>"),
        ("x_xml", b"<act>" + b"<rule>x</rule>" * 90_000, MalformedError, "ends before its <about>"),
        ("x_xml", b"<act><about n=1/>", MalformedError, "not well-formed"),
        ("x_xml", an_act("1")[:-3], MalformedError, "not well-formed"),
    ],
)
def test_a_broken_act_fails_when_it_is_walked(
    tmp_path: Path, name: str, data: bytes, error: type[FondsError], cause: str
) -> None:
    origin = folder(tmp_path, **{name: data, "y_xml": an_act("2")})
    broken, sound = units(origin)
    assert sound.number == "2"
    with pytest.raises(error, match=cause):
        expanded(origin, broken)


def test_an_archive_that_cannot_be_opened_is_an_act_that_fails(tmp_path: Path) -> None:
    origin = folder(tmp_path, lost_zip=b"PK", y_xml=an_act("2"))
    assert [unit.number for unit in units(origin)] == ["lost", "2"]


@pytest.mark.parametrize("data", [b"", b"<html/>", b"<other/>", b"%PDF-1.7"])
def test_nothing_usable_is_an_error_that_says_what_was_expected(
    tmp_path: Path, data: bytes
) -> None:
    origin = folder(tmp_path, x_xml=data)
    with pytest.raises(WrongContentError, match=r"x\.xml: expected .* <act> or <order>"):
        units(origin)


def test_one_number_in_two_files_is_refused(tmp_path: Path) -> None:
    origin = folder(tmp_path, a_xml=an_act("1"), b_xml=an_act("1"))
    with pytest.raises(DuplicateKeyError, match=r"a\.xml and b\.xml are both act 1"):
        units(origin)


def test_the_newest_day_is_the_edition(tmp_path: Path) -> None:
    origin = folder(tmp_path, a_xml=an_act("1", day="2024-01-31"), b_xml=an_act("2"))
    assert asyncio.run(Rules().newest_version(origin)) == "2024-05-06"


def test_without_days_the_edition_must_be_said(tmp_path: Path) -> None:
    origin = folder(tmp_path, a_xml=b'<act><about n="1"/></act>')
    with pytest.raises(UsageError, match="say --version"):
        asyncio.run(Rules().newest_version(origin))


def test_an_act_knows_itself_and_lists_its_rules(tmp_path: Path) -> None:
    first = "<rule><no> 1 </no><name>One<br/>rule</name><no>9</no></rule>"
    quoted = "<quoted><rule><no>7</no></rule></quoted>"
    data = an_act("1", f"{first}{quoted}<rule/>")
    origin = folder(tmp_path, a_xml=data)
    itself, one, empty, end = expanded(origin, units(origin)[0])
    assert (itself.depth, itself.label, itself.published_at) == (0, "1", "2024-05-06")
    assert (one.number, one.label, one.status) == ("1", "One rule", "")
    assert one.span is not None
    assert data[one.span.start : one.span.start + one.span.length] == first.encode()
    assert (empty.number, empty.status) == ("", "empty")
    assert end.kind == "end"


def test_without_an_index_an_address_cannot_be_read(tmp_path: Path) -> None:
    class AtAddress(LocalOrigin):
        @property
        def files(self) -> None:
            return None

    (tmp_path / "a.xml").write_bytes(an_act("1"))
    origin = AtAddress(tmp_path, base=BASE)
    with pytest.raises(UsageError, match="say --from"):
        units(origin)


def test_headings_that_leave_out_a_rank_are_one_level_deep() -> None:
    levels = Levels()
    assert levels.below == 1
    assert [levels.enter(rank) for rank in (1, 4, 5, 4, 2, 1)] == [1, 2, 3, 2, 2, 1]
    assert levels.below == 2


def test_text_of_a_heading_within_a_heading_is_heard_in_both() -> None:
    class Both(ActHandler):
        text_elements = frozenset({"a", "b"})

        def closed(self, element: Element) -> None:
            if element.name == "root":
                self.nodes.append(TocNode(kind="x", label=element.texts["a"]))
            if element.name == "a":
                self.nodes.append(TocNode(kind="x", label=element.texts["b"]))

    handler = Both()
    list(portions(io.BytesIO(b"<root><a>one <b>two</b> three</a></root>"), handler))
    assert [node.label for node in handler.take()] == ["two", "one two three"]
    assert handler.take() == []
