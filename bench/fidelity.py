"""How many of a publisher's words are in the Markdown, in the same order?

All text nodes of the raw file outside script, style, head, nav and metadata elements, as lower-case
words; the longest common subsequence with the words of the Markdown, over the source's count.
For a PDF the words are those of its text layer as pdfium reads it.

    FONDS_CORPUS=… python bench/fidelity.py [--json] [--only uslm_v1] [FOLDER…]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from lxml import etree, html
from rapidfuzz.distance import LCSseq

from fonds.errors import FondsError
from fonds.normalize.registry import get_normalizer, sniff

AT_LEAST = {"pdf_v1": 0.98}
WORD = re.compile(r"[^\W_]+")
SKIPPED = {"script", "style", "head", "nav", "meta", "metadata", "HEADER", "FDSYS"}
LONGEST = 60_000
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
    import pypdfium2  # noqa: PLC0415 — only for PDFs

    document = pypdfium2.PdfDocument(data)
    pages = (document[index].get_textpage().get_text_range() for index in range(len(document)))
    return [word for page in pages for word in WORD.findall(page.lower())]


def measure(path: Path, only: str | None) -> tuple[str, float, int] | None:
    """Normalizer, share of words kept and their number; None for a file that is no body."""
    data = path.read_bytes()
    try:
        name = sniff(data)
        if only not in {None, name}:
            return None
        words = source_words(data, name)
        markdown = get_normalizer(name).to_markdown(data).markdown
    except (FondsError, etree.LxmlError, ValueError, RuntimeError):
        return None
    if not words:
        return None
    kept = WORD.findall(markdown.lower())
    wanted = len(words[:LONGEST])
    found = LCSseq.similarity(words[:LONGEST], kept[: LONGEST + LONGEST // 2])
    return name, found / wanted, wanted


def files(folders: list[Path]) -> Iterator[Path]:
    """Every file of the folders, or of the real documents."""
    if folders:
        for folder in folders:
            yield from sorted(path for path in folder.rglob("*") if path.is_file())
        return
    archives = Path(os.environ["FONDS_CORPUS"])
    with tempfile.TemporaryDirectory() as target:
        for name in ARCHIVES:
            subprocess.run([archives / "unpack", target, name], check=True)
            yield from files([Path(target) / name])


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--only")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows: dict[str, list[tuple[float, int, str]]] = defaultdict(list)
    for path in files(options.folders):
        measured = measure(path, options.only)
        if measured:
            rows[measured[0]].append((measured[1], measured[2], str(path)))
    figures = {name: _summary(name, found) for name, found in sorted(rows.items())}
    if options.json:
        print(json.dumps(figures))
        return
    for name, figure in figures.items():
        print(f"{name:12} {figure['files']:>6,} files {figure['words']:>11,} words", end="")
        print(f" {figure['kept']:.5f} kept (at least {figure['at_least']})")
        for share, words, worst in sorted(rows[name])[:10]:
            print(f"    {share:.4f} of {words:>7,}  {worst}")


def _summary(name: str, found: list[tuple[float, int, str]]) -> dict[str, float]:
    words = sum(count for _, count, _ in found)
    kept = sum(share * count for share, count, _ in found)
    at_least = AT_LEAST.get(name, 0.999)
    return {"files": len(found), "words": words, "kept": kept / words, "at_least": at_least}


if __name__ == "__main__":
    main()
