"""The site as a browser meets it, without a socket or a browser between."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import unescape
from typing import Any, Final

from starlette.testclient import TestClient

from fonds.api.sessions import LoginLink
from fonds.library import Library
from fonds.uploads.users import Scope, Token, create_token
from fonds.web.site import make_site

HERE: Final = "http://127.0.0.1"
ELSEWHERE: Final = "http://fonds.test"
STRANGER: Final = "203.0.113.5"
PAGE: Final = {"accept": "text/html"}

_KEY: Final = re.compile(r'name="form_key" value="([^"]+)"')


class Visit:
    """One browser with its cookies."""

    def __init__(self, library: Library, client: TestClient) -> None:
        self.library = library
        self.client = client

    def get(self, path: str, headers: Mapping[str, str] = PAGE) -> Any:
        return self.client.get(path, headers=dict(headers))

    def key(self, path: str) -> str:
        """What a form on a page brings back."""
        found = _KEY.search(self.get(path).text)
        assert found is not None
        return unescape(found[1])

    def post(self, path: str, headers: Mapping[str, str] | None = None, **more: Any) -> Any:
        return self.client.post(path, headers={**PAGE, **(headers or {})}, **more)

    def token(self, user: str, scope: Scope = "user", **more: Any) -> tuple[Token, str]:
        with self.library.database.write() as connection:
            return create_token(
                connection,
                user=user,
                label="test",
                scope=scope,
                now=self.library.seams.clock.now(),
                rng=self.library.seams.rng,
                **more,
            )

    def operate(self) -> None:
        """Log in as an operator."""
        assert self.log_in(self.token("ada", "admin")[1]).status_code == 303

    def log_in(self, secret: str, following: str = "/") -> Any:
        data = {"form_key": self.key("/login"), "token": secret, "next": following}
        return self.post("/login", data=data)


@contextmanager
def visiting(
    library: Library,
    *,
    is_exposed: bool = False,
    base: str = "",
    needs_login: bool = False,
    peer: str = "",
    login_link: LoginLink | None = None,
) -> Iterator[Visit]:
    """A browser at a site: on the same machine, or `is_exposed` and anywhere."""
    app = make_site(library, is_exposed=is_exposed, needs_login=needs_login, login_link=login_link)
    base = base or (ELSEWHERE if is_exposed else HERE)
    peer = peer or (STRANGER if is_exposed else "127.0.0.1")
    with TestClient(app, base_url=base, follow_redirects=False, client=(peer, 50_000)) as client:
        yield Visit(library, client)
