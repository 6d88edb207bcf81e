"""The register that is computed: deterministic, alterable, and of the real one's shape."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

import httpx
from tests.support.upstreams.federal_register import (
    FIRST_DAY,
    HOST,
    SyntheticRegister,
    serve_synthetic,
)

from fonds.demo.bundle import DATA, BundledRegister
from fonds.normalize.fr import FrXml

ALL = (date.min, date.max)


def _register(count: int = 60, **more: Any) -> SyntheticRegister:
    return SyntheticRegister(count, **{"words": 120, "per_day": 4, **more})


def _numbers(register: SyntheticRegister, since: date, until: date) -> list[str]:
    return [record["document_number"] for record in register.documents(since, until)]


def test_the_same_arguments_give_the_same_documents_and_another_seed_others() -> None:
    first, same, other = _register(), _register(), _register(seed=1)

    assert list(first.documents(*ALL)) == list(same.documents(*ALL))
    assert [first.xml(index) for index in range(20)] == [same.xml(index) for index in range(20)]
    assert first.xml(7) != other.xml(7)
    assert len({first.xml(index) for index in range(60)}) == 60


def test_records_have_exactly_the_fields_of_the_bundled_ones() -> None:
    bundled = BundledRegister(DATA / HOST).documents(*ALL)[0]

    assert set(_register().record(3)) == set(bundled)


def test_days_are_working_days_and_ranges_add_up_to_the_whole() -> None:
    register = _register()
    span = [FIRST_DAY + timedelta(days) for days in range(-3, 30)]

    by_day = {day: _numbers(register, day, day) for day in span}

    assert list(chain.from_iterable(by_day.values())) == _numbers(register, *ALL)
    assert len(_numbers(register, *ALL)) == 60
    assert {day.weekday() for day, numbers in by_day.items() if numbers} == set(range(5))
    assert {len(numbers) for numbers in by_day.values()} == {0, 4}
    week = chain.from_iterable(by_day[day] for day in span[5:12])
    assert _numbers(register, span[5], span[11]) == list(week)


def test_text_is_well_formed_and_normalizes_without_a_warning() -> None:
    register = _register(words=400)

    for index in range(40):
        body = FrXml().to_markdown(register.xml(index).encode())
        assert body.warnings == ()
        assert len(body.headings) >= 3
        assert "[^1]: " in body.markdown
        assert "| Item | Number |" in body.markdown


def test_length_follows_the_words_asked_for() -> None:
    few, many = (len(_register(words=words).xml(0).split()) for words in (100, 1000))

    assert 880 <= many - few <= 980


def test_a_silent_change_alters_the_text_alone_and_an_open_one_the_record_too() -> None:
    register = _register()
    text, record = register.xml(5), register.record(5)
    day = register.day(5)
    before = register.full_text(register.number(5), day)

    register.change(5, silently=True)
    assert register.xml(5) != text
    assert register.record(5) == record
    after = register.full_text(register.number(5), day)
    assert before is not None
    assert after is not None
    assert after.modified > before.modified

    register.change(5)
    assert register.record(5)["abstract"] != record["abstract"]
    assert register.xml(6) == _register().xml(6)


def test_a_withdrawn_document_is_nowhere_until_it_is_restored() -> None:
    register = _register()
    number, day = register.number(5), register.day(5)

    register.withdraw(5)
    assert number not in _numbers(register, *ALL)
    assert len(register.documents(day, day)) == 3
    assert register.find(number) == []
    assert register.full_text(number, day) is None

    register.restore(5)
    assert [record["document_number"] for record in register.find(number)] == [number]


def test_types_can_be_chosen() -> None:
    register = _register()

    rules = register.documents(*ALL, frozenset({"Rule"}))

    assert {record["type"] for record in rules} == {"Rule"}
    assert len(rules) == 9


def test_it_is_served_by_another_process_that_can_be_told_what_to_alter() -> None:
    with (
        serve_synthetic(30, words=60, per_day=5, cap=20) as upstream,
        httpx.Client(base_url=upstream.hosts[HOST], trust_env=False) as client,
    ):
        page = client.get("/api/v1/documents.json?per_page=20&order=oldest&fields[]=title").json()
        assert (page["count"], len(page["results"])) == (20, 20)
        path = urlsplit(SyntheticRegister(30, per_day=5).record(3)["full_text_xml_url"]).path
        known = {"If-None-Match": client.get(path).headers["etag"]}

        assert client.get(path, headers=known).status_code == 304
        upstream.change(3, silently=True)
        assert client.get(path, headers=known).status_code == 200
        upstream.withdraw(3)
        assert client.get(path, headers=known).status_code == 404
        upstream.restore(3)
        assert client.get(path).status_code == 200
        assert upstream.counts() == {"total": 6, "conditional": 3, "not_modified": 1}
        people = f"{upstream.hosts['unitedstates.github.io']}/congress-legislators/executive.yaml"
        assert client.get(people).status_code == 200
