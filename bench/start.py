"""How soon does the command begin, beside the import of what it prints with?

`fonds --version` and `fonds --help` are started for each round, in turn with a Python that
imports typer and rich's console and ends; so is a command that knows all sources. Figures are
medians; a first round, which fills the caches of the disk, does not count. Limits are on seconds by
the clock; processor seconds are listed as well, for machines that have something else to do.

    python -m bench.start [--rounds 15]
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench.figures import Figure, asking, tell

FONDS: Final = str(Path(sys.executable).with_name("fonds"))
PEER: Final = "import typer, rich.console"
LIMITS: Final = {"--version": 2.0, "--help": 3.5, "sources": None}
"""How many times as long as its peer a command may take; None where nothing is promised."""
COMMANDS: Final[Mapping[str, Sequence[str]]] = {
    PEER: (sys.executable, "-c", PEER),
    **{argument: (FONDS, argument) for argument in LIMITS},
}


class Taken(NamedTuple):
    """What it took to run a command."""

    seconds: float
    processor: float


def run(command: Sequence[str]) -> Taken:
    """Run a command to its end, and discard its output."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Taken(seconds, used.ru_utime + used.ru_stime)


def compare(rounds: int) -> dict[str, list[Taken]]:
    """Every command in turn, as often as there are rounds."""
    taken: dict[str, list[Taken]] = {name: [] for name in COMMANDS}
    for number in range(rounds + 1):
        for name, command in COMMANDS.items():
            one = run(command)
            if number > 0:
                taken[name].append(one)
    return taken


def main() -> None:
    """Print the figures."""
    parser = asking(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    taken = compare(options.rounds)
    figures = [
        Figure(
            what=f"fonds {name}, {what}",
            ours=median(one[place] for one in taken[name]),
            theirs=median(one[place] for one in taken[PEER]),
            unit=unit,
            peer=PEER,
            better="less",
            least=1 / limit if limit and what == "seconds" else None,
            remark="the peer imports, and prints nothing",
        )
        for name, limit in LIMITS.items()
        for place, (what, unit) in enumerate((("seconds", "s"), ("processor", "CPU s")))
    ]
    tell(options, figures)


if __name__ == "__main__":
    main()
