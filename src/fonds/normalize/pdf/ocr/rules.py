"""The drawn lines of a picture: long, thin runs of dark pixels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fonds.normalize.pdf.ocr.picture import INK, Box, Grey

_MIN_LENGTH: Final = 100
"""In pixels at 300 dots an inch; strokes of the largest letters are shorter."""
_GAP: Final = 4
"""Scanners leave holes in thin lines,"""
_FILLED: Final = 0.96
"""but few; between letters of a word there are more."""
_MAX_THICKNESS: Final = 16
_CONTRAST: Final = np.uint8(24)
_NEIGHBOUR: Final = 8


def rules_of(picture: Grey) -> tuple[list[Box], list[Box]]:
    """The horizontal and the vertical lines that are drawn in a level picture."""
    flat = _rules(picture)
    upright = [Box(y0, x0, y1, x1) for x0, y0, x1, y1 in _rules(picture.T)]
    return flat, upright


def without_rules(picture: Grey, rules: Iterable[Box]) -> Grey:
    """A copy of the picture with paper where its lines were."""
    erased = picture.copy()
    for rule in rules:
        erased[max(rule.y0 - 1, 0) : rule.y1 + 1, max(rule.x0 - 1, 0) : rule.x1 + 1] = 255
    return erased


def _rules(picture: Grey) -> list[Box]:
    """The horizontal ones."""
    dark = (picture < INK) | _thin(picture)
    inked = np.flatnonzero(dark.sum(axis=1) >= _MIN_LENGTH).tolist()
    runs = [run for y in inked for run in _runs(dark, y)]
    return [rule for rule in _stacked(runs) if _is_rule(rule)]


def _is_rule(box: Box) -> bool:
    return box.height <= _MAX_THICKNESS and box.width > 4 * box.height


def _thin(picture: Grey) -> NDArray[np.bool_]:
    """Pixels clearly darker than those above and below: lines need not be black."""
    padded = np.pad(picture, ((_NEIGHBOUR, _NEIGHBOUR), (0, 0)), mode="edge")
    neighbours = np.minimum(padded[: -2 * _NEIGHBOUR], padded[2 * _NEIGHBOUR :])
    return np.asarray(picture < neighbours - np.minimum(neighbours, _CONTRAST))


def _runs(dark: NDArray[np.bool_], y: int) -> Iterable[Box]:
    """The long runs of a row of pixels."""
    edges = np.flatnonzero(np.diff(dark[y].astype(np.int8), prepend=0, append=0))
    starts, ends = edges[::2], edges[1::2]
    breaks = np.flatnonzero(starts[1:] - ends[:-1] > _GAP)
    firsts = np.concatenate(([0], breaks + 1))
    lasts = np.concatenate((breaks, [len(ends) - 1]))
    filled = np.concatenate(([0], np.cumsum(ends - starts)))
    for first, last in zip(firsts, lasts, strict=True):
        length = ends[last] - starts[first]
        if length >= _MIN_LENGTH and filled[last + 1] - filled[first] >= _FILLED * length:
            yield Box(int(starts[first]), int(y), int(ends[last]), int(y) + 1)


@dataclass(slots=True)
class _Stack:
    box: Box
    last: Box


def _stacked(runs: Iterable[Box]) -> list[Box]:
    """Runs of following rows that touch, as one line; a line may lean a little."""
    done: list[Box] = []
    open_: list[_Stack] = []
    for run in runs:
        done += [stack.box for stack in open_ if stack.last.y1 < run.y0 - 1]
        open_ = [stack for stack in open_ if stack.last.y1 >= run.y0 - 1]
        touching = [s for s in open_ if s.last.x0 < run.x1 + _GAP and run.x0 < s.last.x1 + _GAP]
        for stack in touching:
            open_.remove(stack)
        open_.append(_Stack(_around([run, *(stack.box for stack in touching)]), run))
    return done + [stack.box for stack in open_]


def _around(boxes: Sequence[Box]) -> Box:
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return Box(min(x0), min(y0), max(x1), max(y1))
