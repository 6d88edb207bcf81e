"""How Prometheus reads the figures of uploads, on every database."""

from __future__ import annotations

from collections import defaultdict

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.uploads.statistics import NOW, ago, batch, failing, generation, job, user

from fonds import ids
from fonds.errors import ParserError
from fonds.maintenance.metrics import ALL_USERS, render_families, upload_families
from fonds.stores.database import Database
from fonds.uploads.jobs import Job
from fonds.uploads.states import JobStatus
from fonds.uploads.usage import MAX_USERS

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def exposed(database: Database) -> str:
    with database.read() as connection:
        return render_families(upload_families(connection, NOW))


def samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float:
    return found[f"fonds_upload_{name}", frozenset(labels.items())]


def busy(database: Database) -> Job:
    owner, made = user(database, "Ada Lovelace"), generation(database)
    for took in (0.5, 3, 90, 5000):
        job(database, owner, JobStatus.PARSED, arrived_at=ago(9000), parsed_at=ago(9000 - took))
    job(database, owner, moved=ago(25))
    failed = failing(database, job(database, owner), ParserError("page 7 of the policy is torn"))
    batch(database, made, {ids.upload_id(failed.document_id): 2000}, retries=1)
    return failed


def test_empty_library_exposes_zeros(database: Database) -> None:
    assert set(samples(exposed(database)).values()) == {0}


def test_exposition_says_what_the_figures_say(database: Database) -> None:
    failed = busy(database)
    found = samples(exposed(database))
    assert value(found, "jobs", status="parsed") == 4
    assert value(found, "jobs", status="complete") == 0
    assert value(found, "duration_seconds_sum", milestone="parse") == 5093.5
    assert value(found, "errors_total", stage="parse", type="ParserError", final="true") == 1
    assert value(found, "stage_jobs", stage="parse") == 6
    assert value(found, "stage_error_ratio", stage="parse") == pytest.approx(1 / 6)
    assert value(found, "due_jobs") == 5
    assert value(found, "queue_lag_seconds") == 25
    assert value(found, "longest_wait_seconds") == 9000
    assert value(found, "repeated_jobs") == value(found, "repeated_ratio") == 0
    assert value(found, "batch_tokens_sum") == value(found, "document_tokens_sum") == 2000
    assert value(found, "cost_dollars_total") == 500
    assert value(found, "repeated_tokens_total") == 2000
    assert value(found, "repeated_cost_dollars_total") == 500
    assert (value(found, "requests_total"), value(found, "request_retries_total")) == (2, 1)
    assert value(found, "user_storage_bytes", user=str(failed.user_id), content="raw") == 6000
    assert value(found, "format_storage_bytes", format="pdf", content="raw") == 6000
    assert value(found, "format_storage_bytes", format="pdf", content="parsed") == 0


def test_every_metric_is_ours_explained_and_told_once(database: Database) -> None:
    busy(database)
    families = list(text_string_to_metric_families(exposed(database)))
    names = [family.name for family in families]
    assert len(names) == len(set(names)) > 15
    for family in families:
        assert family.name.startswith("fonds_upload_")
        assert family.documentation.endswith(".")
        assert family.type in {"gauge", "counter", "histogram"}
        keys = [(sample.name, frozenset(sample.labels.items())) for sample in family.samples]
        assert len(keys) == len(set(keys))


def test_buckets_of_histograms_are_cumulative(database: Database) -> None:
    busy(database)
    text = exposed(database)
    found, buckets = samples(text), defaultdict(list)
    for (name, labels), count in found.items():
        if name.endswith("_bucket"):
            others = frozenset((key, each) for key, each in labels if key != "le")
            buckets[name.removesuffix("_bucket"), others].append((float(dict(labels)["le"]), count))
    assert len(buckets) == 6
    for (name, labels), counted in buckets.items():
        counts = [count for _, count in sorted(counted)]
        assert counts == sorted(counts)
        assert max(counted) == (float("inf"), found[f"{name}_count", labels])
    parse = dict(buckets["fonds_upload_duration_seconds", frozenset({("milestone", "parse")})])
    assert [parse[bound] for bound in (1, 2, 5, 60, 120, 3600)] == [1, 1, 2, 2, 3, 3]
    assert parse[float("inf")] == 4


def test_no_name_and_no_message_is_exposed(database: Database) -> None:
    failed = busy(database)
    text = exposed(database)
    for secret in ("Ada", "Confidential", "torn", str(failed.document_id), str(failed.job_id)):
        assert secret not in text


def test_many_users_are_exposed_as_one_sum(database: Database) -> None:
    for number in range(MAX_USERS):
        job(database, user(database, f"user {number}"), size=10)
    name = "fonds_upload_user_storage_bytes"
    assert sum(key == name for key, _ in samples(exposed(database))) == 2 * MAX_USERS
    job(database, user(database, "one too many"), size=10)
    found = samples(exposed(database))
    assert sum(key == name for key, _ in found) == 2
    assert value(found, "user_storage_bytes", user=ALL_USERS, content="raw") == 1010
