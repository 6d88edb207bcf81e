"""Engines by their address, and what is said where there is none."""

from __future__ import annotations

import socket
import sys

import pytest

from fonds.engine.local import LocalEngine
from fonds.engine.opening import open_engine
from fonds.errors import SettingsError


def test_local_is_this_machine_with_the_limits_it_is_given() -> None:
    with open_engine("local", workers=3, memory_mib=7, seconds=5) as engine:
        assert isinstance(engine, LocalEngine)
        assert (engine.workers, engine.memory_mib, engine.seconds) == (3, 7, 5)


@pytest.mark.parametrize("address", ["", "dask", "ray:", "ray://127.0.0.1:10001", "Local"])
def test_other_addresses_are_refused_and_the_forms_named(address: str) -> None:
    with pytest.raises(SettingsError, match="ray:HOST:PORT"):
        open_engine(address)


@pytest.mark.parametrize("address", ["ray:127.0.0.1", "ray:127.0.0.1:port"])
def test_an_address_without_a_port_is_refused(address: str) -> None:
    with pytest.raises(SettingsError, match="no Ray cluster answers"):
        open_engine(address)


def test_a_cluster_that_does_not_answer_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(SettingsError, match=f"no Ray cluster answers at 127.0.0.1:{port}"):
        open_engine(f"ray:127.0.0.1:{port}")


def test_without_the_package_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SettingsError, match=r"pip install 'fonds\[ray\]'"):
        open_engine("ray")
