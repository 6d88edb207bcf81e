"""Commands that upload files and look after their jobs, over the API of `fonds serve`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fonds.cli.options import EXIT_FAILED, AsJson
from fonds.cli.output import err, harmless, out, print_json, print_table, safe

if TYPE_CHECKING:
    from fonds.cli.api_client import ApiClient

SERVER = "http://127.0.0.1:8000"

Server = Annotated[str, typer.Option(metavar="URL", help="Where `fonds serve` is reached.")]
Token = Annotated[
    str | None,
    typer.Option(
        help="Of `fonds token create`; the setting `token` (FONDS_TOKEN) is seen by no other user."
    ),
]

jobs_app = typer.Typer(
    help="Uploads on their way; those that failed, and once more.", invoke_without_command=True
)


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.command()(upload)
    app.add_typer(jobs_app, name="jobs")


def upload(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="PDF, Word, HTML, Markdown or text.",
            exists=True,
            dir_okay=False,
        ),
    ],
    *,
    server: Server = SERVER,
    token: Token = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Until each can be found, or has failed.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Upload files, and watch each become searchable.

    The same bytes are one document, however often they are uploaded.

    \b
    Examples: fonds upload policy.pdf
              fonds upload reports/*.pdf --no-wait
    """
    from fonds.cli.sending import Outcome, send_all  # noqa: PLC0415 — few commands send requests

    with _client(context, server, token) as client:
        outcomes = send_all(client, files, wait=wait, quiet=as_json)
    if as_json:
        print_json([outcome.told() for outcome in outcomes])
    failed: list[Outcome] = [outcome for outcome in outcomes if outcome.reason is not None]
    for outcome in failed:
        err.print(f"error: {outcome.file}: {outcome.reason}", style="red", markup=False)
    raise typer.Exit(EXIT_FAILED if failed else 0)


@jobs_app.callback()
def jobs(
    context: typer.Context,
    *,
    failed: Annotated[bool, typer.Option("--failed", help="Only those that failed.")] = False,
    everybody: Annotated[
        bool, typer.Option("--all", help="Of all users; needs a token of the scope admin.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = 50,
    server: Server = SERVER,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """List your uploads and where each of them stands.

    \b
    Examples: fonds jobs
              fonds jobs --failed
    """
    if context.invoked_subcommand is not None:
        return
    with _client(context, server, token) as client:
        found = client.jobs(failed=failed, everybody=everybody, limit=limit)
    if as_json:
        print_json(found)
        return
    if not found:
        err.print("there are none that failed" if failed else "there are none")
        return
    print_table(
        ["id", "status", "name", "bytes", "updated", "last error"],
        [_row(job) for job in found],
        prose=["name", "last error"],
    )


@jobs_app.command()
def retry(
    context: typer.Context,
    job: Annotated[str, typer.Argument(metavar="ID", help="As `fonds jobs` shows it.")],
    *,
    server: Server = SERVER,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Send an upload that failed back to its last good stage.

    \b
    Example: fonds jobs retry 0b6f1c9e-8f0e-5c5e-9d44-3f4f0c8f9a11
    """
    with _client(context, server, token) as client:
        sent = client.retry(job)
    if as_json:
        print_json(sent)
        return
    out.print(f"{harmless(sent['name'])}: {sent['status']}", markup=False)


def _client(context: typer.Context, server: str, token: str | None) -> ApiClient:
    from fonds.cli.api_client import ApiClient  # noqa: PLC0415 — few commands send requests

    return ApiClient(server, token or context.obj.settings().token)


def _row(job: dict[str, Any]) -> tuple[Any, ...]:
    error = (job["last_error"] or {}).get("message", "")
    return (
        job["document_id"],
        job["status"],
        safe(job["name"]),
        job["bytes"],
        job["updated_at"][:16].replace("T", " "),
        safe(error),
    )
