"""Logging in with a token, out again, and on to nowhere else."""

from __future__ import annotations

import logging

import pytest
from tests.unit.web.visiting import PAGE, Visit, visiting

from fonds.api.sessions import LoginLink
from fonds.library import Library
from fonds.serving import LINK_MINUTES
from fonds.testing import ManualClock
from fonds.uploads.logins import SESSION_LIFETIME
from fonds.uploads.users import list_tokens


def test_whoever_has_a_token_comes_in_and_goes(elsewhere: Visit) -> None:
    assert elsewhere.get("/upload").headers["location"] == "/login?next=%2Fupload"
    _, secret = elsewhere.token("maria")
    entered = elsewhere.log_in(f" {secret}\n", "/upload?before=1")
    assert (entered.status_code, entered.headers["location"]) == (303, "/upload?before=1")
    assert "maria" in elsewhere.get("/upload").text
    left = elsewhere.post("/logout", data={"form_key": elsewhere.key("/upload")})
    assert (left.status_code, left.headers["location"]) == (303, "/")
    assert elsewhere.get("/upload").status_code == 303


def test_the_token_is_in_no_answer(elsewhere: Visit) -> None:
    _, secret = elsewhere.token("maria")
    entered = elsewhere.log_in(secret)
    assert secret not in entered.text + str(entered.headers)
    wrong = elsewhere.log_in(secret[:-1] + "!")
    assert secret[:-1] not in wrong.text


@pytest.mark.parametrize(
    "token", ["", "fonds_", "fonds_" + "A" * 43, "x" * 2000, "é\x00", "' OR 1"]
)
def test_a_wrong_token_lets_nobody_in(elsewhere: Visit, token: str) -> None:
    refused = elsewhere.log_in(token)
    assert refused.status_code in {403, 422}
    assert "fonds_session" not in refused.headers.get("set-cookie", "")
    assert elsewhere.get("/upload").status_code == 303


def test_tokens_cannot_be_guessed_in_a_row(here: Visit, clock: ManualClock) -> None:
    _, secret = here.token("maria")
    guesses = [here.log_in("fonds_" + "A" * 43) for _ in range(6)]
    assert [guess.status_code for guess in guesses] == [403] * 5 + [429]
    assert int(guesses[-1].headers["retry-after"]) == 12
    clock.move(seconds=12)
    again = [here.log_in("fonds_" + "A" * 43).status_code for _ in range(2)]
    assert again == [403, 429]
    clock.move(minutes=10)
    assert here.log_in("fonds_" + "A" * 43).status_code == 403
    assert here.log_in(secret).status_code == 303


def test_login_bucket_that_a_stranger_has_spent_keeps_nobody_out(elsewhere: Visit) -> None:
    _, secret = elsewhere.token("ada", "admin")
    guesses = [elsewhere.log_in("fonds_" + "A" * 43).status_code for _ in range(7)]
    assert guesses == [403] * 5 + [429] * 2
    assert elsewhere.log_in(secret).status_code == 303
    assert elsewhere.get("/admin/ingestion").status_code == 200


def test_key_of_the_form_is_checked_before_the_login_bucket(elsewhere: Visit) -> None:
    forged = {"form_key": "x", "token": "fonds_" + "A" * 43}
    assert {elsewhere.post("/login", data=forged).status_code for _ in range(9)} == {403}
    assert elsewhere.log_in("fonds_" + "A" * 43).status_code == 403


def test_login_limit_is_shared_by_servers_of_one_library(elsewhere: Visit) -> None:
    with visiting(elsewhere.library, is_exposed=True) as second:
        guesses = [
            visit.log_in("fonds_" + "A" * 43).status_code
            for visit in (elsewhere, second, elsewhere, second, elsewhere, second)
        ]
        assert guesses == [403] * 5 + [429]
    with visiting(elsewhere.library, is_exposed=True, peer="203.0.113.6") as other:
        assert other.log_in("fonds_" + "A" * 43).status_code == 403


def test_login_is_shared_by_servers_of_one_library(elsewhere: Visit) -> None:
    elsewhere.log_in(elsewhere.token("maria")[1])
    with visiting(elsewhere.library, is_exposed=True) as second:
        second.client.cookies.update(elsewhere.client.cookies)
        assert "maria" in second.get("/upload").text
        second.post("/logout", data={"form_key": second.key("/upload")})
    assert elsewhere.get("/upload").status_code == 303


def test_logging_out_ends_the_session_on_the_server(elsewhere: Visit) -> None:
    elsewhere.log_in(elsewhere.token("maria")[1])
    cookies = dict(elsewhere.client.cookies)
    elsewhere.post("/logout", data={"form_key": elsewhere.key("/upload")})
    elsewhere.client.cookies.update(cookies)  # as a thief of the cookie would
    assert elsewhere.get("/upload").status_code == 303


# The link -----------------------------------------------------------------------------------


def test_link_of_the_start_logs_in_one_browser_once(library: Library, clock: ManualClock) -> None:
    link = LoginLink(clock)
    with visiting(library, login_link=link) as visit:
        assert visit.get("/admin/ingestion").headers["location"].startswith("/login?next=")
        used = visit.get(link.path())
        assert (used.status_code, used.headers["location"]) == (303, "/")
        assert visit.get("/admin/ingestion").status_code == 200
        with visiting(library, login_link=link) as second:
            assert second.get(link.path()).status_code == 403
            assert second.get("/admin/ingestion").status_code == 303
    with library.database.read() as connection:
        (token,) = list_tokens(connection)
    assert (token.user_name, token.scope) == ("local", "admin")
    assert token.expires_at == clock.now() + SESSION_LIFETIME


def test_link_of_the_start_is_of_no_use_later_elsewhere_or_changed(
    library: Library, clock: ManualClock
) -> None:
    link = LoginLink(clock)
    path = link.path()
    with visiting(library, login_link=link) as visit:
        proxied = visit.get(path, {**PAGE, "x-forwarded-for": "198.51.100.7"})
        changed, without_key = visit.get(path[:-1]), visit.get("/login/link")
        assert {each.status_code for each in (proxied, changed, without_key)} == {403}
        with visiting(library, login_link=LoginLink(clock)) as restarted:
            assert restarted.get(path).status_code == 403
        clock.move(minutes=LINK_MINUTES)
        assert visit.get(path).status_code == 403
        assert visit.get("/admin/ingestion").status_code == 303


def test_link_of_the_start_is_never_logged(
    library: Library, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    link = LoginLink(clock)
    with caplog.at_level(logging.DEBUG), visiting(library, login_link=link) as visit:
        path = link.path()
        key = path.partition("=")[2]
        answers = [visit.get(path, {**PAGE, "x-real-ip": "a"}), visit.get(path), visit.get(path)]
    assert key not in "".join(
        record.getMessage() for record in caplog.records if "httpx" not in record.name
    )
    assert key not in "".join(f"{answer.text}{answer.headers}" for answer in answers)


ELSEWHERE = [
    "//evil.example",
    "//evil.example/upload",
    "/\\evil.example",
    "\\\\evil.example",
    "\\/evil.example",
    "https://evil.example",
    "https:evil.example",
    "HTTP://evil.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "evil.example",
    "@evil.example",
    "",
    " //evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "\t//evil.example",
    "/\r\nSet-Cookie: a=b",
    "/\u2028/evil.example",
    "/\x00/evil.example",
    "x" * 2001,
]


@pytest.mark.parametrize("following", ELSEWHERE)
def test_nobody_is_led_to_another_site(elsewhere: Visit, following: str) -> None:
    _, secret = elsewhere.token("maria")
    shown = elsewhere.client.get("/login", params={"next": following}, headers={"accept": "*/*"})
    assert shown.status_code == 422
    entered = elsewhere.log_in(secret, following)
    if following:
        assert entered.status_code == 422
        assert "location" not in entered.headers
    else:
        assert entered.headers.get("location", "/") == "/"


def test_a_form_of_nobody_lets_nobody_in(elsewhere: Visit) -> None:
    _, secret = elsewhere.token("maria")
    key = elsewhere.key("/login")
    for forged in ("x", key[::-1]):
        sent = elsewhere.post("/login", data={"form_key": forged, "token": secret})
        assert sent.status_code == 403
    elsewhere.client.cookies.clear()  # another browser, with the key of this one
    sent = elsewhere.post("/login", data={"form_key": key, "token": secret})
    assert sent.status_code == 403
    assert elsewhere.post("/login", data={"token": secret}).status_code == 422


def test_nobody_is_logged_out_by_another_site(elsewhere: Visit) -> None:
    _, secret = elsewhere.token("maria")
    elsewhere.log_in(secret)
    assert elsewhere.post("/logout", data={"form_key": "x"}).status_code == 403
    assert elsewhere.get("/upload").status_code == 200


def test_a_form_from_before_logging_in_is_good_for_nothing_after_it(elsewhere: Visit) -> None:
    before = elsewhere.key("/login")
    _, secret = elsewhere.token("maria")
    elsewhere.log_in(secret)
    assert elsewhere.post("/logout", data={"form_key": before}).status_code == 403
