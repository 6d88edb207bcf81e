"""The command that copies a database to another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fonds.cli.options import AsJson
from fonds.cli.output import err, out, print_json, safe

if TYPE_CHECKING:
    from fonds.exchange.database.copying import Copied

Endpoint = "the home of a library, a file of SQLite, or postgresql://…"


def db_copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help=f"What is copied: {Endpoint}")],
    target: Annotated[str, typer.Argument(metavar="TO", help=f"Where to: {Endpoint}")],
    *,
    as_json: AsJson = False,
) -> None:
    """Copy every row of a library's database to another one, which is empty.

    All of it, as it is at one moment, or nothing. Each table is read again and compared; indexes
    of words and vectors are made anew. Raw files are not copied: they stay where they are.

    \b
    Examples: fonds db copy library postgresql://fonds@db.example/fonds
              fonds db copy postgresql://fonds@db.example/fonds other-library
    """
    from fonds.exchange.addresses import shown  # noqa: PLC0415 — no other command needs it
    from fonds.exchange.database.copying import copy  # noqa: PLC0415 — as above
    from fonds.exchange.database.endpoints import database_address  # noqa: PLC0415 — as above

    addresses = [database_address(each) for each in (source, target)]
    with err.status("copying …") as status:
        done = copy(
            *addresses,
            watch=lambda table, rows: status.update(f"copying … {rows:,} rows of {table}"),
        )
    places = [shown(address) for address in addresses]
    if as_json:
        print_json({"from": places[0], "to": places[1], **_told(done)})
        return
    filled = [each for each in done.tables.values() if each.rows]
    out.print(f"copied {safe(places[0])} to {safe(places[1])}")
    out.print(
        f"{sum(each.rows for each in filled):,} rows in {len(filled):,} tables, the same in both; "
        f"{done.passages:,} passages and {done.vectors:,} vectors indexed"
    )
    err.print("raw files stay where they are: see the setting `blobs`")


def _told(done: Copied) -> dict[str, object]:
    return {"tables": done.tables, "passages": done.passages, "vectors": done.vectors}
