"""The command line as a process: exit codes, signals, pipes and terminals."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import servers
from tests.support.libraries.demo import FONDS, copy_demo_library, demo
from tests.support.libraries.notes import redirect_to
from tests.support.polling import wait_until
from tests.support.upstreams.misbehaving import MisbehavingServer, Request, Response

from fonds.demo import http
from fonds.demo.bundle import DATA, BundledRegister
from fonds.demo.federal_register_api import RegisterApi
from fonds.demo.server import DemoUpstream
from fonds.library import open_library

REGISTER = "www.federalregister.gov"
TEXT = "/documents/full_text/xml/2026/01/13/2026-00122.xml"
TWO_DAYS = ["federal_register", "--since", "2026-01-12", "--until", "2026-01-13"]


def environment(home: Path, hosts: str, **more: str) -> dict[str, str]:
    inherited = {n: value for n, value in os.environ.items() if not n.startswith("FONDS_")}
    ours = {"FONDS_HOME": str(home), "FONDS_HOSTS": hosts, "FONDS_ALLOW_PRIVATE": "1"}
    return {**inherited, **ours, "FONDS_RETRY_WAIT": "0.001", **more}


def start(variables: dict[str, str], *arguments: str, **options: Any) -> subprocess.Popen[str]:
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([FONDS, *arguments], env=variables, text=True, **streams)


def run(variables: dict[str, str], *arguments: str, command: Path = FONDS) -> tuple[int, str, str]:
    done = subprocess.run(
        [command, *arguments],
        env=variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a library that was filled by a process."""
    folder = tmp_path_factory.mktemp("filled")
    home = copy_demo_library(folder)
    with DemoUpstream() as upstream:
        yield environment(home, upstream.hosts_variable)


@pytest.mark.smoke
def test_processes_end_with_the_code_that_is_documented(filled: dict[str, str]) -> None:
    others = servers.fonds_command()
    code, out, _ = run(filled, "audit", "legislators", "--json", command=others)
    assert (code, json.loads(out)["missing"]) == (0, 0)
    code, out, err = run(filled, "run", "nosuch")
    assert (code, out) == (2, "")
    assert err.startswith("error: there is no source 'nosuch'")
    unreachable = {**filled, "FONDS_DATABASE": "postgresql://nobody@127.0.0.1:1/fonds"}
    assert run(unreachable, "doctor", command=others)[0] == 1


def test_reader_that_goes_away_is_no_error(filled: dict[str, str]) -> None:
    for arguments in (["show", "fr:2026-00101"], ["search", "lead", "--json"], ["status"]):
        with start(filled, *arguments) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            assert process.stderr.read() == ""
        assert process.returncode == 1


def test_terminal_that_knows_only_ascii_is_shown_numbers(filled: dict[str, str]) -> None:
    code, out, _ = run({**filled, "PYTHONIOENCODING": "ascii"}, "show", "fr:2026-00101")
    assert code == 0
    assert "(sha256 " in out
    assert "\\u2026)" in out


def test_narrow_terminal_gets_a_list_instead_of_a_broken_table(filled: dict[str, str]) -> None:
    ours, theirs = pty.openpty()
    with start({**filled, "COLUMNS": "60", "NO_COLOR": "1"}, "status", stdout=theirs) as process:
        os.close(theirs)
        shown = b""
        # Linux reports the end of a terminal as an error.
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:
            pass
    os.close(ours)
    assert process.returncode == 0
    assert b"federal_register" in shown
    assert all(len(line) <= 60 for line in shown.decode().splitlines())


def test_demo_needs_no_setting() -> None:
    done = demo()
    assert (done.code, done.err) == (0, "")
    assert f'{FONDS} --home {done.home} search "wildfire smoke"\n' in done.out
    assert done.out.endswith(f"{FONDS} --home {done.home} serve\n")


# Stopping ---------------------------------------------------------------------------------


@pytest.fixture
def slow() -> Iterator[MisbehavingServer]:
    """A Federal Register one of whose texts never comes."""
    api = RegisterApi(BundledRegister(DATA / REGISTER))

    def answer(request: Request) -> Response:
        served = api(http.Request(request.method, request.target, request.headers))
        return Response(served.body, served.status.value, served.media_type)

    with MisbehavingServer() as server:
        server.route("/*", answer)
        server.route(TEXT, redirect_to(server.url("/hangs")))
        yield server


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped_run_is_cancelled_and_the_next_one_completes_it(
    slow: MisbehavingServer, tmp_path: Path, number: signal.Signals
) -> None:
    variables = environment(tmp_path, f"{REGISTER}={slow.address}")
    others = servers.fonds_command()
    with start(variables, "backfill", *TWO_DAYS) as process:
        wait_until(lambda: slow.seen("/hangs"))
        code, _, err = run(variables, "run", "federal_register", command=others)
        assert (code, err) == (1, "error: federal_register is being run by another process\n")
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert err == "stopped; the next run continues from here\n"
    assert _runs(tmp_path) == ["cancelled"]
    slow.remove(TEXT)
    code, out, _ = run(variables, "backfill", *TWO_DAYS, "--json", command=others)
    assert (code, json.loads(out)["status"]) == (0, "success")
    assert _runs(tmp_path) == ["cancelled", "success"]
    with open_library(tmp_path) as library:
        assert library.document("fr:2026-00122")["body_text"]


def test_scheduler_serves_until_it_is_told_to_stop(filled: dict[str, str]) -> None:
    with start(filled, "scheduler") as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "scheduler started; stop it with Ctrl-C\n"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in err


def _runs(home: Path) -> list[str]:
    with open_library(home) as library, library.database.read() as connection:
        query = "SELECT status FROM ingestion_runs ORDER BY started_at"
        return [row[0] for row in connection.exec_driver_sql(query)]
