"""Commands about hash-sharded indexes: records by key in an object store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from fonds.cli.output import (
    EXIT_FAILED,
    EXIT_INCOMPLETE,
    AsJson,
    err,
    out,
    print_json,
    print_table,
    safe,
)
from fonds.cli.process import set_up_logging, stoppable
from fonds.errors import UsageError
from fonds.seams import Seams
from fonds.shards.compiler import Compiled, Compiler, Locks, compiling_on
from fonds.shards.divide import divide as divide_index
from fonds.shards.inbox import put as put_record
from fonds.shards.inbox import put_many, read_records
from fonds.shards.index import Index, create_index, open_index
from fonds.shards.lookup import Lookup
from fonds.shards.query import query as query_index
from fonds.shards.schema import schema_of
from fonds.shards.verify import stats as measure_index
from fonds.shards.verify import verify as verify_index
from fonds.stores.blobs import open_blobs, open_existing_blobs

index_app = typer.Typer(
    help="Indexes: records by key in an object store.",
    no_args_is_help=True,
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the index: domains, or your own.")
]
Root = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Location of indexes: a folder, s3://…, az://…; default: the setting `indexes`.",
    ),
]
Cache = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="Keep shards in this folder; only changed ones are requested again."
    ),
]


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.add_typer(index_app, name="index")


def _open(context: typer.Context, name: str, root: str | None, *, create: bool = False) -> Index:
    settings = context.obj.settings()
    set_up_logging(settings)
    open_store = open_blobs if create else open_existing_blobs
    seams = Seams(outage_seconds=settings.outage_seconds)
    store = open_store(root or settings.indexes_url, seams=seams, private=root is None)
    return open_index(store, name)


@index_app.command()
def create(
    context: typer.Context,
    name: Name,
    fields: Annotated[
        list[str],
        typer.Argument(metavar="FIELD:TYPE…", help="The fields: the key first, the time last."),
    ],
    *,
    root: Root = None,
) -> None:
    """Create an index of your own; `domains` needs no creation.

    Types: string, integer, number, boolean, date, datetime. The first field is the key, a string;
    the last a datetime that decides which of two records is newer.

    \b
    Example: fonds index create pdfs url:string pages:integer updated_at:datetime
    """
    columns = [(field.partition(":")[0], field.partition(":")[2] or "string") for field in fields]
    address = root or context.obj.settings().indexes_url
    blobs = open_blobs(address, seams=Seams(), private=root is None)
    made = create_index(blobs, name, schema_of(columns))
    err.print(f"created the index {made.name} with {len(made.schema.fields)} fields")


@index_app.command()
def put(
    context: typer.Context,
    name: Name,
    values: Annotated[
        list[str],
        typer.Argument(metavar="FIELD=VALUE…", help="The fields; the time is now by default."),
    ],
    *,
    root: Root = None,
) -> None:
    """Add one record to the inbox; it never replaces a newer one with its key.

    \b
    Example: fonds index put domains domain=epa.gov company_name="Environmental Protection Agency"
    """
    index = _open(context, name, root, create=True)
    record = index.schema.parse(dict(_pair(value) for value in values))
    record.setdefault(index.schema.time.name, datetime.now(UTC))
    if not put_record(index, record):
        err.print("not added: the inbox has a newer record with this key")


@index_app.command()
def load(
    context: typer.Context,
    name: Name,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .csv file with a header, or a .jsonl file")
    ],
    *,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD=COLUMN", help="Name of a field in the file; repeatable."),
    ] = None,
    time: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time of records without one; default: now.")
    ] = None,
    root: Root = None,
    as_json: AsJson = False,
) -> None:
    """Add all records of a file to the inbox.

    \b
    Examples: fonds index load domains hosts.jsonl
              fonds index load domains dotgov.csv --column domain="Domain name" --column company_name="Organization name"
    """  # noqa: E501 — one command is one line
    index = _open(context, name, root, create=True)
    timestamp = index.schema.time.read(time) if time else datetime.now(UTC)
    assert isinstance(timestamp, datetime)
    columns = dict(_pair(pair) for pair in column or ())
    total = 0

    def records() -> Iterator[dict[str, Any]]:
        nonlocal total
        with err.status("loading …") as status:
            for record in read_records(file, index.schema, columns=columns, time=timestamp):
                yield record
                total += 1
                if total % 500 == 0:
                    status.update(f"loading … {total:,} records")

    taken = put_many(index, records())
    if as_json:
        print_json({"records": total, "taken": taken, "older": total - taken})
        return
    older = f", {total - taken:,} skipped as older" if total > taken else ""
    err.print(
        f"{taken:,} records added to the inbox{older};"
        f" compile them with `fonds index compile {name}`"
    )


@index_app.command("compile")
def compile_(
    context: typer.Context,
    name: Name,
    *,
    once: Annotated[bool, typer.Option("--once", help="Compile once; the default.")] = False,
    every: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0.1, help="Compile again every SECONDS.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Shards compiled concurrently.")] = 2,
    root: Root = None,
    as_json: AsJson = False,
) -> None:
    """Merge the records of the inbox into the shards.

    Any number of compilers may run, on any machine, and may be killed at any time.

    \b
    Examples: fonds index compile domains
              fonds index compile domains --every 60 --workers 4
    """
    if once and every:
        raise UsageError("--once and --every cannot be combined")
    settings = context.obj.settings()
    address = root or settings.indexes_url
    with stoppable(None) as stop, compiling_on(settings.engine, address) as elsewhere:
        while True:
            index = _open(context, name, root, create=True)
            compiler = Compiler(index, seams=Seams(), workers=workers, remote=elsewhere(index))
            with err.status("compiling …") as status:
                done = compiler.run(stop=stop, watch=_progress(status.update))
            _print_compiled(done, as_json=as_json)
            if every is None or stop.wait(every):
                break
    if done.damaged or done.failed:
        raise typer.Exit(EXIT_INCOMPLETE)


@index_app.command()
def lookup(
    context: typer.Context,
    name: Name,
    keys: Annotated[list[str], typer.Argument(metavar="KEY…")],
    *,
    cache: Cache = None,
    root: Root = None,
    as_json: AsJson = False,
) -> None:
    """Print the newest record of each key, from the inbox or the shards.

    \b
    Examples: fonds index lookup domains www.govinfo.gov
              fonds index lookup domains epa.gov nasa.gov --root s3://bucket --cache shards
    """
    index = _open(context, name, root)
    records = dict(Lookup(index, cache=cache).find_many(keys))
    if as_json:
        print_json([records.get(key) for key in keys])
    elif records:
        headings = [field.name for field in index.schema.fields]
        rows = [
            [_printable(value) for value in records[key].values()] for key in keys if key in records
        ]
        print_table(headings, rows, prose=headings[1:])
    if missing := [key for key in keys if key not in records]:
        err.print(f"not in {name}: {', '.join(map(safe, missing))}")
        raise typer.Exit(EXIT_FAILED)


@index_app.command()
def query(
    context: typer.Context,
    name: Name,
    sql: Annotated[
        str, typer.Argument(metavar="SQL", help="A query; the table has the name of the index.")
    ],
    *,
    cache: Cache = None,
    root: Root = None,
    as_json: AsJson = False,
) -> None:
    """Query all records of an index in SQL; needs DuckDB (the extra `query`).

    \b
    Examples: fonds index query domains "SELECT company_name, count(*) AS hosts FROM domains GROUP BY ALL ORDER BY hosts DESC LIMIT 5"
              fonds index query domains "SELECT max(updated_at) FROM domains" --json
    """  # noqa: E501 — one command is one line
    index = _open(context, name, root)
    with query_index(index, sql, cache=cache) as result:
        headings = list(result.columns)
        rows = [list(row) for row in result.rows]
    if as_json:
        print_json([dict(zip(headings, row, strict=True)) for row in rows])
        return
    print_table(headings, [[_printable(value) for value in row] for row in rows], prose=headings)


@index_app.command()
def stats(
    context: typer.Context, name: Name, *, root: Root = None, as_json: AsJson = False
) -> None:
    """Print the size of an index, and what is not compiled yet.

    \b
    Example: fonds index stats domains
    """
    measured = measure_index(_open(context, name, root))
    if as_json:
        print_json(measured)
        return
    print_table(["", name], list(_labelled(measured)))


@index_app.command()
def verify(
    context: typer.Context, name: Name, *, root: Root = None, as_json: AsJson = False
) -> None:
    """Compare every shard with the manifest; exit 3 if one differs.

    \b
    Example: fonds index verify domains
    """
    with err.status("reading all shards …"):
        verified = verify_index(_open(context, name, root))
    if as_json:
        print_json(verified)
    else:
        for message in (*verified.problems, *verified.notes):
            out.print(safe(message))
        verdict = "they differ from the manifest" if verified.problems else "equal to the manifest"
        err.print(f"{verified.records:,} records in {verified.shards:,} shards: {verdict}")
    if verified.problems:
        raise typer.Exit(EXIT_INCOMPLETE)


@index_app.command()
def divide(
    context: typer.Context,
    name: Name,
    *,
    digits: Annotated[
        int,
        typer.Option(
            min=2, max=4, help="Hexadecimal digits of a shard's name: 3 for 4,096 shards."
        ),
    ],
    root: Root = None,
) -> None:
    """Divide an index into more, smaller shards; it can be read and written meanwhile.

    Useful from about ten million records. Run the command again after a kill to continue.

    \b
    Example: fonds index divide domains --digits 3
    """
    index = _open(context, name, root, create=True)
    total = 16**index.layout.digits
    with err.status("dividing …") as status:
        locks = Locks(index, Seams().clock, "divide")
        divide_index(
            index, digits, locks, watch=lambda n: status.update(f"dividing … {n} of {total}")
        )
    err.print(f"{name} is divided into {16**digits:,} shards")


def _pair(text: str) -> tuple[str, str]:
    name, is_pair, value = text.partition("=")
    if not is_pair:
        raise UsageError(f"{text!r} is not of the form NAME=VALUE")
    return name, value


def _progress(update: Callable[[str], None]) -> Callable[[Compiled], None]:
    return lambda done: update(f"compiling … {done.records:,} records, {done.shards:,} shards")


def _print_compiled(done: Compiled, *, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    summary = f"{done.records:,} records merged into {done.shards:,} shards"
    if done.busy:
        summary += f"; {done.busy:,} shards skipped: another compiler works on them"
    if done.failed:
        summary += f"; the store failed for {done.failed:,} shards: try again"
    err.print(summary)
    for path in done.damaged:
        err.print(f"damaged, not compiled: {safe(path)}")


def _printable(value: Any) -> Any:
    return safe(value) if isinstance(value, str) else value


def _labelled(measured: Any) -> list[tuple[str, Any]]:
    return [(heading.replace("_", " "), value) for heading, value in asdict(measured).items()]
