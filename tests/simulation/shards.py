"""Writers, compilers and readers of one index, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import count, islice
from typing import Final

from fonds import ids
from fonds.errors import StoreError
from fonds.shards.compiler import Compiler, Locks
from fonds.shards.divide import divide
from fonds.shards.inbox import put
from fonds.shards.index import DOMAINS, Index, describe, open_index, read_description
from fonds.shards.layout import IndexLayout
from fonds.shards.lookup import Lookup
from fonds.shards.manifest import key_of, lines_of, read_entries
from fonds.shards.schema import Value, rank
from fonds.shards.verify import verify
from tests.simulation.scheduler import Process, Scheduler, ViolationError
from tests.simulation.store import SeededBlobs
from tests.simulation.world import World
from tests.support.indexes import record

NAME: Final = "domains"
DIGITS: Final = 1
FEW: Final = "37c"
"""Shards that all keys belong to: compilers are to meet."""
MOMENTS: Final = 5
"""So few that records of the same moment are usual."""
DIVIDED: Final = 0.1
"""Share of worlds in which the shards are divided meanwhile."""


def prepare() -> None:
    """Nothing is needed before the first seed."""


def simulate(scheduler: Scheduler) -> None:
    """One world, from an empty index to one that has come to rest."""
    world = _Shards(scheduler)
    writers = [world.keep(f"writer{number}", world.write) for number in range(2)]
    for number in range(scheduler.rng.choice([1, 2, 2, 3])):
        world.keep(f"compiler{number}", world.compile)
    world.keep("reader", world.look_up)
    if scheduler.rng.random() < DIVIDED:
        world.keep("divider", world.divide)
    for writer in writers:
        writer.join()
    scheduler.pause(scheduler.rng.uniform(0, 60))
    world.calm()
    world.come_to_rest()


class _Shards(World):
    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler)
        chance = self.rng
        self.blobs = SeededBlobs(
            scheduler, self.weather, removes_versions=chance.random() < 0.7, watch=self.check
        )
        self._lifetime = timedelta(seconds=chance.choice([20, 60, 300]))
        self._workers, self._page = chance.choice([1, 2]), chance.choice([2, 100])
        layout = IndexLayout(NAME, DIGITS)
        self._keys = list(islice(_keys(layout), chance.randint(2, 7)))
        self._left = {f"writer{number}": chance.randint(2, 8) for number in range(2)}
        self._tried: set[bytes] = set()
        self._taken: dict[bytes, bytes] = {}
        """Of each key the newest record that its writer was told is there."""
        with scheduler.atomic():
            self.blobs._store(layout.descriptor, describe(layout, DOMAINS, {}))

    # What processes do --------------------------------------------------------------------

    def write(self, process: Process) -> bool:
        """Note the records that this writer has left; one whose answer is lost is left."""
        name = process.name.partition("-")[0]
        index = self._opened()
        while self._left[name]:
            noted = self._draw()
            line = DOMAINS.encode(noted)[:-1]
            self._tried.add(line)
            try:
                put(index, noted)
            except StoreError as error:
                self.scheduler.note(f"not noted: {error}")
            else:
                key = key_of(line)
                self._taken[key] = max(line, self._taken.get(key, line), key=rank)
                self.scheduler.note(f"noted {noted['domain']} {noted['scraper_version']}")
                self.check()
            self._left[name] -= 1
            self.scheduler.pause(self.rng.choice([0.0, self.rng.uniform(0, 20)]))
        return True

    def _opened(self) -> Index:
        while True:
            try:
                return open_index(self.blobs, NAME)
            except StoreError:
                self.scheduler.pause(1)

    def _draw(self) -> dict[str, Value]:
        number = len(self._tried)
        return record(self.rng.choice(self._keys), self.rng.randrange(MOMENTS), f"#{number}")

    def compile(self, process: Process) -> bool:
        """Round after round."""
        while not self.is_over:
            try:
                self._round(process)
            except StoreError as error:
                self.scheduler.note(f"round failed: {error}")
            self.scheduler.pause(self.rng.uniform(0, 30))
        return True

    def _round(self, process: Process) -> None:
        done = Compiler(
            open_index(self.blobs, NAME),
            seams=self.seams(process),
            workers=self._workers,
            page=self._page,
            lifetime=self._lifetime,
        ).run()
        self.scheduler.note(f"compiled {done}")
        if done.damaged:
            raise ViolationError(f"a compiler found damage: {done.damaged}")

    def divide(self, process: Process) -> bool:
        """Make more and smaller shards of them."""
        self.scheduler.pause(self.rng.uniform(0, 30))
        while not self.is_over:
            try:
                self._divide(process)
            except StoreError as error:
                self.scheduler.note(f"division broke off: {error}")
                self.scheduler.pause(self.rng.uniform(0, 30))
            else:
                return True
        return True

    def _divide(self, process: Process) -> None:
        index = open_index(self.blobs, NAME)
        locks = Locks(index, process, process.name, self._lifetime)
        if index.layout.digits == DIGITS:
            divide(index, DIGITS + 1, locks)

    def look_up(self, _process: Process) -> bool:
        """Read like somebody who opened the index long ago, and expect what is known."""
        lookup = Lookup(self._opened())
        while not self.is_over:
            key = self.rng.choice(self._keys)
            expected = self._taken.get(key.encode() + b"\x1f")
            try:
                found = lookup.find(key)
            except StoreError as error:
                self.scheduler.note(f"not looked up: {error}")
            else:
                line = None if found is None else DOMAINS.encode(found)[:-1]
                self._require(key, expected, line)
            self.scheduler.pause(self.rng.uniform(0, 10))
        return True

    def _require(self, key: str, expected: bytes | None, found: bytes | None) -> None:
        if expected is not None and (found is None or rank(found) < rank(expected)):
            raise ViolationError(f"a reader looked for {key} and found {found!r}")
        if found is not None and found not in self._tried:
            raise ViolationError(f"a reader found what nobody wrote: {found!r}")

    # What must always hold ----------------------------------------------------------------

    def check(self) -> None:
        """Nothing is lost, nothing is invented, and everything can be read at this moment."""
        held: dict[bytes, bytes] = {}
        for line in self._all_lines():
            if line not in self._tried:
                raise ViolationError(f"nobody wrote {line!r}")
            key = key_of(line)
            held[key] = max(line, held.get(key, line), key=rank)
        for key, line in self._taken.items():
            if key not in held or rank(held[key]) < rank(line):
                raise ViolationError(f"{line!r} is lost")

    def _all_lines(self) -> Iterator[bytes]:
        objects, layout = self.blobs.objects, IndexLayout(NAME)
        read_description(objects[layout.descriptor].data)
        for key, held in objects.items():
            if layout.key_of(key) is not None and held.data:
                yield held.data[:-1]
            elif key.startswith(layout.shards) and key.endswith(".usv"):
                lines = lines_of(held.data, len(DOMAINS.fields))
                keys = [key_of(line) for line in lines]
                if keys != sorted(set(keys)):
                    raise ViolationError(f"{key} is not in order: {keys}")
                yield from lines

    # The end ------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """What waits is compiled; after that there is nothing more to do.

        One record more comes: a data package that a dead compiler left old is renewed with it.
        """
        self.do("divider", self._divide_on)
        self._left["last"] = 1
        for work in (self.write, self._round, self._round):
            self.do("last", work)
        self.do("verifier", self._verify)
        self.check()
        found = sorted(self._all_lines())
        keys = [key_of(line) for line in found]
        if len(keys) != len(set(keys)) or set(keys) < set(self._taken):
            raise ViolationError(f"not every record is there once: {keys}")
        writes = self.blobs.writes
        self.do("again", self._round)
        if self.blobs.writes != writes:
            raise ViolationError("a round with nothing to do wrote something")

    def _divide_on(self, process: Process) -> None:
        """What broke off is continued."""
        index = Index(blobs=self.blobs, layout=IndexLayout(NAME, DIGITS), schema=DOMAINS)
        if any(noted.moved for noted in read_entries(index).values()):
            self._divide(process)

    def _verify(self, _process: Process) -> None:
        index = open_index(self.blobs, NAME)
        found = verify(index)
        left = [key for key in self.blobs.objects if key.endswith(".lock")]
        inbox = [
            key
            for key, held in self.blobs.objects.items()
            if held.data and index.layout.key_of(key) is not None
        ]
        if found.problems or found.notes or left or inbox:
            raise ViolationError(f"left over: {found} {left} {inbox}")


def _keys(layout: IndexLayout) -> Iterator[str]:
    names = (f"{number}.example" for number in count())
    return (name for name in names if ids.shard_id(name, layout.digits) in FEW)
