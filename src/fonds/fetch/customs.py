"""What particular upstreams want to be sent: keys, only to their own host, and media types."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import urlsplit

from fonds.settings import Settings


class _Keyed(NamedTuple):
    setting: str
    header: str
    form: str


_DATA_GOV: Final = _Keyed("data_gov_key", "X-Api-Key", "{}")
_HOSTS: Final = {
    "api.congress.gov": _DATA_GOV,
    "api.govinfo.gov": _DATA_GOV,
    "lda.gov": _Keyed("lda_key", "Authorization", "Token {}"),
}


def headers_for(settings: Settings, url: str) -> dict[str, str]:
    """What goes with a request to this address beside what goes with all."""
    return {"Accept": _accepted(url), **_key(settings, url)}


def _accepted(url: str) -> str:
    parts = urlsplit(url)
    # These listings answer 406 to whoever would take anything.
    listing = parts.hostname == "www.govinfo.gov" and parts.path.startswith("/bulkdata/json/")
    return "application/json" if listing else "*/*"


def _key(settings: Settings, url: str) -> dict[str, str]:
    """The header that carries our key for this address, if it wants one and we have one."""
    parts = urlsplit(url)
    keyed = _HOSTS.get((parts.hostname or "").lower())
    # A key is never sent in the clear, not even where a redirect asks for it.
    if keyed is None or parts.scheme != "https":
        return {}
    key: str = getattr(settings, keyed.setting)
    return {keyed.header: keyed.form.format(key)} if key else {}
