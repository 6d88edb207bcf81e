"""Plain text as Markdown, and typeset text in HTML that keeps its lines, like GPO's `<pre>`.

Characters that GPO's text spells out, since it is typed in ASCII: `<greek-m>`, `<bullet>`.
"""

from __future__ import annotations

import html
import re
from typing import Final

from fonds.errors import WrongContentError
from fonds.model import BaseNormalizer, NormalizedBody
from fonds.normalize.encodings import decode, without_controls
from fonds.normalize.html import refuse_other_files
from fonds.normalize.html.walker import section_label
from fonds.normalize.html.writer import HtmlWriter
from fonds.normalize.markdown import html_comment
from fonds.normalize.text_lines import (
    PAGE_CLOSE,
    PAGE_OPEN,
    BlockKind,
    Paragraph,
    TextBlock,
    TextLine,
    blocks_of,
    levels_of,
    paragraphs_of,
)

# GPO publishes no list. A letter is read where only one Greek letter is written so in English and
# in fonts of symbols; `<greek-h>` or `<greek-y>` may be two of them. `<gr-thn-eq>` is kept, too:
# besides ≥ it was set for the sign of inches.
_GREEK: Final = {
    **dict(zip("abgdeziklmnprst", "αβγδεζικλμνπρστ", strict=True)),
    "th": "θ",
    "ph": "φ",
    "ch": "χ",
    "ps": "ψ",
}
_SIGNS: Final = {"bullet": "•", "plus-minus": "±"}
_SYMBOL_CODE: Final = re.compile(
    r"<(?:greek-([A-Za-z]{1,2})|bullet|[a-z]{2,8}(?:-[a-z]{2,8}){1,3})>"
)


def with_characters(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with the characters that are meant, and a warning of codes that stay as they are."""
    unread: dict[str, None] = {}

    def character(code: re.Match[str]) -> str:
        read = _greek(code[1]) if code[1] else _SIGNS.get(code[0][1:-1])
        if read is None:
            unread.setdefault(code[0])
        return read or code[0]

    text = _SYMBOL_CODE.sub(character, text)
    warning = f"typesetting codes left as they are: {', '.join(unread)}"
    return text, (warning,) if unread else ()


def _greek(name: str) -> str | None:
    letter = _GREEK.get(name.lower())
    return letter.upper() if letter and name[0].isupper() else letter


_PRE: Final = re.compile(r"<pre\b[^<>]*>(.*?)(?:</pre\s*>|\Z)", re.IGNORECASE | re.DOTALL)
# EveryCRSReport.com puts what it read out of a PDF into one such element, and no page around it.
_KEEPING_LINES: Final = re.compile(r"\s*<div\b([^<>]{1,500})>", re.IGNORECASE)
_PREFORMATTED: Final = re.compile(r"\bwhite-space:\s*pre\b", re.IGNORECASE)
_DIV_END: Final = re.compile(r"</div\s*>\Z", re.IGNORECASE)
_PAGE_TAG: Final = re.compile(r"<(?:!doctype html|html|head|body)\b", re.IGNORECASE)
_WRAPPING: Final = re.compile(r"</?(?:html|body|pre|a|doc|span|font)(?:\s[^<>]*)?>", re.IGNORECASE)
_END_MARK: Final = re.compile(r"^[ \t]*<all>[ \t]*$", re.IGNORECASE | re.MULTILINE)
_PAGE: Final = re.compile(r"\[\[\s*Page\s+([^\[\]\n]{1,24}?)\s*\]\]", re.IGNORECASE)
_FIRST_PAGE: Final = re.compile(r"\[Pages?\s+([A-Z]{0,2}\d[\w.]*)(?:\s*-\s*[\w.]+)?\]")
_MISSING: Final = re.compile(
    r"\[(?:TEXT|GRAPHICS?|TABLES?|TIFF)[^\[\]\n]{0,40}(?:NOT AVAILABLE|OMITTED)[^\[\]\n]{0,60}\]"
    r"|\[GRAPHIC\]\s*\[TIFF OMITTED\]"
)

# GPO's typesetting codes; in the lines each is one private character, as wide as nothing.
_CODES: Final = {
    "inf": ("\ue001", "<sub>", "</sub>"),
    "sub": ("\ue001", "<sub>", "</sub>"),
    "sup": ("\ue002", "<sup>", "</sup>"),
    "deleted": ("\ue003", "<del>", "</del>"),
}
_OPENING: Final = {code: (opening, closing) for code, opening, closing in _CODES.values()}
_CLOSING: Final = {"\ue005": "\ue001", "\ue006": "\ue002", "\ue007": "\ue003"}
_CODE: Final = re.compile(r"<(/?)(inf|sub|sup|deleted)>", re.IGNORECASE)
_TOKENS: Final = re.compile(rf"([\ue001-\ue007]|{PAGE_OPEN}[^{PAGE_CLOSE}]*{PAGE_CLOSE})")
_PRIVATE: Final = re.compile("[\ue000-\ue01f]")
_HYPHENED: Final = re.compile(r"([^\W\d_]{2,})-$")
_MAX_WORD_LENGTH: Final = 40
_WORD: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_SINGLE_QUOTE: Final = re.compile(r"`(?=\w)")


class TextNormalizer(BaseNormalizer):
    """The normalizer `text_v1`."""

    name = "text_v1"
    version = "1.3.0"

    def to_markdown(self, data: bytes, source_hint: str | None = None) -> NormalizedBody:
        """The text with its paragraphs put together again; the hint is not used."""
        del source_hint
        refuse_other_files(data, "text")
        decoded = decode(data)
        text, warnings = _prepared(decoded.text)
        if not any(character.isalnum() for character in text):
            raise WrongContentError("the file contains no text")
        return _Typist(text).write((*decoded.warnings, *warnings))


def _prepared(text: str) -> tuple[str, tuple[str, ...]]:
    warnings = []
    if ends := text.count("\x1a"):
        text = text.replace("\x1a", "")
        warnings.append(f"{ends} end-of-file characters (0x1A) removed")
    text, controls = without_controls(_PRIVATE.sub("", text))
    text = _unwrapped(text)
    text, marks = _END_MARK.subn("", text)
    if marks:
        warnings.append("the end mark <all> is removed")
    warnings.extend(
        f"the publisher left out: {what}" for what in dict.fromkeys(_missing_parts(text))
    )
    text, unread = with_characters(_CODE.sub(_coded, text))
    return _PAGE.sub(rf"{PAGE_OPEN}\1{PAGE_CLOSE}", text), (*controls, *warnings, *unread)


def _missing_parts(text: str) -> list[str]:
    return [" ".join(match.split()) for match in _MISSING.findall(text)]


def _unwrapped(text: str) -> str:
    if (opening := _KEEPING_LINES.match(text)) and _PREFORMATTED.search(opening[1]):
        return html.unescape(_DIV_END.sub("", text[opening.end() :].rstrip()))
    if not _PAGE_TAG.search(text[:2048]):
        return text
    parts = _PRE.findall(text)
    if not parts:
        raise WrongContentError("an HTML page without <pre>: html_v1 reads it")
    return html.unescape(_WRAPPING.sub("", "\n\n".join(parts)))


def _coded(match: re.Match[str]) -> str:
    code = _CODES[match[2].lower()][0]
    return chr(ord(code) + 4) if match[1] else code


class _Typist:
    def __init__(self, text: str) -> None:
        self._out = HtmlWriter()
        self._blocks, self._layout = blocks_of(text)
        self._words = {word.lower() for word in _WORD.findall(text)}
        self._codes: list[str] = []
        headings = [block for block in self._blocks if block.kind is BlockKind.HEADING]
        self._levels = iter(levels_of([_TOKENS.sub("", _block_text(block)) for block in headings]))

    def write(self, warnings: tuple[str, ...]) -> NormalizedBody:
        while self._blocks and self._blocks[-1].kind is BlockKind.RULE:
            self._blocks.pop()
        for block in self._blocks:
            self._block(block)
        return self._out.finish(warnings)

    def _block(self, block: TextBlock) -> None:
        if block.kind is BlockKind.PROSE:
            for paragraph in paragraphs_of(block, self._layout):
                self._paragraph(paragraph)
        elif block.kind is BlockKind.HEADING:
            self._heading(block)
        elif block.kind is BlockKind.TABLE:
            self._table(block)
        else:
            self._pages(block.lines[0])
            self._out.block()
            self._out.put_markup("---")

    def _heading(self, block: TextBlock) -> None:
        self._pages(block.lines[0])
        text = _quoted(self._joined(block.lines))
        self._out.open_heading(next(self._levels), section_label(_TOKENS.sub("", text)))
        self._inline(text)
        self._end_codes()
        self._out.close_heading()

    def _table(self, block: TextBlock) -> None:
        for line in block.lines:
            self._pages(line)
        shift = min((line.indent for line in block.lines if line.text), default=0)
        self._out.fenced([_TOKENS.sub("", line.whole)[shift:] for line in block.lines])

    def _paragraph(self, paragraph: Paragraph) -> None:
        self._pages(paragraph.lines[0])
        self._out.block()
        start = 0
        for end in sorted(paragraph.breaks):
            self._line(paragraph.lines[start:end])
            self._out.br()
            start = end
        self._line(paragraph.lines[start:])
        self._end_codes()

    def _line(self, lines: list[TextLine]) -> None:
        text = _quoted(self._joined(lines))
        if text.startswith("[") and (first := _FIRST_PAGE.fullmatch(text.strip())):
            self._out.page(first[1])
        self._inline(text)

    def _joined(self, lines: list[TextLine]) -> str:
        """One line of text; a word parted by a hyphen grows together if the text has it whole."""
        if len(lines) == 1 and not lines[0].pages:
            return lines[0].text
        parts: list[str] = []
        for line in lines:
            if parts and parts[-1].endswith("-") and line.text[:1].isalnum():
                parts[-1] = self._unhyphened(parts[-1], line.text)
            elif parts:
                parts.append(" ")
            parts.extend(f"{PAGE_OPEN}{page}{PAGE_CLOSE}" for page in line.pages)
            parts.append(line.text)
        return "".join(parts)

    def _unhyphened(self, before: str, after: str) -> str:
        head, tail = _HYPHENED.search(before[-_MAX_WORD_LENGTH:]), _WORD.match(after)
        if head is None or tail is None:
            return before
        one, other = head[1].lower(), tail[0].lower()
        whole = one + other in self._words and f"{one}-{other}" not in self._words
        return before[:-1] if whole else before

    def _end_codes(self) -> None:
        """A code that is never closed ends with its paragraph."""
        while self._codes:
            self._codes.pop()
            self._out.unmark()

    def _close(self, code: str) -> None:
        at = self._codes.index(code)
        inner = self._codes[at + 1 :]
        for _ in self._codes[at:]:
            self._out.unmark()
        for other in inner:
            self._out.mark(*_OPENING[other])
        self._codes[at:] = inner

    def _pages(self, line: TextLine) -> None:
        """Pages that begin before a block; on the block's line a comment would make it HTML."""
        for page in line.pages:
            self._out.block()
            self._out.page(page)
            self._out.put_markup(html_comment(f"Page {page}"))
        line.pages = []

    def _inline(self, text: str) -> None:
        for token in _TOKENS.split(text):
            if token in _OPENING:
                if token not in self._codes:
                    self._codes.append(token)
                    self._out.mark(*_OPENING[token])
            elif token in _CLOSING:
                if _CLOSING[token] in self._codes:
                    self._close(_CLOSING[token])
            elif token.startswith(PAGE_OPEN):
                page = token.strip(PAGE_OPEN + PAGE_CLOSE)
                self._out.page(page)
                self._out.put_markup(html_comment(f"Page {page}"))
            else:
                self._out.text(token)


def _block_text(block: TextBlock) -> str:
    return " ".join(line.text for line in block.lines)


def _quoted(text: str) -> str:
    """Typographic quotation marks for those typed as accents and apostrophes."""
    if "`" not in text and "''" not in text:
        return text
    return _SINGLE_QUOTE.sub("‘", text.replace("``", "“").replace("''", "”"))
