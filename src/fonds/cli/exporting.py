"""The command that exports tables for other programs."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from fonds.cli.options import AsJson, AsUser
from fonds.cli.output import err, out, print_json, print_table, safe
from fonds.cli.session import owner_named
from fonds.stores.blobs import open_blobs


def register(app: typer.Typer) -> None:
    """Add this command to the app."""
    app.command("export")(export_tables)


def export_tables(
    context: typer.Context,
    *,
    kind: Annotated[
        Literal["csv", "parquet", "jsonl"], typer.Option("--format", help="Of the files.")
    ],
    to: Annotated[str, typer.Option(metavar="ADDRESS", help="A folder, s3://…, az://…")],
    source: Annotated[
        list[str] | None, typer.Option(help="Only this source; repeatable. Default: all.")
    ] = None,
    as_user: AsUser = None,
    as_json: AsJson = False,
) -> None:
    """Write documents, passages, citations and the tables of sources to files, a table each.

    A data package beside them tells their columns and types. An earlier export that stands there
    is replaced. Needs DuckDB: the extra `query`.

    \b
    Examples: fonds export --format parquet --to tables
              fonds export --format csv --source bills --to s3://bucket/bills
    """
    from fonds.exchange.addresses import shown  # noqa: PLC0415 — no other command needs it
    from fonds.exchange.export.export import export  # noqa: PLC0415 — as above
    from fonds.search.filters import source_named  # noqa: PLC0415 — as above

    with context.obj.library() as library, err.status("exporting …") as status:
        done = export(
            library.database,
            open_blobs(to, seams=library.seams),
            kind,
            where=shown(to),
            sources=[source_named(each) for each in source] if source else None,
            owner=owner_named(library, as_user),
            scratch=library.settings.home / "tmp",
            watch=lambda table, rows: status.update(f"exporting … {rows:,} rows of {table}"),
        )
    if as_json:
        print_json({"address": shown(to), "rows": done.rows, "bytes": done.bytes})
        return
    print_table(["table", "rows"], list(done.rows.items()))
    out.print(f"\n{sum(done.rows.values()):,} rows, {done.bytes:,} bytes: {safe(shown(to))}")
