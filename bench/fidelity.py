"""How many of a publisher's words are in the Markdown, in the same order?

All text nodes of the raw file outside script, style, head, nav and metadata elements, as lower-case
words; the longest common subsequence with the words of the Markdown, over the source's count.
For a PDF the words are those of its text layer as pdfium reads it. A word that the page breaks with
a hyphen at a line's end counts as one where the Markdown has it in one, and as its two parts where
it has not. Files without a text layer are not measured, and no picture is read.

    FONDS_CORPUS=… python -m bench.fidelity [--json] [--only uslm_v1] [--files 20] [FOLDER…]
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pypdfium2
from bench.figures import Figure, asking, reaching, tell
from lxml import etree, html
from rapidfuzz.distance import LCSseq

from fonds.errors import FondsError
from fonds.normalize.pdf import PdfNormalizer
from fonds.normalize.registry import get_normalizer, sniff

AT_LEAST = {"pdf_v1": 0.98}
WORD = re.compile(r"[^\W_]+")
# Where a line ends in a hyphen, pdfium writes a non-character, or the hyphen and the line's end.
LINE_END = re.compile("[\ufffe\x02]|-\r\n")
PDF_WORD = re.compile("[^\\W_]+(?:(?:[\ufffe\x02]|-\r\n)[^\\W\\d_]+)*")
BROKEN = "\n"
NORMALIZERS = {"pdf_v1": PdfNormalizer(recognizer=None)}
"""Without text recognition: the words of pictures are not in the text layer."""
SKIPPED = {"script", "style", "head", "nav", "meta", "amendMeta", "metadata", "HEADER", "FDSYS"}
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
)


class Measured(NamedTuple):
    """One file: the worst come first."""

    kept: float
    words: int
    path: str


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
    document = pypdfium2.PdfDocument(data)
    pages = (document[index].get_textpage().get_text_range() for index in range(len(document)))
    words = (word for page in pages for word in PDF_WORD.findall(page.lower()))
    return [LINE_END.sub(BROKEN, word) for word in words]


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
    words = rejoined(words, body.markdown) if name == "pdf_v1" else words
    if not words:
        return None
    return name, Measured(share(words, body.markdown), len(words[:MAX_WORDS]), str(path))


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
    options = parser.parse_args()
    rows: dict[str, list[Measured]] = defaultdict(list)
    for path in files(options.folders, options.files):
        measured = measure(path, options.only)
        if measured:
            rows[measured[0]].append(measured[1])
    if not options.json:
        show_worst(rows)
    tell(options, [_summary(name, measured) for name, measured in sorted(rows.items())])


def show_worst(rows: Mapping[str, list[Measured]]) -> None:
    """The ten files of each normalizer that lost most."""
    for name, measured in sorted(rows.items()):
        print(name)
        for worst in sorted(measured)[:10]:
            print(f"    {worst.kept:.4f} of {worst.words:>7,}  {worst.path}")


def _summary(name: str, measured: list[Measured]) -> Figure:
    words = sum(file.words for file in measured)
    kept = sum(file.kept * file.words for file in measured) / words
    what = f"words kept in order by {name}, {len(measured):,} files, {words:,} words"
    return reaching(what, round(kept, 5), AT_LEAST.get(name, 0.999))


if __name__ == "__main__":
    main()
