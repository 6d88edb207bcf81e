"""Forms with files: what is taken in, what is refused, and who sees it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import pytest
from tests.support.libraries.uploads import TEXT, announce, make_user, now_of, send, work
from tests.unit.web.visiting import Visit

from fonds.errors import EmbedError
from fonds.library import Library
from fonds.testing import ManualClock
from fonds.uploads.intake import expire_uploads
from fonds.uploads.jobs import Job, claim, fail, job_of, page_of_jobs
from fonds.uploads.live_workers import record_worker
from fonds.uploads.users import user_by_name
from fonds.web.upload_form import MAX_FILES
from fonds.web.uploads import PAGE_SIZE, SEND

DATA: Final = {"accept": "application/json"}


def jobs(library: Library) -> list[Job]:
    with library.database.read() as connection:
        return page_of_jobs(connection, limit=1000)


def local(library: Library) -> UUID:
    with library.database.read() as connection:
        found = user_by_name(connection, "local")
    assert found is not None
    return found


def sent(visit: Visit, *files: tuple[str, bytes], key: str | None = None, **more: Any) -> Any:
    """A form as a browser sends it: its key first, then its files."""
    return visit.post(
        SEND,
        data={"form_key": visit.key("/upload") if key is None else key},
        files=[("files", (name, content, "text/markdown")) for name, content in files],
        **more,
    )


def raw(visit: Visit, body: bytes, kind: str = "multipart/form-data; boundary=b") -> Any:
    return visit.post(SEND, content=body, headers={**DATA, "content-type": kind})


def part(disposition: str, content: bytes) -> bytes:
    head = f"--b\r\nContent-Disposition: form-data; {disposition}\r\n\r\n"
    return head.encode() + content + b"\r\n"


@pytest.fixture(autouse=True)
def _nothing_stays_behind(library: Library) -> Iterator[None]:
    yield
    assert list((library.settings.home / "tmp").glob("*")) == []
    assert list((library.settings.home / "files" / "incoming").rglob("*.md")) == []


# Taken in ---------------------------------------------------------------------------------


def test_a_file_is_taken_in_and_queued(here: Visit) -> None:
    answer = sent(here, ("policy.md", TEXT.encode()))
    (job,) = jobs(here.library)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/upload/{job.document_id}")
    assert (job.status, job.name, job.bytes) == ("parse_queued", "policy.md", len(TEXT.encode()))
    assert here.library.blobs.get(job.raw_path) == TEXT.encode()


def test_whoever_sits_at_the_machine_becomes_a_user_with_the_first_file(here: Visit) -> None:
    here.get("/upload")
    with here.library.database.read() as connection:
        assert user_by_name(connection, "local") is None
    sent(here, ("a.md", b"One."))
    sent(here, ("b.md", b"Two."))
    assert {job.user_id for job in jobs(here.library)} == {local(here.library)}


def test_several_files_come_in_one_form(here: Visit) -> None:
    answer = sent(here, *((f"{number}.md", b"%d" % number) for number in range(5)))
    assert (answer.status_code, answer.headers["location"]) == (303, "/upload")
    assert {job.name for job in jobs(here.library)} == {f"{number}.md" for number in range(5)}


def test_the_same_file_is_one_job(here: Visit) -> None:
    for name in ("a.md", "b.md"):
        sent(here, (name, TEXT.encode()))
    (job,) = jobs(here.library)
    assert job.name == "a.md"


def test_of_several_files_each_is_judged_alone(here: Visit) -> None:
    shown = sent(here, ("a.md", b"One."), ("b.exe", b"x"), ("c.md", b""), ("d.pdf", b"no PDF"))
    assert shown.status_code == 422
    assert "files of this kind cannot be uploaded" in shown.text
    assert "the file is empty" in shown.text
    assert "the name claims a PDF, but the file is plain text" in shown.text
    states = {job.name: job.status.value for job in jobs(here.library)}
    assert states == {"a.md": "parse_queued", "d.pdf": "failed_parse"}


def test_a_script_is_told_of_each_file(here: Visit) -> None:
    answer = sent(here, ("a.md", b"One."), ("b.exe", b"x"), headers=DATA).json()
    good, bad = answer["files"]
    (job,) = jobs(here.library)
    assert (good["name"], good["problem"], good["id"]) == ("a.md", None, f"job-{job.document_id}")
    assert f'id="{good["id"]}"' in good["html"]
    assert bad["problem"].startswith("files of this kind cannot be uploaded")
    assert (bad["id"], bad["html"]) == (None, None)


def test_a_file_that_was_refused_comes_again_under_its_right_name(here: Visit) -> None:
    sent(here, ("a.pdf", TEXT.encode()))
    assert [job.status.value for job in jobs(here.library)] == ["failed_parse"]
    sent(here, ("a.md", TEXT.encode()))
    (job,) = jobs(here.library)
    assert (job.status.value, job.name) == ("parse_queued", "a.md")


def test_larger_files_than_one_piece_come_whole(here: Visit) -> None:
    content = b"A line of a long file.\r\n--b\r\n" * 30_000
    content = content[: 1024 * 1024]
    sent(here, ("a.txt", content))
    (job,) = jobs(here.library)
    assert job.status == "parse_queued"
    assert here.library.blobs.get(job.raw_path) == content


def test_a_file_that_is_too_large_is_refused_and_the_next_is_not(here: Visit) -> None:
    large = b"x" * (1024 * 1024 + 1)
    shown = sent(here, ("large.txt", large), ("small.txt", b"Small."))
    assert shown.status_code == 422
    assert f"the file is too large: {len(large)} bytes" in shown.text
    assert [job.name for job in jobs(here.library)] == ["small.txt"]


def test_a_file_that_is_too_large_is_not_taken_for_its_beginning(here: Visit) -> None:
    beginning = b"x" * 1024 * 1024
    sent(here, ("beginning.txt", beginning))
    (answer,) = sent(here, ("all.txt", beginning + b"y"), headers=DATA).json()["files"]
    assert "too large" in answer["problem"]
    assert answer["html"] is None


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd.md", "passwd.md"),
        ("C:\\Users\\x\\a.md", "a.md"),
        ("<img src=x onerror=alert(1)>.md", "<img src=x onerror=alert(1)>.md"),
        ("a%22b.md", 'a"b.md'),
        ("invoice\u202efdp.md", "invoice fdp.md"),
        ("{{7*7}}.md", "{{7*7}}.md"),
        ("報告.md", "報告.md"),
        ("a" * 300 + ".md", "a" * 252 + ".md"),
    ],
)
def test_names_of_files_are_cleaned_and_escaped(here: Visit, name: str, shown: str) -> None:
    field = part('name="form_key"', here.key("/upload").encode())
    file = part(f'name="files"; filename="{name}"', TEXT.encode())
    assert raw(here, field + file + b"--b--\r\n").status_code == 200
    (job,) = jobs(here.library)
    assert job.name == shown
    for path in ("/upload", f"/upload/{job.document_id}"):
        text = here.get(path).text
        assert "<img src=x" not in text
        assert "\u202e" not in text


@pytest.mark.parametrize("name", ["..md", "/.md", " .md", "...", "a", "a.md/"])
def test_names_that_are_none_are_refused(here: Visit, name: str) -> None:
    field = part('name="form_key"', here.key("/upload").encode())
    file = part(f'name="files"; filename="{name}"', TEXT.encode())
    answer = raw(here, field + file + b"--b--\r\n").json()
    if answer["files"][0]["problem"] is None:
        assert jobs(here.library)[0].name.endswith(".md")
    else:
        assert jobs(here.library) == []


# Refused ----------------------------------------------------------------------------------


def test_a_form_without_a_file_is_no_error_of_ours(here: Visit) -> None:
    shown = sent(here, ("", b""))
    assert (shown.status_code, "choose one first" in shown.text) == (422, True)


def test_no_more_files_than_fit_come_at_once(here: Visit) -> None:
    files = [("a.exe", b"x")] * (MAX_FILES + 1)
    answer = sent(here, *files, headers=DATA)
    assert (answer.status_code, answer.json()["kind"]) == (413, "too-many")


@pytest.mark.parametrize("key", ["", "x", "A" * 43])
def test_a_form_with_another_key_is_refused(here: Visit, key: str) -> None:
    here.get("/upload")
    assert sent(here, ("a.md", b"One."), key=key).status_code == 403
    assert jobs(here.library) == []


def test_a_key_that_comes_behind_the_file_comes_too_late(here: Visit) -> None:
    field = part('name="form_key"', here.key("/upload").encode())
    file = part('name="files"; filename="a.md"', TEXT.encode())
    assert raw(here, file + field + b"--b--\r\n").status_code == 403
    assert jobs(here.library) == []


def test_a_form_of_another_site_is_refused(here: Visit) -> None:
    key = here.key("/upload")
    for headers in (
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
    ):
        assert sent(here, ("a.md", b"One."), key=key, headers=headers).status_code == 401
    assert jobs(here.library) == []


def test_elsewhere_only_who_is_logged_in_sends_files(elsewhere: Visit) -> None:
    key = elsewhere.key("/login")
    assert sent(elsewhere, ("a.md", b"One."), key=key).status_code == 401
    _, secret = elsewhere.token("maria")
    elsewhere.log_in(secret)
    assert sent(elsewhere, ("a.md", b"One.")).status_code == 303
    assert len(jobs(elsewhere.library)) == 1


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "multipart/form-data; boundary=b"),
        (b"--b", "multipart/form-data; boundary=b"),
        (b"nothing", "multipart/form-data; boundary=b"),
        (b"--b\r\nx\r\n\r\n", "multipart/form-data; boundary=b"),
        (b"--b--\r\n", "multipart/form-data; boundary=" + "b" * 300),
        (b"--b--\r\n", "multipart/form-data"),
        (b"--b--\r\n", "text/plain; boundary=b"),
        (b"form_key=x", "application/x-www-form-urlencoded"),
        (part('name="form_key"', b"x"), "multipart/form-data; boundary=b"),
    ],
)
def test_what_is_no_form_is_refused(here: Visit, body: bytes, kind: str) -> None:
    answer = raw(here, body, kind)
    assert (answer.status_code, answer.json()["kind"]) == (400, "malformed")


def test_a_form_that_breaks_off_leaves_no_half_file(here: Visit) -> None:
    field = part('name="form_key"', here.key("/upload").encode())
    file = part('name="files"; filename="a.md"', TEXT.encode())
    assert raw(here, field + file[:-20]).status_code == 400
    assert jobs(here.library) == []


def test_a_field_cannot_fill_the_memory(here: Visit) -> None:
    body = part('name="form_key"', b"x" * 5000) + b"--b--\r\n"
    assert raw(here, body).status_code == 413


# Seen -------------------------------------------------------------------------------------


def test_everybody_sees_only_their_own(elsewhere: Visit) -> None:
    library = elsewhere.library
    theirs = send(library, make_user(library, "ada"), TEXT.encode(), "secret.md")
    _, secret = elsewhere.token("maria", "admin")
    elsewhere.log_in(secret)
    assert "secret.md" not in elsewhere.get("/upload").text
    at = f"/upload/{theirs.document_id}"
    assert elsewhere.get(at).status_code == 404
    assert elsewhere.get(f"{at}/events").status_code == 404
    assert elsewhere.get(f"/upload?before={theirs.document_id}").status_code == 404
    data = {"form_key": elsewhere.key("/upload")}
    for action in ("retry", "delete"):
        assert elsewhere.post(f"{at}/{action}", data=data).status_code == 404
    assert now_of(library, theirs) == theirs


def test_a_file_is_deleted_by_its_button_and_its_pages_leave_no_copy(here: Visit) -> None:
    sent(here, ("policy.md", TEXT.encode()))
    work(here.library)
    (job,) = jobs(here.library)
    at = f"/upload/{job.document_id}"
    assert "sum insured" in here.get(f"/d/upload:{job.document_id}").text
    home = here.library.settings.home
    assert not [path for path in (home / "cache").rglob("*") if path.is_file()]
    shown = here.get(at).text
    assert "Back-ups of the library keep it" in shown
    assert f'formaction="{at}/delete"' in shown
    assert here.post(f"{at}/delete", data={"form_key": "x"}).status_code == 403
    answer = here.post(f"{at}/delete", data={"form_key": here.key(at)})
    assert (answer.status_code, answer.headers["location"]) == (303, "/upload")
    assert here.get(at).status_code == 404
    assert here.get(f"/d/upload:{job.document_id}").status_code == 404
    assert jobs(here.library) == []


def test_nobody_sees_anything_without_a_session(elsewhere: Visit) -> None:
    library = elsewhere.library
    job = send(library, make_user(library, "ada"), TEXT.encode())
    for path in ("/upload", "/upload/events", f"/upload/{job.document_id}"):
        assert elsewhere.get(path, DATA).status_code == 401
    assert (
        elsewhere.post(f"/upload/{job.document_id}/retry", data={"form_key": "x"}).status_code
        == 401
    )


def test_the_newest_stand_first_and_pages_lead_to_the_rest(here: Visit, clock: ManualClock) -> None:
    sent(here, ("first.md", b"first"))
    for number in range(PAGE_SIZE + 4):
        clock.move(seconds=1)
        send(here.library, local(here.library), b"%d" % number, f"n{number}.md")
    newest = here.get("/upload").text
    names = re.findall(r">(\w+\.md)</a>", newest)
    assert names == [f"n{number}.md" for number in range(PAGE_SIZE + 3, 3, -1)]
    older = re.search(r'rel="next" href="([^"]+)"', newest)
    assert older is not None
    rest = here.get(older[1]).text
    assert re.findall(r">(\w+\.md)</a>", rest) == ["n3.md", "n2.md", "n1.md", "n0.md", "first.md"]
    assert 'rel="next"' not in rest


def test_a_ready_file_leads_to_its_document(here: Visit) -> None:
    sent(here, ("policy.md", TEXT.encode()))
    work(here.library)
    (job,) = jobs(here.library)
    shown = here.get(f"/upload/{job.document_id}").text
    assert f'href="/d/upload:{job.document_id}"' in shown
    assert "Try again" not in shown
    assert "by a worker" in shown
    assert "by you" in shown
    assert here.get(f"/d/upload:{job.document_id}").status_code == 200


def test_a_failed_file_says_why_and_goes_on_after_a_retry(here: Visit, clock: ManualClock) -> None:
    sent(here, ("policy.md", TEXT.encode()))
    (job,) = jobs(here.library)
    with here.library.database.write() as connection:
        held = job_of(connection, job.document_id, to_write=True)
        assert held is not None
        fail(connection, held, EmbedError("the <b>model</b> is down"), clock.now())
    at = f"/upload/{job.document_id}"
    shown = here.get(at).text
    assert "the &lt;b&gt;model&lt;/b&gt; is down" in shown
    assert f'formaction="{at}/retry"' in shown
    assert here.post(f"{at}/retry", data={"form_key": "x"}).status_code == 403
    data = {"form_key": here.key(at)}
    for _ in range(2):  # the second time it need not be sent back any more
        again = here.post(f"{at}/retry", data=data)
        assert (again.status_code, again.headers["location"]) == (303, at)
    assert now_of(here.library, job).status == "parse_queued"
    assert now_of(here.library, job).reprocessed == 1


def test_a_file_that_never_came_is_not_retried_but_sent_again(
    here: Visit, clock: ManualClock
) -> None:
    sent(here, ("a.md", b"One."))
    job = announce(here.library, local(here.library), TEXT.encode())
    at = f"/upload/{job.document_id}"
    assert "The file is being sent" in here.get(at).text
    clock.move(minutes=6)
    assert "has not arrived. Send it again" in here.get(at).text
    clock.move(hours=1)
    expire_uploads(here.library.context)
    shown = here.get(at).text
    assert "the file did not arrive in time" in shown
    assert "Try again" not in shown
    data = {"form_key": here.key(at)}
    assert here.post(f"{at}/retry", data=data).status_code == 409
    sent(here, ("policy.md", TEXT.encode()))
    assert now_of(here.library, job).status == "parse_queued"


def test_a_file_that_waits_where_nobody_works_says_so(here: Visit, clock: ManualClock) -> None:
    sent(here, ("a.md", b"One."), ("b.md", b"Two."))
    assert "fonds worker" not in here.get("/upload").text
    clock.move(seconds=31)
    assert "fonds worker" in here.get("/upload").text
    with here.library.database.write() as connection:
        assert claim(connection, "somebody", clock.now(), timedelta(seconds=30)) is not None
    assert "fonds worker" not in here.get("/upload").text  # the other one waits for its turn
    clock.move(seconds=31)
    assert "fonds worker" in here.get("/upload").text
    with here.library.database.write() as connection:
        record_worker(connection, "a worker", clock.now(), timedelta(seconds=30))
    assert "fonds worker" not in here.get("/upload").text


@pytest.mark.parametrize("path", ["/upload/x", "/upload/x/events", "/upload?before=x"])
def test_what_is_no_id_is_refused(here: Visit, path: str) -> None:
    assert here.get(path).status_code == 422


# Followed ---------------------------------------------------------------------------------


def events(text: str) -> list[tuple[str, dict[str, str]]]:
    found = re.findall(r"event: (\w+)\ndata: (.*)\n\n", text)
    return [(name, json.loads(data)) for name, data in found]


def test_what_has_ended_is_told_once(here: Visit) -> None:
    sent(here, ("policy.md", TEXT.encode()))
    work(here.library)
    (job,) = jobs(here.library)
    answer = here.get(f"/upload/{job.document_id}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    told = events(answer.text)
    assert [name for name, _ in told] == ["show", "show", "show", "end"]
    assert [data["id"] for _, data in told[:3]] == ["state", "moves", "stuck"]
    assert "Ready" in told[0][1]["html"]
    told = events(here.get("/upload/events").text)
    assert [data.get("id") for _, data in told] == ["stuck", f"job-{job.document_id}", None]


def test_parts_of_a_page_are_told_as_the_page_has_them(here: Visit) -> None:
    sent(here, ("policy.md", TEXT.encode()))
    work(here.library)
    page = here.get("/upload").text
    for _, data in events(here.get("/upload/events").text)[:-1]:
        assert data["html"] in page
