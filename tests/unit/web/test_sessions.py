"""Cookies that only we can make, each for one purpose and a time."""

from __future__ import annotations

from base64 import b64decode
from datetime import timedelta

import pytest
from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import Response
from tests.unit.web.visiting import Visit

from fonds import ids
from fonds.api.sessions import BROWSER, SESSION, Sessions
from fonds.stores.tables import login_sessions
from fonds.testing import ManualClock
from fonds.uploads.logins import SESSION_LIFETIME
from fonds.uploads.users import revoke_token

VALUE = "the value of a session"
OURS = Sessions(b"secret" * 6, is_secure=False)


def asking(**cookies: str) -> Request:
    told = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return Request({"type": "http", "headers": [(b"cookie", told.encode("latin-1"))]})


def value_of(response: Response) -> str:
    return response.headers["set-cookie"].partition("=")[2].partition(";")[0]


def session(of: Sessions = OURS) -> str:
    response = Response()
    of.set_session(response, VALUE)
    return value_of(response)


def name(nonce: str, of: Sessions = OURS) -> str:
    response = Response()
    of.set_nonce(response, nonce)
    return value_of(response)


def test_a_cookie_brings_back_the_value_of_its_session() -> None:
    assert OURS.cookies(asking(fonds_session=session())).session == VALUE


def test_a_browser_keeps_its_name() -> None:
    assert OURS.cookies(asking(fonds_visit=name("abc"))).nonce == "abc"


@pytest.mark.parametrize("place", [0, 10, -1, -20])
def test_a_cookie_that_was_changed_anywhere_is_none(place: int) -> None:
    real = session()
    changed = list(real)
    changed[place] = "A" if changed[place] != "A" else "B"
    assert OURS.cookies(asking(fonds_session=real)).session is not None
    assert OURS.cookies(asking(fonds_session="".join(changed))).session is None


def test_a_cookie_of_another_server_is_none() -> None:
    theirs = Sessions(b"another" * 6, is_secure=False)
    request = asking(fonds_session=session(theirs), fonds_visit=name("abc", theirs))
    seen = OURS.cookies(request)
    assert (seen.session, seen.nonce) == (None, None)


def test_a_cookie_of_one_purpose_is_none_of_another() -> None:
    # A browser's name is whatever text: even that of a session is signed only as a name.
    posing = name(VALUE)
    seen = OURS.cookies(asking(fonds_session=posing, fonds_visit=session()))
    assert (seen.session, seen.nonce) == (None, None)


@pytest.mark.parametrize(
    "garbage", ["", ".", "..", "a", "%%%.x", "é.é", "A" * 600, "bnVsbA.", "null", "\x7f"]
)
def test_garbage_is_no_cookie(garbage: str) -> None:
    seen = OURS.cookies(asking(fonds_session=garbage, fonds_visit=garbage))
    assert (seen.session, seen.nonce) == (None, None)


def test_cookies_are_out_of_reach_for_scripts_and_other_sites() -> None:
    response = Response()
    OURS.set_session(response, VALUE)
    told = response.headers["set-cookie"].lower()
    assert told.startswith(f"{SESSION}=")
    assert {"httponly", "samesite=lax", "path=/", "max-age=43200"} <= set(told.split("; "))
    assert "domain" not in told


def test_over_tls_cookies_are_this_hosts_alone() -> None:
    secure, response = Sessions(b"secret" * 6, is_secure=True), Response()
    secure.set_nonce(response, "abc")
    told = response.headers["set-cookie"]
    assert told.startswith(f"__Host-{BROWSER}=")
    assert "secure" in told.lower()
    # One that came without TLS, and may be anybody's, is not looked at.
    assert secure.cookies(asking(fonds_visit=value_of(response))).nonce is None


def test_a_form_is_good_in_the_session_it_was_shown_in() -> None:
    key = OURS.form_key("abc", VALUE)
    here = OURS.cookies(asking(fonds_session=session(), fonds_visit=name("abc")))
    assert OURS.is_own_form(here, key)
    for elsewhere in (
        asking(fonds_session=session(), fonds_visit=name("abd")),
        asking(fonds_visit=name("abc")),
        asking(fonds_session=session()),
        asking(),
    ):
        assert not OURS.is_own_form(OURS.cookies(elsewhere), key)
    for wrong in ("", key[:-1], key + "A", key.lower(), "é\ud800", "None"):
        assert not OURS.is_own_form(here, wrong)


def test_a_session_ends_after_its_time(elsewhere: Visit, clock: ManualClock) -> None:
    elsewhere.log_in(elsewhere.token("maria")[1])
    cookies = dict(elsewhere.client.cookies)
    clock.move(seconds=SESSION_LIFETIME.total_seconds() - 1)
    assert elsewhere.get("/upload").status_code == 200
    clock.move(seconds=1)
    elsewhere.client.cookies.update(cookies)
    assert elsewhere.get("/upload").status_code == 303


def test_rows_of_sessions_contain_no_cookie_and_are_deleted_after_their_time(
    elsewhere: Visit, clock: ManualClock
) -> None:
    def stored() -> list[str]:
        with elsewhere.library.database.read() as connection:
            return list(connection.scalars(select(login_sessions.c.session_sha256)))

    secret = elsewhere.token("maria")[1]
    elsewhere.log_in(secret)
    (first,) = stored()
    value = elsewhere.client.cookies["fonds_session"]
    coded = value.partition(".")[0]
    assert first not in value
    assert first == ids.text_sha256(b64decode(coded + "=" * (-len(coded) % 4)).decode())
    clock.move(hours=12)
    elsewhere.log_in(secret)
    assert len(stored()) == 1
    assert stored() != [first]


def test_a_session_ends_when_its_token_is_revoked(elsewhere: Visit, clock: ManualClock) -> None:
    token, secret = elsewhere.token("maria")
    assert elsewhere.log_in(secret).status_code == 303
    assert elsewhere.get("/upload").status_code == 200
    with elsewhere.library.database.write() as connection:
        revoke_token(connection, str(token.id), clock.now())
    assert elsewhere.get("/upload").headers["location"] == "/login?next=%2Fupload"


def test_a_session_ends_with_its_token(elsewhere: Visit, clock: ManualClock) -> None:
    _, secret = elsewhere.token("maria", expires_at=clock.now() + timedelta(minutes=5))
    elsewhere.log_in(secret)
    assert elsewhere.get("/upload").status_code == 200
    clock.move(minutes=6)
    assert elsewhere.get("/upload").status_code == 303
