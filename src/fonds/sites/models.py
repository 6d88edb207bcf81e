"""What a crawl is told, decides and leaves behind, with every rule that its files keep to.

Metadata of version 1.1 knows `s3` as a storage backend, and what an error tells; files of 1.0 are
read as if they had been written today.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from fonds.errors import SettingsError, StoreError

METADATA_VERSION: Final = "1.1"
READABLE: Final = ("1.0", "1.1")
"""Versions of metadata that are understood."""
UNDATED: Final = "undated"
"""The reporting period of a file name where none is known."""

_FILENAME: Final = r"^[a-z0-9-]+_[A-Za-z0-9-]+_[^/\\\x00-\x1f\x7f]+\.pdf$"
_VERSION: Final = r"^\d+\.\d+(\.\d+)?$"
_UNPRINTABLE: Final = re.compile(r"[\s\x00-\x1f\x7f]")
_HOST: Final = re.compile(r"[^\x00-\x20\x7f<>\"^`{|}%\\]+")
# Pydantic would take a bare number, or a day, for a moment too.
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d.*")


def _web_address(text: str) -> str:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in {"http", "https"} and bool(_HOST.fullmatch(parts.hostname or ""))
        usable = usable and parts.port != 0
    except ValueError:
        usable = False
    if not usable or _UNPRINTABLE.search(text):
        raise ValueError("must be an address that begins with http:// or https://")
    return text


def _below_the_output(text: str) -> str:
    parts = re.split(r"[/\\]", text)
    if {"", ".", ".."} & set(parts) or _UNPRINTABLE.sub(" ", text) != text or ":" in parts[0]:
        raise ValueError("must be a path below the output folder")
    return text


def _written_moment(value: object) -> object:
    if isinstance(value, datetime) or (isinstance(value, str) and _MOMENT.fullmatch(value)):
        return value
    raise ValueError("must be a date and time as in 2026-01-19T10:30:00Z")


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _uuid(text: str) -> str:
    return str(UUID(text))


WebAddress = Annotated[
    str,
    AfterValidator(_web_address),
    Field(json_schema_extra={"format": "uri", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"}),
]
"""As it was written: a publisher may tell addresses apart that we would take for the same."""
Id = Annotated[str, AfterValidator(_uuid), Field(json_schema_extra={"format": "uuid"})]
Moment = Annotated[datetime, BeforeValidator(_written_moment), AfterValidator(_in_utc)]
"""In UTC, also where a time names no zone: other programs that write version 1.0 leave it out."""
Version = Annotated[str, Field(pattern=_VERSION)]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9-]+$", max_length=200)]
Count = Annotated[int, Field(ge=0)]


class _ConfigModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StrategyType(StrEnum):
    """How the links of a page are found."""

    CSS = "css_selector"
    XPATH = "xpath"
    REGEX = "regex"
    PAGINATION = "pagination"


class StrategyState(StrEnum):
    """How far a strategy has come."""

    CREATED = "created"
    VALIDATED = "validated"
    ACTIVE = "active"
    FAILED = "failed"


class PdfState(StrEnum):
    """How far a PDF has come."""

    DISCOVERED = "discovered"
    DOWNLOADING = "downloading"
    DOWNLOADED = "downloaded"
    VALIDATED = "validated"
    STORED = "stored"
    INDEXED = "indexed"
    FAILED = "failed"


class WebsiteConfiguration(_ConfigModel):
    """A website that is to be crawled."""

    id: Slug
    name: Annotated[str, Field(min_length=1)]
    base_url: WebAddress
    description: str | None = None
    crawl_frequency: str | None = None
    """Such as "monthly"; for people."""
    enabled: bool = True


class WebsiteConfigurationList(_ConfigModel):
    """The websites of a crawl."""

    version: Version
    websites: Annotated[list[WebsiteConfiguration], Field(min_length=1)]

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Self:
        counts = Counter(website.id for website in self.websites)
        if twice := [each for each, count in counts.items() if count > 1]:
            raise ValueError(f"website ids must be unique; {twice[0]!r} is not")
        return self


class ScrapingStrategy(_ConfigModel):
    """How the PDFs of a website are found."""

    website_id: str
    strategy_type: StrategyType
    pdf_link_selectors: Annotated[list[str], Field(min_length=1)]
    """CSS selectors, XPath or regular expressions, by the type."""
    pagination_selector: str | None = None
    """Of the link to the next page, where there are several."""
    max_pages: Annotated[int, Field(gt=0)] | None = 10
    metadata_extraction: dict[str, str] | None = None
    """Where `organization` and `period` stand, seen from a link."""
    confidence: Annotated[float, Field(ge=0.0, le=1.0)]


class DownloadedPDF(_ConfigModel):
    """A PDF that was fetched, and where it is kept."""

    file_id: Id
    original_url: WebAddress
    local_path: Annotated[str, AfterValidator(_below_the_output)]
    """Below the output folder."""
    filename: Annotated[str, Field(pattern=_FILENAME)]
    file_size_bytes: Annotated[int, Field(gt=0)]
    sha256_hash: Annotated[str, Field(pattern=r"^[a-f0-9]{64}$")]
    organization_name: str | None = None
    organization_slug: Slug
    reporting_period: str | None = None
    download_timestamp: Moment
    website_id: str
    http_status_code: Annotated[int, Field(ge=100, le=599)]
    http_headers: dict[str, str]
    crawl_status: Literal["success", "failed", "partial"]
    error_message: str | None = None
    metadata_version: Version


class CrawlError(_ConfigModel):
    """Something that was not fetched, and why."""

    model_config = ConfigDict(extra="allow", frozen=True)

    website_id: str
    error_type: str
    error_message: str
    timestamp: Moment
    url: str | None = None
    """Of the PDF that failed; None for a page, or a website as a whole."""


class CrawlMetadata(_ConfigModel):
    """What a crawl found, fetched, skipped and failed on."""

    crawl_id: Id
    crawl_start_time: Moment
    crawl_end_time: Moment | None = None
    total_websites: Count
    websites_crawled: Count
    websites_failed: Count
    total_pdfs_discovered: Count
    total_pdfs_downloaded: Count
    total_pdfs_failed: Count
    total_bytes_downloaded: Count
    parallelism: Annotated[int, Field(gt=0)]
    max_files_limit: Annotated[int, Field(gt=0)] | None = None
    output_folder: str
    storage_backend: Literal["local", "adls", "s3"]
    config_file_path: str
    downloaded_files: list[DownloadedPDF]
    errors: list[CrawlError]
    metadata_version: Version

    @model_validator(mode="after")
    def _counts_add_up(self) -> Self:
        if self.websites_crawled + self.websites_failed > self.total_websites:
            raise ValueError("more websites were crawled or failed than there are")
        if self.total_pdfs_downloaded + self.total_pdfs_failed > self.total_pdfs_discovered:
            raise ValueError("more PDFs were downloaded or failed than were discovered")
        if self.crawl_end_time and self.crawl_end_time <= self.crawl_start_time:
            raise ValueError("the crawl must end after it began")
        if self.storage_backend == "s3" and _release(self.metadata_version) == "1.0":
            raise ValueError("metadata of version 1.0 knows no storage backend s3")
        return self


def read_configuration(data: bytes, *, path: str) -> WebsiteConfigurationList:
    """The websites of a configuration file; SettingsError names each field that is wrong."""
    try:
        return WebsiteConfigurationList.model_validate_json(data)
    except ValidationError as error:
        raise SettingsError(f"{path}: {_faults(error)}") from None


def read_metadata(data: bytes, *, path: str) -> CrawlMetadata:
    """The metadata of a crawl, of any version so far; StoreError says what is wrong with it."""
    try:
        told = json.loads(data)
        check_version(told.get("metadata_version") if isinstance(told, dict) else None, path=path)
        return _of_today(CrawlMetadata.model_validate_json(json.dumps(_completed(told))))
    except ValidationError as error:
        raise StoreError(f"{path} is not the metadata of a crawl: {_faults(error)}") from None
    except (ValueError, RecursionError):
        raise StoreError(f"{path} is not the metadata of a crawl: it is no JSON") from None


def check_version(version: object, *, path: str) -> None:
    """Refuse metadata of a version that is not understood, before its fields are looked at."""
    if not isinstance(version, str) or not re.fullmatch(_VERSION, version):
        raise StoreError(f"{path} is not the metadata of a crawl: it has no metadata_version")
    if _release(version) not in READABLE:
        raise StoreError(
            f"{path} has version {version}, and this program reads {', '.join(READABLE)}: install"
            " a newer one, or choose another output"
        )


def _release(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _completed(told: dict[str, Any]) -> dict[str, Any]:
    """What is told with errors as they are today; of version 1.0 they may be any object."""
    errors = told.get("errors")
    if _release(told["metadata_version"]) != "1.0" or not isinstance(errors, list):
        return told
    least = {
        "website_id": "",
        "error_type": "Error",
        "error_message": "",
        "timestamp": told.get("crawl_start_time"),
    }
    return told | {"errors": [least | each if isinstance(each, dict) else each for each in errors]}


def _of_today(metadata: CrawlMetadata) -> CrawlMetadata:
    today = {"metadata_version": METADATA_VERSION}
    files = [each.model_copy(update=today) for each in metadata.downloaded_files]
    return metadata.model_copy(update=today | {"downloaded_files": files})


def schemas() -> Mapping[str, Mapping[str, Any]]:
    """The JSON schema of each model, by its name."""
    models = (
        WebsiteConfiguration,
        WebsiteConfigurationList,
        ScrapingStrategy,
        DownloadedPDF,
        CrawlMetadata,
    )
    return {model.__name__: model.model_json_schema() for model in models}


def _faults(error: ValidationError) -> str:
    told = []
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        where = ".".join(str(part) for part in fault["loc"])
        told.append(f"{where}: {fault['msg']}" if where else fault["msg"])
    return "; ".join(told[:5]) + ("; …" if len(told) > 5 else "")  # noqa: PLR2004 — enough to read
