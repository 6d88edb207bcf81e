"""Tables without rules, or with level ones alone: by words that are below each other.

Lines of several parts that follow each other make a region; the empty strips through most of its
lines divide its columns. Lines become rows, unless they go on with the row above.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import Final

from fonds.normalize.pdf.grid import Rule
from fonds.normalize.pdf.layout import columns_of, rows, text_of
from fonds.normalize.pdf.page import TextRun
from fonds.normalize.pdf.ruled_tables import NAME, NUMBER, PageTable
from fonds.normalize.pdf.table_model import PdfTable, TableCell, without_blank_rows

_GAP: Final = 0.85
_NUMBER_GAP: Final = 0.45
_FAR: Final = 3.2
_NEAR: Final = 1.45
_MAX_ALONE: Final = 3
_CROSSING: Final = 0.08
_MIN_STRIP: Final = 0.25
_MIN_LINES: Final = 3
_NUMBERS: Final = 0.4
_MIN_FILLED: Final = 0.4
_MIN_FULL: Final = 0.55
_CONTENTS_COLUMNS: Final = 3
_MIN_CONTENTS: Final = 4
_MAX_PAGE: Final = 2_000
_IN_ORDER: Final = 0.8
_LABELS: Final = 0.5
_ALIGNED: Final = 0.7
_MIN_TEXTS: Final = 0.7
_FULL: Final = 0.8
_SENTENCE: Final = 20
_WIDE: Final = 0.62
_PROSE: Final = 70
_YEAR: Final = re.compile(r"[(\[]?(?:FY ?)?(?:1[89]|20)\d\d(?:[-–/]\d{2,4})?[)\]*]*")
_LEADERS: Final = re.compile(r"(?:[.·․‥…・] ?){4}|…{2}|[-‐]{12}|_{12}")
_DOTS: Final = re.compile(r"\s*(?:(?:[.·․‥…・]\s*)+|[-=_*]{4,}\s*)")
_BULLET: Final = re.compile(r"[•●▪◦‣·]")
_BULLET_GAP: Final = 3.0
_MIN_DOTS: Final = 4
_LEADER: Final = re.compile(r"[.·․‥…・] ?[.·․‥…・]|…|----|____")
_LABEL: Final = re.compile(
    r"[(（]?(?:\d{1,3}|[A-Za-z]|[ivxlcIVXLC]{1,6}|[一-十])(?:\.\d{1,3})*[.)）]*|[^\w\s]{1,2}|[o§]|[①-⑳]",
    re.ASCII,
)


@dataclass
class _Segment:
    """Runs without a wide gap between them."""

    x0: float
    x1: float
    runs: list[TextRun]

    @cached_property
    def text(self) -> str:
        return text_of(self.runs)

    @property
    def length(self) -> int:
        return sum(len(run.text) for run in self.runs)

    @cached_property
    def is_number(self) -> bool:
        return NUMBER.fullmatch(self.text) is not None


@dataclass
class _TextLine:
    y: float
    size: float
    segments: list[_Segment]
    runs: list[TextRun]
    """As they are drawn, with the dots that lead from one segment to the next."""
    has_leader: bool = False

    @property
    def x0(self) -> float:
        return self.segments[0].x0

    @property
    def x1(self) -> float:
        return max(segment.x1 for segment in self.segments)

    @cached_property
    def is_data(self) -> bool:
        """It has numbers behind its first part, other than years."""
        numbers = [segment for segment in self.segments[1:] if segment.is_number]
        return any(not _YEAR.fullmatch(number.text) for number in numbers)


@dataclass
class _Part:
    """The segments of one line in one column, or over several."""

    first: int
    last: int
    line: int
    segments: list[_Segment] = field(default_factory=list)

    @cached_property
    def text(self) -> str:
        return text_of([run for segment in self.segments for run in segment.runs])


def aligned_tables(
    drawn: Iterable[Sequence[TextRun]], rules: Iterable[Rule], ruled: Sequence[PageTable]
) -> list[PageTable]:
    """The tables among these runs, which are in none between rules."""
    inked = ([run for run in row if run.text.strip()] for row in drawn)
    upright = [row for row in inked if row]
    if not _has_gaps(run for row in upright for run in row):
        return []
    level = [rule for rule in rules if rule.x1 - rule.x0 > 4 * (rule.y1 - rule.y0)]
    tables = []
    for column in columns_of(upright):
        if not _has_gaps(column):
            continue
        lines = [_line(row) for row in rows(column)]
        regions = _regions(lines, ruled)
        tables += [table for region in regions if (table := _table(region, level))]
    return tables


def _has_gaps(runs: Iterable[TextRun]) -> bool:
    """Two lines of a page have a gap: a quick look, for most pages are prose."""
    ordered = sorted(runs, key=lambda run: (round(run.y0), run.x0))
    gaps = sum(
        round(one.y0) == round(other.y0) and other.x0 - one.x1 > _NUMBER_GAP * other.size
        for one, other in pairwise(ordered)
    )
    return gaps > 1


# Lines ------------------------------------------------------------------------------------


def _line(row: Sequence[TextRun]) -> _TextLine:
    runs = sorted((part for run in row for part in _without_leader(run)), key=lambda run: run.x0)
    has_leader = any(map(_leader_in, row)) or _are_dots(row)
    runs = [run for run in runs if not _DOTS.fullmatch(run.text)] or list(row)
    parts = [[runs[0]]]
    for run in runs[1:]:
        if _is_separate(parts[-1], run):
            parts.append([])
        parts[-1].append(run)
    segments = [_Segment(part[0].x0, max(run.x1 for run in part), part) for part in parts]
    main = max(runs, key=lambda run: len(run.text))
    return _TextLine(main.y0, main.size or 1.0, segments, list(row), has_leader)


def _leader_in(run: TextRun) -> bool:
    return bool(_LEADER.search(run.text) and _LEADERS.search(run.text))


def _are_dots(row: Sequence[TextRun]) -> bool:
    return sum(_DOTS.fullmatch(run.text) is not None for run in row) >= _MIN_DOTS


def _is_separate(part: Sequence[TextRun], run: TextRun) -> bool:
    last = part[-1]
    gap = run.x0 - max(one.x1 for one in part)
    size = max(run.size, last.size, 1.0)
    if len(part) == 1 and _BULLET.fullmatch(last.text.strip()) and NAME.search(run.text):
        return gap > _BULLET_GAP * size
    if not _NUMBER_GAP * size < gap <= _GAP * size:
        return gap > size * _GAP
    return all(NUMBER.fullmatch(one.text.strip()) for one in (last, run))


def _without_leader(run: TextRun) -> list[TextRun]:
    """The parts before and behind the dots that connect them."""
    match = _LEADERS.search(run.text) if _LEADER.search(run.text) else None
    if match is None or _DOTS.fullmatch(run.text):
        return [run]
    width = (run.x1 - run.x0) / len(run.text)
    before, after = run.text[: match.start()].rstrip(), run.text[match.end() :].lstrip(". ")
    parts = [replace(run, x1=run.x0 + width * len(before), text=before)]
    if after:
        parts.append(replace(run, x0=run.x1 - width * len(after), text=after))
    return [part for part in parts if part.text.strip()]


def _regions(lines: Sequence[_TextLine], ruled: Sequence[PageTable]) -> Iterator[list[_TextLine]]:
    """Lines of several parts that follow each other; single ones may be between them."""
    region: list[_TextLine] = []
    alone: list[_TextLine] = []
    before: list[_TextLine] = []
    for line in lines:
        previous = (alone or region or [line])[-1]
        is_far = previous.y - line.y > _FAR * max(line.size, previous.size)
        is_cut = is_far or _is_between(previous, line, ruled)
        if region and (is_cut or len(alone) > _MAX_ALONE):
            yield _with_header(before, region)
            before, region, alone = ([] if is_cut else alone), [], []
        if is_cut and not region:
            before = []
        if len(line.segments) > 1:
            region += [*alone, line] if region else [line]
            alone = []
        elif region:
            if _is_prose(line, region):
                yield _with_header(before, region)
                before, region, alone = [line], [], []
            else:
                alone.append(line)
        else:
            before.append(line)
    if region:
        # the last row may have a single line below it that goes on with a cell
        yield _with_header(before, region)


def _is_between(previous: _TextLine, line: _TextLine, ruled: Sequence[PageTable]) -> bool:
    return any(
        line.y < table.box[3] < previous.y + 1 or line.y < table.box[1] < previous.y
        for table in ruled
        if table.box[0] < line.x1 and table.box[2] > line.x0
    )


def _is_prose(line: _TextLine, region: Sequence[_TextLine]) -> bool:
    """A line as wide as the region that says too much for a cell."""
    left, right = min(one.x0 for one in region), max(one.x1 for one in region)
    wide = line.x1 - line.x0 > _WIDE * (right - left)
    return wide and line.segments[0].length > _PROSE


def _with_header(before: Sequence[_TextLine], region: list[_TextLine]) -> list[_TextLine]:
    """The region with the single parts right above its later columns."""
    edge = median(line.segments[0].x1 for line in region)
    header: list[_TextLine] = []
    below = region[0]
    for line in reversed(before):
        near = 0 < line.y - below.y <= _NEAR * max(line.size, below.size) + 2
        if (
            not near
            or line.x0 < min(edge, region[0].segments[1].x0 - 40)
            or _is_prose(line, region)
        ):
            break
        header.insert(0, line)
        below = line
    return header + region


# Columns ----------------------------------------------------------------------------------


def _strips(lines: Sequence[_TextLine]) -> list[tuple[float, float]]:
    """The extents of columns: between the strips that hardly any line has words in."""
    several = [line for line in lines if len(line.segments) > 1]
    allowed = int(_CROSSING * len(several))
    size = median(line.size for line in several)
    steps: list[tuple[float, int]] = []
    for line in several:
        for segment in line.segments:
            steps += [(segment.x0, 1), (segment.x1, -1)]
    steps.sort()
    extents: list[tuple[float, float]] = []
    covering = 0
    start = None
    for x, step in steps:
        covering += step
        if start is None and covering > allowed:
            start = x
        elif start is not None and covering <= allowed:
            if extents and start - extents[-1][1] < _MIN_STRIP * size:
                start = extents.pop()[0]
            extents.append((start, x))
            start = None
    return extents


def _parts_of(line: _TextLine, number: int, extents: Sequence[tuple[float, float]]) -> list[_Part]:
    """The parts of a line by column; one over several columns is in all of them."""
    parts: list[_Part] = []
    for segment in line.segments:
        first, last = _span(segment, extents)
        if parts and parts[-1].last >= first:
            last = max(last, parts[-1].last)
            parts[-1].last = last
            parts[-1].segments.append(segment)
        else:
            parts.append(_Part(first, last, number, [segment]))
    return parts


def _span(segment: _Segment, extents: Sequence[tuple[float, float]]) -> tuple[int, int]:
    shared = [min(segment.x1, x1) - max(segment.x0, x0) for x0, x1 in extents]
    covered = [
        at
        for at, (x0, x1) in enumerate(extents)
        if shared[at] > 0.5 * (x1 - x0) or shared[at] > 0.6 * (segment.x1 - segment.x0)
    ]
    if covered:
        return covered[0], covered[-1]
    best = max(range(len(extents)), key=lambda at: shared[at])
    return best, best


# Rows -------------------------------------------------------------------------------------


def _table(region: Sequence[_TextLine], level: Sequence[Rule]) -> PageTable | None:
    several = [line for line in region if len(line.segments) > 1]
    if len(several) < 2:  # noqa: PLR2004 — a header and a row
        return None
    data = [line for line in several if line.is_data]
    extents = _strips(data if len(data) >= _MIN_LINES else several)
    if len(extents) < 2:  # noqa: PLR2004 — a list has one column
        return None
    parts = [_parts_of(line, number, extents) for number, line in enumerate(region)]
    first = next((at for at, line in enumerate(region) if line.is_data), None)
    if first is None:
        first = 1
    while first and len(region[first - 1].segments) == 1 and region[first - 1].x0 < extents[1][0]:
        first -= 1
    barriers = _barriers(region, level)
    header = _header(region[:first], parts[:first])
    depth = max((cell.row + cell.rows for cell in header), default=0)
    body = _body(region, parts, first, barriers)
    cells = [*header]
    for at, row in enumerate(body, depth):
        for column_parts in _by_span(row).values():
            texts = tuple(part.text for part in column_parts)
            one = column_parts[0]
            cells.append(TableCell(at, one.first, texts, 1, one.last - one.first + 1))
    if not _is_sound(cells, depth, len(body), extents, region):
        return None
    runs = [run for line in region for run in line.runs]
    box = (
        min(run.x0 for run in runs),
        min(run.y0 for run in runs),
        max(run.x1 for run in runs),
        max(run.y1 for run in runs),
    )
    lefts = (*(x0 for x0, _ in extents), extents[-1][1])
    return PageTable(PdfTable(without_blank_rows(cells), max(depth, 1), lefts), box, runs)


def _by_span(parts: Iterable[_Part]) -> dict[tuple[int, int], list[_Part]]:
    spans: dict[tuple[int, int], list[_Part]] = {}
    for part in parts:
        key = next(
            (span for span in spans if span[0] <= part.last and part.first <= span[1]),
            (part.first, part.last),
        )
        spans.setdefault(key, []).append(part)
    return spans


def _barriers(region: Sequence[_TextLine], level: Sequence[Rule]) -> set[int]:
    """The lines that have a rule over most of the region's width above them."""
    left, right = min(line.x0 for line in region), max(line.x1 for line in region)
    barriers = set()
    for at, (upper, lower) in enumerate(pairwise(region), 1):
        covered = sum(
            min(rule.x1, right) - max(rule.x0, left)
            for rule in level
            if lower.y + 0.4 * lower.size < rule.y0 < upper.y + 0.1 * upper.size
            and rule.x1 > left
            and rule.x0 < right
        )
        if covered > 0.5 * (right - left):
            barriers.add(at)
    return barriers


def _header(lines: Sequence[_TextLine], parts: Sequence[Sequence[_Part]]) -> list[TableCell]:
    """Lines above the first row of data, with what is stacked in one column as one cell."""
    stacks: list[list[_Part]] = []
    for number, line_parts in enumerate(parts):
        for part in line_parts:
            above = next(
                (
                    stack
                    for stack in stacks
                    if (stack[-1].first, stack[-1].last) == (part.first, part.last)
                    and lines[stack[-1].line].y - lines[number].y
                    <= _NEAR * lines[number].size * (number - stack[-1].line)
                ),
                None,
            )
            if above is None:
                stacks.append([part])
            else:
                above.append(part)
    rows_of: list[int] = []
    for at, stack in enumerate(stacks):
        over = [
            rows_of[other] + 1
            for other in range(at)
            if stacks[other][0].first <= stack[0].last and stack[0].first <= stacks[other][0].last
        ]
        rows_of.append(max(over, default=0))
    depth = max(rows_of, default=-1) + 1
    cells = []
    for at, stack in enumerate(stacks):
        below = [
            rows_of[other]
            for other in range(at + 1, len(stacks))
            if stacks[other][0].first <= stack[0].last and stack[0].first <= stacks[other][0].last
        ]
        end = min(below, default=depth)
        texts = tuple(part.text for part in stack)
        width = stack[0].last - stack[0].first + 1
        cells.append(TableCell(rows_of[at], stack[0].first, texts, end - rows_of[at], width))
    return cells


def _body(
    region: Sequence[_TextLine], parts: Sequence[Sequence[_Part]], first: int, barriers: set[int]
) -> list[list[_Part]]:
    """Rows of parts: a line is one, or goes on with the row before it."""
    gaps = [a.y - b.y for a, b in pairwise(region[first:])]
    tight = min(gaps, default=0.0)
    is_spaced = bool(gaps) and max(gaps) > 1.2 * tight and sum(g < 1.1 * tight for g in gaps) > 0
    body: list[list[_Part]] = []
    for at in range(first, len(region)):
        line = region[at]
        gap = region[at - 1].y - line.y if at > first else 0.0
        near = gap <= min(_NEAR * line.size, 1.15 * tight if is_spaced else _NEAR * line.size)
        if at in barriers or not near or not body:
            body.append(list(parts[at]))
        elif _continues(body[-1], parts[at], line) or (
            is_spaced and _is_wrapped(body[-1], parts[at])
        ):
            body[-1].extend(parts[at])
        else:
            body.append(list(parts[at]))
    return body


def _is_wrapped(row: Sequence[_Part], parts: Sequence[_Part]) -> bool:
    """A line nearer to the one above than rows are, which continues its words."""
    filled = {column for part in row for column in range(part.first, part.last + 1)}
    own = {column for part in parts for column in range(part.first, part.last + 1)}
    numbers = any(segment.is_number for part in parts for segment in part.segments)
    return own <= filled and not numbers and any(part.text[:1].islower() for part in parts)


def _continues(row: Sequence[_Part], parts: Sequence[_Part], line: _TextLine) -> bool:
    """A line that belongs to the row above it."""
    filled = {column for part in row for column in range(part.first, part.last + 1)}
    own = {column for part in parts for column in range(part.first, part.last + 1)}
    numbers = any(segment.is_number for segment in line.segments)
    has_numbers = any(segment.is_number for part in row if part.first for segment in part.segments)
    if not numbers and own <= filled and all(part.text[:1].islower() for part in parts):
        return True
    if 0 not in own:
        return not numbers and own <= filled
    if own == {0}:
        text = parts[0].text
        indented = parts[0].segments[0].x0 > row[0].segments[0].x0 + 0.5 * line.size
        return (has_numbers or len(filled) > 1) and (
            text[:1].islower() or (indented and text[:1].islower())
        )
    if filled == {0} and not has_numbers:
        label = row[-1]
        return parts[0].text[:1].islower() and not label.text.endswith(":")
    return False


# Soundness --------------------------------------------------------------------------------


def _is_sound(
    cells: Sequence[TableCell],
    depth: int,
    body: int,
    extents: Sequence[tuple[float, float]],
    region: Sequence[_TextLine],
) -> bool:
    width = len(extents)
    texts = {(cell.row, cell.column): " ".join(cell.texts) for cell in cells}
    below = {position: text for position, text in texts.items() if position[0] >= depth}
    if body <= 1 or body + (depth > 0) < _MIN_LINES or len(below) < _MIN_FILLED * width * body:
        return False
    full = sum(sum(row == at for row, _ in below) > 1 for at in range(depth, depth + body))
    if full < _MIN_FULL * body:
        return False
    numbers = sum(bool(column and NUMBER.fullmatch(text)) for (_, column), text in below.items())
    if _are_pages(below, width, has_leaders=any(line.has_leader for line in region)):
        return False
    if not _has_labels(texts, depth, width) or _is_vertical(texts.values()):
        return False
    return numbers >= _NUMBERS * body or _is_text_table(below, extents, body, region)


def _is_vertical(texts: Collection[str]) -> bool:
    """Letters in columns, to be read from the top to the bottom."""
    letters = sum(len(text) == 1 and text.isalpha() and not text.isascii() for text in texts)
    return 2 * letters > len(texts)


def _has_labels(texts: dict[tuple[int, int], str], depth: int, width: int) -> bool:
    """The first column or the header says in words what the rest is."""
    first = [text for (row, column), text in texts.items() if row >= depth and not column]
    if not first or _is_list(texts, depth, width):
        return False
    header = [text for (row, _), text in texts.items() if row < depth and NAME.search(text)]
    return any(map(NAME.search, first)) or len(header) >= width / 2


def _is_list(texts: dict[tuple[int, int], str], depth: int, width: int) -> bool:
    """Every other column, from the first, has the numbers of clauses."""
    if width % 2:
        return False
    for column in range(0, width, 2):
        labels = [text for (row, at), text in texts.items() if row >= depth and at == column]
        clauses = [text for (row, at), text in texts.items() if row >= depth and at == column + 1]
        if sum(map(_is_label, labels)) <= _LABELS * len(labels):
            return False
        if sum(NUMBER.fullmatch(text) is not None for text in clauses) > _LABELS * len(clauses):
            return False
    return True


def _is_label(text: str) -> bool:
    """The number of a clause, or of several that were drawn together."""
    return _LABEL.fullmatch(text.split(" ", maxsplit=1)[0]) is not None


def _are_pages(texts: dict[tuple[int, int], str], width: int, *, has_leaders: bool) -> bool:
    """The numbers are those of pages, in order."""
    columns_of_pages = 0
    for column in range(1, width):
        below = [text.replace(" ", "") for (_, at), text in sorted(texts.items()) if at == column]
        numbers = [int(text) for text in below if text.isdecimal()]
        if len(numbers) < max(1 if has_leaders else _MIN_CONTENTS, len(below) / 2):
            continue
        in_order = sum(a <= b for a, b in pairwise(numbers))
        if max(numbers) >= _MAX_PAGE or in_order < _IN_ORDER * (len(numbers) - 1):
            return False
        columns_of_pages += len(numbers) == len(below) or has_leaders
    if has_leaders:
        return columns_of_pages > 0 or width == 2  # noqa: PLR2004 — titles and dots
    return columns_of_pages > 0 and width <= _CONTENTS_COLUMNS


def _is_text_table(
    texts: dict[tuple[int, int], str],
    extents: Sequence[tuple[float, float]],
    body: int,
    region: Sequence[_TextLine],
) -> bool:
    """Words alone make a table if the words of each column begin at one position."""
    if len(texts) < _MIN_TEXTS * len(extents) * body or _are_columns_of_prose(region, extents):
        return False
    width = len(extents)
    several = [line for line in region if len(line.segments) == width]
    if len(several) < _MIN_LINES:
        return False
    slack = 0.5 * several[0].size
    return all(_are_aligned([line.segments[at] for line in several], slack) for at in range(width))


def _are_columns_of_prose(
    region: Sequence[_TextLine], extents: Sequence[tuple[float, float]]
) -> bool:
    """Most lines are as wide as their column, as those of sentences are."""
    segments = [segment for line in region for segment in line.segments]
    full = 0
    for segment in segments:
        first, last = _span(segment, extents)
        width = extents[last][1] - extents[first][0]
        full += segment.x1 - segment.x0 > _FULL * width and segment.length > _SENTENCE
    return full > len(segments) / 2


def _are_aligned(segments: Sequence[_Segment], slack: float) -> bool:
    """Most begin, end or have their middle at one position."""
    sides = (
        [segment.x0 for segment in segments],
        [segment.x1 for segment in segments],
        [(segment.x0 + segment.x1) / 2 for segment in segments],
    )
    return any(
        sum(abs(x - median(side)) < slack for x in side) >= _ALIGNED * len(side) for side in sides
    )
