"""Every page of the site that could show a document, as a logged-in browser asks for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from typing import Final
from urllib.parse import quote
from uuid import UUID

from starlette.testclient import TestClient

from fonds.library import Library
from fonds.web.site import make_site

PAGES: Final[Mapping[str, Sequence[str]]] = {
    "page /": ("/?q=@name@",),
    "page /d/": ("/d/@name@", "/d/@name@?passage=0"),
    "page /links/": ("/links/@name@",),
    "page /verify/": ("/verify/@name@",),
    "page /compare": ("/compare?before=@name@&after=@name@",),
    "page /changes": ("/changes", "/changes?under=@name@"),
    "page /c/": ("/c/@name@",),
    "page /upload": ("/upload",),
    "page /upload/": ("/upload/@uid@",),
}
PAGES_WITHOUT_WORDS: Final = frozenset(
    {"page /c/", "page /upload", "page /upload/", "page /verify/"}
)
"""Codes are public, a job is told by the name of its file, what is verified by its title."""

_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
_KEY: Final = re.compile(r'name="form_key" value="([^"]+)"')


def walk(
    library: Library, token: str | None, names: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    """What was asked about, on which page, and everything that the page shows."""
    # Where others are served too searches are counted, and here are many.
    site = make_site(library, is_exposed=False)
    with TestClient(
        site,
        base_url="http://127.0.0.1",
        headers={"accept": "text/html"},
        client=("127.0.0.1", 50_000),
    ) as client:
        if token:
            log_in(client, token)
        for name in names:
            for page, addresses in PAGES.items():
                for address in addresses:
                    yield name, page, _shown(client, address, name)


def log_in(client: TestClient, token: str) -> None:
    """As a person does."""
    key = _KEY.search(client.get("/login").text)
    assert key is not None
    answer = client.post("/login", data={"form_key": unescape(key[1]), "token": token})
    assert answer.status_code == 200


def _shown(client: TestClient, address: str, name: str) -> str:
    uid = _UID.search(name)
    address = address.replace("@name@", quote(name, safe=":"))
    address = address.replace("@uid@", uid[0] if uid else str(UUID(int=7)))
    answer = client.get(address)
    assert answer.status_code < 500
    text = _KEY.sub("", unescape(answer.text))
    return f"{answer.status_code} {text}".replace("<mark>", "").replace("</mark>", "")
