"""The models of a crawl's configuration, strategies and metadata, with the rules for their files.

Metadata of version 1.1 has `s3` as a storage backend, and the fields of an error; files of 1.0 are
converted when they are read.
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
"""Versions of metadata that can be read."""
UNDATED: Final = "undated"
"""The reporting period in the file name of a PDF that has none."""

_FILENAME: Final = r"^[a-z0-9-]+_[A-Za-z0-9-]+_[^/\\\x00-\x1f\x7f]+\.pdf$"
_VERSION: Final = r"^\d+\.\d+(\.\d+)?$"
_UNPRINTABLE: Final = re.compile(r"[\s\x00-\x1f\x7f]")
_HOST: Final = re.compile(r"[^\x00-\x20\x7f<>\"^`{|}%\\]+")
# Pydantic would accept a number, or a day, as a time too.
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d.*")


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


def _require_time(value: object) -> object:
    if isinstance(value, datetime) or (isinstance(value, str) and _TIME.fullmatch(value)):
        return value
    raise ValueError("must be a date and time as in 2026-01-19T10:30:00Z")


def _in_utc(time: datetime) -> datetime:
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def _uuid(text: str) -> str:
    return str(UUID(text))


WebAddress = Annotated[
    str,
    AfterValidator(_web_address),
    Field(json_schema_extra={"format": "uri", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"}),
]
"""Not normalized: a publisher may distinguish addresses that would become the same."""
Id = Annotated[str, AfterValidator(_uuid), Field(json_schema_extra={"format": "uuid"})]
UtcTime = Annotated[datetime, BeforeValidator(_require_time), AfterValidator(_in_utc)]
"""In UTC, also without a time zone, which other programs omit in version 1.0."""
Version = Annotated[str, Field(pattern=_VERSION)]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9-]+$", max_length=200)]
Count = Annotated[int, Field(ge=0)]


class _ConfigModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StrategyType(StrEnum):
    """The language of a strategy's selectors."""

    CSS = "css_selector"
    XPATH = "xpath"
    REGEX = "regex"
    PAGINATION = "pagination"


class StrategyState(StrEnum):
    """The state of a strategy."""

    CREATED = "created"
    VALIDATED = "validated"
    ACTIVE = "active"
    FAILED = "failed"


class PdfState(StrEnum):
    """The state of a PDF."""

    DISCOVERED = "discovered"
    DOWNLOADING = "downloading"
    DOWNLOADED = "downloaded"
    VALIDATED = "validated"
    STORED = "stored"
    INDEXED = "indexed"
    FAILED = "failed"
    FORBIDDEN = "forbidden"


class WebsiteConfiguration(_ConfigModel):
    """A website to crawl."""

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
        if repeated := [name for name, count in counts.items() if count > 1]:
            raise ValueError(f"website ids must be unique; {repeated[0]!r} is not")
        return self


class ScrapingStrategy(_ConfigModel):
    """The selectors by which the PDFs of a website are found."""

    website_id: str
    strategy_type: StrategyType
    pdf_link_selectors: Annotated[list[str], Field(min_length=1)]
    """CSS selectors, XPath or regular expressions, by the type."""
    pagination_selector: str | None = None
    """Of the link to the next page of a list."""
    max_pages: Annotated[int, Field(gt=0)] | None = 10
    metadata_extraction: dict[str, str] | None = None
    """XPath expressions for `organization` and `period`, evaluated from a link."""
    confidence: Annotated[float, Field(ge=0.0, le=1.0)]


class DownloadedPDF(_ConfigModel):
    """A PDF in the output of a crawl."""

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
    download_timestamp: UtcTime
    website_id: str
    http_status_code: Annotated[int, Field(ge=100, le=599)]
    http_headers: dict[str, str]
    crawl_status: Literal["success", "failed", "partial"]
    error_message: str | None = None
    metadata_version: Version
    guesses: list[Literal["organization_name", "reporting_period"]] = Field(default_factory=list)
    """Which of its fields are guesses: not from the link or the texts around it."""


class CrawlError(_ConfigModel):
    """An error of a crawl: a PDF, a page or a website that failed."""

    model_config = ConfigDict(extra="allow", frozen=True)

    website_id: str
    error_type: str
    error_message: str
    timestamp: UtcTime
    url: str | None = None
    """Of the PDF that failed; None for a page or a website."""


class CrawlMetadata(_ConfigModel):
    """The counts, files and errors of a crawl."""

    crawl_id: Id
    crawl_start_time: UtcTime
    crawl_end_time: UtcTime | None = None
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
            raise ValueError("the crawl must end after its start")
        if self.storage_backend == "s3" and _release(self.metadata_version) == "1.0":
            raise ValueError("metadata of version 1.0 has no storage backend s3")
        return self


def read_configuration(data: bytes, *, path: str) -> WebsiteConfigurationList:
    """The websites of a configuration file; SettingsError lists the invalid fields."""
    try:
        return WebsiteConfigurationList.model_validate_json(data)
    except ValidationError as error:
        raise SettingsError(f"{path}: {_describe(error)}") from None


def read_metadata(data: bytes, *, path: str) -> CrawlMetadata:
    """The metadata of a crawl, of any version so far; StoreError if it is invalid."""
    try:
        fields = json.loads(data)
        version = fields.get("metadata_version") if isinstance(fields, dict) else None
        check_version(version, path=path)
        return _converted(CrawlMetadata.model_validate_json(json.dumps(_completed(fields))))
    except ValidationError as error:
        raise StoreError(f"{path} is not the metadata of a crawl: {_describe(error)}") from None
    except (ValueError, RecursionError):
        raise StoreError(f"{path} is not the metadata of a crawl: it is not JSON") from None


def check_version(version: object, *, path: str) -> None:
    """Raise StoreError for metadata of a version that cannot be read."""
    if not isinstance(version, str) or not re.fullmatch(_VERSION, version):
        raise StoreError(f"{path} is not the metadata of a crawl: it has no metadata_version")
    if _release(version) not in READABLE:
        raise StoreError(
            f"{path} has version {version}, and this program reads {', '.join(READABLE)}: install"
            " a newer one, or choose another output"
        )


def _release(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _completed(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with complete errors; in version 1.0 an error may be any object."""
    errors = fields.get("errors")
    if _release(fields["metadata_version"]) != "1.0" or not isinstance(errors, list):
        return fields
    defaults = {
        "website_id": "",
        "error_type": "Error",
        "error_message": "",
        "timestamp": fields.get("crawl_start_time"),
    }
    completed = [defaults | error if isinstance(error, dict) else error for error in errors]
    return fields | {"errors": completed}


def _converted(metadata: CrawlMetadata) -> CrawlMetadata:
    version = {"metadata_version": METADATA_VERSION}
    files = [file.model_copy(update=version) for file in metadata.downloaded_files]
    return metadata.model_copy(update=version | {"downloaded_files": files})


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


def _describe(error: ValidationError) -> str:
    details = []
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        field = ".".join(str(part) for part in detail["loc"])
        details.append(f"{field}: {detail['msg']}" if field else detail["msg"])
    return "; ".join(details[:5]) + ("; …" if len(details) > 5 else "")  # noqa: PLR2004 — enough to read
