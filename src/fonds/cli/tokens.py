"""Commands about API tokens: who may use the library from elsewhere, and as whom."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fonds.cli.options import AsJson
from fonds.cli.output import err, out, plain, print_json, print_table, safe
from fonds.uploads import users

if TYPE_CHECKING:
    from datetime import datetime

LONGEST: Final = 36500
"""Days a token may be good for; without a limit it is good until it is revoked."""

token_app = typer.Typer(
    help="API tokens: who may use the library from elsewhere.", no_args_is_help=True
)


class Scope(StrEnum):
    """What a token is good for."""

    USER = "user"
    ADMIN = "admin"
    SERVICE = "service"


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.add_typer(token_app, name="token")


@token_app.command()
def create(
    context: typer.Context,
    user: Annotated[str, typer.Argument(metavar="USER", help="Whose it is; made if new.")],
    *,
    label: Annotated[str, typer.Option(help="What it is for, to know it again.")] = "",
    scope: Annotated[
        Scope, typer.Option(help="user: own uploads; admin: oversight; service: moves jobs, too.")
    ] = Scope.USER,
    days: Annotated[
        int | None,
        typer.Option(min=1, max=LONGEST, help="Good for so long; default: until it is revoked."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a token for a user and print it, this once: only a hash of it is kept.

    \b
    Examples: fonds token create maria
              fonds token create maria --label laptop --days 90
              fonds token create parser --scope service
    """
    with context.obj.library() as library:
        now, chance = library.seams.clock.now(), library.seams.chance
        with library.database.write() as connection:
            token, secret = users.create_token(
                connection,
                user=user,
                label=label,
                scope=scope.value,
                now=now,
                chance=chance,
                expires_at=now + timedelta(days=days) if days is not None else None,
            )
    if as_json:
        print_json({**plain(token), "token": secret})
        return
    out.print(secret, markup=False)
    err.print(
        f"{token.user_name} sends it as `Authorization: Bearer fonds_…`; it is shown only this "
        f"once, and `fonds token revoke {str(token.id)[:8]}` ends it",
        markup=False,
    )


@token_app.command("list")
def list_(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List all tokens, without what they say.

    \b
    Example: fonds token list
    """
    with context.obj.library() as library:
        now = library.seams.clock.now()
        with library.database.read() as connection:
            tokens = users.list_tokens(connection)
    if as_json:
        print_json([{**plain(token), "is_valid": token.is_valid(now)} for token in tokens])
        return
    if not tokens:
        err.print("there are none; `fonds token create USER` makes one")
        return
    print_table(
        ["id", "user", "scope", "label", "made (UTC)", "good until (UTC)", ""],
        [_row(token, now) for token in tokens],
        prose=["label"],
    )


@token_app.command()
def revoke(
    context: typer.Context,
    token: Annotated[
        str, typer.Argument(metavar="ID", help="As `fonds token list` shows, or its start.")
    ],
) -> None:
    """End a token at once; what its user has uploaded stays.

    \b
    Example: fonds token revoke 4f1c
    """
    with context.obj.library() as library, library.database.write() as connection:
        ended = users.revoke_token(connection, token, library.seams.clock.now())
    label = f" ({ended.label})" if ended.label else ""
    err.print(f"revoked {ended.id} of {ended.user_name}{label}", markup=False)


def _row(token: users.Token, now: datetime) -> tuple[Any, ...]:
    state = "revoked" if token.revoked_at else "" if token.is_valid(now) else "expired"
    return (
        str(token.id)[:8],
        safe(token.user_name),
        token.scope,
        safe(token.label),
        token.created_at,
        token.expires_at,
        state,
    )
