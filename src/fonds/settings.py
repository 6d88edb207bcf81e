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


def _boolean(text: str) -> bool:
    known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if text.strip().lower() not in known:
        raise ValueError("expected 1 or 0")
    return known[text.strip().lower()]


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
    """Everything that can be set, with its default."""

    home: Path = _setting(Path("library"), Path, "Folder where everything lives.")  # noqa: RUF009 — a field, not a value
    database: str = _setting(
        "",
        str,
        "SQLAlchemy address; empty: SQLite in the home folder. May hold a password.",
        secret=True,
    )
    sqlite_cache_mib: int = _setting(16, int, "Memory for each connection to SQLite, at most.")
    blobs: str = _setting(
        "", str, "Where raw files live: a folder, memory://, s3://…, az://…; empty: in the home."
    )
    indexes: str = _setting("", str, "Where indexes of hosts live: as blobs; empty: beside them.")
    engine: str = _setting(
        "local",
        str,
        "Where heavy work runs: local; ray, the cluster this machine belongs to; ray:HOST:PORT.",
    )
    hosts: Mapping[str, str] = _setting(
        {}, _hosts, "Stand-ins for upstream hosts: host=address,… or a JSON object."
    )
    allow_private: bool = _setting(
        False, _boolean, "Let the fetcher reach private and loopback addresses."
    )
    user_agent: str = _setting(
        "fonds/0.1 (+https://github.com/fonds/fonds)",
        str,
        "How we introduce ourselves; name a contact of yours.",
    )
    data_gov_key: str = _setting(
        "", str, "Key of api.data.gov, for api.congress.gov and api.govinfo.gov.", secret=True
    )
    lda_key: str = _setting(
        "", str, "Key of lda.gov; lobbying filings come eight times as fast with one.", secret=True
    )
    timeout: float = _setting(30.0, float, "Seconds to wait for an upstream's next byte.")
    retries: int = _setting(4, int, "Tries for a request that failed in a way worth repeating.")
    retry_wait: float = _setting(0.5, float, "Seconds before the first repetition; it doubles.")
    retry_wait_max: float = _setting(
        60.0, float, "Longest wait between tries, also when the upstream asks for more."
    )
    max_file_mib: int = _setting(
        512, int, "Largest file fetched, after decompression, or uploaded."
    )
    rate_factor: float = _setting(
        1.0, float, "Multiplies every source's politeness rate; 0 switches it off."
    )
    revalidate_days: int = _setting(
        7, int, "Ask again for an item whose listing entry has not changed after so many days."
    )
    batch_records: int = _setting(500, int, "Records loaded in one transaction.")
    batch_mib: int = _setting(16, int, "Body text loaded in one transaction, at most about.")
    chunk_tokens: int = _setting(512, int, "Largest passage, in tokens.")
    chunk_overlap: int = _setting(64, int, "Tokens repeated between passages of one section.")
    embedder: str = _setting(
        "wordllama",
        str,
        "The model for vectors: wordllama, minilm, onnx:FOLDER, openai:MODEL, hashing.",
    )
    embed_url: str = _setting(
        "https://api.openai.com/v1", str, "Base address of an endpoint that speaks OpenAI's way."
    )
    embed_key: str = _setting("", str, "Key of that endpoint.", secret=True)
    embed_rate: str = _setting(
        "", str, "Its limits a minute, as requests/tokens: 500/1000000; empty: none."
    )
    parser: str = _setting(
        "local", str.lower, "What reads uploads: local, in the worker, or llamaparse, outside."
    )
    advisor: str = _setting(
        "structure",
        str,
        "What finds out how a website lists its PDFs: structure, or openai:MODEL.",
    )
    advisor_url: str = _setting(
        "https://api.openai.com/v1", str, "Base address of that model's endpoint."
    )
    advisor_key: str = _setting("", str, "Key of that endpoint.", secret=True)
    browser: str = _setting(
        "", str, "Chromium for pages that scripts build; empty: the one that is installed."
    )
    llamaparse_key: str = _setting("", str, "Key of api.cloud.llamaindex.ai.", secret=True)
    webhook_secrets: tuple[str, ...] = _setting(
        (),
        _list,
        "What webhooks are signed with; two, by a comma, while one is replaced.",
        secret=True,
    )
    server_secret: str = _setting(
        "",
        str,
        "Signs addresses of files in a folder; empty: one that is made once and kept in the home.",
        secret=True,
    )
    public_url: str = _setting(
        "", lambda text: text.rstrip("/"), "Address under which clients reach `fonds serve`."
    )
    token: str = _setting(
        "", str, "Of `fonds token create`: who `fonds upload` and `fonds jobs` are.", secret=True
    )
    retention_days: int = _setting(30, int, "Days that logs and finished tasks are kept.")
    log_level: str = _setting("warning", str.lower, "debug, info, warning or error.")
    log_format: str = _setting("text", str.lower, "text, or json for machines.")

    @property
    def database_url(self) -> str:
        """The database's address with the default filled in."""
        return self.database or f"sqlite:///{(self.home / 'fonds.db').absolute()}"

    @property
    def blobs_url(self) -> str:
        """The blob store's address with the default filled in."""
        return self.blobs or str((self.home / "blobs").absolute())

    @property
    def indexes_url(self) -> str:
        """The address of the indexes' store with the default filled in."""
        return self.indexes or self.blobs_url


def read_settings(
    overrides: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Settle each value: argument before variable before file before default."""
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    variables = _from_environment(os.environ if environ is None else environ)
    home = Path(given.get("home", variables.get("home", Settings.home)))
    return Settings(**{**_from_file(home / FILE_NAME), **variables, **given, "home": home})


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
    known = {entry.name: entry.metadata["read"] for entry in fields(Settings)}
    if unknown := sorted(set(table) - set(known)):
        raise SettingsError(f"{path} has settings fonds does not know: {', '.join(unknown)}")
    return {name: _read(known[name], _as_text(value), str(path)) for name, value in table.items()}


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
        raise SettingsError(f"{where}: {text!r} cannot be read: {error}") from error
