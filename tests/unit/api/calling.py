"""The API as a client meets it, without a socket between."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import httpx
from starlette.testclient import TestClient

from fonds.api.app import make_app
from fonds.library import Library
from fonds.uploads.users import Scope, create_token

BASE: Final = "http://fonds.test"


class Api:
    """One application, called as any user; maria unless another one is named."""

    def __init__(self, library: Library, client: TestClient) -> None:
        self.library = library
        self.client = client
        self.maria = self.token("maria")

    def token(self, user: str, scope: Scope = "user") -> dict[str, str]:
        """The header by which a user is known."""
        with self.library.database.write() as connection:
            _, secret = create_token(
                connection,
                user=user,
                label="test",
                scope=scope,
                now=self.library.seams.clock.now(),
                rng=self.library.seams.rng,
            )
        return {"Authorization": f"Bearer {secret}"}

    def call(
        self,
        method: str,
        path: str,
        *,
        by: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Any:
        """An answer; every one must be hardened, and every refusal a problem."""
        sent = {**(self.maria if by is None else by), **(headers or {})}
        answer = self.client.request(method, path, headers=sent, **more)
        assert answer.headers["x-content-type-options"] == "nosniff"
        if answer.status_code >= 400 and method != "HEAD":
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["status"] == answer.status_code
        return answer

    def get(self, path: str, **more: Any) -> Any:
        return self.call("GET", path, **more)

    def post(self, path: str, **more: Any) -> Any:
        return self.call("POST", path, **more)

    def announce(self, data: bytes, name: str = "policy.md", **more: Any) -> Any:
        return self.post("/uploads", json=claim(data, name), **more)

    def deliver(self, address: Mapping[str, Any], data: bytes) -> int:
        """To us or to the object store, whoever gave the address out."""
        url, headers = address["url"], address["headers"]
        if url.startswith(BASE):
            return int(self.call("PUT", url, by={}, headers=headers, content=data).status_code)
        return httpx.put(url, content=data, headers=headers, trust_env=False).status_code

    def upload(self, data: bytes, name: str = "policy.md", **more: Any) -> dict[str, Any]:
        """All of it; the job as it is then."""
        announced = self.announce(data, name, **more).json()
        assert self.deliver(announced["upload"], data) < 300
        done = self.post(f"/uploads/{announced['document_id']}/complete", **more)
        assert done.status_code == 200, done.text
        job: dict[str, Any] = done.json()
        return job

    def job(self, document_id: str, **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.get(f"/jobs/{document_id}", **more).json()
        return answer


@contextmanager
def api_of(
    library: Library, *, is_exposed: bool = True, needs_login: bool = False
) -> Iterator[Api]:
    """The API over a library, called from the same machine unless it `is_exposed`."""
    app = make_app(library, is_exposed=is_exposed, needs_login=needs_login)
    peer = "203.0.113.5" if is_exposed else "127.0.0.1"
    with TestClient(app, base_url=BASE, follow_redirects=False, client=(peer, 50_000)) as client:
        yield Api(library, client)


def claim(data: bytes, name: str = "policy.md") -> dict[str, Any]:
    """What is said of a file."""
    return {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def refusal(answer: Any) -> tuple[int, str]:
    """Status and kind of a problem."""
    return answer.status_code, answer.json()["kind"]


def events_in(text: str) -> list[dict[str, Any]]:
    """Server-sent events, with their data read."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in block.splitlines() if line[:1] != ":")
        if fields:
            found.append({**fields, "data": json.loads(fields["data"])})
    return found
