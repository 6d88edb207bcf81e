"""A publisher of notes: it changes its mind, and answers badly."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from datetime import date
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

from fonds import ids
from fonds.errors import ConnectionFailedError, FetchTimeoutError, WrongContentError
from fonds.fetch.transport import HttpRequest, HttpResponse, fold_headers
from fonds.model import Discovery, FetchTask, Listing, Part, SourceState, Watermark
from fonds.sources.base import Ask
from fonds.testing import FAKE_HOST, FakeSource, note
from tests.simulation.scheduler import Scheduler
from tests.simulation.weather import Weather
from tests.support.upstreams.in_memory import StoredBody

NUMBERS: Final = 6
VERSIONS: Final = 4

Edition = dict[int, int]
"""Which version each note has that is listed."""


@cache
def written(number: int, version: int) -> dict[str, Any]:
    """A note as it reads in a version."""
    text = f"# Matter {number}\n\nThe text of note {number}, {version} times revised.\n"
    tags = ["plain", "revised", "much revised"][: version % 3]
    return note(number, text, title=f"Note {number}.{version}", tags=tags)


class Office:
    """What is published, and all that was: an edition is never changed, but followed by another."""

    def __init__(self, scheduler: Scheduler, weather: Weather) -> None:
        self._chance = scheduler.rng
        self._weather = weather
        first = self._chance.randint(1, NUMBERS - 1)
        self.editions: list[Edition] = [dict.fromkeys(range(1, first + 1), 1)]

    @property
    def current(self) -> Edition:
        """What is published now."""
        return self.editions[-1]

    def revise(self) -> str:
        """Publish another edition, and say what is new in it."""
        edition, latest = dict(self.current), self._latest()
        number = self._chance.randint(1, NUMBERS)
        if number in edition and self._chance.random() < 0.4 and len(edition) > 1:
            del edition[number]
            told = f"{number} is withdrawn"
        else:
            edition[number] = min(VERSIONS, latest.get(number, 0) + 1)
            told = f"{number} has version {edition[number]}"
        self.editions.append(edition)
        return told

    def _latest(self) -> Edition:
        return {number: version for one in self.editions for number, version in one.items()}

    def listing(self, edition: int) -> bytes:
        """What `/list.json` says of an edition."""
        notes = [{"number": n, "version": v} for n, v in sorted(self.editions[edition].items())]
        return json.dumps({"edition": edition, "notes": notes}).encode()

    def page(self, path: str) -> bytes | None:
        """What is to be read at a path."""
        if path == "/list.json":
            back = self._weather.strikes(self._weather.refuse) and len(self.editions) > 1
            return self.listing(len(self.editions) - (2 if back else 1))
        number = int(path.removeprefix("/notes/").removesuffix(".json"))
        version = self.current.get(number)
        return None if version is None else json.dumps(written(number, version)).encode()


class OfficeTransport:
    """The network between us and the office."""

    def __init__(self, office: Office, scheduler: Scheduler, weather: Weather) -> None:
        self._office = office
        self._scheduler = scheduler
        self._weather = weather

    async def send(self, request: HttpRequest) -> HttpResponse:
        """An answer, sooner or later, good or bad."""
        weather, path = self._weather, urlsplit(request.url).path
        self._scheduler.note(f"GET {path}")
        await asyncio.sleep(weather.duration())
        if weather.strikes(weather.refuse):
            way = self._scheduler.rng.choice(list(_WAYS))
            self._scheduler.note(f"  {path}: {way}")
            return await _WAYS[way](self._office.page(path) or b"")
        data = self._office.page(path)
        if data is None:
            return _answer(404, b"not here")
        etag = f'"{hashlib.sha256(data).hexdigest()[:12]}"'
        if fold_headers(request.headers).get("if-none-match") == etag:
            return _answer(304, b"")
        return _answer(200, data, ETag=etag)

    async def aclose(self) -> None:
        """Nothing is open."""


def _answer(status: int, data: bytes, **headers: str) -> HttpResponse:
    named = {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}
    return HttpResponse(status=status, headers=list(named.items()), body=StoredBody(data))


async def _refuses(_data: bytes) -> HttpResponse:
    raise ConnectionFailedError("connection refused")


async def _hangs(_data: bytes) -> HttpResponse:
    await asyncio.sleep(5)
    raise FetchTimeoutError("no answer")


async def _breaks(_data: bytes) -> HttpResponse:
    return _answer(500, b"oh")


async def _begs(_data: bytes) -> HttpResponse:
    return _answer(429, b"slowly", **{"Retry-After": "3"})


async def _forgets(_data: bytes) -> HttpResponse:
    return _answer(404, b"not here")


async def _cuts(data: bytes) -> HttpResponse:
    """The connection ends before the announced end."""
    return _answer(200, data[: len(data) // 2], **{"Content-Length": str(len(data))})


async def _mangles(data: bytes) -> HttpResponse:
    """Half of the file is taken for the whole."""
    return _answer(200, data[: len(data) // 2])


async def _apologizes(_data: bytes) -> HttpResponse:
    return _answer(200, b"<html>We are being renovated.</html>", **{"Content-Type": "text/html"})


_WAYS: Final = {
    "refuses": _refuses,
    "hangs": _hangs,
    "breaks": _breaks,
    "begs": _begs,
    "forgets": _forgets,
    "cuts": _cuts,
    "mangles": _mangles,
    "apologizes": _apologizes,
}


class NoteSource(FakeSource):
    """The fake source, with a watermark that names the edition that was listed."""

    async def discover(self, _state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """One task per note of the list, in its order."""
        answer = await ask(f"https://{FAKE_HOST}/list.json", path="list.json")
        if answer.data.startswith(b"<"):
            raise WrongContentError("expected JSON, got a web page")
        told = json.loads(answer.data)
        for entry in told["notes"]:
            number = entry["number"]
            url, path = f"https://{FAKE_HOST}/notes/{number}.json", f"notes/{number}.json"
            yield FetchTask(
                source="fake",
                key=f"fake:{number}",
                parts=(Part(name="note", url=url, path=path),),
                fingerprint=ids.json_sha256(entry) if self._fingerprints else None,
            )
        keys = frozenset(f"fake:{entry['number']}" for entry in told["notes"])
        yield Listing(since=date(2000, 1, 1), until=date(2100, 1, 1), task_keys=keys)
        yield Watermark(last_seen_key=f"{told['edition']:04}")
