"""Commands about bundles: the public content of a library under one hash."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from fonds.cli.output import EXIT_FAILED, EXIT_INCOMPLETE, AsJson, err, out, print_json, safe
from fonds.cli.session import Session
from fonds.errors import UsageError
from fonds.exchange.bundle.contents import BundlePackage, read_package
from fonds.exchange.bundle.create import BundleSigner, Created, Watch
from fonds.exchange.bundle.create import create as create_bundle
from fonds.exchange.bundle.diff import Difference, RowSource, bundle_rows, differences, library_rows
from fonds.exchange.bundle.load import LoadReport
from fonds.exchange.bundle.opening import is_url
from fonds.exchange.bundle.request import LoadRequest, load_from
from fonds.exchange.bundle.verify import BundleReport
from fonds.exchange.bundle.verify import verify as verify_bundle
from fonds.exchange.database_copy import database_address, open_source
from fonds.exchange.keys import KeyFolder
from fonds.exchange.snapshot import display_address, snapshot
from fonds.fetch.transport import public_url
from fonds.library import Library
from fonds.schema import require_library
from fonds.seams import Seams
from fonds.search.filters import require_source
from fonds.settings import FILE_NAME
from fonds.stores.blobs import open_blobs, open_existing_blobs
from fonds.stores.database import sqlite_file

bundle_app = typer.Typer(
    help="Public content in files under one hash: create, load, compare.", no_args_is_help=True
)

SignedBy = Annotated[
    str | None,
    typer.Option("--key", help="The public key, or its trusted name, that must have signed it."),
]
_DATABASE: Final = "fonds.db"
_MAX_LISTED: Final = 3
_MARKS: Final = {"added": "+", "removed": "-", "changed": "~"}


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.add_typer(bundle_app, name="bundle")
    app.command()(pull)


@bundle_app.command()
def create(
    context: typer.Context,
    *,
    source: Annotated[
        list[str] | None, typer.Option(help="Only this source; repeatable. Default: all.")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="A folder, s3://…, az://…; default: `bundle` in the home."
        ),
    ] = None,
    with_raw: Annotated[
        bool,
        typer.Option(
            "--with-raw", help="With the publishers' bytes, so that all can be derived again."
        ),
    ] = False,
    sign: Annotated[
        bool, typer.Option("--sign", help="Sign it with the key of `fonds key create`.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write documents, passages, citations and hashes, and print the hash over all of them.

    Equal content gives equal bytes and the same hash on every machine. Existing files are not
    written again. Uploads of users are never included. Exit 3 if texts or citations of documents
    are still queued.

    \b
    Examples: fonds bundle create
              fonds bundle create --source federal_register --to s3://bucket/bundles/fr
              fonds bundle create --with-raw --sign --to /srv/www/bundle
    """
    with context.obj.library() as library, _progress("bundling") as watch:
        address = to or str(library.settings.home / "bundle")
        keys = KeyFolder(library.settings, library.seams.clock)
        created = create_bundle(
            library.database,
            open_blobs(address, seams=library.seams, private=False),
            sources=[require_source(each, library.sources) for each in source] if source else None,
            where=display_address(address),
            watch=watch,
            archive=library.blobs if with_raw else None,
            signer=BundleSigner(key=keys.signing_key(), endorsements=keys.endorsements())
            if sign
            else None,
            clock=library.seams.clock,
        )
    if as_json:
        print_json({"address": display_address(address), **asdict(created)})
    else:
        _print_created(created, display_address(address))
    if any(created.waiting.values()):
        raise typer.Exit(EXIT_INCOMPLETE)


def _print_created(created: Created, where: str) -> None:
    rows = ", ".join(f"{count:,} {name}" for name, count in created.records.items())
    out.print(f"[bold]{created.root}[/bold]  {safe(where)}", soft_wrap=True)
    err.print(f"{rows}; {created.written:,} of {created.files + 1:,} files written")
    if raw := created.raw:
        err.print(
            f"{raw.inputs:,} inputs, {raw.bytes:,} bytes of publishers under {raw.sha256[:16]}…"
        )
        if raw.without:
            err.print(
                f"of {raw.without:,} documents it is not known how they were read: `fonds run "
                "SOURCE --recheck` stores it; until then they are loaded without proof"
            )
    if created.key:
        err.print(f"signed by {created.key}")
    advice = {"texts": "fonds normalize", "citations": "fonds citations"}
    for name, count in created.waiting.items():
        if count:
            err.print(f"{name} of {count:,} documents are queued: run `{advice[name]}` first")


@bundle_app.command()
def verify(
    bundle: Annotated[str, typer.Argument(metavar="BUNDLE", help="A folder, s3://…, az://…")],
    *,
    as_json: AsJson = False,
) -> None:
    """Check every hash, count and row of a bundle; exit 1 if one is wrong.

    \b
    Example: fonds bundle verify s3://bucket/bundles/fr
    """
    with _progress("verifying") as watch:
        report = verify_bundle(
            open_existing_blobs(bundle, seams=Seams(), private=False),
            display_address(bundle),
            watch=watch,
        )
    if as_json:
        print_json(report)
    else:
        _print_verified(report)
    if report.count:
        raise typer.Exit(EXIT_FAILED)


def _print_verified(report: BundleReport) -> None:
    for problem in report.problems:
        out.print(f"{safe(problem.where)}: {safe(problem.what)}")
    if report.count > len(report.problems):
        out.print(f"… and {report.count - len(report.problems):,} more")
    if report.count:
        err.print(f"{report.count:,} problems")
    else:
        rows = ", ".join(f"{count:,} {name}" for name, count in report.records.items())
        out.print(f"[bold]{report.root}[/bold]  no problems")
        err.print(rows)


@bundle_app.command()
def load(
    context: typer.Context,
    bundle: Annotated[
        str,
        typer.Argument(metavar="BUNDLE", help="A folder, a tar archive, s3://…, az://…, https://…"),
    ],
    *,
    key: SignedBy = None,
    as_json: AsJson = False,
) -> None:
    """Fill an empty library with a bundle, or merge one into a library.

    The bundle is checked first: every hash, row and signature, and, if it has the bytes of the
    publishers, that these give the same rows by the parsers of this program. If anything is wrong,
    nothing changes. A document that this library fetched itself stays as it is, and an older bundle
    replaces nothing of a newer one. May be killed, and repeated.

    \b
    Examples: fonds bundle load bundles/codes.tar
              fonds bundle load https://fonds.example/bundle --key ed25519:mCx…
              fonds --home new-library bundle load s3://bucket/bundle
    """
    with context.obj.library(create=True) as library:
        report = asyncio.run(_load(library, bundle, key, keep=False))
    _print_loaded(report, as_json=as_json)


def pull(
    context: typer.Context,
    bundle: Annotated[
        str, typer.Argument(metavar="BUNDLE", help="An address, as for `fonds bundle load`.")
    ],
    *,
    key: SignedBy = None,
    as_json: AsJson = False,
) -> None:
    """Load the bundle at an address, and later what changes there.

    The key that signs the bundle is remembered: another one, or none, is refused until `--key`
    names it.

    \b
    Example: fonds pull https://fonds.example/bundle
    """
    with context.obj.library(create=True) as library:
        report = asyncio.run(_load(library, bundle, key, keep=True))
    _print_loaded(report, as_json=as_json)


async def _load(library: Library, address: str, key: str | None, *, keep: bool) -> LoadReport:
    keys = KeyFolder(library.settings, library.seams.clock)
    expected = keys.find(key) if key else None
    with _progress("loading") as watch:
        async with library.open_context() as opened:
            request = LoadRequest(
                address=address,
                display=public_url(address) if is_url(address) else display_address(address),
                key=expected,
                is_pull=keep,
                watch=watch,
            )
            report = await load_from(request, opened)
    report.key_name = keys.public().name_of(report.key) if report.key else None
    return report


def _print_loaded(report: LoadReport, *, as_json: bool) -> None:
    if as_json:
        print_json(report)
    else:
        _print_load_report(report)
    if report.errors or not report.is_equal:
        raise typer.Exit(EXIT_INCOMPLETE)


def _print_load_report(report: LoadReport) -> None:
    counts = {
        "added": report.added,
        "updated": report.updated,
        "unchanged": report.unchanged,
        "withdrawn": report.withdrawn,
        "kept as they are here": report.preserved,
    }
    summary = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    out.print(f"[bold]{report.root}[/bold]  {safe(report.address)}", soft_wrap=True)
    out.print(f"{report.documents:,} documents: {summary or 'nothing to do'}")
    if report.proven:
        out.print(f"{report.proven:,} were derived again from the publishers' bytes: PROVEN")
    if report.unproven:
        out.print(
            f"{report.unproven:,} came without their bytes and are taken as the bundle has them: "
            "UNPROVEN. They have no rows in typed tables, and `fonds verify` says UNPROVEN of them"
        )
    for version, ids in sorted(report.other_versions.items()):
        count = report.other_version_counts[version]
        listed = ", ".join(safe(each) for each in ids[:_MAX_LISTED])
        more = f" and {count - _MAX_LISTED:,} more" if count > _MAX_LISTED else ""
        out.print(
            f"{count:,} were read by another version, {safe(version)}, and are loaded as this "
            f"program reads them: {listed}{more}"
        )
    for error in report.errors:
        err.print(f"failed: {safe(error)}; `fonds errors` lists all")
    if report.key is None:
        err.print("the bundle is not signed: nothing says who made it")
    elif report.key_name is None:
        err.print(
            f"signed by {report.key}, which is not trusted yet: compare it with the key that its "
            "maker publishes, then `fonds key trust`"
        )
    else:
        err.print(f"signed by {safe(report.key_name)}, {report.key}")
    if report.is_equal:
        err.print("every document of the bundle is here with the same rows")
    else:
        err.print("not every document is as in the bundle: `fonds bundle diff BUNDLE` lists them")


@bundle_app.command()
def diff(
    context: typer.Context,
    one: Annotated[
        str,
        typer.Argument(metavar="A", help="A bundle, or a library: its home, or its SQLite file."),
    ],
    other: Annotated[
        str | None,
        typer.Argument(metavar="[B]", help="A bundle or library, as A; default: this library."),
    ] = None,
    *,
    limit: Annotated[int, typer.Option(min=0, help="Maximum number of differences to list.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the differences between two bundles or libraries; exit 1 if there are any.

    Files with equal hashes are not read. A library is compared as if it were bundled with the
    sources of the other side. A home that is named as A or B is read by its own fonds.toml alone,
    whatever variables are set; without B, this library is the one of --home and of the variables.

    \b
    Examples: fonds bundle diff old-bundle new-bundle
              fonds bundle diff library/fonds.db
              fonds bundle diff s3://bucket/bundles/fr
    """
    sides = [_read_side(one), _read_side(other) if other else _this_library(context.obj)]
    if sides[0].database and _identity(sides[0]) == _identity(sides[1]):
        raise UsageError(
            f"both sides are the database {display_address(sides[0].database)}: name another one, "
            "such as library/fonds.db"
        )
    sources = next((side.package.sources for side in sides if side.package), None)
    counts: Counter[str] = Counter()
    listed: list[Difference] = []
    with ExitStack() as stack, err.status("comparing …"):
        opened = [stack.enter_context(_open_side(side, sources)) for side in sides]
        for difference in differences(*opened):
            counts[difference.change] += 1
            if len(listed) < limit:
                listed.append(difference)
    if as_json:
        totals = {change: counts[change] for change in _MARKS}
        print_json({"is_equal": not counts, "counts": totals, "differences": listed})
    else:
        _print_differences(listed, counts)
    if counts:
        raise typer.Exit(EXIT_FAILED)


def _print_differences(listed: Sequence[Difference], counts: Counter[str]) -> None:
    for difference in listed:
        fields = f"  {', '.join(difference.fields)}" if difference.fields else ""
        table = "" if difference.table == "documents" else f"{difference.table} "
        out.print(f"{_MARKS[difference.change]} {table}{safe(difference.id)}{safe(fields)}")
    remaining = counts.total() - len(listed)
    if remaining:
        out.print(f"… and {remaining:,} more; raise --limit to list more")
    summary = ", ".join(f"{counts[change]:,} {change}" for change in _MARKS)
    err.print(summary if counts else "no differences")


@dataclass(frozen=True, slots=True)
class _BundleSide:
    """One side of a comparison: a bundle, or a library."""

    address: str
    package: BundlePackage | None = None
    database: str | None = None
    """The address of the database of a library."""


def _read_side(address: str) -> _BundleSide:
    path = Path(address)
    is_home = any((path / name).exists() for name in (_DATABASE, FILE_NAME))
    if "://" not in address and (is_home or path.is_file()):
        return _BundleSide(address, database=database_address(address))
    return _BundleSide(
        address,
        read_package(
            open_existing_blobs(address, seams=Seams(), private=False), display_address(address)
        ),
    )


def _identity(side: _BundleSide) -> Path | str | None:
    """The file or server of a database, however its address is written."""
    if side.database is None:
        return None
    file = sqlite_file(side.database)
    return file.resolve() if file else display_address(side.database).partition("://")[2]


def _this_library(session: Session) -> _BundleSide:
    settings = session.settings()
    require_library(settings)
    return _BundleSide(str(settings.home), database=settings.database_url)


@contextmanager
def _open_side(side: _BundleSide, sources: tuple[str, ...] | None) -> Iterator[RowSource]:
    if side.package is not None:
        yield bundle_rows(
            open_existing_blobs(side.address, seams=Seams(), private=False), side.package
        )
        return
    assert side.database is not None
    with (
        open_source(side.database, seams=Seams()) as database,
        snapshot(database) as connection,
    ):
        yield library_rows(connection, sources)


@contextmanager
def _progress(activity: str) -> Iterator[Watch]:
    with err.status(f"{activity} …") as status:
        yield lambda table, count: status.update(f"{activity} … {count:,} {table}")
