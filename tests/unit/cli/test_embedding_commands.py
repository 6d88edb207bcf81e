"""Commands about vectors, as a user types them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.upstreams.embedding_endpoint import FINE, Asked, EmbeddingEndpoint, Mood, failing
from tests.unit.cli.conftest import Fonds

from fonds.cli.queues import embed_until_stopped
from fonds.library import Library, open_library
from fonds.stores.leases import depth
from fonds.stores.tables import ingestion_embedding_queue

SECOND = "hashing:64"


@pytest.fixture(autouse=True)
def _quick_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FONDS_EMBEDDER", "hashing:32")


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingEndpoint]:
    with EmbeddingEndpoint(dims=24) as endpoint:
        monkeypatch.setenv("FONDS_EMBED_URL", endpoint.url)
        monkeypatch.setenv("FONDS_RETRIES", "2")
        yield endpoint


# Embedding --------------------------------------------------------------------------------


def test_embedding_says_what_it_did_and_has_nothing_to_do_again(fonds: Fonds, home: Path) -> None:
    outcome = fonds("embed", "--home", str(home))
    assert (outcome.code, outcome.err) == (0, "")
    assert "passages embedded" in outcome.out
    assert "documents done" in outcome.out
    again = fonds("embed", "--json", "--home", str(home))
    assert (again.code, again.json["embedded"], again.json["done"]) == (0, 0, 0)


def test_limit_is_kept_and_what_waits_is_no_failure(fonds: Fonds, home: Path) -> None:
    outcome = fonds("embed", "--limit", "3", "--workers", "2", "--json", "--home", str(home))
    assert (outcome.code, outcome.json["done"]) == (0, 3)
    assert outcome.json["waiting"] > 0


def test_setting_that_names_another_model_is_mentioned_and_not_obeyed(
    fonds: Fonds, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fonds("embed", "--home", str(home))
    monkeypatch.setenv("FONDS_EMBEDDER", SECOND)
    for command in ("embed", "embed-status"):
        outcome = fonds(command, "--home", str(home))
        assert outcome.code == 0
        assert "made and searched by hashing:32" in outcome.err
        assert f"`fonds embed migrate --to {SECOND}`" in outcome.err
    assert [each["model"] for each in _generations(fonds, home)] == ["hashing-32"]


def test_unknown_model_is_a_usage_error_that_lists_those_there_are(
    fonds: Fonds, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FONDS_EMBEDDER", "word2vec")
    for arguments in (["embed"], ["plan", "embed"], ["embed", "migrate", "--to", "word2vec"]):
        outcome = fonds(*arguments, "--home", str(home))
        assert (outcome.code, outcome.out) == (2, "")
        assert "wordllama" in outcome.err


def test_endpoint_that_refuses_is_said_and_leaves_the_queue_as_it_was(
    fonds: Fonds, home: Path, endpoint: EmbeddingEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FONDS_EMBEDDER", "openai:small?dims=24")
    endpoint.behave(lambda _asked: failing(401))
    before = fonds("embed-status", "--json", "--home", str(home)).json["waiting"]
    outcome = fonds("embed", "--home", str(home))
    assert outcome.code == 3
    assert "FONDS_EMBED_KEY" in outcome.err
    status = fonds("embed-status", "--json", "--home", str(home)).json
    assert (status["waiting"], status["given_up"]) == (before, 0)


def test_stopped_embedding_says_so_and_the_next_one_completes_it(
    fonds: Fonds, home: Path, endpoint: EmbeddingEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FONDS_EMBEDDER", "openai:small?dims=24")

    def interrupt(_asked: Asked) -> Mood:
        os.kill(os.getpid(), signal.SIGTERM)
        return FINE

    endpoint.behave(interrupt)
    outcome = fonds("embed", "--workers", "1", "--home", str(home))
    assert outcome.code == 130
    assert outcome.err.endswith("stopped; the next run continues from here\n")
    endpoint.behave([])
    assert fonds("embed", "--home", str(home)).code == 0
    assert len(endpoint.texts) == len(set(endpoint.texts))


def test_model_that_does_not_answer_never_fails_what_went_before(
    home: Path, endpoint: EmbeddingEndpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = "openai:small?dims=24"
    endpoint.behave(lambda _asked: failing(401))
    with open_library(home, embedder=spec) as library:
        asyncio.run(embed_until_stopped(library))
    assert "vectors are not made yet: " in capsys.readouterr().err
    with open_library(home, embedder="openai:unknown") as library:
        asyncio.run(embed_until_stopped(library))
    assert "vectors are not made yet: " in capsys.readouterr().err


def test_embedding_beside_an_event_loop_ends_when_that_is_stopped(
    home: Path, endpoint: EmbeddingEndpoint
) -> None:
    async def stopped_at_the_first_request(library: Library) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(embed_until_stopped(library))

        def interrupt(_asked: Asked) -> Mood:
            loop.call_soon_threadsafe(task.cancel)
            return failing(500)

        endpoint.behave(interrupt)
        with pytest.raises(asyncio.CancelledError):
            await task

    patient: dict[str, Any] = {"retries": 3, "retry_wait": 5.0}
    with open_library(home, embedder="openai:small?dims=24", **patient) as library:
        before = _waiting(library)
        asyncio.run(stopped_at_the_first_request(library))
        assert _waiting(library) == before
    # Two batches, and neither was tried a second time.
    assert len(endpoint.requests) <= 2


# Changing the model -----------------------------------------------------------------------


def test_model_is_changed_back_and_forgotten(fonds: Fonds, home: Path, tmp_path: Path) -> None:
    at = ("--home", str(home))
    fonds("embed", *at)
    questions = tmp_path / "questions.txt"
    questions.write_text("lead in water\n\novertime salary\nlead in water\n")
    outcome = fonds("embed", "migrate", "--to", SECOND, "--queries", str(questions), *at)
    assert outcome.code == 0
    assert "top 10 results of 2 queries: " in outcome.out
    assert "search now uses hashing-64 1" in outcome.out
    assert _current(fonds, home) == "hashing-64"
    outcome = fonds("embed", "rollback", *at)
    assert (outcome.code, outcome.out) == (0, "search now uses hashing-32 1\n")
    assert fonds("embed", "forget", "hashing-32", *at).code == 2
    outcome = fonds("embed", "forget", "hashing-64", *at)
    assert outcome.code == 0
    assert outcome.out.startswith("deleted: hashing-64 1, ")
    assert [each["model"] for each in _generations(fonds, home)] == ["hashing-32"]
    outcome = fonds("embed", "rollback", *at)
    assert outcome.code == 2
    assert "no earlier generation" in outcome.err


def test_model_can_be_compared_without_a_switch(fonds: Fonds, home: Path) -> None:
    at = ("--home", str(home))
    fonds("embed", *at)
    outcome = fonds("embed", "migrate", "--to", SECOND, "--no-switch", *at)
    assert outcome.code == 0
    assert "are found by both" in outcome.out
    assert outcome.out.endswith("search still uses hashing-32 1\n")
    result = fonds("embed", "migrate", "--to", SECOND, "--no-switch", "--json", *at).json
    assert (result["is_filled"], result["is_searched"]) == (True, False)
    assert 0 < result["overlap"]["mean"] < 1
    assert result["overlap"]["most_different"][0]["shared"] == result["overlap"]["worst"]


def test_generation_that_is_not_filled_is_not_switched_to(
    fonds: Fonds, home: Path, endpoint: EmbeddingEndpoint
) -> None:
    at = ("--home", str(home))
    fonds("embed", *at)
    endpoint.behave(lambda _asked: failing(500))
    outcome = fonds("embed", "migrate", "--to", "openai:small?dims=24", *at)
    assert outcome.code == 3
    assert "not switched: run the same command again to continue" in outcome.err
    assert _current(fonds, home) == "hashing-32"


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff\xfe\x00"])
def test_file_without_questions_is_a_usage_error(
    fonds: Fonds, home: Path, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "questions.txt").write_bytes(content)
    given = ("--queries", str(tmp_path / "questions.txt"), "--home", str(home))
    outcome = fonds("embed", "migrate", "--to", SECOND, *given)
    assert (outcome.code, outcome.out) == (2, "")
    assert "questions.txt" in outcome.err
    assert _generations(fonds, home) == []


# Status and plan --------------------------------------------------------------------------


def test_status_of_a_library_without_vectors_says_how_to_make_them(fonds: Fonds) -> None:
    outcome = fonds("embed-status")
    assert outcome.code == 0
    assert "make them with `fonds embed`" in outcome.out
    assert "documents queued" in outcome.out


def test_status_marks_what_is_searched_and_shows_costs(
    fonds: Fonds, home: Path, endpoint: EmbeddingEndpoint
) -> None:
    at = ("--home", str(home))
    fonds("embed", *at)
    fonds("embed", "migrate", "--to", "openai:small?dims=24&price=1000", *at)
    outcome = fonds("embed-status", *at)
    lines = [line.rstrip() for line in outcome.out.splitlines()]
    assert any("hashing-32" in line and line.endswith("previous") for line in lines)
    assert any("small" in line and line.endswith("in use") for line in lines)
    assert any(line.startswith("federal_register") and "$" in line for line in lines)
    status = fonds("embed-status", "--json", *at).json
    assert {each["vectors"] for each in status["generations"]} == {status["passages"]}
    assert status["last_hour"]["texts"] >= len(set(endpoint.texts)) - 1


def test_plan_says_what_it_will_take_and_changes_nothing(
    fonds: Fonds, endpoint: EmbeddingEndpoint
) -> None:
    outcome = fonds("plan", "embed")
    assert outcome.code == 0
    assert "have no vector" in outcome.out
    assert "$0.00" in outcome.out
    assert "time: about " in outcome.out
    spec = "openai:small?dims=24&price=1000"
    outcome = fonds("plan", "embed", "--to", spec)
    assert "the texts are sent to another machine" in outcome.out
    assert "time: depends on the endpoint" in outcome.out
    plan = fonds("plan", "embed", "--to", spec, "--json").json
    assert plan["cost"] == pytest.approx(plan["tokens"] / 1000)
    assert endpoint.requests == []
    assert json.loads(fonds("embed-status", "--json").out)["generations"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["embed", "--workers", "0"],
        ["embed", "--limit", "0"],
        ["embed", "migrate"],
        ["embed", "nosuch"],
        ["embed", "forget"],
        ["embed", "forget", "7"],
        ["plan"],
        ["embed", "migrate", "--to", "hashing", "--queries", "nosuch.txt"],
    ],
)
def test_what_makes_no_sense_is_a_usage_error(fonds: Fonds, arguments: list[str]) -> None:
    assert fonds(*arguments).code == 2


def _waiting(library: Library) -> int:
    with library.database.read() as connection:
        return depth(connection, ingestion_embedding_queue)["waiting"]


def _generations(fonds: Fonds, home: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = fonds("embed-status", "--json", "--home", str(home)).json[
        "generations"
    ]
    return found


def _current(fonds: Fonds, home: Path) -> object:
    (found,) = [each["model"] for each in _generations(fonds, home) if each["is_current"]]
    return found
