"""Runs any number of seeds, or one again. `python -m tests.simulation --help` tells how."""

from __future__ import annotations

import argparse
import gc
import sys
import time

from tests.simulation.seeds import SUBJECTS, prepare, run_seed
from tests.support import servers


def main() -> int:
    """Run seeds; a subject ends with its first seed that fails, unless told otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first one")
    parser.add_argument("--only", choices=SUBJECTS, help="leave the others out")
    parser.add_argument("--replay", type=int, metavar="SEED", help="one seed, with its last events")
    parser.add_argument("--keep-going", action="store_true", help="also after a failure")
    asked = parser.parse_args()
    seeds = range(asked.first, asked.first + asked.seeds)
    if asked.replay is not None:
        seeds = range(asked.replay, asked.replay + 1)
    failures = 0
    servers.open_run()
    try:
        for subject in [asked.only] if asked.only else SUBJECTS:
            failures += _run(subject, seeds, keep_going=asked.keep_going)
    finally:
        servers.close_run()
    return int(failures > 0)


def _run(subject: str, seeds: range, *, keep_going: bool) -> int:
    prepare(subject)
    gc.freeze()  # what all seeds need is never garbage
    began, steps, failures, done = time.process_time(), 0, 0, 0
    for seed in seeds:
        outcome = run_seed(subject, seed)
        done += 1
        steps += outcome.steps
        if outcome.error is not None:
            failures += 1
            sys.stdout.write(f"{outcome}\n")
            if not keep_going:
                break
        elif len(seeds) == 1:
            sys.stdout.write("\n".join([*outcome.lines, f"trace {outcome.trace_hash}", ""]))
    spent = 1000 * (time.process_time() - began) / max(done, 1)
    told = f"{done} seeds, {failures} failed, {steps} steps, {spent:.0f} ms of CPU each"
    sys.stdout.write(f"{subject}: {told}\n")
    return failures


if __name__ == "__main__":
    sys.exit(main())
