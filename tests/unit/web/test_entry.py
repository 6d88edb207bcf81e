"""Logging in with a token, out again, and on to nowhere else."""

from __future__ import annotations

import pytest
from tests.unit.web.visiting import Visit

from fonds.testing import ManualClock


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
    guesses = [here.log_in("fonds_" + "A" * 43).status_code for _ in range(6)]
    assert guesses == [403] * 5 + [429]
    refused = here.log_in(secret)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) == 12
    clock.move(seconds=12)
    assert here.log_in(secret).status_code == 303


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
