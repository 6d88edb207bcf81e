"""A server behind nginx, HAProxy and Caddy, as `deploy` configures them and with nothing set."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from tests.support import servers
from tests.support.libraries.uploads import upload_library
from tests.support.polling import wait_until

pytestmark = pytest.mark.proxy

DEADLINE: Final = 60.0
DEPLOY: Final = Path(__file__).resolve().parents[2] / "deploy"
PROXIES: Final = ("nginx", "haproxy", "caddy")
ADMIN: Final = "/api/admin/ingestion/sources"
FIRST, SECOND = "127.0.0.2", "127.0.0.3"
"""Two visitors: every address of this network is this machine."""

BARE: Final = {
    "nginx": "server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {upstream}; }} }}",
    "haproxy": (
        "defaults\n mode http\n timeout connect 5s\n timeout client 60s\n timeout server 60s\n"
        "frontend f\n bind 127.0.0.1:{port}\n default_backend b\n"
        "backend b\n server s {address}\n"
    ),
    "caddy": "http://:{port} {{\n bind 127.0.0.1\n reverse_proxy {address}\n}}\n",
}
LEAVES_NO_TRACE: Final = "haproxy"
"""With nothing set it passes requests on as they are."""


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A proxy, and a server behind it."""

    proxy: str
    is_bare: bool
    port: int
    home: Path
    log: Path
    token: str

    @contextmanager
    def visitor(self, address: str, **headers: str) -> Iterator[httpx.Client]:
        """A client with an address of its own."""
        transport = httpx.HTTPTransport(local_address=address)
        with httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            transport=transport,
            headers={"accept": "text/html", **headers},
            timeout=DEADLINE,
            trust_env=False,
        ) as client:
            yield client

    def doctor(self) -> dict[str, Any]:
        """What the doctor has to say about the addresses of clients."""
        command = [str(servers.fonds_command()), "--home", str(self.home), "doctor", "--json"]
        done = subprocess.run(command, env=environment(), capture_output=True, check=False)
        (finding,) = (each for each in json.loads(done.stdout) if each["check"] == "clients")
        return dict(finding)


def environment(**more: str) -> dict[str, str]:
    inherited = {n: value for n, value in os.environ.items() if not n.startswith("FONDS_")}
    return {**inherited, "FONDS_EMBEDDER": "hashing:32", **more}


def log_in(client: httpx.Client, token: str) -> int:
    key = re.search(r'name="form_key" value="([^"]+)"', client.get("/login").text)
    assert key is not None
    form = {"form_key": unescape(key[1]), "token": token}
    return client.post("/login", data=form).status_code


def wrong_tokens(client: httpx.Client, count: int) -> list[int]:
    return [log_in(client, "fonds_" + "A" * 43) for _ in range(count)]


@pytest.fixture(scope="module", params=[f"{p}, {c}" for p in PROXIES for c in ("bare", "ours")])
def deployment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    proxy, _, config = request.param.partition(", ")
    folder = tmp_path_factory.mktemp("deployment")
    home, log = folder / "library", folder / "server.log"
    with upload_library(home):
        pass
    made = subprocess.run(
        [servers.fonds_command(), "--home", home, "token", "create", "root", "--scope", "admin"],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    variables = {} if config == "bare" else {"FONDS_TRUSTED_PROXIES": "127.0.0.1"}
    (port,) = servers.free_ports(1)
    with ExitStack() as stack:
        upstream = stack.enter_context(serving(home, log, variables))
        text = proxy_config(proxy, upstream, is_bare=config == "bare", port=port)
        stack.enter_context(running(proxy, text, folder, port))
        yield Deployment(
            proxy=proxy,
            is_bare=config == "bare",
            port=port,
            home=home,
            log=log,
            token=made.stdout.strip(),
        )


@contextmanager
def serving(home: Path, log: Path, variables: dict[str, str]) -> Iterator[str]:
    """The address of `fonds serve`."""
    command = [str(servers.serving_command()), "--home", str(home), "serve", "--port", "0"]
    with (
        log.open("w") as file,
        subprocess.Popen(
            [*command, "--no-worker"], env=environment(**variables), stderr=file
        ) as process,
    ):
        try:
            wait_until(lambda: "stop it with Ctrl-C" in log.read_text())
            match = re.search(r"serving http://(\S+);", log.read_text())
            assert match is not None
            yield match[1]
        finally:
            process.terminate()
            process.wait(DEADLINE)


def proxy_config(proxy: str, address: str, *, is_bare: bool, port: int) -> str:
    """The text of `deploy` without TLS and at other ports, or the least that works."""
    if is_bare:
        return BARE[proxy].format(port=port, upstream=f"http://{address}", address=address)
    if proxy == "nginx":
        text = (DEPLOY / "nginx.conf").read_text()
        text = re.sub(r".*ssl_certificate.*\n", "", text)
        changes = {"listen 443 ssl": f"listen 127.0.0.1:{port}", "127.0.0.1:8000": address}
    elif proxy == "haproxy":
        text = (DEPLOY / "haproxy.cfg").read_text()
        certificate = ":443 ssl crt /etc/ssl/library.example.org.pem"
        changes = {certificate: f"127.0.0.1:{port}", "127.0.0.1:8000": address}
    else:
        text = (DEPLOY / "Caddyfile").read_text()
        site = "\nlibrary.example.org {"
        changes = {site: f"\nhttp://:{port} {{\n\tbind 127.0.0.1", "127.0.0.1:8000": address}
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    return text


@contextmanager
def running(proxy: str, text: str, folder: Path, port: int) -> Iterator[None]:
    """A proxy with a configuration, which writes below a folder only."""
    config = folder / f"{proxy}.conf"
    program = shutil.which(proxy)
    assert program is not None
    command = [program, "-f", str(config), "-db"]
    if proxy == "nginx":
        paths = "".join(
            f"{name}_temp_path {folder}/{name};"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        text = (
            f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
            f"http {{ access_log off; {paths}\n{text}\n}}"
        )
        command = [program, "-p", str(folder), "-c", str(config), "-e", f"{folder}/error.log"]
    elif proxy == "caddy":
        text = "{\n\tadmin off\n}\n" + text
        command = [program, "run", "--config", str(config), "--adapter", "caddyfile"]
    config.write_text(text)
    variables = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (
        (folder / "proxy.log").open("w") as log,
        subprocess.Popen(command, env=variables, stdout=log, stderr=log) as process,
    ):
        try:
            wait_until(lambda: process.poll() is not None or _answers(port))
            assert process.poll() is None, (folder / "proxy.log").read_text()
            yield
        finally:
            process.terminate()
            process.wait(DEADLINE)


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/login", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("host", ["", "127.0.0.1", "localhost:8000"])
def test_nobody_is_an_operator_behind_a_proxy_without_a_token(
    deployment: Deployment, host: str
) -> None:
    headers = {"host": host} if host else {}
    with deployment.visitor(FIRST, **headers) as client:
        assert client.get(ADMIN).status_code == 401
        assert client.post(f"{ADMIN}/bills/run").status_code == 401
        page = client.get("/admin/ingestion")
        assert page.headers["location"] == "/login?next=%2Fadmin%2Fingestion"
        assert client.get("/login/link?key=").status_code in {403, 429}
        bearer = {"Authorization": f"Bearer {deployment.token}"}
        assert client.get(ADMIN, headers=bearer).status_code == 200


def test_limits_count_each_visitor_with_our_configuration_and_all_without_it(
    deployment: Deployment,
) -> None:
    with deployment.visitor(FIRST) as first, deployment.visitor(SECOND) as second:
        assert wrong_tokens(first, 7)[-1] == 429
        assert wrong_tokens(second, 1) == [429 if deployment.is_bare else 403]
        if not deployment.is_bare:
            first.headers.update({"x-forwarded-for": SECOND, "forwarded": f"for={SECOND}"})
            assert wrong_tokens(first, 1) == [429]


def test_stranger_who_spends_the_limit_keeps_no_operator_from_logging_in(
    deployment: Deployment,
) -> None:
    with deployment.visitor(FIRST) as stranger, deployment.visitor(SECOND) as operator:
        assert wrong_tokens(stranger, 7)[-1] == 429
        assert log_in(operator, deployment.token) == 303
        assert operator.get("/admin/ingestion").status_code == 200


def test_hidden_visitors_are_logged_once_and_told_by_the_doctor(deployment: Deployment) -> None:
    with deployment.visitor(FIRST) as client:
        assert {client.get("/").status_code for _ in range(3)} == {200}
    is_noticed = deployment.is_bare and deployment.proxy != LEAVES_NO_TRACE
    assert deployment.log.read_text().count("clients_hidden") == is_noticed
    finding = deployment.doctor()
    assert finding["status"] == ("warn" if is_noticed else "ok")
    assert ("FONDS_TRUSTED_PROXIES=127.0.0.1" in finding["advice"]) == is_noticed
