from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.errors import DuplicateKeyError, MalformedError, ParseError, WrongContentError
from fonds.model import ParsedRecord
from fonds.sources.formats import fields
from fonds.sources.formats import yaml as yaml_files
from fonds.sources.formats.fields import decimal, required, section, text, texts, whole
from fonds.sources.formats.yaml import items, load

words = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=12
)
leaves = st.none() | words | st.sampled_from(["00136", "NO", "1:30", "2025-01-03", "- a", "# b"])
entries = st.dictionaries(words, leaves | st.lists(leaves, max_size=3), min_size=1, max_size=4)


@settings(max_examples=60)
@given(st.lists(entries, min_size=1, max_size=6))
def test_what_a_dumper_writes_comes_back_whole_and_item_by_item(listed: list[Any]) -> None:
    data = yaml.safe_dump(listed, allow_unicode=True, sort_keys=False).encode()
    assert load(data) == listed
    assert list(items(data)) == listed


@pytest.mark.parametrize(
    "data",
    [
        b"- a: 1\n- b: |\n    one\n\n    two\n\n# aside\n- c:\n  - d\n  - e\n",
        b"# head\n---\n- a\n- b\n",
        b"-\n  a: 1\n-\n  b: 2\n",
        b"- a: 1\r\n- b: 2\r\n",
        b"- a\r- b\r",
        b"[a, {b: 1}]",
        b"\xef\xbb\xbf- a\n- b\n",
        b"- a: 'it\n    - is'\n- b\n",
    ],
)
def test_slicing_a_list_changes_nothing(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_files, "_SLICE_BYTES", 1)
    assert list(items(data)) == load(data)
    assert list(items(data))


def test_a_long_list_is_read_in_slices_and_errors_keep_their_line() -> None:
    good = b"- name: somebody\n  note: something\n" * 9000
    read = items(good + b"- name: 'open\n")
    assert len([next(read) for _ in range(1000)]) == 1000
    with pytest.raises(MalformedError, match="line 18002"):
        list(read)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("00136", "00136"),
        ("2025-01-03", "2025-01-03"),
        ("NO", "NO"),
        ("9:30", "9:30"),
        ("1e5", "1e5"),
        ("42", "42"),
        ("'null'", "null"),
        ("null", None),
        ("~", None),
        ("", None),
    ],
)
def test_scalars_stay_as_they_were_written(written: str, value: str | None) -> None:
    assert load(f"key: {written}\n".encode()) == {"key": value}


BOMB = b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n"


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        (BOMB, MalformedError, "line 1: anchors"),
        (b"a: 1\nb: *a\n", MalformedError, "line 2: aliases|undefined alias"),
        (b"a: !!python/object:os.system {}\n", MalformedError, "tags"),
        (b"a: !!binary aGk=\n", MalformedError, "tags"),
        (b"a: 1\nb: 2\na: 3\n", DuplicateKeyError, "'a'.*line 3"),
        (b'{"a": 1, "a": 1}', DuplicateKeyError, "'a'"),
        (b"? [x]\n: 1\n", MalformedError, "a key must be plain text"),
        (b"a:\n\tb: 1\n", MalformedError, "line 2"),
        (b"a: 1\n---\nb: 2\n", MalformedError, "second document"),
        (b"- " * 200 + b"x\n", MalformedError, "deeper"),
        (b"[" * 100_000, MalformedError, "deeper|broken"),
        (b'{"a": [1, 2', MalformedError, "broken JSON"),
        (b"a: caf\xe9\n", MalformedError, "not UTF-8 at line 1"),
        (b"a: 1\nb: \x07\n", MalformedError, "broken YAML"),
        (b"", WrongContentError, "empty"),
        (b" \n\t\n", WrongContentError, "empty"),
        (b"# only a remark\n", WrongContentError, "empty"),
        (b"\n<!doctype HTML>\n<p>Sorry", WrongContentError, "an HTML page"),
        (b"<?xml version='1.0'?><feed/>", WrongContentError, "XML"),
        (b"Not Found", WrongContentError, "plain value 'Not Found'"),
        (b"PK\x03\x04\x00\x00", WrongContentError, "binary"),
        ("- a\n".encode("utf-16"), WrongContentError, "binary"),
    ],
)
def test_what_is_not_plain_data_is_refused_with_its_reason(
    data: bytes, error: type[ParseError], says: str
) -> None:
    with pytest.raises(error, match=says):
        load(data)


def test_a_mapping_is_not_a_list() -> None:
    with pytest.raises(WrongContentError, match="expected a list, found a mapping with the keys a"):
        list(items(b"a: 1\n"))


def test_a_key_met_twice_is_never_yielded_again() -> None:
    record = ParsedRecord(source="s", table="t", key="k", payload={})
    found = fields.distinct([record, record])
    assert next(found) is record
    with pytest.raises(DuplicateKeyError, match="k appears twice"):
        next(found)


def test_fields_read_the_same_from_yaml_and_json() -> None:
    written = {"n": 7, "f": -1.5, "t": True, "l": ["a", 2, None], "s": {"x": " y "}, "e": ""}
    for form in (json.dumps(written).encode(), yaml.safe_dump(written).encode()):
        record = load(form)
        assert (whole(record, "n"), decimal(record, "f"), text(record, "t")) == (7, -1.5, "true")
        assert (texts(record, "l"), texts(record, "n")) == (["a", "2"], ["7"])
        assert required(section(record, "s"), "x") == "y"
        assert (text(record, "e"), whole(record, "none"), section(record, "none")) == (
            None,
            None,
            {},
        )


@pytest.mark.parametrize("value", ["two", "1.5", "1_000", "٣", "nan", {"a": 1}])
def test_what_is_no_whole_number_is_refused(value: Any) -> None:
    with pytest.raises(MalformedError, match="`rank` should be"):
        whole({"rank": value}, "rank")


def test_a_missing_field_is_named() -> None:
    with pytest.raises(
        MalformedError, match="`bioguide` is missing from a mapping with the keys lis"
    ):
        required({"lis": "S1"}, "bioguide")
    with pytest.raises(MalformedError, match="`terms` should be a list"):
        fields.sections({"terms": "none"}, "terms")
