"""Files are sent from a browser, followed as they are worked on, and found."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest
from playwright.sync_api import FilePayload, Page, expect
from sqlalchemy import update
from tests.support.libraries.demo import copy_demo_library
from tests.support.libraries.uploads import send
from tests.web.browsing import PATIENCE, Site, check_page, served

from fonds.api.dependencies import LOCAL
from fonds.errors import EmbedError
from fonds.stores.tables import upload_jobs
from fonds.uploads.jobs import Job, fail, job_of, page_of_jobs
from fonds.uploads.users import ensure_user
from fonds.web.uploads import SEND

HOSTILE: Final = (
    "<img src=x onerror=alert(1)>.md",
    '"><script>alert(1)</script>.md',
    "..\\..\\passwd.md",
    "invoice\u202efdp.md",
    "${7*7}{{7*7}}.md",
    "a" * 200 + ".md",
    "報告 書.md",
)

expect.set_options(timeout=PATIENCE * 1000)


def paper(name: str, text: str) -> FilePayload:
    return {"name": name, "mimeType": "text/markdown", "buffer": text.encode()}


def choose(page: Page, *papers: FilePayload) -> None:
    page.get_by_label("Files to add and search").set_input_files(list(papers))


def card(page: Page, name: str) -> Any:
    return page.locator("#jobs .job", has_text=name)


def user(site: Site, name: str = LOCAL) -> UUID:
    seams = site.library.seams
    with site.library.database.write() as connection:
        return ensure_user(connection, name, now=seams.clock.now(), rng=seams.rng)


def failed(site: Site, text: str, name: str) -> Job:
    """An upload whose vectors could not be computed."""
    job = send(site.library, user(site), text.encode(), name)
    with site.library.database.write() as connection:
        held = job_of(connection, job.document_id, to_write=True)
        assert held is not None
        return fail(
            connection, held, EmbedError("the model is down"), site.library.seams.clock.now()
        )


def number_of_jobs(site: Site) -> int:
    with site.library.database.read() as connection:
        return len(page_of_jobs(connection, limit=1000))


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site that other machines may reach."""
    home = copy_demo_library(tmp_path_factory.mktemp("exposed"))
    with served(home, is_exposed=True) as site:
        yield site


# From a file to what is found -------------------------------------------------------------


def test_files_are_sent_followed_and_found(site: Site, page: Page) -> None:
    page.goto(f"{site.address}/upload")
    check_page(page, "uploads-empty")
    choose(
        page,
        paper("cellar.md", "# Cover\n\nThe quokka insurance pays for water in the cellar.\n"),
        paper("letter.pdf", "this is no PDF at all, but a text"),
        paper("program.exe", "MZ"),
    )
    expect(card(page, "cellar.md")).to_contain_text("Waiting for parsing")
    expect(card(page, "letter.pdf")).to_contain_text("the name claims a PDF")
    refused = page.locator("#sending .job")
    expect(refused).to_contain_text("files of this kind cannot be uploaded")
    check_page(page, "uploads-waiting")
    with site.worker():
        expect(card(page, "cellar.md")).to_contain_text("Ready")
    check_page(page, "uploads-done")
    card(page, "cellar.md").get_by_role("link", name="Open the document").click()
    expect(page.get_by_role("heading", name="cellar.md")).to_be_visible()
    expect(page.get_by_text("visible only to you")).to_be_visible()
    page.goto(f"{site.address}/?q=quokka+insurance")
    expect(page.locator(".hit").first).to_contain_text("quokka insurance")


def test_files_are_sent_and_found_without_javascript(site: Site, plain_page: Page) -> None:
    page = plain_page
    page.goto(f"{site.address}/upload")
    choose(page, paper("attic.md", "# Cover\n\nThe numbat insurance pays for wind in the attic.\n"))
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("heading", name="attic.md")).to_be_visible()
    with site.worker():
        expect(page.locator("#state")).to_contain_text("Ready")  # the page loads itself again
    page.get_by_role("link", name="Open the document").click()
    page.goto(f"{site.address}/?q=numbat+insurance")
    expect(page.locator(".hit").first).to_contain_text("numbat insurance")


def test_of_several_files_without_javascript_the_refused_are_named(
    site: Site, plain_page: Page, complaints: list[str]
) -> None:
    page = plain_page
    page.goto(f"{site.address}/upload")
    choose(page, paper("roof.md", "The roof."), paper("table.xls", "x"), paper("empty.md", ""))
    page.get_by_role("button", name="Send").click()
    alerts = page.get_by_role("alert")
    expect(alerts).to_have_count(2)
    expect(alerts.first).to_contain_text("table.xls was rejected")
    expect(alerts.last).to_contain_text("the file is empty")
    expect(card(page, "roof.md")).to_have_count(1)
    assert all("422" in each for each in complaints)
    complaints.clear()


def test_files_are_dropped_on_the_page(site: Site, page: Page) -> None:
    page.goto(f"{site.address}/upload")
    page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(["The first one."], "one.md"));
          data.items.add(new File(["The second one."], "two.md"));
          const drop = new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true});
          document.getElementById("send").dispatchEvent(drop);
        }"""
    )
    expect(card(page, "one.md")).to_have_count(1)
    expect(card(page, "two.md")).to_have_count(1)
    expect(page.locator("#sending .job")).to_have_count(0)


def test_one_upload_is_followed_on_its_own_page(site: Site, page: Page) -> None:
    job = send(site.library, user(site), b"# Cellar\n\nThe dunnart.\n", "dunnart.md")
    page.goto(f"{site.address}/upload/{job.document_id}")
    expect(page.locator("#state")).to_contain_text("Waiting for parsing")
    expect(page.locator("#moves li")).to_have_count(2)
    check_page(page, "upload-waiting")
    with site.worker():
        expect(page.locator("#state")).to_contain_text("Ready")
    expect(page.locator("#moves li")).to_have_count(10)
    expect(page.locator("#moves li").first).to_contain_text("Ready by a worker")
    check_page(page, "upload-done")


def test_names_of_files_are_only_shown(site: Site, page: Page) -> None:
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    page.goto(f"{site.address}/upload")
    for number, name in enumerate(HOSTILE):
        choose(page, paper(name, f"The hostile file number {number}."))
    expect(page.locator("#sending .job")).to_have_count(0)
    for shown in ("<img src=x onerror=alert(1)>.md", "{{7*7}}.md", "passwd.md", "報告 書.md"):
        expect(card(page, shown)).to_have_count(1)
    assert page.locator("#jobs img, #jobs script").count() == 0
    assert "\u202e" not in page.content()
    check_page(page, "uploads-hostile")
    card(page, "onerror").get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("<img src=x onerror=alert(1)>.md")
    check_page(page, "upload-hostile")


# What went wrong --------------------------------------------------------------------------


def test_a_failed_upload_says_why_and_is_tried_again(site: Site, page: Page) -> None:
    job = failed(site, "# Cellar\n\nThe potoroo.\n", "potoroo.md")
    page.goto(f"{site.address}/upload/{job.document_id}")
    expect(page.locator("#state")).to_contain_text("the model is down")
    check_page(page, "upload-failed")
    with site.worker():
        page.get_by_role("button", name="Try again").click()
        expect(page.locator("#state")).to_contain_text("Ready")
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)


def test_a_failed_upload_is_tried_again_from_the_list_without_javascript(
    site: Site, plain_page: Page
) -> None:
    failed(site, "# Cellar\n\nThe bettong.\n", "bettong.md")
    plain_page.goto(f"{site.address}/upload")
    card(plain_page, "bettong.md").get_by_role("button", name="Try again").click()
    expect(plain_page.locator("#state")).to_contain_text("Waiting for parsing")


def test_where_nobody_works_one_is_told_so(site: Site, page: Page) -> None:
    job = send(site.library, user(site), b"# Cellar\n\nThe bilby.\n", "bilby.md")
    page.goto(f"{site.address}/upload/{job.document_id}")
    expect(page.locator("#state")).to_contain_text("Waiting for parsing")
    expect(page.locator("#stuck")).to_be_empty()
    longer = job.updated_at - timedelta(minutes=1)
    same = upload_jobs.c.job_id == job.job_id
    with site.library.database.write() as connection:
        connection.execute(update(upload_jobs).where(same).values(updated_at=longer))
    expect(page.locator("#stuck")).to_contain_text("fonds worker")
    check_page(page, "upload-stuck")


# Whose it is ------------------------------------------------------------------------------


def test_elsewhere_one_logs_in_first_and_sees_only_ones_own(
    exposed: Site, page: Page, complaints: list[str]
) -> None:
    theirs = send(exposed.library, user(exposed, "ada"), b"The secret of Ada.", "secret.md")
    page.goto(f"{exposed.address}/upload")
    assert page.url == f"{exposed.address}/login?next=%2Fupload"
    check_page(page, "login")
    page.get_by_label("Token").fill(exposed.token("maria", "admin"))
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{exposed.address}/upload")
    expect(page.get_by_text("You have sent no file yet.")).to_be_visible()
    choose(page, paper("maria.md", "Maria wrote this."))
    expect(card(page, "maria.md")).to_have_count(1)
    answer = page.goto(f"{exposed.address}/upload/{theirs.document_id}")
    assert answer is not None
    assert answer.status == 404
    assert "secret" not in page.content()
    assert all("404" in each for each in complaints)
    complaints.clear()


def test_a_form_of_another_site_sends_nothing(
    site: Site, page: Page, complaints: list[str], tmp_path: Path
) -> None:
    page.goto(f"{site.address}/upload")  # the browser is known here by now
    page.wait_for_load_state("networkidle")
    before = number_of_jobs(site)
    other = tmp_path / "other.html"
    other.write_text(
        f"<form method=post enctype=multipart/form-data action='{site.address}{SEND}'>"
        "<input name=form_key value=x><input type=file name=files><button>Win</button></form>"
    )
    page.goto(other.as_uri())
    page.locator("[type=file]").set_input_files(paper("forged.md", "Forged."))
    with page.expect_navigation() as told:
        page.get_by_role("button", name="Win").click()
    assert told.value is not None
    assert told.value.status == 401
    assert number_of_jobs(site) == before
    assert all("401" in each for each in complaints)
    complaints.clear()


def test_a_form_with_another_key_sends_nothing(
    site: Site, open_page: Any, complaints: list[str]
) -> None:
    stranger = open_page()
    stranger.goto(f"{site.address}/upload")
    stolen = stranger.locator("#send [name=form_key]").get_attribute("value")
    before = number_of_jobs(site)
    page = open_page()
    page.goto(f"{site.address}/upload")
    page.locator("#send [name=form_key]").evaluate("(field, key) => field.value = key", stolen)
    choose(page, paper("forged.md", "Forged."))
    expect(page.locator("#sending .job")).to_contain_text("go back, reload and send it again")
    assert number_of_jobs(site) == before
    assert all("403" in each for each in complaints)
    complaints.clear()
