"""What operators see and ask for on their pages, and that nobody else does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from fastapi.routing import APIRoute
from sqlalchemy import event
from tests.support.libraries.troubled import Trouble, make_trouble
from tests.support.libraries.uploads import TEXT, make_user, upload_library, work
from tests.support.libraries.uploads import send as send_file
from tests.unit.web.visiting import Visit, visiting

from fonds.errors import ItemMemoryError, ItemTimeoutError
from fonds.library import Library
from fonds.runs import commands
from fonds.runs.commands import Command
from fonds.runs.state import Run, RunRequest, RunStatus
from fonds.seams import Seams
from fonds.testing import ManualClock
from fonds.uploads.jobs import fail
from fonds.web.admin import actions, runs
from fonds.web.admin import runs as sources
from fonds.web.admin import status as overview
from fonds.web.admin import status as queues
from fonds.web.admin import status as records
from fonds.web.admin import status as stores

AT: Final = actions.AT
ROUTERS: Final = (actions, overview, queues, records, runs, sources, stores)
MOST_QUESTIONS: Final = 25


@pytest.fixture(params=["sqlite", "postgres"])
def either(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[Library]:
    """A library on either database."""
    given = {}
    if request.param == "postgres":
        given = {"database": request.getfixturevalue("postgres_database")}
    with upload_library(tmp_path / "either", seams=Seams(clock=clock), **given) as library:
        yield library


@pytest.fixture
def here(here: Visit) -> Visit:
    """An operator at the machine, logged in."""
    here.operate()
    return here


def routes() -> list[tuple[str, str]]:
    """Every page and form of operators, with something put in for names and ids."""
    parts = {"name": "bills", "run_id": str(uuid4()), "queue": "citations"}
    return [
        (method, re.sub(r"\{(\w+)\}", lambda part: parts[part[1]], route.path))
        for module in ROUTERS
        for route in module.router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    ]


def pages(trouble: Trouble) -> list[str]:
    places = ["", "/runs", "/normalization", "/embedding", "/citations", "/uploads", "/sites"]
    places += ["/indexes", "/audits", "/commands", f"/commands?asked={trouble.command}"]
    places += ["/sources/federal_register", "/sources/bills", "/sources/usc"]
    places += [f"/runs/{trouble.failed}", f"/runs/{trouble.failed}?stage=errored"]
    return [AT + place for place in places]


def begin_run(library: Library, source: str = "bills") -> Run:
    run = Run(
        source=source, request=RunRequest(), database=library.database, clock=library.seams.clock
    )
    run.start()
    return run


def asked_of(library: Library) -> list[Command]:
    with library.database.read() as connection:
        return commands.listing(connection, limit=50)


def send(visit: Visit, path: str, shown_at: str = AT, **fields: Any) -> Any:
    return visit.post(AT + path, data={"form_key": visit.key(shown_at), **fields})


# Who may ----------------------------------------------------------------------------------


def test_only_operators_are_let_in_wherever_they_ask(elsewhere: Visit) -> None:
    known = routes()
    assert len(known) > 15
    for method, path in known:
        answer = elsewhere.client.request(method, path, headers={"accept": "text/html"})
        # Forms are asked for their fields first, and refused all the same.
        assert answer.status_code in ({303} if method == "GET" else {401, 422}), path
    elsewhere.log_in(elsewhere.token("bert")[1])
    key = elsewhere.key("/upload")
    for method, path in known:
        answer = elsewhere.client.request(method, path, data={"form_key": key})
        assert answer.status_code == 403, path
    assert asked_of(elsewhere.library) == []


def test_operator_logs_in_and_is_led_to_the_page(elsewhere: Visit) -> None:
    refused = elsewhere.get(f"{AT}/runs?status=failed")
    assert refused.headers["location"] == (
        "/login?next=%2Fadmin%2Fingestion%2Fruns%3Fstatus%3Dfailed"
    )
    elsewhere.log_in(elsewhere.token("maria", "admin")[1])
    assert elsewhere.get(f"{AT}/runs?status=failed").status_code == 200
    send(elsewhere, "/sources/bills/run")
    assert [each.requested_by for each in asked_of(elsewhere.library)] == ["maria"]


@pytest.mark.parametrize("key", ["", "wrong"])
def test_form_that_another_page_sent_is_refused(here: Visit, key: str) -> None:
    here.get(AT)
    for method, path in routes():
        if method == "POST":
            answer = here.post(path, data={"form_key": key})
            assert answer.status_code in {403, 422}, path
    foreign = {"sec-fetch-site": "cross-site", "origin": "https://evil.example"}
    data = {"form_key": here.key(AT)}
    answer = here.post(f"{AT}/sources/bills/run", headers=foreign, data=data)
    assert answer.status_code in {401, 403}
    assert asked_of(here.library) == []


# What is seen -----------------------------------------------------------------------------


def test_every_page_is_shown_and_what_it_shows_stays_text(either: Library) -> None:
    trouble = make_trouble(either)
    with visiting(either) as visit:
        visit.operate()
        for path in pages(trouble):
            answer = visit.get(path)
            assert answer.status_code == 200, path
            html = answer.text
            assert "<script>" not in html, path
            assert "\u202e" not in html, path
            assert re.search(r"\sstyle=|\son\w+=", html) is None, path


def test_library_in_which_nothing_has_run_is_shown(here: Visit) -> None:
    html = here.get(AT).text
    assert "Nothing has run yet" in html
    for path in ("/runs", "/audits", "/commands", "/sites", "/embedding", "/sources/bills"):
        assert here.get(AT + path).status_code == 200


def test_what_failed_stands_before_what_is_well(here: Visit) -> None:
    for source, status in (("bills", RunStatus.SUCCESS), ("votes", RunStatus.SUCCESS)):
        begin_run(here.library, source).finish(status)
    begin_run(here.library, "federal_register").finish(RunStatus.FAILED, "the publisher is away")
    html = here.get(AT).text
    assert "Needs attention" in html
    assert "the publisher is away" in html
    table = html[html.index('id="sources"') :]
    assert table.index("Federal Register") < table.index("Bills of Congress")


def test_source_that_should_have_succeeded_since_is_late(here: Visit, clock: ManualClock) -> None:
    begin_run(here.library, "federal_register").finish(RunStatus.SUCCESS)
    assert "behind its schedule" not in here.get(AT).text
    clock.move(days=8)
    here.operate()
    assert "Federal Register is behind its schedule" in here.get(AT).text


def test_overview_takes_few_questions_whatever_there_is(here: Visit) -> None:
    make_trouble(here.library)
    asked: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        asked.append(statement)

    engine = here.library.database.engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        here.get(AT)
    finally:
        event.remove(engine, "before_cursor_execute", note)
    assert 0 < len(asked) <= MOST_QUESTIONS


def test_runs_are_filtered_and_paged(here: Visit, clock: ManualClock) -> None:
    for _ in range(runs.PAGE_SIZE + 1):
        clock.move(seconds=1)
        begin_run(here.library).finish(RunStatus.SUCCESS)
    begin_run(here.library, "federal_register").finish(RunStatus.FAILED)
    first = here.get(f"{AT}/runs?source=bills&status=success").text
    assert "federal_register</a>" not in first
    (further,) = re.findall(r'rel="next" href="([^"]+)"', first)
    second = here.get(further.replace("&amp;", "&")).text
    rows = [len(re.findall(r"aria-label=\"success: run of", html)) for html in (first, second)]
    assert rows == [runs.PAGE_SIZE, 1]
    assert 'rel="next"' not in second


def test_run_shows_stages_errors_tasks_and_log(here: Visit) -> None:
    trouble = make_trouble(here.library)
    html = here.get(f"{AT}/runs/{trouble.failed}").text
    for seen in ("UpstreamDownError", "and 2 more", "line 23: something was done", "fr:2026-00049"):
        assert seen in html
    assert html.count('class="span"') == 4
    assert "fr:2026-00050" not in html[html.index('id="tasks-table"') :]
    (further,) = re.findall(r'rel="next" href="([^"]+)"', html)
    assert "fr:2026-00050" in here.get(further).text
    only = here.get(f"{AT}/runs/{trouble.failed}?stage=errored").text
    assert "fr:2026-00001" not in only[only.index('id="tasks-table"') :]


def test_run_that_is_not_there_is_not_found(here: Visit) -> None:
    assert here.get(f"{AT}/runs/{uuid4()}").status_code == 404
    assert here.get(f"{AT}/sources/nothing").status_code == 404


def test_run_is_followed_behind_what_the_page_has(here: Visit) -> None:
    trouble = make_trouble(here.library)
    numbers = [int(n) for n in re.findall(r"^id: (\d+)", _stream(here, trouble, 0), re.MULTILINE)]
    assert len(numbers) == 25
    rest = _stream(here, trouble, numbers[-3])
    assert rest.count("event: log") == 1
    assert "event: end" in rest


def _stream(visit: Visit, trouble: Trouble, after: int) -> str:
    text: str = visit.get(f"{AT}/runs/{trouble.failed}/events?after={after}").text
    return text


# What is asked for ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "fields", "wanted"),
    [
        ("/sources/bills/run", {}, ("run", "bills", {})),
        ("/sources/bills/run", {"recheck": "true"}, ("run", "bills", {"recheck": True})),
        (
            "/sources/bills/backfill",
            {"since": "2026-01-01", "until": "", "congresses": "119, 118"},
            ("backfill", "bills", {"since": "2026-01-01", "congresses": [118, 119]}),
        ),
        ("/sources/bills/retry", {}, ("retry", "bills", {})),
        (
            "/sources/bills/audit",
            {"until": "2026-01-31"},
            ("audit", "bills", {"until": "2026-01-31"}),
        ),
        ("/queues/citations/drain", {}, ("drain", None, {"queue": "citations"})),
        (
            "/queues/embedding/drain",
            {"given_up": "true"},
            ("drain", None, {"queue": "embedding", "given_up": True}),
        ),
    ],
)
def test_everything_can_be_asked_for(
    here: Visit, path: str, fields: dict[str, str], wanted: tuple[str, str | None, Any]
) -> None:
    answer = send(here, path, **fields)
    assert answer.status_code == 303
    (asked,) = asked_of(here.library)
    assert (asked.command, asked.source, asked.args) == wanted
    assert asked.requested_by == "ada"
    target = urlsplit(answer.headers["location"])
    assert parse_qs(target.query) == {"asked": [str(asked.id)]}
    shown = here.get(answer.headers["location"])
    assert "waits for a scheduler or worker" in shown.text


def test_run_asked_for_on_the_overview_is_told_there(here: Visit) -> None:
    answer = send(here, "/sources/bills/run", back="overview")
    assert answer.headers["location"].startswith(f"{AT}?asked=")


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("/sources/nothing/run", {}, 404),
        ("/sources/bills/backfill", {"since": "soon"}, 422),
        ("/sources/bills/backfill", {"since": "2026-02-01", "until": "2026-01-01"}, 422),
        ("/sources/bills/backfill", {"congresses": "all"}, 422),
        ("/sources/federal_register/backfill", {"congresses": "119"}, 422),
        ("/queues/nothing/drain", {}, 422),
    ],
)
def test_nonsense_is_refused_on_a_page(
    here: Visit, path: str, fields: dict[str, str], status: int
) -> None:
    answer = send(here, path, **fields)
    assert (answer.status_code, asked_of(here.library)) == (status, [])
    assert answer.headers["content-type"].startswith("text/html")


def test_run_is_cancelled_while_it_goes_on_and_shown_when_it_has_ended(here: Visit) -> None:
    run = begin_run(here.library)
    page = f"{AT}/runs/{run.id}"
    assert "Cancel</button>" in here.get(page).text
    assert send(here, f"/runs/{run.id}/cancel", page).status_code == 303
    (asked,) = asked_of(here.library)
    assert asked.args == {"run_id": str(run.id)}
    assert "being cancelled" in here.get(page).text
    run.finish(RunStatus.CANCELLED)
    assert "Cancel</button>" not in here.get(page).text
    ended = send(here, f"/runs/{run.id}/cancel")
    assert ended.headers["location"] == page
    assert len(asked_of(here.library)) == 1


def test_commands_that_nobody_takes_up_say_how_to_start_somebody(
    here: Visit, clock: ManualClock
) -> None:
    told = "No process seems to execute commands"
    send(here, "/sources/bills/run")
    assert told not in here.get(AT).text
    clock.move(seconds=20)
    html = here.get(AT).text
    assert told in html
    assert "fonds scheduler" in html
    with here.library.database.write() as connection:
        commands.claim(connection, "somebody", clock.now(), commands.KINDS)
    assert told not in here.get(AT).text


def test_command_leads_to_the_run_that_goes_on_and_then_to_what_came_of_it(
    here: Visit, clock: ManualClock
) -> None:
    shown_at = send(here, "/sources/bills/run").headers["location"]
    database = here.library.database
    with database.write() as connection:
        held = commands.claim(connection, "somebody", clock.now(), commands.KINDS)
    assert held is not None
    run = begin_run(here.library)
    html = here.get(shown_at).text
    assert f'href="{AT}/runs/{run.id}">follow the run' in html
    run.finish(RunStatus.SUCCESS)
    with database.write() as connection:
        commands.finish(
            connection, held.id, "somebody", "success: 3 new", run_id=run.id, now=clock.now()
        )
    html = here.get(shown_at).text
    assert "ended: success: 3 new" in html
    assert f'href="{AT}/runs/{run.id}">Show the run' in html


def test_overview_is_found_with_a_slash_at_its_end(here: Visit) -> None:
    answer = here.get(f"{AT}/")
    assert (answer.status_code, answer.headers["location"]) == (308, AT)


def test_page_of_uploads_shows_durations_costs_storage_and_frequent_errors_first(
    here: Visit,
) -> None:
    library = here.library
    user = make_user(library)
    send_file(library, user, TEXT.encode())
    work(library)
    errors = [ItemMemoryError("too large"), ItemTimeoutError("slow"), ItemTimeoutError("slow")]
    for number, error in enumerate(errors):
        job = send_file(library, user, f"{TEXT}{number}".encode(), f"{number}.md")
        with library.database.write() as connection:
            fail(connection, job, error, library.seams.clock.now())
    text = here.get(f"{AT}/uploads").text
    assert re.search(r"first embedding</th><td[^>]*>1</td>", text)
    assert re.search(r"Stored: [\d.,]+ \w+ of files", text)
    assert "0.00 US dollars" in text
    assert text.index("ItemTimeoutError") < text.index("ItemMemoryError")
