"""Pages that reader processes parse: the process of a crawl parses nothing that a website sends.

A page, a sitemap, a PDF, or the selector of a model may be made to take hours, all memory, or the
process that reads it. Each is read within limits of time and memory; beyond them the crawl records
an error and continues.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from pydantic import TypeAdapter, ValidationError

from fonds.engine.readers import ReaderPool
from fonds.errors import EngineError, ItemFailedError
from fonds.settings import Settings
from fonds.sites.pages.page import WebPage, read_page
from fonds.sites.recycling import HAS_GROWN

SECONDS: Final = 60.0
"""For each item; a page of 50,000 links needs up to a third of it."""
MEMORY_MIB: Final = 1024
"""For each item; a page of the largest size takes up to half of it."""

P = ParamSpec("P")
T = TypeVar("T")


def open_site_readers(workers: int, settings: Settings) -> ReaderPool:
    """Processes that read what websites send, no more than there are processors."""
    return ReaderPool(
        workers=min(workers, os.cpu_count() or 1),
        seconds=min(SECONDS, settings.read_seconds),
        memory_mib=min(MEMORY_MIB, settings.read_memory_mib),
        should_recycle=HAS_GROWN,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class PageBytes:
    """A page as it was served."""

    url: str
    """The final address, after redirects."""
    content: bytes | Path
    media_type: str | None = None
    query_encoding: str | None = None
    """The encoding of the queries in its links, where that is not its own."""

    def parse(self) -> WebPage:
        """Parse the page; WrongContentError if it is not HTML. Only reader processes do this."""
        content = self.content
        data = content.read_bytes() if isinstance(content, Path) else content
        page = read_page(data, self.url, self.media_type)
        return page if self.query_encoding is None else replace(page, encoding=self.query_encoding)


@dataclass(frozen=True, slots=True)
class UnparsedPage:
    """A page that functions read in reader processes."""

    source: PageBytes
    readers: ReaderPool

    @property
    def url(self) -> str:
        """The final address, after redirects."""
        return self.source.url

    async def read(
        self, function: Callable[Concatenate[WebPage, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The result of a module's function for the page: data as in JSON."""
        try:
            result: T = await self.readers.read(read_bytes, (function, self.source, args, kwargs))
        except EngineError as error:
            raise type(error)(f"{self.url} cannot be read as a page: {error}") from error
        return result


def typed(kind: type[T], data: Any) -> T:
    """The value of which a reader process returned the fields; EngineError if they are wrong."""
    try:
        value: T = _adapter(kind).validate_python(data)
    except ValidationError as error:
        message = f"what a reader process returned is not a {kind.__name__}: {error}"
        raise ItemFailedError(message) from error
    return value


_adapters: Final[dict[type[Any], TypeAdapter[Any]]] = {}


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """The validator of a class, which takes longer to make than to use."""
    return _adapters.setdefault(kind, _adapters.get(kind) or TypeAdapter(kind))


def read_bytes(work: tuple[Callable[..., T], PageBytes, tuple[Any, ...], dict[str, Any]]) -> T:
    """Parse a page, and call a function with it."""
    function, source, args, kwargs = work
    return function(source.parse(), *args, **kwargs)
