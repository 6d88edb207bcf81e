"""Commands taken up by whatever process has time, and done one after the other.

All that is known of a command stands in its row: a process that is killed leaves a lease behind,
and when that is over another takes the command up again. Every command may be repeated.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from uuid import UUID, uuid4

import structlog
from sqlalchemy.exc import SQLAlchemyError

from fonds.errors import FondsError
from fonds.runs import commands
from fonds.runs.commands import Command, Kind
from fonds.seams import Clock
from fonds.stores.database import Database

POLL: Final = 1.0
"""Seconds between looks for a command."""
AT_ONCE: Final[frozenset[Kind]] = frozenset({"cancel"})
"""Done beside whatever is being done; of the others, a process does one at a time."""
LONGEST_OUTCOME: Final = 2000

_log: Final = structlog.get_logger("fonds.dispatch")


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """What came of a command."""

    outcome: str
    """In plain words; the first, before a colon, says how it ended."""
    run_id: UUID | None = None


Handler = Callable[[Command], Awaitable[Done]]
Handlers = Mapping[Kind, Handler]


class Dispatcher:
    """Does commands by the handlers it is given, until it is cancelled or told to stop."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        handlers: Handlers,
        *,
        may_begin: Callable[[], bool] = lambda: True,
        poll: float = POLL,
    ) -> None:
        """Take up what takes long only while `may_begin`."""
        self._database = database
        self._clock = clock
        self._handlers = handlers
        self._may_begin = may_begin
        self._poll = poll
        self._owner = f"{os.uname().nodename}:{os.getpid()}:{uuid4()}"
        self._at_once: set[asyncio.Task[None]] = set()
        self._in_turn: set[asyncio.Task[None]] = set()

    async def serve(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Do commands as they come; what is under way in the end is given back."""
        try:
            while not is_over():
                await self._begin()
                await asyncio.sleep(self._poll)
        finally:
            await self._leave()

    async def drain(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Do all commands that nobody else has."""
        try:
            is_busy = True
            while is_busy and not is_over():
                # What ends while others are looked for may have kept them waiting.
                is_busy = bool(self._under_way)
                is_busy |= await self._begin()
                if under_way := self._under_way:
                    await asyncio.wait(under_way, timeout=self._poll)
        finally:
            await self._leave()

    @property
    def _under_way(self) -> set[asyncio.Task[None]]:
        return self._at_once | self._in_turn

    async def _begin(self) -> bool:
        """Take up what there is and may be; False if nothing was."""
        try:
            begun = False
            while command := await asyncio.to_thread(self._claim):
                begun = True
                self._start(command)
        except SQLAlchemyError as error:
            # Leases run out meanwhile, and what they stand for is taken up again.
            _log.warning("database_unavailable", error=type(error).__name__)
            return False
        return begun

    def _claim(self) -> Command | None:
        kinds = [kind for kind in self._handlers if kind in AT_ONCE or self._is_free]
        with self._database.read() as connection:
            # Most often there is nothing, and looking for it keeps no writer waiting.
            if not commands.listing(connection, limit=1, is_open=True):
                return None
        with self._database.write() as connection:
            return commands.claim(connection, self._owner, self._clock.now(), kinds)

    @property
    def _is_free(self) -> bool:
        return not self._in_turn and self._may_begin()

    def _start(self, command: Command) -> None:
        under_way = self._at_once if command.command in AT_ONCE else self._in_turn
        task = asyncio.create_task(self._do(command))
        under_way.add(task)
        task.add_done_callback(under_way.discard)

    async def _do(self, command: Command) -> None:
        heart = asyncio.create_task(self._keep(command))
        try:
            done = await self._outcome(command)
            _log.info("command_done", command=command.command, outcome=done.outcome)
            await self._finish(command, done)
        except asyncio.CancelledError:
            await asyncio.to_thread(self._give_back, command)
            raise
        finally:
            heart.cancel()

    async def _outcome(self, command: Command) -> Done:
        try:
            return await self._handlers[command.command](command)
        except FondsError as error:
            return Done(outcome=f"refused: {error}")
        except Exception as error:  # noqa: BLE001 — whatever breaks one command, the next is done
            _log.exception("command_broke", command=command.command)
            # SQLAlchemy's own text goes on with the statement and its parameters.
            cause = getattr(error, "orig", None) or error
            return Done(outcome=f"failed: {type(error).__name__}: {cause}")

    async def _finish(self, command: Command, done: Done) -> None:
        """Write down what came of it, as soon as the database takes it."""
        while True:
            try:
                await asyncio.to_thread(self._write, command, done)
            except SQLAlchemyError as error:
                _log.warning("database_unavailable", error=type(error).__name__)
                await asyncio.sleep(self._poll)
            else:
                return

    def _write(self, command: Command, done: Done) -> None:
        now = self._clock.now()
        outcome = done.outcome[:LONGEST_OUTCOME]
        with self._database.write() as connection:
            commands.finish(
                connection, command.id, self._owner, outcome, run_id=done.run_id, now=now
            )

    async def _keep(self, command: Command) -> None:
        while True:
            await asyncio.sleep(commands.LEASE.total_seconds() / 4)
            with suppress(SQLAlchemyError):
                await asyncio.to_thread(self._renew, command)

    def _renew(self, command: Command) -> None:
        with self._database.write() as connection:
            commands.keep(connection, command.id, self._owner, self._clock.now())

    def _give_back(self, command: Command) -> None:
        with suppress(SQLAlchemyError), self._database.write() as connection:
            commands.release(connection, command.id, self._owner)

    async def _leave(self) -> None:
        ending = self._under_way
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
