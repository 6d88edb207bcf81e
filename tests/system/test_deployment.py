"""Dockerfile, compose.yaml, GitHub workflows: linters find nothing, and what they name is there.

No engine runs them here. What an engine would run is run without one: the command of the object
store on the same program, and the commands of fonds by their names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml
from tests.support import servers

from fonds.cli.main import MENU
from fonds.seams import Seams
from fonds.settings import Settings, read_settings
from fonds.stores.blobs import open_blobs

pytestmark = pytest.mark.smoke

ROOT: Final = Path(__file__).resolve().parents[2]
LINTERS: Final = ROOT / ".tools" / "linters" / "node_modules"
DOCKERFILE: Final = ROOT / "Dockerfile"
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
COMPOSE: Final = ROOT / "compose.yaml"
OURS: Final = {"schema", "scheduler", "worker", "serve"}
# The order in which a reader learns most is not that of the alphabet.
ORDERS: Final = (
    "service-keys-order",
    "services-alphabetical-order",
    "top-level-properties-order",
)
VARIABLE: Final = re.compile(r"^(\w+)=(.*)$", re.MULTILINE)
PATIENCE: Final = 60.0


def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text("utf-8"))["services"]
    return found


def each_service(named: set[str] | None = None) -> list[Any]:
    chosen = {name: one for name, one in services().items() if name in (named or {name})}
    return [pytest.param(one, id=name) for name, one in chosen.items()]


def instructions() -> list[tuple[str, str]]:
    """What the Dockerfile says, without comments, a line for each instruction."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text("utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [
        (name, " ".join(rest.split()))
        for name, _, rest in (line.partition(" ") for line in lines)
        if name
    ]


def variables(name: str) -> dict[str, str]:
    return dict(VARIABLE.findall((ROOT / "deploy" / f"{name}.env.example").read_text("utf-8")))


# Linters ----------------------------------------------------------------------------------


def node(*arguments: str, text: str = "") -> str:
    program = shutil.which("node")
    if program is None or not LINTERS.is_dir():
        pytest.skip("scripts/install-linters has not been run, or there is no Node")
    done = subprocess.run(
        [program, *arguments], input=text, capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert not done.stderr, done.stderr
    return done.stdout


def compose_findings(file: Path) -> list[str]:
    disabled = [word for rule in ORDERS for word in ("--disable-rule", rule)]
    dclint = str(LINTERS / "dclint" / "bin" / "dclint.cjs")
    (told,) = json.loads(node(dclint, str(file), "--formatter", "json", *disabled))
    return [f"{one['line']}: {one['message']}" for one in told["messages"]]


_VALIDATE: Final = """
const { validate } = require("dockerfile-utils");
const text = require("fs").readFileSync(0, "utf8");
const all = { deprecatedMaintainer: 2, directiveCasing: 2, emptyContinuationLine: 2,
  instructionCasing: 2, instructionCmdMultiple: 2, instructionEntrypointMultiple: 2,
  instructionHealthcheckMultiple: 2, instructionJSONInSingleQuotes: 2,
  instructionWorkdirRelative: 2 };
console.log(JSON.stringify(validate(text, all).map(one => one.message)));
"""


def dockerfile_findings(text: str) -> list[str]:
    found: list[str] = json.loads(
        node("-e", f"module.paths.push({json.dumps(str(LINTERS))});{_VALIDATE}", text=text)
    )
    return found


_ACTIONLINT: Final = LINTERS / "@tktco" / "node-actionlint" / "build" / "run-lint.js"
_LINT_WORKFLOW: Final = """
const text = require("fs").readFileSync(0, "utf8");
// Any other name is looked for on the disk, which the WebAssembly build cannot do.
runLint(text, "<stdin>").then(errors =>
  console.log(JSON.stringify(errors.map(error => `${error.line}: ${error.message}`))));
"""


def workflow_errors(text: str) -> list[str]:
    if not _ACTIONLINT.exists():
        pytest.skip("scripts/install-linters has not been run, or there is no Node")
    # The package names only its command line to others, which prints errors in colours.
    script = f"const {{ runLint }} = require({json.dumps(str(_ACTIONLINT))});{_LINT_WORKFLOW}"
    errors: list[str] = json.loads(node("-e", script, text=text))
    return errors


def test_the_linter_finds_nothing_in_the_compose_file() -> None:
    assert compose_findings(COMPOSE) == []


def test_the_linter_of_compose_files_finds_what_is_wrong(tmp_path: Path) -> None:
    bad = tmp_path / "compose.yaml"
    bad.write_text(COMPOSE.read_text().replace("read_only: true", "read_only: [yes]", 1))
    assert compose_findings(bad)


def test_the_linter_finds_nothing_in_the_dockerfile() -> None:
    assert dockerfile_findings(DOCKERFILE.read_text("utf-8")) == []


def test_the_linter_of_dockerfiles_finds_what_is_wrong() -> None:
    assert dockerfile_findings(DOCKERFILE.read_text("utf-8").replace("EXPOSE 8000", "EXPOSE eight"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_the_linter_finds_nothing_in_a_workflow(workflow: Path) -> None:
    assert workflow_errors(workflow.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("runs-on: ubuntu-24.04", "runs-on: ubuntu-04.24"),
        ("${{ matrix.python }}", "${{ matrix.pyhton }}"),
        ("contents: read", "contents: all"),
        ("cancel-in-progress:", "cancel-in-process:"),
    ],
)
def test_the_linter_of_workflows_finds_what_is_wrong(right: str, wrong: str) -> None:
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8")
    assert right in text
    assert workflow_errors(text.replace(right, wrong))


# The workflows ----------------------------------------------------------------------------


def each_workflow() -> list[Any]:
    return [
        pytest.param(yaml.safe_load(path.read_text("utf-8")), id=path.stem) for path in WORKFLOWS
    ]


def steps_of(workflow: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_says_first_that_it_was_never_run(path: Path) -> None:
    first, *_ = path.read_text("utf-8").splitlines()
    assert first == "# This workflow has been linted but has not been run yet."


@pytest.mark.parametrize("workflow", each_workflow())
def test_no_workflow_may_write_by_default_and_no_job_runs_for_hours(
    workflow: Mapping[str, Any],
) -> None:
    assert workflow["permissions"] in ({}, {"contents": "read"})
    assert all(job["timeout-minutes"] <= 120 for job in workflow["jobs"].values())


def test_only_publishing_proves_its_identity_and_only_the_release_is_written() -> None:
    writing = {
        (path.stem, name, scope)
        for path in WORKFLOWS
        for name, job in yaml.safe_load(path.read_text("utf-8"))["jobs"].items()
        for scope, access in job.get("permissions", {}).items()
        if access == "write"
    }
    assert writing == {
        ("release", "publish", "id-token"),
        ("release", "publish", "attestations"),
        ("release", "github-release", "contents"),
    }


@pytest.mark.parametrize("workflow", each_workflow())
def test_no_command_of_a_workflow_contains_text_that_others_write(
    workflow: Mapping[str, Any],
) -> None:
    # GitHub puts the value of an expression into the command before a shell reads it.
    assert not [step["run"] for step in steps_of(workflow) if "${{" in step.get("run", "")]


@pytest.mark.parametrize("workflow", each_workflow())
def test_a_workflow_uses_major_versions_and_leaves_no_token_in_the_checkout(
    workflow: Mapping[str, Any],
) -> None:
    used = [step for step in steps_of(workflow) if "uses" in step]
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", one["uses"]) for one in used)
    checkouts = [step for step in used if step["uses"].startswith("actions/checkout@")]
    assert all(step["with"] == {"persist-credentials": False} for step in checkouts)


def test_workflows_run_targets_of_the_makefile_on_supported_versions_of_python() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    documents = [yaml.safe_load(path.read_text("utf-8")) for path in WORKFLOWS]
    commands = [step.get("run", "") for document in documents for step in steps_of(document)]
    made = {command.split()[1] for command in commands if command.startswith("make ")}
    assert made == {"check", "test", "test-all"} & set(targets)
    (test,) = (document for document in documents if document["name"] == "Test")
    versions = test["jobs"]["test"]["strategy"]["matrix"]["python"]
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert oldest["requires-python"] == f">={versions[0]}"


# The image --------------------------------------------------------------------------------


def test_the_image_is_run_by_nobody_who_may_change_it() -> None:
    told = instructions()
    last = [name for name, _ in told].index("FROM", 1)
    (user,) = (rest for name, rest in told[last:] if name == "USER")
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user)
    copied = [rest for name, rest in told[last:] if name == "COPY"]
    assert copied == ["--from=build /opt/fonds /opt/fonds"]
    assert "HEALTHCHECK" in dict(told)
    assert json.loads(dict(told)["ENTRYPOINT"]) == ["fonds"]


def test_the_image_is_built_from_pins_and_from_no_address() -> None:
    text = DOCKERFILE.read_text("utf-8")
    assert "PIP_CONSTRAINT=/src/constraints.txt" in text
    assert not re.findall(r"index-url|find-links|trusted-host|https?://(?!127\.0\.0\.1)", text)
    images = [rest.split()[0] for name, rest in instructions() if name == "FROM"]
    assert all(re.search(r":\d+\.\d+", image) for image in images)


def test_what_builds_the_package_is_pinned_too() -> None:
    pins = {line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().split()}
    assert {"hatchling", "trove-classifiers", "tomlkit", "pathspec", "pluggy", "packaging"} <= pins


def test_all_that_is_copied_is_let_through_and_nothing_else() -> None:
    kept = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert "*" in kept
    let_through = {line[1:] for line in kept if line.startswith("!")}
    copied = {
        word.removesuffix("/")
        for name, rest in instructions()
        if name == "COPY" and "--from" not in rest
        for word in rest.split()[:-1]
    }
    assert let_through == copied
    assert all((ROOT / name).exists() for name in copied)


# The services -----------------------------------------------------------------------------


@pytest.mark.parametrize("service", each_service())
def test_a_service_may_do_no_more_than_it_must(service: Mapping[str, Any]) -> None:
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "pid", "ipc", "network_mode", "devices"} & set(service)
    assert service["mem_limit"]
    assert service["pids_limit"]


@pytest.mark.parametrize("service", each_service(OURS))
def test_fonds_gains_no_capability_and_runs_a_command_there_is(service: Mapping[str, Any]) -> None:
    assert "cap_add" not in service
    command = service.get("command", ["serve"])
    assert command[0] in MENU
    waits_for = service["depends_on"].values()
    assert all(one["condition"].startswith("service_") for one in waits_for)


@pytest.mark.parametrize("service", each_service())
def test_a_service_is_looked_after_or_ends_by_itself(service: Mapping[str, Any]) -> None:
    # The server's own health check stands in the Dockerfile.
    if "healthcheck" in service:
        assert "test" in service["healthcheck"] or service["restart"].startswith("on-failure")
    else:
        assert service.get("ports")


def test_only_this_machine_reaches_the_server_and_nobody_the_stores() -> None:
    for name, service in services().items():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        assert name in OURS or service["networks"] == ["inside"]
    assert yaml.safe_load(COMPOSE.read_text())["networks"]["inside"] == {"internal": True}


def test_secrets_stand_in_files_that_git_does_not_see() -> None:
    files = {file for service in services().values() for file in service["env_file"]}
    assert files == {f"deploy/{name}.env" for name in ("database", "objects", "fonds")}
    assert "/deploy/*.env" in (ROOT / ".gitignore").read_text().splitlines()
    assert all((ROOT / f"{file}.example").is_file() for file in files)
    assert "CHANGE-ME" not in COMPOSE.read_text()


def test_examples_of_environment_files_fit_each_other_and_are_settings(tmp_path: Path) -> None:
    database, objects, ours = map(variables, ("database", "objects", "fonds"))
    known = {f"FONDS_{each.name.upper()}" for each in fields(Settings)}
    assert {name for name in ours if name.startswith("FONDS_")} <= known
    assert objects.items() <= ours.items()
    user, password = database["POSTGRES_USER"], database["POSTGRES_PASSWORD"]
    told = f"postgresql://{user}:{password}@database/{database['POSTGRES_DB']}"
    assert ours["FONDS_DATABASE"] == told
    environ = {**ours, **services()["serve"]["environment"]}
    settings = read_settings({"home": tmp_path}, environ=environ)
    assert settings.database_url == told
    open_blobs(settings.blobs_url, seams=Seams())


@pytest.mark.long
def test_the_object_store_takes_its_command_and_its_identity(tmp_path: Path) -> None:
    ports = dict(zip(servers.WEED_PORTS, servers.free_ports(len(servers.WEED_PORTS)), strict=True))
    elsewhere = {"-dir": tmp_path, "-ip": "127.0.0.1", "-ip.bind": "127.0.0.1"}
    told = [one.partition("=") for one in services()["objects"]["command"]]
    kept = [f"{name}{sign}{elsewhere.get(name, value)}" for name, sign, value in told]
    command = [one for one in kept if not one.startswith("-s3.port")]
    command += [f"-{name}={port}" for name, port in ports.items()]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0"]
    endpoint = f"http://127.0.0.1:{ports['s3.port']}"
    environ = {**os.environ, **variables("objects")}
    weed = Path(sys.executable).with_name("weed")
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([weed, *command], env=environ, stdout=log, stderr=log)
    try:
        assert _answers(f"{endpoint}/healthz", process), (tmp_path / "log").read_text()[-2000:]
        blobs = services()["serve"]["environment"]["FONDS_BLOBS"]
        ours = {**os.environ, **variables("fonds"), "FONDS_DATABASE": ""}
        ours |= {"FONDS_HOME": str(tmp_path / "home")}
        ours |= {"FONDS_BLOBS": blobs.replace("http://objects:8333", endpoint)}
        done = subprocess.run(
            [servers.fonds_command(), "doctor"],
            env=ours,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "a file was written, read and deleted" in done.stdout, done.stdout + done.stderr
    finally:
        process.kill()
        process.wait()


def _answers(address: str, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(address).is_success:
                return True
        except httpx.TransportError:
            time.sleep(0.1)
    return False
