"""How fast are the normalizers and the chunker, compared with the libraries below or beside them?

Ratios of throughput in one run, on real files where FONDS_CORPUS names them:
uslm_v1 to bare lxml iterparse, html_v1 to markdownify, pdf_v1 to bare pdf_oxide, the chunker to
semantic-text-splitter with our token counter and with its own. docling is not compared: it
downloads its models when it is first used, and this runs without a network.

    FONDS_CORPUS=… python -m bench.normalize [--files 200] [--json]
"""

from __future__ import annotations

import io
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import markdownify
import pdf_oxide
from bench.figures import Figure, asking, tell
from lxml import etree
from semantic_text_splitter import MarkdownSplitter

from fonds.chunk import tokens
from fonds.chunk.chunker import Chunker
from fonds.errors import FondsError
from fonds.model import NormalizedBody
from fonds.normalize.pdf import PdfNormalizer
from fonds.normalize.registry import get_normalizer

BARS = {"uslm_v1": 0.25, "html_v1": 5.0, "pdf_v1": 0.4}
PEERS = {
    "uslm_v1": "lxml iterparse, nothing kept",
    "html_v1": "markdownify",
    "pdf_v1": "pdf_oxide, text of pages only",
}
REMARKS = {"uslm_v1": "ours writes the Markdown", "pdf_v1": "ours also finds headings and order"}
CHUNKER = 5.0
FILES = {
    "uslm_v1": ("codes/usc-mono", "*.xml", 4),
    "html_v1": ("codes/la", "*.html", 200),
    "pdf_v1": ("sites/pdf", "*.pdf", 40),
}


NORMALIZERS = {"pdf_v1": PdfNormalizer(recognizer=None)}
"""Without text recognition: pdf_oxide leaves scanned pages out."""
ROUNDS = 5
"""Repetitions of chunkers, which take a fraction of a second."""
MAX_TEXT_LENGTH = 400_000
"""Characters of a text that are cut into passages."""


def seconds(
    act: Callable[[Any], object],
    items: list[Any],
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Time of acting on all items once."""
    started = clock()
    for item in items:
        act(item)
    return clock() - started


def iterparse(data: bytes) -> None:
    """Only parse the XML."""
    for _, element in etree.iterparse(io.BytesIO(data), huge_tree=True, resolve_entities=False):
        element.clear()


def bare_pdf(data: bytes) -> None:
    """Extract the text of all pages with pdf_oxide."""
    document = pdf_oxide.PdfDocument.from_bytes(data)
    for page in range(document.page_count()):
        document.extract_text(page)


def compare(max_files: int) -> Iterator[Figure]:
    """Megabytes a second, ours and the peer's, of each pair."""
    peers: dict[str, Callable[[Any], object]] = {
        "uslm_v1": iterparse,
        "html_v1": lambda data: markdownify.markdownify(data.decode("utf-8", "replace")),
        "pdf_v1": bare_pdf,
    }
    markdown: list[str] = []
    for name, (archive, pattern, count) in FILES.items():
        normalizer = NORMALIZERS.get(name) or get_normalizer(name)
        candidates = real_files(archive, pattern, min(count, max_files))
        files = [data for data in candidates if works(normalizer, data)]
        texts = [normalizer.to_markdown(data).markdown for data in files]
        markdown += texts if name == "uslm_v1" else []
        megabytes = sum(map(len, files)) / 1e6
        yield Figure(
            what=f"{name}, {len(files)} files",
            ours=megabytes / seconds(normalizer.to_markdown, files),
            theirs=megabytes / seconds(peers[name], files),
            unit="MB/s",
            peer=PEERS[name],
            better="more",
            least=BARS[name],
            remark=REMARKS.get(name, ""),
        )
    yield from compare_chunkers([text[:MAX_TEXT_LENGTH] for text in markdown])


def compare_chunkers(markdown: list[str]) -> Iterator[Figure]:
    """Megabytes for each second of the processor, each the best of some runs in turn.

    All cap passages at 512 tokens of cl100k_base: once counted by our own function, which has
    counted all words before, once by the tokenizer that is compiled into the peer. The peer saves
    the time that overlaps and locators take.
    """
    contenders: dict[str, Callable[[str], object]] = {
        "ours": lambda text: Chunker().chunk(NormalizedBody(markdown=text)),
        "with our counter": MarkdownSplitter.from_callback(tokens.count, 512).chunks,
        "with its own tiktoken": MarkdownSplitter.from_tiktoken_model("gpt-4", 512).chunks,
    }
    rounds = [
        {name: seconds(act, markdown, time.process_time) for name, act in contenders.items()}
        for _ in range(ROUNDS)
    ]
    megabytes = sum(map(len, markdown)) / 1e6
    best = {name: megabytes / min(taken[name] for taken in rounds) for name in contenders}
    ours = best.pop("ours")
    for name, theirs in best.items():
        yield Figure(
            what="chunking statutes",
            ours=ours,
            theirs=theirs,
            unit="MB/s",
            peer=f"semantic-text-splitter {name}",
            better="more",
            least=CHUNKER,
        )


def works(normalizer: Any, data: bytes) -> bool:
    """Whether both sides can read the file at all."""
    try:
        normalizer.to_markdown(data)
        if normalizer.name == "pdf_v1":
            bare_pdf(data)
    except (FondsError, RuntimeError, ValueError, OSError):
        return False
    return True


def real_files(archive: str, pattern: str, count: int) -> list[bytes]:
    """Some files of an archive of real documents."""
    with tempfile.TemporaryDirectory() as target:
        unpack = Path(os.environ["FONDS_CORPUS"]) / "unpack"
        subprocess.run([unpack, target, archive], check=True)
        paths = sorted((Path(target) / archive).rglob(pattern))
        return [path.read_bytes() for path in paths[:count]]


def main() -> None:
    """Print the figures; exit with 1 if one is below its limit."""
    parser = asking(__doc__)
    parser.add_argument("--files", type=int, default=200, help="at most, of each kind")
    options = parser.parse_args()
    tell(options, list(compare(options.files)))


if __name__ == "__main__":
    main()
