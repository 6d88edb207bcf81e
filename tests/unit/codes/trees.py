"""Random codes, and `FakeCode`, an adapter that reads them in a small format of our own.

A page lists nodes, one line of JSON each; after the line of a leaf whose text stands on the page
come the bytes of that text. One description can be published in three shapes.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import random
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, Literal

from hypothesis import strategies as st

from fonds import ids
from fonds.codes.budget import Budget
from fonds.codes.invocation import invoke
from fonds.codes.run import CodeReport, CodeRequest, run_code
from fonds.codes.tree import Walked, walk
from fonds.errors import NotFoundError
from fonds.library import Library
from fonds.model import Archived
from fonds.runs.state import RunRequest
from fonds.sources.base import Rate
from fonds.sources.jurisdiction import FRONT, CodeInfo, Leaf, Origin, Page, Shard, Span, TocNode

INDEX: Final = "index.toc"
EDITION: Final = "2024"
DEEP: Final = 12
DAY: Final = datetime(2026, 1, 5, tzinfo=UTC)

Shape = Literal["one page", "page per container", "page per node"]
SHAPES: Final[tuple[Shape, ...]] = ("one page", "page per container", "page per node")


@dataclass(frozen=True, kw_only=True)
class Item:
    """A node of a described code: a container, or a leaf with its text."""

    kind: str
    number: str = ""
    label: str = ""
    text: str | None = None
    """None for a container."""
    status: str = ""
    children: tuple[Item, ...] = ()

    @property
    def data(self) -> bytes:
        """The bytes of a leaf."""
        return (self.text or "").encode()

    def leaves(self) -> Iterator[Item]:
        """Those with a text, in reading order."""
        if self.text is not None:
            yield self
        for child in self.children:
            yield from child.leaves()


def named(above: str, item: Item, segment: str | None = None) -> Iterator[tuple[str, Item]]:
    """Every node in reading order with the id it must have."""
    known = ids.tree_child(above, segment or ids.segment(item.kind, item.number))
    yield known, item
    plain = [ids.segment(child.kind, child.number) for child in item.children]
    for child, own in zip(item.children, ids.number_siblings(plain), strict=True):
        yield from named(known, child, own)


# Random codes -----------------------------------------------------------------------------

_WORDS: Final = ["every", "keeper", "shall", "pay", "naïve", "民法", "§ 12–704e", "Maß", "1,000"]
_ODD: Final = [
    *("1396a", "202 to 204", "12–704e", "12-704e", "7‑1", "(a)", "A/B", "..", ".", "~2", "1~2"),
    *("%7E", "é", "e\u0301", "Ⅳ", " 5 ", "5\n6", "第七百九条", "1 2", "1/../2", "\t", "1A", "1a"),
]
_KINDS: Final = [
    *("section", "section", "section", "part", "part", "chapter"),
    *("Sub Part", "編", "section-1", "..", FRONT),
]

# What no database takes is replaced by the walk, which has a test of its own.
_STORABLE: Final = st.characters(exclude_categories=["Cs"], exclude_characters="\0")


def numbers() -> st.SearchStrategy[str]:
    """Numbers as publishers print them, and worse."""
    few = st.sampled_from(["", "1", "1", "2", "3"])
    return st.one_of(few, few, st.sampled_from(_ODD), st.text(_STORABLE, max_size=4))


_texts = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=8).map(
    lambda words: "In short: " + " ".join(words) + ".\n"
)


@dataclass(frozen=True)
class _Line:
    step: int
    kind: str
    number: str
    text: str
    status: str
    is_hollow: bool


def units(*, max_nodes: int = 40) -> st.SearchStrategy[Item]:
    """A unit of up to so many nodes and twelve levels, with at least one leaf."""
    lines = st.builds(
        _Line,
        step=st.sampled_from([1, 1, 1, 1, 0, 0, 0, -1, -3]),
        kind=st.sampled_from(_KINDS),
        number=numbers(),
        text=_texts,
        status=st.sampled_from(["", "", "repealed"]),
        is_hollow=st.integers(0, 9).map(lambda drawn: drawn == 0),
    )
    # Left to itself, Hypothesis draws short lists only, and no tree is deep.
    sizes = st.integers(0, max_nodes - 2)
    return sizes.flatmap(lambda size: st.lists(lines, min_size=size, max_size=size)).map(_unit)


def _unit(lines: Sequence[_Line]) -> Item:
    last = _Line(-DEEP, "section", "999", "The last one.\n", "", False)
    children = list(_siblings(_Lines([*lines, last]), 1))
    return Item(kind="title", number="1", label="Title 1—All of it", children=tuple(children))


class _Lines:
    """Lines with their depths, taken one by one."""

    def __init__(self, lines: Sequence[_Line]) -> None:
        self._lines = list(lines)
        self._depths: list[int] = []
        for line in lines:
            before = self._depths[-1] if self._depths else 0
            self._depths.append(max(1, min(before + line.step, before + 1, DEEP - 1)))
        self._at = 0

    def take(self) -> _Line:
        self._at += 1
        return self._lines[self._at - 1]

    def depth(self) -> int:
        return self._depths[self._at] if self._at < len(self._depths) else 0


def _siblings(lines: _Lines, depth: int) -> Iterator[Item]:
    while lines.depth() == depth:
        line = lines.take()
        label = f"{line.kind} {ids.segment('x', line.number)}: on keeping"
        children = tuple(_siblings(lines, depth + 1))
        if children or line.is_hollow:
            yield Item(kind=line.kind, number=line.number, label=label, children=children)
        else:
            yield Item(
                kind=line.kind,
                number=line.number,
                label=label,
                text=line.text,
                status=line.status,
            )


def chain(depth: int) -> Item:
    """A unit whose only leaf is so many levels deep."""
    item = Item(kind="section", number="1", label="§ 1", text="Deep down.\n")
    for level in range(depth - 2):
        item = Item(kind="part", number=str(level), label=f"Part {level}", children=(item,))
    return Item(kind="title", number="1", label="Title 1", children=(item,))


def motley() -> Item:
    """A unit with something of everything: deep, doubled, numbered oddly or not at all, hollow."""
    deep = chain(DEEP - 1).children
    doubled = tuple(
        Item(kind="section", number="7", label=f"§ 7, {n}", text=f"Version {n} of seven.\n")
        for n in (1, 2)
    )
    odd = tuple(
        Item(kind="section", number=number, label=f"§ {number}", text=f"About {number} duties.\n")
        for number in ("202 to 204", "12–704e", "第七百九条", "A/B", "..", "")
    )
    front = Item(kind=FRONT, label="Notes", text="Enacted in short.\n")
    hollow = Item(kind="part", number="9", label="Part 9 [Reserved]")
    gone = Item(kind="section", number="8", label="§ 8", text="Repealed.\n", status="repealed")
    parts = (
        Item(kind="part", number="1", label="Part 1", children=deep),
        Item(kind="part", number="1", label="Part 1 again", children=(front, *doubled)),
        Item(kind="編", number="1", label="第一編", children=(*odd, gone)),
    )
    return Item(kind="title", number="1", label="Title 1", children=(front, *parts, hollow))


def flat(leaves: int, *, text: str = "Every keeper shall pay.\n") -> Item:
    """A unit of one level."""
    sections = (
        Item(kind="section", number=str(n), label=f"§ {n}", text=f"{n}. {text}")
        for n in range(1, leaves + 1)
    )
    return Item(kind="title", number="1", label="Title 1", children=tuple(sections))


def long_listing(nodes: int) -> Iterator[TocNode]:
    """What a monolithic unit lists below its root: so many nodes, of lengths met in real ones."""
    offset = chapter = 0
    for count in range(nodes):
        if count % 101 == 0:
            chapter += 1
            label = f"CHAPTER {chapter}—DUTIES OF KEEPERS OF THE {chapter}TH KIND"
            yield TocNode(
                kind="chapter",
                number=str(chapter),
                label=label,
                identifier=f"/us/usc/t42/ch{chapter}",
            )
            continue
        yield TocNode(
            kind="section",
            number=f"{1000 + count}a",
            label=f"§ {1000 + count}a. Payment of what is due by keepers",
            depth=2,
            is_leaf=True,
            span=Span(start=offset, length=1300),
            identifier=f"/us/usc/t42/s{1000 + count}a",
        )
        offset += 1300


# Publishing -------------------------------------------------------------------------------


def toc_page(listed: Iterable[tuple[TocNode, bytes | None]]) -> bytes:
    """A page that lists nodes, some followed by their text."""
    return b"".join(_line(node, data) for node, data in listed)


def _line(node: TocNode, data: bytes | None) -> bytes:
    told: dict[str, Any] = {name: value for name, value in asdict(node).items() if value}
    if data is not None:
        told["bytes"] = len(data)
    return json.dumps({"depth": 0, **told}).encode() + b"\n" + (data or b"")


def pages_of(described: Sequence[Item], shape: Shape) -> dict[str, bytes]:
    """Every page of a code, by name."""
    press = _Press(shape)
    roots = [(press.container(item, f"{n}"), None) for n, item in enumerate(described)]
    return {INDEX: toc_page(roots), **press.pages}


@dataclass
class _Press:
    shape: Shape
    pages: dict[str, bytes] = field(default_factory=dict)

    def container(self, item: Item, path: str) -> TocNode:
        """Its page is printed; how a list tells of it, its label to be found on the page."""
        plain = TocNode(kind=item.kind, number=item.number, label="")
        itself = replace(plain, label=item.label, depth=0)
        self.pages[f"{path}.toc"] = toc_page([(itself, None), *self._below(item, path, 1)])
        return replace(plain, pages=(f"{path}.toc",))

    def _below(self, item: Item, path: str, depth: int) -> Iterator[tuple[TocNode, bytes | None]]:
        for position, child in enumerate(item.children):
            below = f"{path}/{position}"
            if child.text is not None:
                yield self._leaf(child, below, depth)
            elif self.shape == "one page":
                yield (
                    TocNode(kind=child.kind, number=child.number, label=child.label, depth=depth),
                    None,
                )
                yield from self._below(child, below, depth + 1)
            else:
                yield replace(self.container(child, below), depth=depth), None

    def _leaf(self, item: Item, path: str, depth: int) -> tuple[TocNode, bytes | None]:
        node = TocNode(
            kind=item.kind,
            number=item.number,
            label=item.label,
            depth=depth,
            is_leaf=True,
            status=item.status,
            identifier=f"/fake/{path}",
        )
        if self.shape != "page per node":
            return node, item.data
        self.pages[f"{path}.txt"] = item.data
        return replace(node, pages=(f"{path}.txt",)), None


def publish(folder: Path, pages: Mapping[str, bytes]) -> Path:
    """A folder with exactly these pages, all of one day."""
    for name, data in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


# Reading ----------------------------------------------------------------------------------


class FakeCode:
    """A code in our own format, whatever its shape."""

    def __init__(self, *, at_once: int = 4, version: str = "1") -> None:
        self.info = CodeInfo(
            name="fakecode",
            title="Fake Code",
            organisation="The Code Office",
            version=version,
            schedule=None,
            rate=Rate(per_second=10_000, burst=10_000),
            tables=(),
            base="https://code.example/",
            jurisdiction="Nowhere",
            unit="title",
            index_pages=("index.toc",),
            fetch_concurrency=at_once,
        )

    async def newest_version(self, origin: Origin) -> str:
        """There is but one."""
        del origin
        return EDITION

    async def discover_unit_roots(self, origin: Origin) -> AsyncIterator[TocNode]:
        """What the index lists."""
        page = await origin.read(INDEX)
        with page.open() as stream:
            for node in _listed(stream):
                yield node

    def expand(self, node: TocNode, pages: Mapping[str, Page]) -> Iterator[TocNode]:
        """What its pages list, in their order."""
        for name in (*node.pages, *node.optional_pages):
            if name in pages:
                with pages[name].open() as stream:
                    yield from _listed(stream)

    def shardify(self, leaf: Leaf) -> Shard:
        """A citation made of the id."""
        return Shard(
            title=leaf.label,
            citation_string=f"Fake Code {leaf.id}",
            source_url=f"{self.info.base}{leaf.page}",
            normalizer="text_v1",
            format="text",
            aliases=(leaf.identifier,) if leaf.identifier else (),
        )


def _listed(stream: IO[bytes]) -> Iterator[TocNode]:
    offset = 0
    for line in iter(stream.readline, b""):
        offset += len(line)
        told = json.loads(line)
        length = told.pop("bytes", None)
        lists = {name: tuple(told.pop(name, ())) for name in ("pages", "optional_pages")}
        span = None if length is None else Span(start=offset, length=length)
        yield TocNode(**{"label": "", **told, **lists}, span=span)
        offset += len(stream.read(length or 0))


@dataclass(frozen=True)
class MemoryPage:
    """A page at hand."""

    name: str
    data: bytes

    @property
    def archived(self) -> Archived:
        """As if it were kept."""
        return Archived(
            url=f"https://code.example/{self.name}",
            key=self.name,
            sha256=hashlib.sha256(self.data).hexdigest(),
            size=len(self.data),
            retrieved_at=DAY,
        )

    def read(self) -> bytes:
        """All of it."""
        return self.data

    def open(self) -> IO[bytes]:
        """A stream over it."""
        return io.BytesIO(self.data)


@dataclass
class MemoryOrigin:
    """Pages at hand, which answer in an order decided by chance."""

    pages: Mapping[str, bytes]
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    version: str = EDITION
    answered: list[str] = field(default_factory=list)
    """Names in the order in which they were answered."""

    @property
    def files(self) -> Sequence[str] | None:
        """As of an address."""
        return None

    async def read(self, page: str) -> Page:
        """A page, some turns of the loop later."""
        for _ in range(self.chance.randrange(9)):
            await asyncio.sleep(0)
        if page not in self.pages:
            raise NotFoundError(f"there is no {page}")
        self.answered.append(page)
        return MemoryPage(page, self.pages[page])


def walk_first_unit(
    origin: MemoryOrigin, *, at_once: int = 4, only: Sequence[str] = (), **options: Any
) -> Walked:
    """The first unit that the index names."""
    adapter = FakeCode(at_once=at_once)

    async def run() -> Walked:
        root = await anext(adapter.discover_unit_roots(origin))
        above = ids.tree_root(adapter.info.name, origin.version)
        return await walk(adapter, above, root, origin, only=only, **options)

    return asyncio.run(run())


# Ingesting --------------------------------------------------------------------------------


def plenty(subrequests: int = 100_000) -> Budget:
    """A budget that does not mind how much memory the other tests of the process hold."""
    return Budget(subrequests=subrequests, memory_mib=1 << 20)


def ingest(
    library: Library,
    given: Path | str,
    *,
    version: str = EDITION,
    units: tuple[str, ...] = (),
    budget: Budget | None = None,
    adapter: FakeCode | None = None,
) -> CodeReport:
    """One run over the fake code, every invocation in this process."""
    code = adapter or FakeCode()
    request = CodeRequest(version=version, given=str(given), units=units, budget=budget or plenty())

    async def run() -> CodeReport:
        async with library.open_context(tables=False) as context:
            here = partial(invoke, adapter=code, context=context)
            options = request.as_options()
            return await run_code(code, RunRequest(mode="manual", options=options), context, here)

    return asyncio.run(run())
