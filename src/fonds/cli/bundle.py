"""Commands about bundles: a library's public content under one hash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fonds.cli.output import EXIT_FAILED, EXIT_INCOMPLETE, AsJson, err, out, print_json, safe
from fonds.errors import UsageError
from fonds.seams import Seams
from fonds.settings import FILE_NAME
from fonds.stores.blobs import Blobs, open_blobs

if TYPE_CHECKING:
    from fonds.exchange.bundle.contents import BundlePackage
    from fonds.exchange.bundle.create import Created, Watch
    from fonds.exchange.bundle.diff import Difference, Side
    from fonds.exchange.bundle.verify import BundleReport

bundle_app = typer.Typer(
    help="The public content under one hash: equal libraries have equal ones.",
    no_args_is_help=True,
)

_DATABASE: Final = "fonds.db"
_MARKS: Final = {"added": "+", "removed": "-", "changed": "~"}


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.add_typer(bundle_app, name="bundle")


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
    as_json: AsJson = False,
) -> None:
    """Write documents, passages, citations and hashes, and say the one hash over all of them.

    The same content gives the same bytes and the same hash on every machine. What is there
    already is not written again. Uploads of users are never in it. Exit 3 if documents still
    wait for their text or their citations.

    \b
    Examples: fonds bundle create
              fonds bundle create --source federal_register --to s3://bucket/bundles/fr
    """
    from fonds.exchange.bundle.create import create as write  # noqa: PLC0415 — as above
    from fonds.exchange.snapshot import shown  # noqa: PLC0415 — other commands need none of it
    from fonds.search.filters import source_named  # noqa: PLC0415 — as above

    with context.obj.library() as library, _watched("bundling") as watch:
        address = to or str(library.settings.home / "bundle")
        made = write(
            library.database,
            open_blobs(address, seams=library.seams),
            sources=[source_named(each) for each in source] if source else None,
            where=shown(address),
            watch=watch,
        )
    if as_json:
        print_json({"address": shown(address), **asdict(made)})
    else:
        _print_created(made, shown(address))
    if any(made.waiting.values()):
        raise typer.Exit(EXIT_INCOMPLETE)


def _print_created(made: Created, where: str) -> None:
    rows = ", ".join(f"{count:,} {name}" for name, count in made.records.items())
    out.print(f"[bold]{made.root}[/bold]  {safe(where)}", soft_wrap=True)
    err.print(f"{rows}; {made.written:,} of {made.files + 1:,} files written")
    advice = {"texts": "fonds normalize", "citations": "fonds citations"}
    for name, count in made.waiting.items():
        if count:
            err.print(f"{count:,} documents wait for their {name}: `{advice[name]}` first")


@bundle_app.command()
def verify(
    bundle: Annotated[str, typer.Argument(metavar="BUNDLE", help="A folder, s3://…, az://…")],
    *,
    as_json: AsJson = False,
) -> None:
    """Check every hash, count and row of a bundle, and say what is wrong and where; exit 1 if so.

    \b
    Example: fonds bundle verify s3://bucket/bundles/fr
    """
    from fonds.exchange.bundle.verify import verify as check  # noqa: PLC0415 — as above
    from fonds.exchange.snapshot import shown  # noqa: PLC0415 — other commands need none of it

    with _watched("verifying") as watch:
        found = check(_existing(bundle), shown(bundle), watch=watch)
    if as_json:
        print_json(found)
    else:
        _print_verified(found)
    if found.count:
        raise typer.Exit(EXIT_FAILED)


def _print_verified(found: BundleReport) -> None:
    for problem in found.problems:
        out.print(f"{safe(problem.where)}: {safe(problem.what)}")
    if found.count > len(found.problems):
        out.print(f"… and {found.count - len(found.problems):,} more")
    if found.count:
        err.print(f"{found.count:,} things are wrong")
    else:
        rows = ", ".join(f"{count:,} {name}" for name, count in found.records.items())
        out.print(f"[bold]{found.root}[/bold]  all is well")
        err.print(rows)


@bundle_app.command()
def diff(
    context: typer.Context,
    one: Annotated[str, typer.Argument(metavar="A", help="A bundle, or the home of a library.")],
    other: Annotated[
        str | None,
        typer.Argument(
            metavar="[B]", help="A bundle, or the home of a library; default: this one."
        ),
    ] = None,
    *,
    limit: Annotated[int, typer.Option(min=0, help="How many are told one by one.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Say which documents B has and A has not, or the other way, or not the same; exit 1 if any.

    Files that both have are not read. A library is compared as the bundle that it would give, of
    the sources that the other one is of.

    \b
    Examples: fonds bundle diff old-bundle new-bundle
              fonds bundle diff s3://bucket/bundles/fr
    """
    from fonds.exchange.bundle.diff import differences  # noqa: PLC0415 — few commands need it

    places = [_place(one), _place(other or str(context.obj.settings().home))]
    sources = next((each.package.sources for each in places if each.package), None)
    counts: Counter[str] = Counter()
    told: list[Difference] = []
    with ExitStack() as stack, err.status("comparing …"):
        sides = [stack.enter_context(_side(place, sources)) for place in places]
        for each in differences(*sides):
            counts[each.change] += 1
            told += [each] if len(told) < limit else []
    if as_json:
        totals = {change: counts[change] for change in _MARKS}
        print_json({"is_equal": not counts, "counts": totals, "differences": told})
    else:
        _print_differences(told, counts)
    if counts:
        raise typer.Exit(EXIT_FAILED)


def _print_differences(told: Sequence[Difference], counts: Counter[str]) -> None:
    for each in told:
        fields = f"  {', '.join(each.fields)}" if each.fields else ""
        table = "" if each.table == "documents" else f"{each.table} "
        out.print(f"{_MARKS[each.change]} {table}{safe(each.id)}{safe(fields)}")
    left = counts.total() - len(told)
    if left:
        out.print(f"… and {left:,} more; --limit shows more")
    summed = ", ".join(f"{counts[change]:,} {change}" for change in _MARKS)
    err.print(summed if counts else "they are the same")


@dataclass(frozen=True, slots=True)
class _BundleSide:
    """Where one of two sides stands: a bundle, or the home of a library."""

    address: str
    package: BundlePackage | None


def _place(address: str) -> _BundleSide:
    from fonds.exchange.bundle.contents import read_package  # noqa: PLC0415 — as above
    from fonds.exchange.snapshot import shown  # noqa: PLC0415 — few commands need it

    folder = Path(address)
    if "://" not in address and any((folder / name).exists() for name in (_DATABASE, FILE_NAME)):
        return _BundleSide(address, None)
    return _BundleSide(address, read_package(_existing(address), shown(address)))


@contextmanager
def _side(place: _BundleSide, sources: tuple[str, ...] | None) -> Iterator[Side]:
    from fonds.exchange.bundle.diff import of_bundle, of_library  # noqa: PLC0415 — as above
    from fonds.exchange.snapshot import snapshot  # noqa: PLC0415 — as above
    from fonds.library import open_library  # noqa: PLC0415 — as above

    if place.package is not None:
        yield of_bundle(_existing(place.address), place.package)
        return
    with open_library(place.address) as library, snapshot(library.database) as held:
        yield of_library(held, sources)


def _existing(address: str) -> Blobs:
    # To open a folder makes it.
    if "://" not in address and not Path(address).is_dir():
        raise UsageError(f"there is no folder {address}")
    return open_blobs(address, seams=Seams())


@contextmanager
def _watched(doing: str) -> Iterator[Watch]:
    with err.status(f"{doing} …") as status:
        yield lambda table, count: status.update(f"{doing} … {count:,} {table}")
