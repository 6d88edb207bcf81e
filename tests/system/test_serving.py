"""`fonds serve`, `fonds worker`, `fonds upload` and `fonds jobs` as processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import pytest
from tests.support import servers
from tests.support.libraries.uploads import TEXT, upload_library
from tests.support.polling import wait_until

PATIENCE: Final = 120.0


def _environment(home: Path, **more: str) -> dict[str, str]:
    inherited = {n: value for n, value in os.environ.items() if not n.startswith("FONDS_")}
    return {**inherited, "FONDS_HOME": str(home), "FONDS_EMBEDDER": "hashing:32", **more}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with upload_library(tmp_path / "library"):
        return tmp_path / "library"


def run(home: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [servers.serving_command(), *arguments],
        env=_environment(home, **variables),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def token_of(home: Path, user: str, *options: str) -> str:
    made = run(home, "token", "create", user, *options)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@contextmanager
def started(
    home: Path,
    *arguments: str,
    command: Sequence[str | Path] = (),
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*(command or [servers.serving_command()]), *arguments],
        env=_environment(home, **variables),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE)


@contextmanager
def server(home: Path, *options: str) -> Iterator[str]:
    with started(home, "serve", "--port", "0", *options) as process:
        yield address_of(process)
    assert process.returncode == 0


def address_of(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    said = process.stderr.readline()
    address = re.search(r"serving (http://\S+);", said)
    assert address is not None, said + process.stderr.read()
    return address[1]


@pytest.mark.smoke
def test_files_are_uploaded_watched_listed_and_found(home: Path, tmp_path: Path) -> None:
    maria = token_of(home, "maria")
    good, bad = tmp_path / "policy.md", tmp_path / "letter.pdf"
    good.write_text(TEXT)
    bad.write_text("<!doctype html><html><p>Sorry.</p></html>")
    with server(home, "--no-worker") as address, started(home, "worker"):
        at = {"FONDS_TOKEN": maria}
        to = ("--server", address)
        sent = run(home, "upload", str(good), str(bad), *to, **at)
        assert sent.returncode == 1
        assert "policy.md: complete" in sent.stderr
        assert "letter.pdf: the name claims a PDF, but the file is an HTML page" in sent.stderr
        again = run(home, "upload", str(good), *to, "--json", **at)
        assert again.returncode == 0, again.stderr
        (outcome,) = json.loads(again.stdout)
        assert outcome["error"] is None
        assert outcome["job"]["status"] == "complete"

        listed = run(home, "jobs", *to, "--failed", "--json", **at)
        (failed,) = json.loads(listed.stdout)
        assert failed["status"] == "failed_parse"
        assert "letter.pdf" in run(home, "jobs", *to, **at).stdout
        retried = run(home, "jobs", "retry", failed["document_id"], *to, **at)
        assert retried.stdout == "letter.pdf: uploaded\n"
        refused = run(home, "jobs", "retry", outcome["job"]["document_id"], *to, **at)
        assert refused.returncode == 1
        assert "only failed jobs can be retried" in refused.stderr
        gone = run(home, "jobs", "delete", failed["document_id"], *to, **at)
        assert gone.stderr == f"deleted {failed['document_id']}\n"
        assert "letter.pdf" not in run(home, "jobs", *to, **at).stdout
        never = run(home, "jobs", "delete", failed["document_id"][::-1], *to, **at)
        assert never.returncode == 1
        everybody = run(home, "jobs", "--all", *to, **at)
        assert "a token of the scope admin is required" in everybody.stderr
    found = run(home, "search", "water damage", "--as", "maria", "--json")
    assert [hit["id"] for hit in json.loads(found.stdout)] == [
        f"upload:{outcome['job']['document_id']}"
    ]
    assert json.loads(run(home, "search", "water damage", "--json").stdout) == []


def test_events_come_while_the_job_is_worked_on(home: Path, tmp_path: Path) -> None:
    maria = token_of(home, "maria")
    file = tmp_path / "policy.md"
    file.write_text(TEXT)
    with server(home, "--no-worker") as address:
        sent = run(
            home, "upload", str(file), "--no-wait", "--json", "--server", address, FONDS_TOKEN=maria
        )
        (outcome,) = json.loads(sent.stdout)
        assert outcome["job"]["status"] == "parse_queued"
        url = f"{address}/jobs/{outcome['job']['document_id']}/events"
        bearer = {"Authorization": f"Bearer {maria}"}
        with httpx.stream("GET", url, headers=bearer, timeout=PATIENCE, trust_env=False) as stream:
            lines = stream.iter_lines()
            assert next(line for line in lines if '"to":"parse_queued"' in line)
            worker = threading.Thread(target=run, args=(home, "worker", "--drain"))
            worker.start()
            rest = list(lines)
            worker.join()
    assert any('"to":"complete"' in line for line in rest)
    assert "event: end" in rest


def test_server_ends_well_while_somebody_watches(home: Path, tmp_path: Path) -> None:
    maria = token_of(home, "maria")
    file = tmp_path / "policy.md"
    file.write_text(TEXT)
    with server(home, "--no-worker") as address:
        sent = run(
            home, "upload", str(file), "--no-wait", "--json", "--server", address, FONDS_TOKEN=maria
        )
        document_id = json.loads(sent.stdout)[0]["job"]["document_id"]
        url = f"{address}/jobs/{document_id}/events"
        bearer = {"Authorization": f"Bearer {maria}"}
        for _ in range(2):
            with httpx.stream("GET", url, headers=bearer, timeout=PATIENCE, trust_env=False) as one:
                next(one.iter_lines())
        watching = httpx.Client(timeout=PATIENCE, trust_env=False)
        stream = watching.send(watching.build_request("GET", url, headers=bearer), stream=True)
        assert httpx.get(f"{address}/health", trust_env=False).json()["status"] == "ok"
    stream.close()
    watching.close()


@pytest.mark.smoke
def test_upload_after_the_path_of_the_readme_is_worked_on_by_the_server_itself(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "policy.md"
    file.write_text(TEXT)
    maria = token_of(home, "maria")
    with _parent(home) as process:
        address = address_of(process)
        sent = run(home, "upload", str(file), "--server", address, FONDS_TOKEN=maria)
        assert "policy.md: complete" in sent.stderr
        (worker,) = _children(process.pid)
    assert process.returncode == 0
    assert not Path(f"/proc/{worker}").exists()


def test_without_a_worker_the_server_and_the_upload_say_what_to_start(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "policy.md"
    file.write_text(TEXT)
    maria = token_of(home, "maria")
    with _parent(home, "--no-worker") as process:
        address = address_of(process)
        assert process.stderr is not None
        said = iter(process.stderr.readline, "")
        assert any("no worker is running: uploads wait until" in line for line in said)
        assert not _children(process.pid)
        with subprocess.Popen(
            [servers.serving_command(), "upload", str(file), "--server", address],
            env=_environment(home, FONDS_TOKEN=maria),
            stderr=subprocess.PIPE,
            text=True,
        ) as upload:
            assert upload.stderr is not None
            notice = upload.stderr.readline()
            assert "policy.md: no worker is running: start `fonds worker`" in notice
            run(home, "worker", "--drain")
            assert upload.wait(PATIENCE) == 0


def test_worker_of_a_server_is_started_again_and_ends_with_the_server(home: Path) -> None:
    with _parent(home) as process:
        address_of(process)
        wait_until(lambda: _children(process.pid))
        (first,) = _children(process.pid)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: _children(process.pid) not in ([], [first]))
        (second,) = _children(process.pid)
        process.kill()
        process.wait(PATIENCE)
        wait_until(lambda: not _is_running(second))


@pytest.mark.parametrize(
    ("options", "expected"), [((), ["worker"]), (("--schedule",), ["scheduler", "worker"])]
)
def test_nothing_is_run_on_schedule_unless_the_server_is_asked_to(
    home: Path, options: tuple[str, ...], expected: list[str]
) -> None:
    with _parent(home, *options) as process:
        address_of(process)
        wait_until(lambda: sorted(map(_command, _children(process.pid))) == expected)
    assert process.returncode == 0


@contextmanager
def _parent(home: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """`fonds serve` as the process itself, whose children can be seen."""
    command = (sys.executable, "-m", "fonds")
    with started(home, "serve", "--port", "0", *options, command=command) as process:
        yield process


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += map(int, (task / "children").read_text().split())
    return [child for child in found if _is_running(child) and _command(child)]


def _command(pid: int) -> str:
    """The last argument of a process that `fonds serve` has started."""
    arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return arguments[-2] if "fonds.cli.children" in arguments else ""


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_nobody_answers_is_told_with_what_to_start(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "policy.md"
    file.write_text(TEXT)
    away = ("--server", "http://127.0.0.1:9")
    sent = run(home, "upload", str(file), *away, FONDS_TOKEN="fonds_x")
    assert sent.returncode == 1
    assert "`fonds serve`" in sent.stderr
    assert "`fonds worker`" in sent.stderr
    assert run(home, "jobs", *away, FONDS_TOKEN="fonds_x").returncode == 1
    assert run(home, "upload", str(file)).returncode == 2


def test_server_started_while_its_database_is_away_answers_503_until_it_is_back(
    home: Path, postgres_url: str, postgres_database: str
) -> None:
    name = urlsplit(postgres_database).path.strip("/")
    servers.allow_connections(postgres_url, name, allowed=False)
    variables = {"FONDS_DATABASE": postgres_database}
    with started(home, "serve", "--port", "0", variables=variables) as process:
        assert process.stderr is not None
        address = re.search(r"(http://\S+) answers 503 until it does", process.stderr.readline())
        assert address is not None
        health = address[1] + "/health"
        away = httpx.get(health, trust_env=False)
        assert (away.status_code, away.json()["kind"]) == (503, "database-unavailable")
        assert away.headers["retry-after"] == "5"
        servers.allow_connections(postgres_url, name, allowed=True)
        assert address_of(process) == address[1]
        wait_until(lambda: httpx.get(health, trust_env=False).json().get("status") == "ok")
    assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_server_that_waits_for_its_database_ends_when_it_is_stopped(
    home: Path, number: signal.Signals
) -> None:
    variables = {"FONDS_DATABASE": "postgresql://nobody@127.0.0.1:1/nothing"}
    with started(home, "serve", "--port", "0", variables=variables) as process:
        assert process.stderr is not None
        assert "answers 503 until it does" in process.stderr.readline()
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
        assert "Traceback" not in process.stderr.read()


@pytest.mark.smoke
def test_server_prints_a_link_for_one_login_on_a_terminal_only(home: Path) -> None:
    with server_on_a_terminal(home) as (address, printed, errors):
        (link,) = re.findall(rf"{re.escape(address)}/login/link\?key=\S+", printed)
        page = {"accept": "text/html"}
        with httpx.Client(trust_env=False, follow_redirects=True, headers=page) as browser:
            assert browser.get(f"{address}/admin/ingestion").url.path == "/login"
            assert browser.get(link).status_code == 200
            operated = browser.get(f"{address}/admin/ingestion")
            assert (operated.url.path, operated.status_code) == ("/admin/ingestion", 200)
        assert httpx.get(link, trust_env=False).status_code == 403
    assert "key=" not in errors.read_text()
    with started(home, "serve", "--port", "0") as process:
        assert process.stderr is not None
        process.stderr.readline()
        assert "fonds token create NAME --scope admin" in process.stderr.readline()


@contextmanager
def server_on_a_terminal(home: Path) -> Iterator[tuple[str, str, Path]]:
    """The address of a server, its standard output, which is a terminal, and a file of its log."""
    errors = home.parent / "errors.txt"
    terminal, theirs = os.openpty()
    environment = _environment(home, FONDS_LOG_LEVEL="debug")
    command = [str(servers.serving_command()), "serve", "--port", "0"]
    with (
        errors.open("w") as file,
        subprocess.Popen(command, env=environment, stdout=theirs, stderr=file) as process,
    ):
        try:
            printed = ""
            while "key=" not in printed or not printed.endswith("\n"):
                printed += os.read(terminal, 4096).decode()
            address = re.search(r"(http://[^/\s]+)/login", printed)
            assert address is not None
            yield address[1], printed, errors
        finally:
            process.terminate()
            process.wait(PATIENCE)
            os.close(terminal)
            os.close(theirs)


@pytest.mark.parametrize(
    "options",
    [
        {"FONDS_PUBLIC_URL": "https://library.example"},
        {"FONDS_TRUSTED_PROXIES": "127.0.0.1"},
        {},
    ],
)
def test_other_machines_are_served_only_if_somebody_has_a_token(
    home: Path, options: dict[str, Any]
) -> None:
    host = () if options else ("--host", "0.0.0.0")
    refused = run(home, "serve", "--port", "0", *host, **options)
    assert refused.returncode == 2
    assert "fonds token create" in refused.stderr


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"FONDS_SERVER_SECRET": "CHANGE-ME-CHANGE-ME"}, "FONDS_SERVER_SECRET still contains"),
        ({"FONDS_WEBHOOK_SECRETS": "change-me-please-now"}, "FONDS_WEBHOOK_SECRETS still contains"),
        ({"FONDS_SERVER_SECRET": "hush"}, "FONDS_SERVER_SECRET is too short"),
        ({"FONDS_WEBHOOK_SECRETS": "hush"}, "FONDS_WEBHOOK_SECRETS"),
    ],
)
def test_placeholders_and_short_secrets_are_refused_at_the_start(
    home: Path, variables: dict[str, str], message: str
) -> None:
    refused = run(home, "serve", "--port", "0", **variables)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert "hush" not in refused.stderr
