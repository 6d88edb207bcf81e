"""One table of settings: `fonds.toml` in the home folder, then `FONDS_*` variables, then arguments.

Nothing else in the package reads the environment.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from fonds.errors import SettingsError

FILE_NAME: Final = "fonds.toml"
PLACEHOLDER: Final = "CHANGE-ME"
"""The text in examples of settings that a secret replaces."""


def _boolean(text: str) -> bool:
    values = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if text.strip().lower() not in values:
        raise ValueError("expected 1 or 0")
    return values[text.strip().lower()]


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _hosts(text: str) -> dict[str, str]:
    """Either a JSON object or `host=address` pairs separated by commas."""
    if text.lstrip().startswith("{"):
        pairs = json.loads(text)
    else:
        pairs = dict(pair.split("=", 1) for pair in text.split(",") if pair.strip())
    return {host.strip().lower(): base.strip().rstrip("/") for host, base in pairs.items()}


def _setting(default: Any, read: Callable[[str], Any], text: str, *, secret: bool = False) -> Any:
    metadata = {"read": read, "help": text, "secret": secret}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings with their defaults."""

    home: Path = _setting(Path("library"), Path, "Folder of the library.")  # noqa: RUF009 — a field, not a value
    database: str = _setting(
        "",
        str,
        "Database URL for SQLAlchemy; empty: SQLite in the home folder. May contain a password.",
        secret=True,
    )
    sqlite_cache_mib: int = _setting(16, int, "Maximum cache of each SQLite connection, in MiB.")
    blobs: str = _setting(
        "",
        str,
        "Store of raw files: a folder, memory://, s3://…, az://…; empty: in the home folder.",
    )
    blobs_public_endpoint: str = _setting(
        "",
        str,
        "Address of the object store for clients, if they reach it by another than the endpoint of"
        " `blobs`; `server`: files pass through this server.",
    )
    indexes: str = _setting("", str, "Store of host indexes, as for blobs; empty: the same store.")
    outage_seconds: float = _setting(
        300.0,
        float,
        "Seconds that commands wait for a database or object store that does not respond.",
    )
    engine: str = _setting(
        "local",
        str,
        "Where heavy work runs: local; ray, the cluster of this machine; ray:HOST:PORT.",
    )
    read_seconds: float = _setting(
        120.0,
        float,
        "Maximum seconds in which one file is read; raise it for very large files.",
    )
    read_memory_mib: int = _setting(
        2048, int, "Maximum memory that reading one file may need, in MiB."
    )
    hosts: Mapping[str, str] = _setting(
        {}, _hosts, "Replacements of upstream hosts: host=address,… or a JSON object."
    )
    allow_private: bool = _setting(
        False, _boolean, "Allow requests to private and loopback addresses."
    )
    user_agent: str = _setting(
        "fonds/0.1 (+https://github.com/fonds/fonds)",
        str,
        "User-Agent of requests; include your contact address.",
    )
    data_gov_key: str = _setting(
        "", str, "Key of api.data.gov, for api.congress.gov and api.govinfo.gov.", secret=True
    )
    lda_key: str = _setting(
        "",
        str,
        "Key of lda.gov; with one, lobbying filings are fetched eight times as fast.",
        secret=True,
    )
    timeout: float = _setting(30.0, float, "Seconds to wait for an upstream's next byte.")
    retries: int = _setting(4, int, "Attempts for a request that fails temporarily.")
    retry_wait: float = _setting(
        0.5, float, "Seconds before the first retry; doubled for each further one."
    )
    retry_wait_max: float = _setting(
        60.0, float, "Maximum seconds between retries, even if the upstream asks for more."
    )
    max_file_mib: int = _setting(
        512, int, "Maximum size of a fetched (decompressed) or uploaded file, in MiB."
    )
    rate_factor: float = _setting(
        1.0, float, "Factor for the rate limit of every source; 0 disables rate limits."
    )
    revalidate_days: int = _setting(
        7, int, "Days after which an item is fetched again even if its listing entry is unchanged."
    )
    batch_records: int = _setting(500, int, "Records loaded in one transaction.")
    batch_mib: int = _setting(
        16, int, "Approximate maximum of body text loaded in one transaction, in MiB."
    )
    chunk_tokens: int = _setting(512, int, "Maximum length of a passage, in tokens.")
    chunk_overlap: int = _setting(64, int, "Tokens repeated between passages of one section.")
    embedder: str = _setting(
        "wordllama",
        str,
        "Embedding model: wordllama, minilm, onnx:FOLDER, openai:MODEL, hashing.",
    )
    embed_url: str = _setting(
        "https://api.openai.com/v1", str, "Base address of an endpoint with OpenAI's protocol."
    )
    embed_key: str = _setting("", str, "Key of that endpoint.", secret=True)
    embed_rate: str = _setting(
        "", str, "Its limits per minute as requests/tokens: 500/1000000; empty: none."
    )
    parser: str = _setting(
        "local",
        str.lower,
        "Parser of uploads: local, in the worker, or llamaparse, an external service.",
    )
    advisor: str = _setting(
        "structure",
        str,
        "Finds how a website lists its PDFs: structure, or openai:MODEL.",
    )
    advisor_url: str = _setting(
        "https://api.openai.com/v1", str, "Base address of that model's endpoint."
    )
    advisor_key: str = _setting("", str, "Key of that endpoint.", secret=True)
    browser: str = _setting(
        "", str, "Chromium for pages built by scripts; empty: the installed one."
    )
    llamaparse_key: str = _setting("", str, "Key of api.cloud.llamaindex.ai.", secret=True)
    webhook_secrets: tuple[str, ...] = _setting(
        (),
        _list,
        "Secrets that sign webhooks; two, separated by a comma, while one is replaced.",
        secret=True,
    )
    server_secret: str = _setting(
        "",
        str,
        "Secret that signs sessions and file addresses; empty: one generated in the database.",
        secret=True,
    )
    signing_key: str = _setting(
        "",
        str,
        "Private key that signs bundles; empty: the one that `fonds key create` made.",
        secret=True,
    )
    public_url: str = _setting(
        "", lambda text: text.rstrip("/"), "Address at which clients reach `fonds serve`."
    )
    trusted_proxies: tuple[str, ...] = _setting(
        (),
        _list,
        "Addresses and networks of proxies whose X-Forwarded-For or Forwarded is trusted.",
    )
    token: str = _setting(
        "", str, "Token of `fonds upload` and `fonds jobs`, from `fonds token create`.", secret=True
    )
    scheduled_sources: tuple[str, ...] = _setting(
        (), _list, "Sources that are run on schedule, separated by commas; empty: all."
    )
    contact_publishers: bool = _setting(
        True,
        _boolean,
        "Allow requests to publishers; off in the demo's library, whose documents are invented.",
    )
    retention_days: int = _setting(30, int, "Days after which logs and finished tasks are deleted.")
    log_level: str = _setting("warning", str.lower, "debug, info, warning or error.")
    log_format: str = _setting("text", str.lower, "text, or json for machines.")

    @property
    def database_url(self) -> str:
        """The database URL, with the default."""
        return self.database or f"sqlite:///{(self.home / 'fonds.db').absolute()}"

    @property
    def blobs_url(self) -> str:
        """The address of the blob store, with the default."""
        return self.blobs or str((self.home / "blobs").absolute())

    @property
    def indexes_url(self) -> str:
        """The address of the store of indexes, with the default."""
        return self.indexes or self.blobs_url


def read_settings(
    overrides: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Read settings: arguments override variables, then the file, then defaults."""
    arguments = {name: value for name, value in (overrides or {}).items() if value is not None}
    variables = _from_environment(os.environ if environ is None else environ)
    home = Path(arguments.get("home", variables.get("home", Settings.home)))
    settings = Settings(**{**_from_file(home / FILE_NAME), **variables, **arguments, "home": home})
    _refuse_placeholders(settings)
    return settings


def _refuse_placeholders(settings: Settings) -> None:
    """Raise for a secret that is still the one of an example, which everyone can read."""
    for entry in fields(Settings):
        if entry.metadata["secret"] and PLACEHOLDER in str(getattr(settings, entry.name)).upper():
            raise SettingsError(
                f"FONDS_{entry.name.upper()} still contains {PLACEHOLDER} from an example: set "
                "it to a secret of your own, made by python -c 'import secrets; "
                "print(secrets.token_hex())'"
            )


def overridden_database(home: Path, environ: Mapping[str, str] | None = None) -> str | None:
    """The database that a home has of its own, if the variable FONDS_DATABASE names another one."""
    variable = (os.environ if environ is None else environ).get("FONDS_DATABASE")
    own = read_settings({"home": home}, environ={})
    exists = own.database or (home / "fonds.db").exists()
    return own.database_url if variable and exists and variable != own.database_url else None


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    values = {}
    for entry in fields(Settings):
        name = f"FONDS_{entry.name.upper()}"
        if environ.get(name):
            values[entry.name] = _read(entry.metadata["read"], environ[name], name)
    return values


def _from_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}") from error
    readers = {entry.name: entry.metadata["read"] for entry in fields(Settings)}
    if unknown := sorted(set(table) - set(readers)):
        raise SettingsError(f"{path} has unknown settings: {', '.join(unknown)}")
    return {name: _read(readers[name], _as_text(value), str(path)) for name, value in table.items()}


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, list):
        return ",".join(map(str, value))
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _read(reader: Callable[[str], Any], text: str, where: str) -> Any:
    try:
        return reader(text)
    except (ValueError, AttributeError) as error:
        raise SettingsError(f"{where}: {text!r} is not a valid value: {error}") from error
