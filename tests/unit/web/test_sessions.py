"""Cookies that only we can make, each for one purpose and a time."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from starlette.requests import Request
from starlette.responses import Response
from tests.unit.web.visiting import Visit

from fonds.api.sessions import BROWSER, SESSION, SESSION_LIFETIME, Sessions
from fonds.testing import ManualClock
from fonds.uploads.users import revoke_token

TOKEN = UUID("0b6f1c9e-8f0e-4c5e-9d44-3f4f0c8f9a11")
NOW = ManualClock().now()
OURS = Sessions(b"secret" * 6, is_secure=False)


def asking(**cookies: str) -> Request:
    told = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return Request({"type": "http", "headers": [(b"cookie", told.encode("latin-1"))]})


def value_of(response: Response) -> str:
    return response.headers["set-cookie"].partition("=")[2].partition(";")[0]


def session(of: Sessions = OURS) -> str:
    response = Response()
    of.begin(response, TOKEN, NOW)
    return value_of(response)


def name(nonce: str, of: Sessions = OURS) -> str:
    response = Response()
    of.set_nonce(response, nonce)
    return value_of(response)


def test_a_session_names_its_token_until_it_is_over() -> None:
    request = asking(fonds_session=session())
    assert OURS.cookies(request, NOW).token_id == TOKEN
    assert OURS.cookies(request, NOW + SESSION_LIFETIME - timedelta(seconds=1)).token_id == TOKEN
    assert OURS.cookies(request, NOW + SESSION_LIFETIME).token_id is None


def test_a_browser_keeps_its_name() -> None:
    assert OURS.cookies(asking(fonds_visit=name("abc")), NOW).nonce == "abc"


@pytest.mark.parametrize("place", [0, 10, -1, -20])
def test_a_cookie_that_was_changed_anywhere_is_none(place: int) -> None:
    real = session()
    changed = list(real)
    changed[place] = "A" if changed[place] != "A" else "B"
    assert OURS.cookies(asking(fonds_session=real), NOW).token_id is not None
    assert OURS.cookies(asking(fonds_session="".join(changed)), NOW).token_id is None


def test_a_cookie_of_another_server_is_none() -> None:
    theirs = Sessions(b"another" * 6, is_secure=False)
    request = asking(fonds_session=session(theirs), fonds_visit=name("abc", theirs))
    seen = OURS.cookies(request, NOW)
    assert (seen.token_id, seen.nonce) == (None, None)


def test_a_cookie_of_one_purpose_is_none_of_another() -> None:
    # A browser's name is whatever text: even that of a session is signed only as a name.
    posing = name(f'["{TOKEN.hex}", 99999999999]')
    seen = OURS.cookies(asking(fonds_session=posing, fonds_visit=session()), NOW)
    assert (seen.token_id, seen.nonce) == (None, None)


@pytest.mark.parametrize(
    "garbage", ["", ".", "..", "a", "%%%.x", "é.é", "A" * 600, "bnVsbA.", "null", "\x7f"]
)
def test_garbage_is_no_cookie(garbage: str) -> None:
    seen = OURS.cookies(asking(fonds_session=garbage, fonds_visit=garbage), NOW)
    assert (seen.token_id, seen.nonce) == (None, None)


def test_cookies_are_out_of_reach_for_scripts_and_other_sites() -> None:
    response = Response()
    OURS.begin(response, TOKEN, NOW)
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
    assert secure.cookies(asking(fonds_visit=value_of(response)), NOW).nonce is None


def test_a_form_is_good_in_the_session_it_was_shown_in() -> None:
    key = OURS.form_key("abc", TOKEN)
    here = OURS.cookies(asking(fonds_session=session(), fonds_visit=name("abc")), NOW)
    assert OURS.is_own_form(here, key)
    for elsewhere in (
        asking(fonds_session=session(), fonds_visit=name("abd")),
        asking(fonds_visit=name("abc")),
        asking(fonds_session=session()),
        asking(),
    ):
        assert not OURS.is_own_form(OURS.cookies(elsewhere, NOW), key)
    for wrong in ("", key[:-1], key + "A", key.lower(), "é\ud800", "None"):
        assert not OURS.is_own_form(here, wrong)


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
