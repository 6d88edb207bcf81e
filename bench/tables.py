"""How many cells of real tables does `pdf_v1` find, and does it see tables where are none?

Cells are compared as multisets, NFKC, without white space and without underscores (drawn blanks):

* ICDAR 2013: the cells of all tables of a file with those of its human truth (`*-str.xml`). A cell
  that truth merges over rows or columns may be repeated. Every second file, by name, was kept from
  tuning; `us-018` has 43 % of all cells, so figures are given without it too.
* ruled tables: `bench/truth/ruled_tables.json` was written by hand from pictures of the pages,
  before the reader existed. The table of ours that shares most cells with one must have 80 % of
  them. `⋯` stands for the middle of a long cell; merged cells are written once.
* pages without any table: `bench/truth/pages_without_tables.json`.

Peers read the same files, if they are installed (`pip install 'fonds[bench]'`). Words kept in order
are measured by `bench.fidelity`.

    FONDS_CORPUS=... python -m bench.tables [--peers] [--files 13] [--show NAME] [--json]
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.figures import Figure, asking, reaching, tell, within
from lxml import etree

from fonds.normalize.pdf import PdfNormalizer

TRUTH: Final = Path(__file__).parent / "truth"
LARGEST: Final = "us-018"
RIGHT: Final = 0.8
"""Of the cells of a ruled table."""
ELLIPSIS: Final = "⋯"
OURS: Final = "ours"
_CELLS: Final = re.compile(r"(?<!\\)\|")
_RULE: Final = re.compile(r"\|(?: ?:?-{3,}:? ?\|)+")
_NOTE: Final = re.compile(r"\[\^(\d+)(?:-\d+)?\]")
_ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
_SPACE: Final = re.compile(r"[\s_]+")


class Table(NamedTuple):
    """The cells of a table, and the pages it stands on."""

    pages: range
    cells: tuple[str, ...]


@dataclass(slots=True)
class Reading:
    """What a reader makes of a file."""

    tables: list[Table] = field(default_factory=list)
    pages: int = 0
    seconds: float = 0.0
    """Of processor time."""


Reader = Callable[[Path], tuple[list[Table], int]]


# Readers ----------------------------------------------------------------------------------


def read_ours(path: Path) -> tuple[list[Table], int]:
    """The tables of our Markdown."""
    body = PdfNormalizer(recognizer=None).to_markdown(path.read_bytes())
    starts = [mark.offset for mark in body.pages]
    return list(markdown_tables(body.markdown, starts)), len(starts)


def markdown_tables(markdown: str, starts: Sequence[int] = (0,)) -> Iterable[Table]:
    """Tables of pipes; pages are counted from one."""
    offset = 0
    lines = []
    for line in markdown.splitlines(keepends=True):
        lines.append((offset, line.strip()))
        offset += len(line)
    for is_table, group in groupby(lines, key=lambda line: line[1].startswith("|")):
        if is_table:
            rows = list(group)
            first = bisect_right(starts, rows[0][0])
            last = bisect_right(starts, rows[-1][0] + len(rows[-1][1]))
            cells = [cell for _, row in rows if not _RULE.fullmatch(row) for cell in row_cells(row)]
            yield Table(range(max(first, 1), max(last, 1) + 1), tuple(cells))


def row_cells(row: str) -> list[str]:
    """The texts of a row's cells that are not blank."""
    cells = (_ESCAPED.sub(r"\1", _NOTE.sub(r"\1", cell)) for cell in _CELLS.split(row.strip("|")))
    return [text for cell in cells if (text := bare(cell.replace("<br>", "")))]


def read_markitdown(path: Path) -> tuple[list[Table], int]:
    """Its Markdown, which has no pages."""
    import markitdown  # noqa: PLC0415 — a peer that need not be installed

    markdown = markitdown.MarkItDown().convert(str(path)).markdown
    return list(markdown_tables(markdown)), 0


def read_pdfplumber(path: Path) -> tuple[list[Table], int]:
    """Its tables by lines."""
    import pdfplumber  # noqa: PLC0415 — a peer that need not be installed

    tables = []
    with pdfplumber.open(path) as pdf:
        for number, page in enumerate(pdf.pages, 1):
            on_page = range(number, number + 1)
            tables += [Table(on_page, _cells(rows)) for rows in page.extract_tables()]
            page.flush_cache()
        return tables, len(pdf.pages)


def read_camelot(path: Path) -> tuple[list[Table], int]:
    """Its tables by the network of aligned text, which is the best of its ways here."""
    import camelot  # noqa: PLC0415 — a peer that need not be installed

    found = camelot.read_pdf(str(path), pages="all", flavor="network", suppress_stdout=True)
    return [
        Table(range(table.page, table.page + 1), _cells(table.df.to_numpy().tolist()))
        for table in found
    ], 0


def read_oxide(path: Path) -> tuple[list[Table], int]:
    """Its Markdown, in which it finds more than its `extract_tables` does."""
    import pdf_oxide  # noqa: PLC0415 — as the peers

    document = pdf_oxide.PdfDocument(str(path))
    tables = []
    for number in range(document.page_count()):
        for _, cells in markdown_tables(document.to_markdown(number)):
            tables.append(Table(range(number + 1, number + 2), cells))
    return tables, document.page_count()


def _cells(rows: Iterable[Iterable[Any]]) -> tuple[str, ...]:
    return tuple(text for row in rows for cell in row if (text := bare(str(cell or ""))))


PEERS: Final[dict[str, Reader]] = {
    "markitdown": read_markitdown,
    "pdfplumber": read_pdfplumber,
    "camelot": read_camelot,
    "pdf_oxide": read_oxide,
}


def bare(text: str) -> str:
    """Text as it is compared."""
    return _SPACE.sub("", unicodedata.normalize("NFKC", text))


def reading_of(reader: Reader, path: Path) -> Reading:
    """What a reader makes of a file: nothing, where it fails."""
    begun = time.process_time()
    tables: list[Table] = []
    pages = 0
    # Peers raise whatever their own readers do.
    with suppress(Exception):
        tables, pages = reader(path)
    return Reading(tables, pages, time.process_time() - begun)


# ICDAR 2013 -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Score:
    """Cells found, of those in truth."""

    shared: int = 0
    found: int = 0
    true: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(self.shared + other.shared, self.found + other.found, self.true + other.true)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.shared / (self.found + self.true) if self.shared else 0.0


def human_cells(path: Path) -> tuple[Counter[str], set[str]]:
    """The cells of a truth, and the texts of those that it merges over rows or columns."""
    cells: Counter[str] = Counter()
    merged = set()
    for cell in etree.parse(path).getroot().iter("cell"):
        text = bare(cell.findtext("content") or "")
        if not text:
            continue
        cells[text] += 1
        if any(
            cell.get(f"end-{way}", cell.get(f"start-{way}")) != cell.get(f"start-{way}")
            for way in ("row", "col")
        ):
            merged.add(text)
    return cells, merged


def compared(tables: Iterable[Table], truth: Counter[str], merged: set[str]) -> Score:
    """The cells of all tables beside those of truth."""
    found = Counter(cell for table in tables for cell in table.cells)
    for text in merged:
        found[text] = min(found[text], truth[text])
    return Score((found & truth).total(), found.total(), truth.total())


# Ruled tables -----------------------------------------------------------------------------


class RuledTable(NamedTuple):
    """A table as a person read it from the picture of its page."""

    file: str
    page: int
    cells: tuple[str, ...]


@cache
def ruled_tables() -> tuple[RuledTable, ...]:
    """Those written by hand."""
    written = json.loads((TRUTH / "ruled_tables.json").read_text("utf-8"))
    return tuple(
        RuledTable(
            one["file"],
            one["page"],
            tuple(bare(cell) for row in one["rows"] for cell in row.split(" | ")),
        )
        for one in written
    )


def right_cells(truth: Sequence[str], cells: Sequence[str]) -> int:
    """How many cells of truth are among these; each counts once."""
    left = Counter(cells)
    right = 0
    for cell in sorted(truth, key=lambda cell: ELLIPSIS in cell):
        match = next((other for other in left if left[other] and _matches(cell, other)), None)
        if match is not None:
            left[match] -= 1
            right += 1
    return right


def _matches(cell: str, other: str) -> bool:
    start, ellipsis, end = cell.partition(ELLIPSIS)
    if not ellipsis:
        return cell == other
    return len(other) > len(start + end) and other.startswith(start) and other.endswith(end)


def ruled_share(truth: RuledTable, reading: Reading) -> float:
    """The share of its cells in the table that has most of them."""
    best = max(
        (
            right_cells(truth.cells, table.cells)
            for table in reading.tables
            if truth.page in table.pages or not reading.pages
        ),
        default=0,
    )
    return best / len(truth.cells)


# Pages without tables ---------------------------------------------------------------------


@cache
def empty_pages() -> dict[str, list[int]]:
    """Pages that have no table, by file."""
    pages: dict[str, list[int]] = {}
    for lines in json.loads((TRUTH / "pages_without_tables.json").read_text("utf-8")).values():
        for line in lines:
            file, *numbers = line.split(" ")
            pages.setdefault(file, []).extend(map(int, numbers))
    return pages


# ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Bench:
    """One reader, and all that is asked of it."""

    name: str
    reader: Reader
    corpus: Path
    icdar: dict[str, Score] = field(default_factory=dict)
    ruled: list[tuple[RuledTable, float]] = field(default_factory=list)
    false_pages: list[str] = field(default_factory=list)
    seconds: float = 0.0
    pages: int = 0

    def run(self, options: Any) -> None:
        """Read all files."""
        for path in sorted((self.corpus / "documents/icdar").glob("*.pdf"))[: options.files]:
            reading = self._reading(path)
            truth = human_cells(path.with_name(f"{path.stem}-str.xml"))
            self.icdar[path.stem] = compared(reading.tables, *truth)
            if options.show == path.stem:
                show(reading, truth[0])
        for file, tables in groupby(ruled_tables(), key=lambda table: table.file):
            reading = self._reading(self.corpus / "documents" / file)
            self.ruled += [(table, ruled_share(table, reading)) for table in tables]
        for file, numbers in empty_pages().items():
            reading = self._reading(self.corpus / file)
            pages = {page for table in reading.tables for page in table.pages}
            self.false_pages += [f"{Path(file).name} {page}" for page in numbers if page in pages]

    def _reading(self, path: Path) -> Reading:
        reading = reading_of(self.reader, path)
        self.seconds += reading.seconds
        self.pages += reading.pages
        return reading

    def f1(self, keep: Callable[[int, str], bool]) -> float:
        """Of the chosen files, by number and name."""
        chosen = (score for at, (name, score) in enumerate(self.icdar.items()) if keep(at, name))
        return round(sum(chosen, Score()).f1, 3)

    def right(self, kind: str) -> int:
        """Ruled tables that are right, of the files of one kind."""
        return sum(share >= RIGHT for table, share in self.ruled if table.file.startswith(kind))

    def figures(self) -> list[Figure]:
        """What is measured, with its bars."""
        insurance = sum(table.file.startswith("ins") for table, _ in self.ruled)
        japanese = len(self.ruled) - insurance
        return [
            reaching("ICDAR 2013, F1 of cells", self.f1(lambda *_: True), 0.9),
            reaching("without us-018", self.f1(lambda _, name: name != LARGEST), 0.85),
            reaching("files looked at", self.f1(lambda at, _: at % 2 == 0), 0.85),
            reaching(
                "files kept from tuning, without us-018",
                self.f1(lambda at, name: at % 2 == 1 and name != LARGEST),
                0.85,
            ),
            reaching(f"ruled tables of insurance, of {insurance}", self.right("ins"), 30),
            reaching(f"ruled tables, Japanese, of {japanese}", self.right("ja"), 21),
            within("pages with a table that is none, of 40", len(self.false_pages), 1),
        ]


def show(reading: Reading, truth: Counter[str]) -> None:
    """What a reading has too much of, and what it lacks."""
    found = Counter(cell for table in reading.tables for cell in table.cells)
    print("lacks", sorted((truth - found).elements()))
    print("has too much", sorted((found - truth).elements()))


def main() -> None:
    """Print the figures."""
    parser = asking(__doc__)
    parser.add_argument("--peers", action="store_true", help="read with the peers as well")
    parser.add_argument("--files", type=int, help="of ICDAR 2013, at most")
    parser.add_argument("--show", metavar="NAME", help="the cells that one file lacks")
    options = parser.parse_args()
    archives = Path(os.environ["FONDS_CORPUS"])
    with tempfile.TemporaryDirectory() as folder:
        for name in ("documents", "sites/pdf"):
            subprocess.run([archives / "unpack", folder, name], check=True)
        readers = {OURS: read_ours, **(PEERS if options.peers else {})}
        benches = [Bench(name, reader, Path(folder)) for name, reader in readers.items()]
        for bench in benches:
            bench.run(options)
    ours, *peers = benches
    if not options.json:
        details(ours)
        for peer in peers:
            print(peer.name, [figure.ours for figure in peer.figures()], f"{peer.seconds:.1f} s")
    tell(options, ours.figures())


def details(bench: Bench) -> None:
    """The figures of each file."""
    for at, (name, score) in enumerate(bench.icdar.items()):
        kept = "kept" if at % 2 else "    "
        print(
            f"{name:9} {kept} {score.f1:.3f}  {score.shared} of {score.true}, found {score.found}"
        )
    for table, share in bench.ruled:
        print(f"{share:.2f}  {len(table.cells):>4} cells  {table.file} {table.page}")
    print("tables that are none:", *bench.false_pages, sep="\n    ")
    print(f"{bench.pages} pages, {1000 * bench.seconds / max(bench.pages, 1):.1f} ms each")


if __name__ == "__main__":
    main()
