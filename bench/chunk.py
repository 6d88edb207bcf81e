"""How fast is the chunker, against splitting lines and against counting tokens?

Both are limits: no chunker is faster than looking for line ends once, and one that knows the exact
size of every passage is no faster than one count of the whole text.

    python -m bench.chunk [--size 2000000] [--repeats 3] [--json]
"""

# ruff: noqa: A005 — a bench is named after what it measures

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

from bench.figures import Figure, asking, tell

from fonds.chunk.chunker import Chunker
from fonds.chunk.tokens import count
from fonds.model import NormalizedBody

MEGABYTE = 1_000_000
VOCABULARY = """
the of and to in that for is on by with as be this or an are not from any such which shall may must
agency agencies rule proposed comment comments section paragraph emission emissions standards
applicability requirements notice petition administrator review hearing public interest economic
analysis small entities burden reporting recordkeeping facility operator permit compliance date
effective under authority statute Congress committee report bill amended striking inserting term
fiscal year appropriation transfer funds secretary department transportation energy commerce health
services medicare beneficiary provider payment schedule threshold overtime salary employee employer
wages exemption contract acquisition environmental assessment alternatives species habitat critical
designation population fishery quota vessel navigation safety zone waters bridge operation aircraft
airworthiness directive inspection replacement incorporated reference manufacturer instructions
"""
WORDS = VOCABULARY.split()


def sentence(dice: random.Random) -> str:
    """A sentence of invented prose with a citation now and then."""
    words = dice.choices(WORDS, k=dice.randint(8, 30))
    if dice.random() < 0.3:
        words.insert(4, f"{dice.randint(1, 50)} CFR {dice.randint(1, 999)}.{dice.randint(1, 99)}")
    return " ".join(words).capitalize() + "."


def paragraph(dice: random.Random) -> str:
    """Some sentences on one line."""
    return " ".join(sentence(dice) for _ in range(dice.randint(2, 5)))


def short_sections(dice: random.Random) -> str:
    """A section well below the cap."""
    body = "\n\n".join(paragraph(dice) for _ in range(dice.randint(1, 3)))
    return f"{'#' * dice.randint(2, 4)} {sentence(dice)[:50]}\n\n{body}\n"


def long_sections(dice: random.Random) -> str:
    """A section of some twenty passages."""
    body = "\n\n".join(paragraph(dice) for _ in range(100))
    return f"## {sentence(dice)[:50]}\n\n{body}\n"


def tables(dice: random.Random) -> str:
    """A section that is one long table."""
    rows = "\n".join(
        f"| {dice.choice(WORDS)} {dice.choice(WORDS)} | {dice.randint(1, 10**6):,} | "
        f"{dice.random() * 100:.2f} % | {dice.choice(WORDS)} |"
        for _ in range(300)
    )
    head = "| Item | Amount | Share | Note |\n|---|---:|---:|---|"
    return f"## {sentence(dice)[:50]}\n\n{head}\n{rows}\n"


def text_of(kind: Callable[[random.Random], str], size: int) -> str:
    """About `size` characters of one kind of text, the same in every run."""
    dice = random.Random(kind.__name__)
    parts: list[str] = []
    length = 0
    while length < size:
        parts.append(kind(dice))
        length += len(parts[-1])
    return "\n".join(parts)


def best_seconds(work: Callable[[], object], repeats: int) -> float:
    """The shortest processor time of some runs: what the machine can do when nobody disturbs it."""
    seconds = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        seconds.append(time.process_time() - begun)
    return min(seconds)


def measure(kind: Callable[[random.Random], str], size: int, repeats: int) -> Iterator[Figure]:
    """The figures of one kind of text."""
    markdown = text_of(kind, size)
    body = NormalizedBody(markdown=markdown)
    chunker = Chunker()
    megabytes = len(markdown.encode()) / MEGABYTE
    chunking = best_seconds(lambda: chunker.chunk(body), repeats)
    splitting = best_seconds(lambda: markdown.split("\n"), repeats)
    counting = best_seconds(lambda: count(markdown), repeats)
    limits = {
        "counting its tokens": (
            counting,
            "ours also finds headings, cuts, and counts each passage",
        ),
        "splitting its lines": (splitting, "no chunker can be faster"),
    }
    for peer, (taken, why) in limits.items():
        yield Figure(
            what=f"chunking {kind.__name__.replace('_', ' ')}",
            ours=megabytes / chunking,
            theirs=megabytes / taken,
            unit="MB/s",
            peer=peer,
            better="more",
            remark=why if taken < chunking else "",
        )


def main() -> None:
    """Print the figures of three kinds of text."""
    parser = asking(__doc__)
    parser.add_argument("--size", type=int, default=2 * MEGABYTE, help="characters of each kind")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    count("the vocabulary is loaded before the clock starts")
    kinds = (short_sections, long_sections, tables)
    each = (measure(kind, options.size, options.repeats) for kind in kinds)
    tell(options, [figure for figures in each for figure in figures])


if __name__ == "__main__":
    main()
