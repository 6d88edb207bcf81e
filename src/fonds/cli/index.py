"""Commands about hash-sharded indexes: records by key, on nothing but an object store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from fonds.stores.blobs import open_blobs

if TYPE_CHECKING:
    from fonds.shards.compiler import Compiled
    from fonds.shards.index import Index

index_app = typer.Typer(
    help="Records by key, on nothing but an object store: indexes of hosts, or of your own.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the index: domains, or your own.")]
Root = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Where indexes live: a folder, s3://…, az://…; default: the setting `indexes`.",
    ),
]
Cache = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Keep shards there; asked for only if new.")
]


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.add_typer(index_app, name="index")


def _opened(context: typer.Context, name: str, root: str | None) -> Index:
    from fonds.shards.index import open_index  # noqa: PLC0415 — other commands need none of it

    settings = context.obj.settings()
    set_up_logging(settings)
    return open_index(open_blobs(root or settings.indexes_url, seams=Seams()), name)


@index_app.command()
def create(
    context: typer.Context,
    name: Name,
    fields: Annotated[
        list[str], typer.Argument(metavar="FIELD:TYPE…", help="The key first, the time last.")
    ],
    *,
    root: Root = None,
) -> None:
    """Make an index of your own; `domains` is there without it.

    Types: string, integer, number, boolean, date, datetime. The first field is the key, a string;
    the last a datetime that says which of two records is newer.

    \b
    Example: fonds index create pdfs url:string pages:integer updated_at:datetime
    """
    from fonds.shards.index import create_index  # noqa: PLC0415 — as above
    from fonds.shards.schema import schema_of  # noqa: PLC0415 — as above

    columns = [(field.partition(":")[0], field.partition(":")[2] or "string") for field in fields]
    blobs = open_blobs(root or context.obj.settings().indexes_url, seams=Seams())
    made = create_index(blobs, name, schema_of(columns))
    err.print(f"the index {made.name} has {len(made.schema.fields)} fields")


@index_app.command()
def put(
    context: typer.Context,
    name: Name,
    values: Annotated[
        list[str], typer.Argument(metavar="FIELD=VALUE…", help="The time is now, unless given.")
    ],
    *,
    root: Root = None,
) -> None:
    """Note one record; a newer one of its key is never replaced.

    \b
    Example: fonds index put domains domain=epa.gov company_name="Environmental Protection Agency"
    """
    from fonds.shards.inbox import put as note  # noqa: PLC0415 — as above

    index = _opened(context, name, root)
    record = index.schema.parse(dict(_pair(value) for value in values))
    record.setdefault(index.schema.time.name, datetime.now(UTC))
    if not note(index, record):
        err.print("not taken: a newer record of this key waits in the inbox")


@index_app.command()
def load(
    context: typer.Context,
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", help=".csv with a heading, or .jsonl")],
    *,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD=COLUMN", help="What the file calls a field; repeatable."),
    ] = None,
    time: Annotated[
        str | None, typer.Option(metavar="TIME", help="Of records without one; default: now.")
    ] = None,
    root: Root = None,
    as_json: AsJson = False,
) -> None:
    """Note all records of a file, many at once.

    \b
    Examples: fonds index load domains hosts.jsonl
              fonds index load domains dotgov.csv --column domain="Domain name" --column company_name="Organization name"
    """  # noqa: E501 — one command is one line
    from fonds.shards.inbox import (  # noqa: PLC0415 — other commands need none of it
        put_many,
        read_records,
    )

    index = _opened(context, name, root)
    moment = index.schema.time.read(time) if time else datetime.now(UTC)
    assert isinstance(moment, datetime)
    columns = dict(_pair(each) for each in column or ())
    seen = 0

    def counted() -> Any:
        nonlocal seen
        with err.status("loading …") as status:
            for record in read_records(file, index.schema, columns=columns, time=moment):
                yield record
                seen += 1
                if seen % 500 == 0:
                    status.update(f"loading … {seen:,} records")

    taken = put_many(index, counted())
    if as_json:
        print_json({"records": seen, "taken": taken, "older": seen - taken})
        return
    older = f"; {seen - taken:,} are older than what waits there" if seen > taken else ""
    err.print(f"{taken:,} records in the inbox{older}; `fonds index compile {name}` shelves them")


@index_app.command("compile")
def compile_(
    context: typer.Context,
    name: Name,
    *,
    once: Annotated[bool, typer.Option("--once", help="One round; the default.")] = False,
    every: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0.1, help="Round after round.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Shards compiled at once.")] = 2,
    root: Root = None,
    as_json: AsJson = False,
) -> None:
    """Take what waits in the inbox into the shards. Any number may run, anywhere; kill any.

    \b
    Examples: fonds index compile domains
              fonds index compile domains --every 60 --workers 4
    """
    from fonds.shards.compiler import (  # noqa: PLC0415 — other commands need none of it
        Compiler,
        compiling_on,
    )

    if once and every:
        raise UsageError("--once and --every contradict each other")
    settings = context.obj.settings()
    place = root or settings.indexes_url
    with stoppable() as stop, compiling_on(settings.engine, place) as elsewhere:
        while True:
            index = _opened(context, name, root)
            compiler = Compiler(index, seams=Seams(), workers=workers, elsewhere=elsewhere(index))
            with err.status("compiling …") as status:
                done = compiler.run(stop=stop, watch=_shown(status.update))
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
    """Show the newest record of each key, wherever it stands.

    \b
    Examples: fonds index lookup domains www.govinfo.gov
              fonds index lookup domains epa.gov nasa.gov --root s3://bucket --cache shards
    """
    from fonds.shards.lookup import Lookup  # noqa: PLC0415 — as above

    index = _opened(context, name, root)
    found = dict(Lookup(index, cache=cache).find_many(keys))
    if as_json:
        print_json([found.get(key) for key in keys])
    elif found:
        headings = [field.name for field in index.schema.fields]
        rows = [
            [_shown_value(value) for value in found[key].values()] for key in keys if key in found
        ]
        print_table(headings, rows, prose=headings[1:])
    if missing := [key for key in keys if key not in found]:
        err.print(f"not in {name}: {', '.join(map(safe, missing))}")
        raise typer.Exit(EXIT_FAILED)


@index_app.command()
def query(
    context: typer.Context,
    name: Name,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="The table has the index's name.")],
    *,
    cache: Cache = None,
    root: Root = None,
    as_json: AsJson = False,
) -> None:
    """Ask all records of an index in SQL; needs DuckDB (the extra `query`).

    \b
    Examples: fonds index query domains "SELECT company_name, count(*) AS hosts FROM domains GROUP BY ALL ORDER BY hosts DESC LIMIT 5"
              fonds index query domains "SELECT max(updated_at) FROM domains" --json
    """  # noqa: E501 — one command is one line
    from fonds.shards.query import query as ask  # noqa: PLC0415 — as above

    index = _opened(context, name, root)
    with ask(index, sql, cache=cache) as answer:
        headings = list(answer.columns)
        rows = [list(row) for row in answer.rows]
    if as_json:
        print_json([dict(zip(headings, row, strict=True)) for row in rows])
        return
    print_table(headings, [[_shown_value(value) for value in row] for row in rows], prose=headings)


@index_app.command()
def stats(
    context: typer.Context, name: Name, *, root: Root = None, as_json: AsJson = False
) -> None:
    """Say how large an index is, and what waits to be compiled.

    \b
    Example: fonds index stats domains
    """
    from fonds.shards.verify import stats as measure  # noqa: PLC0415 — as above

    measured = measure(_opened(context, name, root))
    if as_json:
        print_json(measured)
        return
    print_table(["", name], [(heading, value) for heading, value in _told(measured)])


@index_app.command()
def verify(
    context: typer.Context, name: Name, *, root: Root = None, as_json: AsJson = False
) -> None:
    """Read every shard, and compare it with what the manifest says; exit code 3 where it differs.

    \b
    Example: fonds index verify domains
    """
    from fonds.shards.verify import verify as examine  # noqa: PLC0415 — as above

    with err.status("reading all shards …"):
        verified = examine(_opened(context, name, root))
    if as_json:
        print_json(verified)
    else:
        for told in (*verified.problems, *verified.notes):
            out.print(safe(told))
        err.print(
            f"{verified.records:,} records in {verified.shards:,} shards:"
            f" {'as the manifest says' if not verified.problems else 'not all as they should be'}"
        )
    if verified.problems:
        raise typer.Exit(EXIT_INCOMPLETE)


@index_app.command()
def divide(
    context: typer.Context,
    name: Name,
    *,
    digits: Annotated[
        int, typer.Option(min=2, max=4, help="Of a shard's name: 3 for 4,096 shards.")
    ],
    root: Root = None,
) -> None:
    """Divide an index into more, smaller shards; it can be read and written meanwhile.

    Worth it from about ten million records. A division that was killed is continued.

    \b
    Example: fonds index divide domains --digits 3
    """
    from fonds.shards.compiler import Locks  # noqa: PLC0415 — as above
    from fonds.shards.divide import divide as cut  # noqa: PLC0415 — as above

    index = _opened(context, name, root)
    total = 16**index.layout.digits
    with err.status("dividing …") as status:
        locks = Locks(index, Seams().clock, "divide")
        cut(index, digits, locks, watch=lambda n: status.update(f"dividing … {n} of {total}"))
    err.print(f"{name} has shards with names of {digits} digits now")


def _pair(text: str) -> tuple[str, str]:
    name, is_pair, value = text.partition("=")
    if not is_pair:
        raise UsageError(f"{text!r} is not of the form name=value")
    return name, value


def _shown(update: Callable[[str], None]) -> Callable[[Compiled], None]:
    return lambda done: update(f"compiling … {done.records:,} records, {done.shards:,} shards")


def _print_compiled(done: Compiled, *, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    told = f"{done.records:,} records taken into {done.shards:,} shards"
    if done.busy:
        told += f"; {done.busy:,} shards are another compiler's"
    if done.failed:
        told += f"; the store failed at {done.failed:,} shards: try again"
    err.print(told)
    for path in done.damaged:
        err.print(f"damaged, and left alone: {safe(path)}")


def _shown_value(value: Any) -> Any:
    return safe(value) if isinstance(value, str) else value


def _told(measured: Any) -> list[tuple[str, Any]]:
    from dataclasses import asdict  # noqa: PLC0415 — of this command alone

    return [(heading.replace("_", " "), value) for heading, value in asdict(measured).items()]
