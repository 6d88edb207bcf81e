from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from fonds.errors import SettingsError, StoreError
from fonds.sites.models import (
    METADATA_VERSION,
    CrawlMetadata,
    DownloadedPDF,
    ScrapingStrategy,
    WebsiteConfiguration,
    WebsiteConfigurationList,
    read_configuration,
    read_metadata,
    schemas,
)

WEBSITE = {
    "id": "miac-national",
    "name": "Ministry of Internal Affairs and Communications",
    "base_url": "https://www.soumu.example/senkyo/seiji_s/",
    "description": "National political finance disclosure site",
    "crawl_frequency": "monthly",
    "enabled": True,
}
STRATEGY = {
    "website_id": "miac-national",
    "strategy_type": "css_selector",
    "pdf_link_selectors": ["ul.reports a"],
    "confidence": 0.9,
}
PDF = {
    "file_id": "550e8400-e29b-41d4-a716-446655440000",
    "original_url": "https://www.soumu.example/reports/2024/ldp_2024_q1.pdf",
    "local_path": "pdfs/ldp_2024-q1_annual-report.pdf",
    "filename": "ldp_2024-q1_annual-report.pdf",
    "file_size_bytes": 2457600,
    "sha256_hash": "a3" * 32,
    "organization_name": "Liberal Democratic Party",
    "organization_slug": "ldp",
    "reporting_period": "2024-Q1",
    "download_timestamp": "2026-01-19T10:30:00Z",
    "website_id": "miac-national",
    "http_status_code": 200,
    "http_headers": {
        "Content-Type": "application/pdf",
        "Last-Modified": "2024-04-15T08:00:00Z",
    },
    "crawl_status": "success",
    "error_message": None,
    "metadata_version": "1.0",
}
ERROR = {
    "website_id": "site-xyz",
    "error_type": "NetworkError",
    "error_message": "Connection timeout",
    "timestamp": "2026-01-19T10:15:00Z",
}
CRAWL = {
    "crawl_id": "660e9500-f39c-41d4-b826-556655440000",
    "crawl_start_time": "2026-01-19T10:00:00Z",
    "crawl_end_time": "2026-01-19T10:25:00Z",
    "total_websites": 10,
    "websites_crawled": 9,
    "websites_failed": 1,
    "total_pdfs_discovered": 47,
    "total_pdfs_downloaded": 45,
    "total_pdfs_failed": 2,
    "total_bytes_downloaded": 125829120,
    "parallelism": 5,
    "max_files_limit": None,
    "output_folder": "/path/to/output",
    "storage_backend": "local",
    "config_file_path": "/path/to/config.json",
    "downloaded_files": [PDF],
    "errors": [ERROR],
    "metadata_version": "1.0",
}


def encoded(told: Mapping[str, Any], **changes: Any) -> bytes:
    return json.dumps({**told, **changes}).encode()


def configuration(*websites: Mapping[str, Any], version: str = "1.0") -> bytes:
    return json.dumps({"version": version, "websites": websites}).encode()


# Websites -----------------------------------------------------------------------------------


def test_a_website_needs_only_its_id_name_and_address() -> None:
    told = {name: WEBSITE[name] for name in ("id", "name", "base_url")}
    (website,) = read_configuration(configuration(told), path="c.json").websites
    assert (website.enabled, website.description, website.crawl_frequency) == (True, None, None)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "www.soumu.example",
        "file:///etc/passwd",
        "ftp://a.example/",
        "javascript:alert(1)",
        "http://",
        "https:///path",
        "http://a.example:99999/",
        "http://[::1/",
        "http://a example/",
        "http://a.example/\n",
        "https://user@",
    ],
)
def test_what_is_no_web_address_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match=r"c\.json: websites\.0\.base_url"):
        read_configuration(configuration(WEBSITE | {"base_url": url}), path="c.json")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8080/", "HTTPS://A.example", "https://日本.example/報告?年=6"]
)
def test_an_address_stays_as_it_was_written(url: str) -> None:
    assert WebsiteConfiguration.model_validate(WEBSITE | {"base_url": url}).base_url == url


@pytest.mark.parametrize("name", ["", "Tokyo", "a b", "a_b", "東京", "a/b", "a\n", "../a"])
def test_an_id_that_is_not_url_safe_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=r"websites\.0\.id"):
        read_configuration(configuration(WEBSITE | {"id": name}), path="c.json")


def test_two_websites_with_one_id_are_refused_by_its_name() -> None:
    with pytest.raises(SettingsError, match="'miac-national' is not"):
        read_configuration(configuration(WEBSITE, WEBSITE), path="c.json")


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(SettingsError, match="websites"):
        read_configuration(configuration(), path="c.json")


@pytest.mark.parametrize("version", ["1.0", "1.0.0", "12.34"])
def test_a_version_may_have_two_or_three_numbers(version: str) -> None:
    assert read_configuration(configuration(WEBSITE, version=version), path="").version == version


@pytest.mark.parametrize("version", ["", "1", "v1.0", "1.0.0.0", "1.x", "1.0\n"])
def test_a_version_of_another_form_is_refused(version: str) -> None:
    with pytest.raises(SettingsError, match="version"):
        read_configuration(configuration(WEBSITE, version=version), path="c.json")


@pytest.mark.parametrize("missing", ["id", "name", "base_url"])
def test_a_missing_field_of_a_website_is_named(missing: str) -> None:
    told = {name: value for name, value in WEBSITE.items() if name != missing}
    with pytest.raises(SettingsError, match=rf"websites\.0\.{missing}: Field required"):
        read_configuration(configuration(told), path="c.json")


def test_a_misspelled_field_is_named() -> None:
    with pytest.raises(SettingsError, match="enabeld"):
        read_configuration(configuration(WEBSITE | {"enabeld": False}), path="c.json")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff\xfe"])
def test_a_configuration_that_is_no_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(SettingsError, match=r"c\.json: "):
        read_configuration(data, path="c.json")


def test_of_many_faults_the_first_few_are_told() -> None:
    wrong = [{"id": f"w{number}"} for number in range(20)]
    with pytest.raises(SettingsError) as raised:
        read_configuration(configuration(*wrong), path="c.json")
    assert str(raised.value).count("Field required") == 5
    assert str(raised.value).endswith("…")


# Strategies ---------------------------------------------------------------------------------


def test_a_strategy_has_ten_pages_unless_told_otherwise() -> None:
    strategy = ScrapingStrategy.model_validate(STRATEGY)
    assert (strategy.max_pages, strategy.pagination_selector) == (10, None)
    assert ScrapingStrategy.model_validate(STRATEGY | {"max_pages": None}).max_pages is None


@pytest.mark.parametrize("kind", ["css_selector", "xpath", "regex", "pagination"])
def test_all_kinds_of_strategies_are_taken(kind: str) -> None:
    strategy = ScrapingStrategy.model_validate(STRATEGY | {"strategy_type": kind})
    assert strategy.strategy_type == kind


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("confidence", -0.01),
        ("confidence", 1.01),
        ("confidence", float("nan")),
        ("confidence", None),
        ("pdf_link_selectors", []),
        ("strategy_type", "magic"),
        ("strategy_type", ""),
        ("max_pages", 0),
        ("max_pages", -1),
    ],
)
def test_a_strategy_out_of_range_is_refused(field: str, value: object) -> None:
    with pytest.raises(ValidationError, match=field):
        ScrapingStrategy.model_validate(STRATEGY | {field: value})


@pytest.mark.parametrize("confidence", [0, 0.0, 1, 1.0])
def test_the_ends_of_confidence_are_taken(confidence: float) -> None:
    strategy = ScrapingStrategy.model_validate(STRATEGY | {"confidence": confidence})
    assert strategy.confidence == confidence


# Downloaded files ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("file_id", "not-a-uuid"),
        ("file_id", ""),
        ("file_id", 5),
        ("original_url", "ftp://a.example/x.pdf"),
        ("original_url", "x.pdf"),
        ("local_path", ""),
        ("local_path", "/etc/passwd"),
        ("local_path", "pdfs/../../x.pdf"),
        ("local_path", "pdfs\\..\\x.pdf"),
        ("local_path", "C:/x.pdf"),
        ("local_path", "pdfs/a\x00.pdf"),
        ("filename", "report.pdf"),
        ("filename", "ldp_2024-q1.pdf"),
        ("filename", "LDP_2024-q1_report.pdf"),
        ("filename", "ldp_2024-q1_report.docx"),
        ("filename", "ldp_2024-q1_../report.pdf"),
        ("filename", "ldp_2024-q1_a\\b.pdf"),
        ("filename", "ldp_2024-q1_a\nb.pdf"),
        ("filename", "_2024-q1_report.pdf"),
        ("filename", "ldp_2024 q1_report.pdf"),
        ("file_size_bytes", 0),
        ("file_size_bytes", -1),
        ("file_size_bytes", 1.5),
        ("sha256_hash", ""),
        ("sha256_hash", "a3" * 31),
        ("sha256_hash", "a3" * 33),
        ("sha256_hash", "g3" * 32),
        ("sha256_hash", "A3" * 32),
        ("sha256_hash", "a3" * 32 + "\n"),
        ("organization_slug", "Liberal Party"),
        ("organization_slug", "自民党"),
        ("organization_slug", ""),
        ("download_timestamp", "yesterday"),
        ("download_timestamp", "2026-13-01T00:00:00Z"),
        ("download_timestamp", "2026-01-19"),
        ("download_timestamp", 1768818600),
        ("download_timestamp", "1768818600"),
        ("download_timestamp", None),
        ("http_status_code", 42),
        ("http_status_code", 600),
        ("http_headers", {"ETag": None}),
        ("crawl_status", "done"),
        ("crawl_status", "Success"),
        ("metadata_version", "one"),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused_by_its_field(field: str, value: object) -> None:
    with pytest.raises(ValidationError, match=field):
        DownloadedPDF.model_validate_json(json.dumps({**PDF, field: value}))


@pytest.mark.parametrize("field", [name for name in PDF if name not in {
    "organization_name", "reporting_period", "error_message"}])  # fmt: skip
def test_a_file_without_a_field_is_refused(field: str) -> None:
    told = {name: value for name, value in PDF.items() if name != field}
    with pytest.raises(ValidationError, match=rf"{field}\n  Field required"):
        DownloadedPDF.model_validate(told)


@pytest.mark.parametrize(
    "name",
    [
        "jiyu-minshuto_undated_令和6年分 収支報告書.pdf",
        "a_2024-Q1_R&D 100% (final) [v2].pdf",
        "a_2024-annual_Übersicht_1.pdf",
    ],
)
def test_special_characters_may_stand_in_the_original_name(name: str) -> None:
    told = PDF | {"filename": name, "local_path": f"pdfs/{name}"}
    kept = DownloadedPDF.model_validate_json(DownloadedPDF.model_validate(told).model_dump_json())
    assert (kept.filename, kept.local_path) == (name, f"pdfs/{name}")


@pytest.mark.parametrize("status", ["success", "failed", "partial"])
def test_every_status_is_taken(status: str) -> None:
    assert DownloadedPDF.model_validate(PDF | {"crawl_status": status}).crawl_status == status


def test_times_are_in_utc_also_where_they_name_no_zone() -> None:
    moment = datetime(2026, 1, 19, 1, 30, tzinfo=UTC)
    for told in ("2026-01-19T10:30:00+09:00", "2026-01-19T01:30:00", "2026-01-19 01:30:00Z"):
        pdf = DownloadedPDF.model_validate(PDF | {"download_timestamp": told})
        assert pdf.download_timestamp == moment
        assert pdf.download_timestamp.utcoffset() == moment.utcoffset()


# Crawls -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"crawl_id": "x"}, "crawl_id"),
        ({"parallelism": 0}, "parallelism"),
        ({"parallelism": -5}, "parallelism"),
        ({"max_files_limit": 0}, "max_files_limit"),
        ({"total_bytes_downloaded": -1}, "total_bytes_downloaded"),
        ({"total_websites": -1}, "total_websites"),
        ({"websites_crawled": 10}, "more websites"),
        ({"websites_failed": 2}, "more websites"),
        ({"total_pdfs_downloaded": 46}, "more PDFs"),
        ({"total_pdfs_failed": 3}, "more PDFs"),
        ({"crawl_end_time": "2026-01-19T09:59:59Z"}, "must end after its start"),
        ({"crawl_end_time": "2026-01-19T10:00:00Z"}, "must end after its start"),
        ({"crawl_start_time": "soon"}, "crawl_start_time"),
        ({"crawl_start_time": None}, "crawl_start_time"),
        ({"storage_backend": "ftp"}, "storage_backend"),
        ({"storage_backend": "s3"}, "1.0 has no storage backend s3"),
        ({"storage_backend": "s3", "metadata_version": "1.0.2"}, "has no storage backend"),
        ({"downloaded_files": [PDF | {"file_size_bytes": 0}]}, "downloaded_files.0.file_size"),
        ({"downloaded_files": None}, "downloaded_files"),
        ({"errors": ["timeout"]}, "errors.0"),
        ({"unheard_of": 1}, "unheard_of"),
    ],
)
def test_metadata_that_breaks_a_rule_is_refused(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(StoreError, match=fault):
        read_metadata(encoded(CRAWL, **changes), path="metadata.json")


@pytest.mark.parametrize("field", [name for name in CRAWL if name not in {
    "crawl_end_time", "max_files_limit", "metadata_version"}])  # fmt: skip
def test_metadata_without_a_field_is_refused(field: str) -> None:
    told = {name: value for name, value in CRAWL.items() if name != field}
    with pytest.raises(StoreError, match=field):
        read_metadata(encoded(told), path="metadata.json")


def test_a_crawl_under_way_has_no_end() -> None:
    assert read_metadata(encoded(CRAWL, crawl_end_time=None), path="").crawl_end_time is None


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"7", b"\xff", b"[" * 100_000])
def test_metadata_that_is_no_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(StoreError, match=r"x/metadata\.json is not the metadata of a crawl"):
        read_metadata(data, path="x/metadata.json")


def test_metadata_of_version_1_0_is_read_as_if_written_today() -> None:
    metadata = read_metadata(encoded(CRAWL), path="metadata.json")
    assert metadata.metadata_version == METADATA_VERSION
    (pdf,) = metadata.downloaded_files
    assert pdf.metadata_version == METADATA_VERSION
    assert pdf.model_copy(update={"metadata_version": "1.0"}) == DownloadedPDF.model_validate(PDF)
    (error,) = metadata.errors
    assert (error.website_id, error.error_type) == ("site-xyz", "NetworkError")
    assert read_metadata(metadata.model_dump_json().encode(), path="") == metadata


def test_errors_of_version_1_0_may_be_any_object() -> None:
    told = encoded(CRAWL, errors=[{"url": "https://a.example/x.pdf", "retries": 3}, {}])
    first, second = read_metadata(told, path="").errors
    assert first.url == "https://a.example/x.pdf"
    assert first.model_extra == {"retries": 3}
    assert (second.error_type, second.timestamp.hour) == ("Error", 10)


def test_errors_of_today_tell_website_type_message_and_time() -> None:
    told = encoded(CRAWL, metadata_version="1.1", errors=[{"website_id": "a"}])
    with pytest.raises(StoreError, match=r"errors\.0\.error_type"):
        read_metadata(told, path="metadata.json")


@pytest.mark.parametrize("version", ["1.1", "1.1.0"])
def test_version_1_1_knows_s3(version: str) -> None:
    told = encoded(CRAWL, metadata_version=version, storage_backend="s3")
    assert read_metadata(told, path="").storage_backend == "s3"


@pytest.mark.parametrize("version", ["1.2", "2.0", "2.0.0"])
def test_a_newer_version_is_refused_with_what_to_do(version: str) -> None:
    told = encoded(CRAWL, metadata_version=version, something_new={}, errors={})
    with pytest.raises(StoreError, match=rf"version {version}.* reads 1\.0, 1\.1: install a newer"):
        read_metadata(told, path="metadata.json")


@pytest.mark.parametrize("version", [None, "", "one", 1.0])
def test_metadata_without_a_version_is_refused(version: object) -> None:
    with pytest.raises(StoreError, match="it has no metadata_version"):
        read_metadata(encoded(CRAWL, metadata_version=version), path="metadata.json")


# Schemas ------------------------------------------------------------------------------------


def test_every_model_has_a_schema_with_all_its_fields() -> None:
    models: dict[str, type[BaseModel]] = {
        "WebsiteConfiguration": WebsiteConfiguration,
        "WebsiteConfigurationList": WebsiteConfigurationList,
        "ScrapingStrategy": ScrapingStrategy,
        "DownloadedPDF": DownloadedPDF,
        "CrawlMetadata": CrawlMetadata,
    }
    published = schemas()
    assert set(published) == set(models)
    for name, model in models.items():
        assert set(published[name]["properties"]) == set(model.model_fields)
        json.dumps(published[name])


def test_schemas_tell_the_rules_that_a_schema_can_tell() -> None:
    pdf = schemas()["DownloadedPDF"]["properties"]
    assert pdf["original_url"]["format"] == "uri"
    assert pdf["file_id"]["format"] == "uuid"
    assert pdf["download_timestamp"]["format"] == "date-time"
    assert pdf["file_size_bytes"]["exclusiveMinimum"] == 0
    assert pdf["sha256_hash"]["pattern"] == "^[a-f0-9]{64}$"
    assert schemas()["ScrapingStrategy"]["properties"]["confidence"]["maximum"] == 1.0
    assert schemas()["WebsiteConfigurationList"]["properties"]["websites"]["minItems"] == 1
