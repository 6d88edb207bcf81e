"""The outline of one law: levels, articles, supplements and appendices, read in one pass.

Provisions of Japanese laws are cited as `民法第七百九条`, and with digits as `民法709条`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fonds.errors import MalformedError
from fonds.sources.formats.act_files import ActHandler, Element
from fonds.sources.jurisdiction import FRONT, Span, TocNode

_DIGITS: Final = "〇一二三四五六七八九"
_UNITS: Final = {"千": 1000, "百": 100, "十": 10}
_MYRIAD: Final = 10_000
_NUMERAL: Final = re.compile(f"[{_DIGITS}十百千万]+")
_COUNT: Final = f"[{_DIGITS}十百千万0-9０-９]+"
_COUNTED: Final = re.compile(rf"第({_COUNT})[条條編编章節节款目号表]?((?:[のノ之]{_COUNT})*)")
_BRANCH: Final = re.compile(r"[のノ之]([^のノ之]+)")
_FIRST_WORD: Final = re.compile(r"[^（\s]+")


# Numerals ---------------------------------------------------------------------------------


def arabic_numeral(words: str) -> int:
    """The number that kanji say, in words (七百九) or digit by digit (七〇九)."""
    if not _NUMERAL.fullmatch(words):
        raise ValueError(f"{words!r} is not a number in kanji")
    if all(word in _DIGITS for word in words):
        return int("".join(str(_DIGITS.index(word)) for word in words))
    total = below = digits = 0
    for word in words:
        if word in _DIGITS:
            digits = digits * 10 + _DIGITS.index(word)
        elif word == "万":
            total, below, digits = total + ((below + digits) or 1) * _MYRIAD, 0, 0
        else:
            below, digits = below + (digits or 1) * _UNITS[word], 0
    return total + below + digits


def with_digits(title: str) -> str:
    """`第三十六条の二` as `第36条の2`: every number in kanji becomes one in digits."""
    return _NUMERAL.sub(lambda match: str(arabic_numeral(match[0])), title)


def printed_number(label: str) -> str:
    """The number in a label: `36-2` in `第三十六条の二`, `1` in `別表第一`; empty without one."""
    match = _COUNTED.search(_name(label))
    if not match:
        return ""
    return "-".join(_as_digits(number) for number in (match[1], *_BRANCH.findall(match[2])))


def _as_digits(number: str) -> str:
    return str(int(with_digits(number)))


# Citations --------------------------------------------------------------------------------


def cite_jp(*, law: str, provision: str = "", supplement: str = "", amended_by: str = "") -> str:
    """`民法第七百九条`, `民法附則第一条`, `民法附則（平成一一年法律第一五一号）第一条`.

    A provision may carry its caption, as in `第一条（目的等）`; it is left out. Every amending law
    has a supplement of its own, which that law's number distinguishes.
    """
    return f"{law}{_provision_path(supplement, amended_by)}{_name(provision)}"


def other_forms(
    *,
    law: str,
    provision: str,
    supplement: str = "",
    amended_by: str = "",
    law_number: str = "",
    law_id: str = "",
) -> tuple[str, ...]:
    """The same provision with digits, with and without 第, and by the law's number and id.

    `民法第709条`, `民法709条`, `明治二十九年法律第八十九号第七百九条`, `明治29年法律第89号第709条`,
    `129AC0000000089第709条`.
    """
    path, printed = _provision_path(supplement, amended_by), _name(provision)
    digits = with_digits(printed)
    forms = [f"{law}{path}{digits}", f"{law}{path}{digits.replace('第', '')}"]
    if law_number:
        forms += [f"{law_number}{path}{printed}", f"{with_digits(law_number)}{path}{digits}"]
    if law_id:
        forms.append(f"{law_id}{path}{digits}")
    return tuple(dict.fromkeys(form for form in forms if form != f"{law}{path}{printed}"))


def _provision_path(supplement: str, amended_by: str) -> str:
    amending = f"（{amended_by}）" if supplement and amended_by else ""
    return f"{_name(supplement)}{amending}"


def _name(label: str) -> str:
    """A label without the caption behind it."""
    match = _FIRST_WORD.match(label)
    return match[0] if match else ""


SUPPLEMENT: Final = "supplement"
PROVISION: Final = "provision"
"""The kind of a leaf for paragraphs that are in no article."""

_LEVELS: Final = ("Part", "Subpart", "Chapter", "Section", "Subsection", "Division")
_MAIN: Final = "Mp"
_STEPS: Final = {
    "Part": "Pa",
    "Chapter": "Ch",
    "Section": "Se",
    "Subsection": "Ss",
    "Division": "Di",
    "Article": "At",
}
_TRANSPARENT: Final = frozenset({"LawBody", "MainProvision"})
_CONTAINERS: Final = frozenset({*_LEVELS, *_TRANSPARENT, "SupplProvision"})
_APPENDICES: Final = {
    "AppdxTable": ("appendix-table", "別表"),
    "AppdxNote": ("appendix-note", "別記"),
    "AppdxStyle": ("appendix-style", "様式"),
    "AppdxFormat": ("appendix-format", "書式"),
    "AppdxFig": ("appendix-figure", "別図"),
    "Appdx": ("appendix", "付録"),
}
_SUPPLEMENTARY: Final = {
    f"SupplProvision{name}": _APPENDICES[name] for name in ("AppdxTable", "AppdxStyle", "Appdx")
}
_LEAVES: Final = {"Article": ("article", ""), **_APPENDICES, **_SUPPLEMENTARY}
_LABELS: Final = frozenset(
    {"LawNum", "LawTitle", "SupplProvisionLabel", *(f"{name}Title" for name in _LEVELS)}
)
_TEXT_ELEMENTS: Final = (
    "ArticleTitle",
    "ArticleCaption",
    "RelatedArticleNum",
    "ArithFormulaNum",
    "ParagraphSentence",
    *(f"{name}Title" for name in (*_APPENDICES, *_SUPPLEMENTARY)),
)
_STATUSES: Final = {"削除": "deleted", "删除": "deleted", "略": "omitted", "省略": "omitted"}
_MAX_STATUS_LENGTH: Final = 8


@dataclass(slots=True)
class _LooseElements:
    """Adjacent elements that are in no article: one leaf."""

    start: int
    end: int
    first: str
    has_text: bool = False


class JpOutline(ActHandler):
    """Lists a law's nodes. Quoted elements, and elements inside tables, are not nodes."""

    text_elements = _LABELS.union(_TEXT_ELEMENTS)

    def __init__(self, law_id: str) -> None:
        super().__init__()
        self._law_id = law_id
        self._open: list[Element] = []
        """The levels that are open, those without a node included."""
        self._listed = 0
        """How many of them have been listed, or need not be."""
        self._run: _LooseElements | None = None
        self._has_body = False

    # What is heard ------------------------------------------------------------------------

    def opened(self, element: Element) -> None:
        """A level waits for its title; anything else on its ground begins or continues a run."""
        if element.name == "Rt":
            self.text("（")
        if not self._open and element.name == "LawBody":
            self._enter(element)
        if not self._is_ground():
            return
        if element.name in _CONTAINERS:
            self._list_levels()
            self._open.append(element)
        elif element.name in _LEAVES:
            self._list_levels()
        elif element.name in _LABELS or element.name == "TOC":
            self._end_run()
        elif self._run is None:
            self._list_levels()
            self._run = _LooseElements(element.start, element.start, element.name)

    def closed(self, element: Element) -> None:
        """A leaf is known once it has ended."""
        if element.name == "Rt":
            self.text("）")
        if self._open and element is self._open[-1]:
            self._list_levels()
            self._open.pop()
            self._listed = len(self._open)
        elif not self._is_ground():
            self._read_paragraph(element)
        elif element.name in _LEAVES:
            self._list_leaf(element)
        elif self._run is not None:
            self._run.end = element.end
            self._run.has_text = self._run.has_text or element.has_text

    def text(self, data: str) -> None:
        """Text must be in an element that contains text."""
        if self._is_ground() and not data.isspace():
            position = _label(self._open[-1]) or self._open[-1].name
            raise MalformedError(f"text that belongs to no provision, in {position}: {data[:40]!r}")
        super().text(data)

    def finish(self) -> None:
        """A file that has ended without a law is none."""
        if not self._has_body:
            raise MalformedError("holds no <LawBody>, so no law")

    # What is listed -----------------------------------------------------------------------

    def _is_ground(self) -> bool:
        """Whether the element that is open is a level, not something in or beside one."""
        return bool(self._open and self.above) and self.above[-1] is self._open[-1]

    def _enter(self, element: Element) -> None:
        if self._has_body:
            raise MalformedError("holds two laws: they belong into files of their own")
        self._has_body = True
        self._open.append(element)

    def _read_paragraph(self, element: Element) -> None:
        if element.name == "Paragraph" and self.above and self.above[-1].name == "Article":
            article = self.above[-1]
            text = article.texts.get("body", "") + element.texts.get("ParagraphSentence", "")
            article.texts["body"] = text[:_MAX_STATUS_LENGTH]

    def _list_levels(self) -> None:
        self._end_run()
        for position in range(self._listed, len(self._open)):
            element = self._open[position]
            if element.name not in _TRANSPARENT:
                self.nodes.append(_level(element, self._depth(position)))
        self._listed = len(self._open)

    def _depth(self, position: int) -> int:
        above = self._open[:position]
        return 1 + sum(element.name not in _TRANSPARENT for element in above)

    def _list_leaf(self, element: Element) -> None:
        kind, name = _LEAVES[element.name]
        label = _heading(element) or name
        number = _number(element.attributes, label, printed_first=kind != "article")
        self.nodes.append(
            TocNode(
                kind=kind,
                number=number,
                label=label or f"第{number}条",
                depth=self._depth(len(self._open)),
                is_leaf=True,
                span=element.span,
                identifier=self._identifier(element),
                status=_status(element),
            )
        )

    def _end_run(self) -> None:
        run, self._run = self._run, None
        if run is None or not run.has_text:
            return
        within = self._open[-1]
        if within.name == "LawBody":
            kind, label = FRONT, "前文" if run.first == "Preamble" else "制定文"
        else:
            kind, label = PROVISION, _label(within) or "本則"
        self.nodes.append(
            TocNode(
                kind=kind,
                label=label,
                depth=self._depth(len(self._open)),
                is_leaf=True,
                span=Span(start=run.start, length=run.end - run.start),
                identifier=self._law_id,
            )
        )

    def _identifier(self, element: Element) -> str:
        """The place of an article on the page of e-Gov; only the full path leads to it."""
        steps = [_step(level) for level in [*self._open[1:], element]]
        is_complete = self._law_id and steps[0] == _MAIN and all(steps)
        return f"{self._law_id}#{'-'.join(steps)}" if is_complete else self._law_id


def _step(element: Element) -> str:
    """The name of an element in e-Gov's addresses; empty if it is unknown."""
    if element.name == "MainProvision":
        return _MAIN
    name, number = _STEPS.get(element.name), element.attributes.get("Num")
    return f"{name}_{number}" if name and number and ":" not in number else ""


def _level(element: Element, depth: int) -> TocNode:
    label = _label(element)
    if element.name == "SupplProvision":
        number = " ".join(element.attributes.get("AmendLawNum", "").split())
        return TocNode(kind=SUPPLEMENT, number=number, label=label, depth=depth)
    number = _number(element.attributes, label)
    return TocNode(kind=element.name.lower(), number=number, label=label or number, depth=depth)


def _label(element: Element) -> str:
    if element.name != "SupplProvision":
        return element.texts.get(f"{element.name}Title", "")
    amended_by = " ".join(element.attributes.get("AmendLawNum", "").split())
    label = "".join(element.texts.get("SupplProvisionLabel", "").split()) or "附則"
    name = label.removesuffix("抄")
    is_extract = name != label or element.attributes.get("Extract") == "true"
    if amended_by and amended_by not in name:
        name = f"{name}（{amended_by}）"
    return f"{name} 抄" if is_extract else name


def _heading(element: Element) -> str:
    parts = (f"{element.name}Title", "ArithFormulaNum", "RelatedArticleNum", "ArticleCaption")
    parts_text = [element.texts[part] for part in parts if element.texts.get(part)]
    return "".join(
        part if not position or part.startswith("（") else f" {part}"
        for position, part in enumerate(parts_text)
    )


def _number(attributes: Mapping[str, str], label: str, *, printed_first: bool = False) -> str:
    """`36_2` is printed as `三十六条の二`; `38:84` is a range.

    Appendices are merely counted in their attribute: 別表第一の二 is the second one.
    """
    counted = attributes.get("Num", "").strip().replace("_", "-")
    printed = printed_number(label) if printed_first or not counted else ""
    return printed or counted


def _status(element: Element) -> str:
    if element.attributes.get("Delete") == "true":
        return "deleted"
    return _STATUSES.get(element.texts.get("body", "").strip("（）()　 。"), "")
