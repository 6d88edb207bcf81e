"""Damaged and hostile bodies: Markdown that can be cut into passages, or a named error."""

from __future__ import annotations

import os
import random
import subprocess
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.support import servers
from tests.support.faults.damage import HOSTILE, LARGEST, Damaged, damaged, endless

from fonds.chunk.chunker import Chunker
from fonds.demo.bundle import DATA
from fonds.engine.local import LocalEngine
from fonds.errors import FondsError, ParseError, WorkerDiedError
from fonds.model import NormalizedBody
from fonds.normalize.pdf import PdfNormalizer
from fonds.normalize.registry import Normalizer, get_normalizer, normalizer_names, sniff

FIXTURES: Final = Path(__file__).parents[1] / "unit" / "normalize" / "fixtures"
CODES: Final = Path(__file__).parents[1] / "sources"
FILES: Final = {
    "billres_v1": sorted(FIXTURES.glob("billres/*.xml")),
    "cga_v1": sorted(CODES.glob("cgs/files/**/chap_*.htm")),
    "dc_xml_v1": sorted(FIXTURES.parent.glob("dc/*.xml")),
    "docx_v1": sorted(FIXTURES.glob("docx/*.docx")),
    "ecfr_xml_v1": sorted(FIXTURES.glob("ecfr_xml/*.xml")),
    "egov_v1": sorted(CODES.glob("jp/files/**/*.xml"))[:4],
    "fr_xml_v1": sorted(DATA.glob("www.federalregister.gov/**/*.xml"))[:8],
    "gii_v1": sorted(CODES.glob("de/files/gesetze/**/*.xml"))[:4],
    "html_v1": sorted(FIXTURES.glob("html/*.htm*")),
    "markdown_v1": sorted(FIXTURES.glob("markdown/*.md")),
    "pdf_v1": [FIXTURES / "pdf" / "compressed.pdf", FIXTURES / "pdf" / "report.pdf"],
    "text_v1": sorted([*FIXTURES.glob("text/*.htm"), *FIXTURES.glob("text/*.txt")]),
    "uslm_v1": sorted(FIXTURES.glob("uslm/*.xml")),
    "xml_v1": sorted(FIXTURES.glob("billres/*.xml")),
}
REAL: Final = {
    "billres_v1": ("federal/bills", "*.xml"),
    "cga_v1": ("codes/ct", "*.htm"),
    "dc_xml_v1": ("codes/dc", "[0-9]*.xml"),
    "ecfr_xml_v1": ("federal/cfr", "*.xml"),
    "egov_v1": ("codes/jp", "*.xml"),
    "fr_xml_v1": ("federal/federal_register", "*.xml"),
    "gii_v1": ("codes/de-gii", "*.xml"),
    "html_v1": ("codes/hi", "*.htm*"),
    "pdf_v1": ("sites/pdf", "*.pdf"),
    "text_v1": ("federal/congressional_record", "*.htm"),
    "uslm_v1": ("codes/usc-frag", "*.xml"),
    "xml_v1": ("codes/ca", "*.xml"),
}
SEEDS: Final = 20
SHORT: Final = 1_000
LONG: Final = int(os.environ.get("FONDS_MUTATIONS", "20000"))
SECONDS: Final = 10.0
"""What a normalizer, the look at the bytes and the chunker may take together for 1 MB."""


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalEngine]:
    """One worker for all that it survives."""
    with LocalEngine(workers=1, seconds=SECONDS, memory_mib=1024) as engine:
        yield engine


@pytest.mark.smoke
@pytest.mark.parametrize("name", FILES)
def test_damaged_bodies_become_markdown_or_a_named_error(
    name: str, tmp_path: Path, engine: LocalEngine
) -> None:
    rounds = -(-SHORT // len(FILES))
    examine(name, _damaged(name, rounds, seed="short"), tmp_path, engine)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("name", FILES)
def test_very_many_damaged_bodies_become_markdown_or_a_named_error(
    name: str, seed: int, tmp_path: Path, engine: LocalEngine
) -> None:
    rounds = -(-LONG // (len(FILES) * SEEDS))
    examine(name, _damaged(name, rounds, seed=f"long {seed}"), tmp_path, engine)


@pytest.mark.long
@pytest.mark.parametrize("name", REAL)
def test_damaged_real_bodies_become_markdown_or_a_named_error(
    name: str, corpus: Callable[[str], Path], tmp_path: Path, engine: LocalEngine
) -> None:
    folder, pattern = REAL[name]
    paths = sorted(path for path in corpus(folder).rglob(pattern) if path.is_file())
    small = [path for path in paths if 0 < path.stat().st_size < LARGEST // 2]
    files = [_named(path) for path in small[:: max(1, len(small) // 12)]]
    assert files
    chance = random.Random(f"real {name}")
    examine(name, damaged(files, chance, 200, pieces=HOSTILE[name]), tmp_path, engine)


@pytest.mark.parametrize("name", FILES)
def test_one_thing_again_and_again_is_no_hang(
    name: str, tmp_path: Path, engine: LocalEngine
) -> None:
    examine(name, endless(name, FILES[name][-1].read_bytes(), 20_000), tmp_path, engine)


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_a_megabyte_of_one_thing_is_no_hang(name: str, tmp_path: Path) -> None:
    # A linear reader needs seconds, also on a busy machine; a quadratic one many minutes.
    items = endless(name, FILES[name][-1].read_bytes(), LARGEST)
    with LocalEngine(workers=1, seconds=6 * SECONDS, memory_mib=1024) as patient:
        examine(name, items, tmp_path, patient)


@pytest.mark.smoke
def test_every_normalizer_is_tried() -> None:
    # Of a page's article html_v1 makes the Markdown.
    assert sorted(FILES) == sorted({*normalizer_names()} - {"html_article_v1"})
    # These two read what users upload; no publisher of the corpus issues such files.
    assert sorted(REAL) == sorted({*FILES} - {"docx_v1", "markdown_v1"})
    assert all(FILES.values())


@pytest.mark.parametrize("name", FILES)
def test_the_undamaged_files_are_what_they_stand_for(name: str) -> None:
    for path in FILES[name]:
        # A chapter of Connecticut's is HTML as any other; any XML can be read by its shape.
        # Markdown is text that only its name tells apart.
        others = {"cga_v1": "html_v1", "xml_v1": "billres_v1", "markdown_v1": "text_v1"}
        looks_like = others.get(name, name)
        assert sniff(path.read_bytes()) == looks_like
        assert normalizer(name).to_markdown(path.read_bytes()).markdown


@pytest.mark.parametrize("name", FILES)
def test_the_command_gives_markdown_or_says_what_is_wrong(name: str, tmp_path: Path) -> None:
    _check_commands(name, 1, seed="command", folder=tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", FILES)
def test_many_commands_give_markdown_or_say_what_is_wrong(
    name: str, seed: int, tmp_path: Path
) -> None:
    _check_commands(name, 10, seed=f"command {seed}", folder=tmp_path)


@pytest.mark.smoke
def test_the_command_names_the_cause_in_one_line(tmp_path: Path) -> None:
    cut = tmp_path / "cut.xml"
    cut.write_bytes(FILES["uslm_v1"][0].read_bytes()[:2000])
    code, out, err = _run("normalize", str(cut))
    assert (code, out) == (1, "")
    assert err.startswith("error: not well-formed XML: ")
    assert err.count("\n") == 1


def _check_commands(name: str, rounds: int, *, seed: str, folder: Path) -> None:
    for number, item in enumerate(_damaged(name, rounds, seed=seed)):
        file = folder / f"{number}.bin"
        file.write_bytes(item.data)
        format_ = "auto" if number % 2 else name
        code, out, err = _run("normalize", str(file), "--format", format_)
        assert code in {0, 1}, (item.name, err)
        assert "Traceback" not in err, (item.name, err)
        assert "panicked" not in err, (item.name, err)
        assert out.strip() if code == 0 else err.startswith("error: "), (item.name, err)


def _run(*arguments: str) -> tuple[int, str, str]:
    command = [str(servers.fonds_command()), *arguments]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False, text=True)
    return done.returncode, done.stdout, done.stderr


# What is examined, and how ----------------------------------------------------------------


def examine(name: str, items: Iterable[Damaged], folder: Path, engine: LocalEngine) -> None:
    """Run all items under the limits of an engine; keep and name those that must not be."""
    wrong: list[str] = []
    work = ((name, item.data, item.name) for item in items)
    for outcome in engine.run(trouble, work):
        _, data, title = outcome.item
        found = outcome.result if outcome.error is None else _unexpected(name, outcome.error)
        if found is not None:
            kept = folder / f"{outcome.index}.bin"
            kept.write_bytes(data)
            wrong.append(f"{title} (kept as {kept}): {found}")
    assert not wrong, "\n\n".join(wrong[:5])


def _unexpected(name: str, error: FondsError) -> str | None:
    # The libraries that read PDFs are native code: a crash there ends a worker and nothing else.
    if name == "pdf_v1" and isinstance(error, WorkerDiedError):
        return None
    return f"{type(error).__name__}: {error}"


def trouble(work: tuple[str, bytes, str]) -> str | None:
    """What must not happen to a body in a worker process, with its traceback."""
    name, data, _ = work
    try:
        _look(data)
        _check(normalizer(name).to_markdown(data))
    except ParseError as error:
        return None if str(error).strip() else "an error without a word"
    except Exception:  # noqa: BLE001 — anything else is what this looks for
        return traceback.format_exc()
    return None


def normalizer(name: str) -> Normalizer:
    """The normalizer of that name; recognizing scanned pages is another test's matter."""
    return PdfNormalizer(recognizer=None) if name == "pdf_v1" else get_normalizer(name)


def _look(data: bytes) -> None:
    try:
        assert sniff(data) in FILES
    except ParseError as error:
        assert str(error).strip()  # noqa: PT017 — either outcome is right


def _check(body: NormalizedBody) -> None:
    text = body.markdown
    assert text.strip()
    assert "\0" not in text
    assert text.encode().decode() == text
    # Only Markdown of others has headings that a line below them makes.
    assert all(text[heading.offset].strip() for heading in body.headings)
    assert all(1 <= heading.level <= 6 for heading in body.headings)
    assert [page.offset for page in body.pages] == sorted(page.offset for page in body.pages)
    assert all(0 <= page.offset <= len(text) for page in body.pages)
    assert all(0 <= artifact.offset <= len(text) for artifact in body.artifacts)
    chunks = Chunker().chunk(body)
    assert chunks
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.end]
        assert chunk.tokens <= 512


def _damaged(name: str, rounds: int, *, seed: str) -> Iterable[Damaged]:
    files = [_named(path) for path in FILES[name]]
    strangers = [paths[0].read_bytes() for other, paths in FILES.items() if other != name]
    return damaged(
        files, random.Random(f"{name} {seed}"), rounds, pieces=HOSTILE[name], strangers=strangers
    )


def _named(path: Path) -> tuple[str, bytes]:
    return path.name, path.read_bytes()[:LARGEST]
