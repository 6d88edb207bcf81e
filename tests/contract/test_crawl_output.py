"""Where a crawl leaves its files, asked of each kind of place."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fonds.errors import SettingsError, StoreError
from fonds.seams import Seams
from fonds.sites.output import JOURNAL, METADATA, Output, open_output

NAME = "jiyu-minshuto_2024-q1_報告書 (最終).pdf"


@pytest.fixture(params=["folder", "s3", "azure", "abfs"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return str(tmp_path / "output")
    if request.param == "abfs":
        azure = urlsplit(str(request.getfixturevalue("azure_address")))
        options = dict(pair.split("=", 1) for pair in azure.query.split("&"))
        account = options.pop("account_name")
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"abfs://{azure.netloc}@{account}.dfs.core.windows.net{azure.path}?{query}"
    found: str = request.getfixturevalue(f"{request.param}_address")
    return found


@pytest.fixture
def output(address: str) -> Output:
    return open_output(address, seams=Seams())


def stored(output: Output) -> dict[str, bytes]:
    return {path: output.blobs.get(path) for path, _ in output.files()}


def a_file(folder: Path, data: bytes) -> tuple[Path, str]:
    sha256 = hashlib.sha256(data).hexdigest()
    file = folder / sha256
    file.write_bytes(data)
    return file, sha256


def test_a_placed_file_is_found_below_pdfs(output: Output, tmp_path: Path) -> None:
    data = b"%PDF-1.7\n" + b"x" * 3_000_000
    assert output.store(NAME, *a_file(tmp_path, data)) == f"pdfs/{NAME}"
    assert stored(output) == {f"pdfs/{NAME}": data}
    assert list(output.files()) == [(f"pdfs/{NAME}", len(data))]


def test_the_same_bytes_under_the_same_name_are_one_file(output: Output, tmp_path: Path) -> None:
    first = output.store(NAME, *a_file(tmp_path, b"%PDF-1"))
    assert output.store(NAME, *a_file(tmp_path, b"%PDF-1")) == first
    assert stored(output) == {first: b"%PDF-1"}


def test_other_bytes_under_the_same_name_get_their_hash_into_it(
    output: Output, tmp_path: Path
) -> None:
    output.store(NAME, *a_file(tmp_path, b"%PDF-1"))
    file, sha256 = a_file(tmp_path, b"%PDF-2")
    other = f"pdfs/{NAME.removesuffix('.pdf')}-{sha256[:8]}.pdf"
    assert output.store(NAME, file, sha256) == other
    assert output.store(NAME, file, sha256) == other
    assert stored(output) == {f"pdfs/{NAME}": b"%PDF-1", other: b"%PDF-2"}


def test_a_name_with_its_hash_that_holds_something_else_is_reported(
    output: Output, tmp_path: Path
) -> None:
    output.store(NAME, *a_file(tmp_path, b"%PDF-1"))
    file, sha256 = a_file(tmp_path, b"%PDF-2")
    damaged = output.store(NAME, file, sha256)
    output.blobs.put(damaged, b"%PDF-")
    with pytest.raises(StoreError, match="is damaged: remove it"):
        output.store(NAME, file, sha256)


def test_a_file_that_changed_since_it_was_hashed_is_not_stored(
    output: Output, tmp_path: Path
) -> None:
    file, sha256 = a_file(tmp_path, b"%PDF-1")
    file.write_bytes(b"%PDF-")
    with pytest.raises(StoreError, match="its bytes have changed"):
        output.store(NAME, file, sha256)
    assert stored(output) == {}


def test_rivals_for_one_name_lose_nothing(output: Output, tmp_path: Path) -> None:
    files = [a_file(tmp_path, b"%%PDF-%d" % (number % 3)) for number in range(6)]
    barrier = threading.Barrier(len(files))

    def place(file: Path, sha256: str) -> str:
        barrier.wait()
        return output.store(NAME, file, sha256)

    with ThreadPoolExecutor(len(files)) as pool:
        paths = list(pool.map(place, *zip(*files, strict=True)))
    held = stored(output)
    assert sorted(held.values()) == [b"%PDF-0", b"%PDF-1", b"%PDF-2"]
    assert [held[path] for path in paths] == [file.read_bytes() for file, _ in files]


def test_other_files_are_replaced_as_a_whole(output: Output, tmp_path: Path) -> None:
    assert output.read(METADATA) is None
    output.write(METADATA, b"{}")
    output.write(METADATA, a_file(tmp_path, b"x" * 2_500_000)[0])
    output.write(JOURNAL, b"")
    assert b"".join(output.read(METADATA) or ()) == b"x" * 2_500_000
    assert b"".join(output.read(JOURNAL) or ()) == b""
    assert list(output.files()) == []


def test_an_output_names_its_kind_and_no_secret(output: Output, address: str) -> None:
    kind = address.partition("://")[0]
    kinds = {"s3": "s3", "az": "adls", "abfs": "adls"}
    assert output.backend == kinds.get(kind, "local")
    assert "key" not in output.address
    assert "key" not in repr(output)
    assert output.address.endswith(urlsplit(address).path)


def test_a_folder_may_be_given_as_an_address_or_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_output("out put", seams=Seams()).folder == tmp_path / "out put"
    found = open_output(f"file://{tmp_path}/x", seams=Seams())
    assert (found.folder, found.backend) == (tmp_path / "x", "local")


def test_links_in_the_folder_of_files_are_not_followed(tmp_path: Path) -> None:
    output = open_output(str(tmp_path / "output"), seams=Seams())
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "output" / "pdfs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="symbolic link"):
        output.store(NAME, *a_file(tmp_path, b"%PDF-1"))


@pytest.mark.parametrize("address", ["", "memory://", "gs://bucket/x", "ftp://a.example/x"])
def test_other_places_are_refused_with_what_is_possible(address: str) -> None:
    with pytest.raises(SettingsError, match="Use a folder, s3://"):
        open_output(address, seams=Seams())


@pytest.mark.parametrize("address", ["abfs://c@/x", "abfs://c@UPPER_case!/x", "abfs://c@a.b.c/x"])
def test_an_abfs_address_names_an_account(address: str) -> None:
    with pytest.raises(SettingsError, match="the name of an account"):
        open_output(address, seams=Seams())


@pytest.mark.parametrize(
    "address",
    [
        "abfs://box@account1/a/b?account_key=c2VjcmV0",
        "abfss://box@account1.dfs.core.windows.net/a/b?account_key=c2VjcmV0",
        "abfs://box@account1.dfs.core.chinacloudapi.cn/a/b?account_key=c2VjcmV0",
        "abfs://box/a/b?account_name=account1&account_key=c2VjcmV0",
    ],
)
def test_all_forms_of_abfs_lead_to_the_container(address: str) -> None:
    output = open_output(address, seams=Seams())
    assert (output.address, output.backend) == ("az://box/a/b", "adls")
