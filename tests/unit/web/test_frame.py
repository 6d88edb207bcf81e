"""What all pages share: who looks at them, and how hostile text is put into them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import jinja2
import pytest
from tests.unit.web.visiting import PAGE, Visit, visiting

from fonds.library import Library
from fonds.web.rendering import (
    ago,
    asset,
    at,
    day,
    number,
    one_line,
    outside,
    query,
    size,
    templates,
    timestamp,
    words,
)

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


# Who looks --------------------------------------------------------------------------------


def test_local_user_uploads_without_a_token_and_operates_with_one(here: Visit) -> None:
    assert 'href="/upload"' in here.get("/").text
    assert 'href="/login"' in here.get("/").text
    assert 'href="/admin/ingestion"' not in here.get("/").text
    assert here.get("/admin/ingestion").headers["location"] == "/login?next=%2Fadmin%2Fingestion"
    here.operate()
    assert 'href="/admin/ingestion"' in here.get("/").text
    assert "Log in" not in here.get("/").text


def test_elsewhere_nobody_operates_it_without_a_token(elsewhere: Visit) -> None:
    shown = elsewhere.get("/").text
    assert "/upload" not in shown
    assert "/admin/ingestion" not in shown
    assert 'href="/login"' in shown


def test_a_user_uploads_and_an_admin_operates(elsewhere: Visit) -> None:
    _, secret = elsewhere.token("maria")
    elsewhere.log_in(secret)
    assert 'href="/upload"' in elsewhere.get("/").text
    assert "/admin/ingestion" not in elsewhere.get("/").text
    _, secret = elsewhere.token("ada", "admin")
    elsewhere.log_in(secret)
    assert 'href="/admin/ingestion"' in elsewhere.get("/").text


def test_where_a_login_is_asked_for_sitting_there_is_not_enough(library: Library) -> None:
    with visiting(library, needs_login=True) as visit:
        assert visit.get("/upload").headers["location"] == "/login?next=%2Fupload"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "127.0.0.1@evil"])
def test_a_page_under_another_name_is_not_from_here(here: Visit, host: str) -> None:
    assert here.get("/upload", {**PAGE, "host": host}).status_code == 303
    assert here.get("/upload", {**PAGE, "host": "localhost:8000"}).status_code == 200


def test_programs_are_told_what_people_are_shown(here: Visit, elsewhere: Visit) -> None:
    told = elsewhere.get("/upload", {"accept": "application/json"})
    assert (told.status_code, told.json()["kind"]) == (401, "login")
    shown = here.get("/d/fr:none")
    assert shown.status_code == 404
    assert shown.headers["content-type"].startswith("text/html")
    assert "Not Found" in shown.text


def test_pages_allow_no_script_but_ours_and_load_nothing_from_elsewhere(here: Visit) -> None:
    for path in ("/", "/login", "/upload", "/nothing"):
        answer = here.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-frame-options"] == "DENY"
        assert "<style" not in answer.text
        assert " style=" not in answer.text
        assert " on" not in answer.text.partition("<main")[0].partition("<script")[0]
        assert 'src="http' not in answer.text


def test_a_browser_is_named_once(here: Visit) -> None:
    assert "fonds_visit=" in here.get("/login").headers["set-cookie"]
    assert "set-cookie" not in here.get("/login").headers
    assert here.key("/login") == here.key("/upload")


def test_a_page_without_a_form_names_nobody(here: Visit) -> None:
    assert "set-cookie" not in here.get("/").headers


# Templates --------------------------------------------------------------------------------


def test_what_is_put_in_is_escaped_and_what_is_missing_is_an_error() -> None:
    made = templates().from_string("<p title='{{ said }}'>{{ said }}</p>")
    assert "<script" not in made.render(said="'><script>alert(1)</script>")
    with pytest.raises(jinja2.UndefinedError):
        made.render()


def test_text_of_a_document_stays_on_its_line_and_in_its_direction() -> None:
    assert one_line("a\x00b\r\nc\td\x85e\x1b[31m") == "a b c d e [31m"
    assert one_line("invoice\u202efdp\u2066x\u2069") == "invoicefdpx"
    assert one_line("שלום") == "שלום"
    assert one_line(None) == ""


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (date(2026, 3, 4), "4 March 2026"),
        (NOW, "10 March 2026"),
        ("2026-03-04T10:00:00Z", "4 March 2026"),
        ("spring\x00", "spring"),
        (None, ""),
    ],
)
def test_days(value: object, shown: str) -> None:
    assert day(value) == shown


def test_moments() -> None:
    assert timestamp(NOW) == "2026-03-10 12:00:00"
    assert timestamp(None) == ""
    assert ago(None, NOW) == "never"
    assert ago(NOW - timedelta(seconds=59), NOW) == "59 s ago"
    assert ago(NOW - timedelta(minutes=61), NOW) == "1 h ago"
    assert ago(NOW - timedelta(days=3), NOW) == "3 d ago"
    assert ago(NOW + timedelta(minutes=2), NOW) == "in 2 min"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (10 * 1024, "10 KiB"),
        (3 << 30, "3.0 GiB"),
        (5 << 40, "5.0 TiB"),
    ],
)
def test_sizes(value: float | None, shown: str) -> None:
    assert size(value) == shown


def test_numbers_and_names() -> None:
    assert number(1234567) == "1,234,567"
    assert words("proposed_rule") == "proposed rule"


def test_ids_cannot_leave_the_address_they_stand_in() -> None:
    assert at("fr:2026-00101") == "/d/fr:2026-00101"
    assert at("a/b?c#d\"'><é") == "/d/a/b%3Fc%23d%22%27%3E%3C%C3%A9"
    assert query({"q": "a&b", "x": "", "y": None, "z": [1, 2]}) == "q=a%26b&z=1&z=2"


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "JAVASCRIPT:x", " https://a", "data:text/html,x", "//a", ""]
)
def test_only_addresses_of_web_pages_lead_anywhere(address: str) -> None:
    assert outside(address) == ""
    assert outside("https://example.org/a") == "https://example.org/a"


def test_files_of_ours_may_be_kept_for_ever(here: Visit) -> None:
    answer = here.get(asset("fonds.css"))
    assert answer.status_code == 200
    assert "immutable" in answer.headers["cache-control"]
    for path in ("/static/none.css", "/static/../site.py", "/static/%2e%2e%2fsite.py"):
        assert here.get(path).status_code == 404
