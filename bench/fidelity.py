"""How many of a publisher's words are in the Markdown in the same order, and how many left out?

All text nodes of the raw file outside script, style, head and metadata elements, as lower-case
words. *Kept* is the longest common subsequence with the words of the Markdown, over the source's
count without the passages that the normalizer reports as left out, such as menus; a passage that
the file does not have takes no word from the count. *Left out* is the share of words so reported;
`--sample 300` prints that many of the passages, to be read.
For a PDF the words are those of its text layer as pdfium reads it. A word that the page breaks with
a hyphen at a line's end counts as one where the Markdown has it in one, and as its two parts where
it has not. Files without a text layer are not measured, and no picture is read.

A file may draw a table by columns, or its headers last, where we read it by rows. For PDFs a second
figure counts words that a table has on their page in any order, and Japanese by letters, as its
words end where lines do. Prose that is taken for a table gains by that: `bench.tables` counts such.

A page of a PDF that loses more than 2 % of its letters, counted by words in the Markdown of it and
its neighbours, must be named in a warning.

    FONDS_CORPUS=… python -m bench.fidelity [--json] [--only uslm_v1] [--files 20] [FOLDER…]
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tempfile
import unicodedata
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pypdfium2
from bench.figures import Figure, asking, reaching, tell, within
from lxml import etree, html
from rapidfuzz.distance import LCSseq

from fonds.errors import FondsError
from fonds.model import LeftOut, NormalizedBody
from fonds.normalize.pdf import PdfNormalizer
from fonds.normalize.registry import get_normalizer, sniff

AT_LEAST = {"pdf_v1": 0.99}
WORD = re.compile(r"[^\W_]+")
# Where a line ends in a hyphen, pdfium writes a non-character, or the hyphen and the line's end.
LINE_END = re.compile("[\ufffe\x02]|-\r\n")
PDF_WORD = re.compile("[^\\W_]+(?:(?:[\ufffe\x02]|-\r\n)[^\\W\\d_]+)*")
TERM = re.compile(r"[a-z0-9]+|[^\W_]")
_KANA_AND_KANJI = "\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff"
LETTER_OR_WORD = re.compile(f"[{_KANA_AND_KANJI}]|[^{_KANA_AND_KANJI}]+")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
"""What the text leaves out, which is listed too."""
BROKEN = "\n"
NORMALIZERS = {"pdf_v1": PdfNormalizer(recognizer=None)}
"""Without text recognition: the words of pictures are not in the text layer."""
SKIPPED = {"script", "style", "head", "meta", "amendMeta", "metadata", "HEADER", "FDSYS"}
SKIPPED |= {"jurabk", "gliederungskennzahl"}
"""Metadata, the latter of German norms: names of the act and of levels that each norm repeats."""
MAX_LOSS = 0.02
"""Of the letters of a page, without a warning."""
NAMED_PAGE = re.compile(r"\bpages? (\d+)")
MAX_WORDS = 60_000
"""Words compared of one file; the comparison is quadratic in the worst case."""
ARCHIVES = (
    "federal/bills",
    "federal/cfr",
    "federal/committee_reports",
    "federal/congressional_record",
    "federal/crs",
    "federal/federal_register",
    "federal/gao",
    "federal/hearings",
    "federal/member_statements",
    "federal/public_laws",
    "federal/usc",
    "codes/ct",
    "codes/ga",
    "codes/hi",
    "codes/la",
    "codes/mt",
    "codes/usc-frag",
    "codes/usc-mono",
    "codes/uslm-samples",
    "sites/pdf",
    "sites/sites",
    "documents",
)


class Measured(NamedTuple):
    """One file: the worst come first."""

    kept: float
    words: int
    path: str
    pages: int = 0
    """Of a PDF, those with text."""
    silent: int = 0
    """Those that lose letters without a warning."""
    left_out: tuple[LeftOut, ...] = ()
    left_out_words: int = 0
    """Of the file's words, those of passages left out."""
    kept_in_tables: float = 0.0
    """Of a PDF, the same with those that a table has in another order."""


def source_words(data: bytes, normalizer: str) -> list[str]:
    """The words that must not be lost."""
    if normalizer == "pdf_v1":
        return _pdf_words(data)
    if normalizer == "text_v1" and not data.lstrip().startswith(b"<"):
        return WORD.findall(data.decode("utf-8", "replace").lower())
    if normalizer in {"html_v1", "text_v1"}:
        root = html.document_fromstring(data)
    else:
        parser = etree.XMLParser(resolve_entities=False, huge_tree=True, no_network=True)
        root = etree.fromstring(data, parser)
    return [word for text in _texts(root) for word in WORD.findall(text.lower())]


def _texts(root: etree._Element) -> Iterator[str]:
    """Text nodes in document order, without recursion."""
    skipping = 0
    for event, element in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        if event in {"comment", "pi"}:
            if not skipping and element.tail:
                yield element.tail
            continue
        skipped = etree.QName(element).localname in SKIPPED
        if event == "start":
            skipping += skipped
            if not skipping and element.text:
                yield element.text
        else:
            skipping -= skipped
            if not skipping and element.tail:
                yield element.tail


def _pdf_words(data: bytes) -> list[str]:
    """Words as pdfium reads them; where a hyphen ends a line, both parts with the mark between."""
    return [word for page in _pdf_pages(data) for word in page]


def _pdf_pages(data: bytes) -> list[list[str]]:
    document = pypdfium2.PdfDocument(data)
    pages = (document[index].get_textpage().get_text_range() for index in range(len(document)))
    return [
        [LINE_END.sub(BROKEN, word) for word in PDF_WORD.findall(page.lower())] for page in pages
    ]


def losing_pages(pages: list[list[str]], body: NormalizedBody) -> list[int]:
    """The pages that lose more letters than they may, though no warning names them."""
    starts = {mark.pdf_page: mark.offset for mark in reversed(body.pages)}
    offsets = [starts[number] for number in range(1, len(pages) + 1)] + [len(body.markdown)]
    slices = [COMMENT.sub(" ", body.markdown[start:end]) for start, end in pairwise(offsets)]
    for passage in body.left_out:
        slices[(passage.pdf_page or 1) - 1] += f" {passage.text}"
    source = [Counter(_terms(" ".join(rejoined(words, body.markdown)))) for words in pages]
    kept = [Counter(_terms(text.lower())) for text in slices]
    missing = [words - have for words, have in zip(source, kept, strict=True)]
    # Notes, and words that the page cuts, are put on the page before or behind.
    spare = [have - words for words, have in zip(source, kept, strict=True)]
    warned = {int(number) for text in body.warnings for number in NAMED_PAGE.findall(text)}
    losing = []
    for index, words in enumerate(source):
        around = sum(
            (spare[at] for at in (index - 1, index + 1) if 0 <= at < len(spare)), Counter()
        )
        lost, all_letters = _letters(missing[index] - around), _letters(words)
        if lost > MAX_LOSS * all_letters and index + 1 not in warned:
            losing.append(index + 1)
    return losing


def _terms(text: str) -> list[str]:
    """Words of ASCII, and other letters one by one: Japanese words depend on where lines end."""
    return TERM.findall(unicodedata.normalize("NFKC", text))


def _letters(words: Counter[str]) -> int:
    return sum(len(word) * count for word, count in words.items())


def rejoined(words: list[str], markdown: str) -> list[str]:
    """Broken words in one where the Markdown has them so, else their parts."""
    markdown_words = set(WORD.findall(markdown.lower()))
    joined: list[str] = []
    for word in words:
        parts = word.split(BROKEN)
        whole = "".join(parts)
        joined += [whole] if whole in markdown_words else parts
    return joined


def share(words: list[str], markdown: str) -> float:
    """How many of the words are in the Markdown, in the same order."""
    kept = WORD.findall(markdown.lower())[: MAX_WORDS + MAX_WORDS // 2]
    return LCSseq.similarity(words[:MAX_WORDS], kept) / len(words[:MAX_WORDS])


def without(words: list[str], left_out: Iterable[LeftOut]) -> list[str]:
    """The words without those of each passage, which are looked for in the order of the file."""
    remaining: list[str] = []
    position = 0
    for passage in left_out:
        wanted = WORD.findall(passage.text.lower())
        start = _position(words, wanted, position)
        if start is not None:
            remaining += words[position:start]
            position = start + len(wanted)
    return remaining + words[position:]


def _position(words: list[str], wanted: list[str], start: int) -> int | None:
    while wanted and start + len(wanted) <= len(words):
        try:
            start = words.index(wanted[0], start)
        except ValueError:
            return None
        if words[start : start + len(wanted)] == wanted:
            return start
        start += 1
    return None


def kept_in_tables(pages: list[list[str]], body: NormalizedBody) -> float:
    """How many words are kept in order, in a table in any order, or are listed as left out."""
    source = [
        (word, number)
        for number, words in enumerate(pages, 1)
        for word in _letters_apart(rejoined(words, body.markdown))
    ][:MAX_WORDS]
    kept = list(_placed_words(body))[: MAX_WORDS + MAX_WORDS // 2]
    missing = Counter(source)
    spare = Counter(
        (word, passage.pdf_page or 1)
        for passage in body.left_out
        for word in _letters_apart(WORD.findall(passage.text.lower()))
    )
    spare.update(word for word, in_table in kept if in_table)
    for block in LCSseq.opcodes([word for word, _ in source], [word for (word, _), _ in kept]):
        if block.tag == "equal":
            missing.subtract(source[block.src_start : block.src_end])
            both = kept[block.dest_start : block.dest_end]
            spare.subtract(word for word, in_table in both if in_table)
    return 1 - ((+missing) - (+spare)).total() / len(source)


def _placed_words(body: NormalizedBody) -> Iterator[tuple[tuple[str, int], bool]]:
    """The words of the Markdown with their page, and if they are in a table."""
    starts = [mark.offset for mark in body.pages]
    offset = 0
    for line in body.markdown.splitlines(keepends=True):
        page = body.pages[max(bisect_right(starts, offset) - 1, 0)].pdf_page or 1
        for word in _letters_apart(WORD.findall(line.lower())):
            yield (word, page), line.startswith("|")
        offset += len(line)


def _letters_apart(words: Iterable[str]) -> Iterator[str]:
    """Words, and Japanese ones letter by letter."""
    for word in words:
        yield from [word] if word.isascii() else LETTER_OR_WORD.findall(word)


def measure(path: Path, only: str | None) -> tuple[str, Measured] | None:
    """Normalizer and what was measured; None for a file that is not a document."""
    data = path.read_bytes()
    try:
        name = sniff(data)
        if only not in {None, name}:
            return None
        words = source_words(data, name)
        body = (NORMALIZERS.get(name) or get_normalizer(name)).to_markdown(data)
    except (FondsError, etree.LxmlError, ValueError, RuntimeError):
        return None
    if not words:
        return None
    if name == "pdf_v1":
        words = rejoined(words, body.markdown)
    text_words = without(words, body.left_out)
    if not text_words:
        return None
    measured = Measured(
        share(text_words, body.markdown),
        len(text_words[:MAX_WORDS]),
        str(path),
        left_out=body.left_out,
        left_out_words=len(words) - len(text_words),
    )
    if name != "pdf_v1":
        return name, measured
    pages = _pdf_pages(data)
    losing = losing_pages(pages, body)
    if losing:
        print(f"{path}: pages {', '.join(map(str, losing))} lose letters", file=sys.stderr)
    return name, measured._replace(
        pages=sum(map(bool, pages)),
        silent=len(losing),
        kept_in_tables=kept_in_tables(pages, body),
    )


def files(folders: list[Path], max_files: int | None) -> Iterator[Path]:
    """Every file of the folders, or of the real documents; of each at most that many."""
    if folders:
        for folder in folders:
            yield from sorted(path for path in folder.rglob("*") if path.is_file())[:max_files]
        return
    archives = Path(os.environ["FONDS_CORPUS"])
    with tempfile.TemporaryDirectory() as target:
        for name in ARCHIVES:
            subprocess.run([archives / "unpack", target, name], check=True)
            yield from files([Path(target) / name], max_files)


def main() -> None:
    """Print the figures."""
    parser = asking(__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--only")
    parser.add_argument("--files", type=int, help="at most, of each folder")
    parser.add_argument("--sample", type=int, default=0, help="passages left out to print")
    options = parser.parse_args()
    rows: dict[str, list[Measured]] = defaultdict(list)
    for path in files(options.folders, options.files):
        measured = measure(path, options.only)
        if measured:
            rows[measured[0]].append(measured[1])
    if not options.json:
        show_worst(rows)
        show_left_out(rows, options.sample)
    figures = [_summary(name, measured) for name, measured in sorted(rows.items())]
    if "pdf_v1" in rows:
        figures += [_with_tables(rows["pdf_v1"]), _losses(rows["pdf_v1"])]
    tell(options, figures)


def show_worst(rows: Mapping[str, list[Measured]]) -> None:
    """The ten files of each normalizer that lost most."""
    for name, measured in sorted(rows.items()):
        print(name)
        for worst in sorted(measured)[:10]:
            print(f"    {worst.kept:.4f} of {worst.words:>7,}  {worst.path}")


def show_left_out(rows: Mapping[str, list[Measured]], count: int) -> None:
    """Some of the passages that are not in the texts, for a person to read."""
    passages = [
        (name, passage, file.path)
        for name, measured in sorted(rows.items())
        for file in measured
        for passage in file.left_out
    ]
    for name, passage, path in random.Random(7).sample(passages, min(count, len(passages))):
        print(f"    {name} {passage.reason}: {passage.text[:200]!r} at {passage.offset} of {path}")


def _summary(name: str, measured: list[Measured]) -> Figure:
    words = sum(file.words for file in measured)
    kept = sum(file.kept * file.words for file in measured) / words
    left_out = sum(file.left_out_words for file in measured)
    passages = sum(len(file.left_out) for file in measured)
    what = f"words kept in order by {name}, {len(measured):,} files, {words:,} words"
    remark = f"{left_out / (words + left_out):.2%} of all words left out, in {passages:,} passages"
    return reaching(what, round(kept, 5), AT_LEAST.get(name, 0.9999), remark=remark)


def _with_tables(measured: list[Measured]) -> Figure:
    words = sum(file.words for file in measured)
    kept = sum(file.kept_in_tables * file.words for file in measured) / words
    what = "words of PDFs kept, those of a table in any order, or listed as left out"
    return reaching(what, round(kept, 5), AT_LEAST["pdf_v1"])


def _losses(measured: list[Measured]) -> Figure:
    pages = sum(file.pages for file in measured)
    what = f"pages of PDFs that lose over 2 % of their letters unsaid, of {pages:,} with text"
    return within(what, sum(file.silent for file in measured), 0)


if __name__ == "__main__":
    main()
