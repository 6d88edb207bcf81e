"""Commands about keys: the one that signs this library's bundles, and those of others."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from fonds.cli.output import AsJson, err, out, print_json, print_table, safe
from fonds.errors import UsageError
from fonds.exchange.keys import KeyFolder, OwnKey
from fonds.schema import require_library
from fonds.seams import SystemClock

key_app = typer.Typer(
    help="Keys that sign bundles, and those that are trusted.", no_args_is_help=True
)


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.add_typer(key_app, name="key")


@key_app.command()
def create(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Create the key that signs this library's bundles, and print its public half.

    The private half is in the file keys/signing.key of the home, for its owner alone. It is in no
    back-up and no bundle: keep a copy in a safe place, since nothing can replace it.

    \b
    Example: fonds key create
    """
    _print_own(_keys(context).create(), as_json=as_json)


@key_app.command()
def rotate(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Replace the key by a new one, which the old one signs.

    Bundles that the old key signed stay valid, and its public half is kept. Those who pull a bundle
    are asked to accept the new key.

    \b
    Example: fonds key rotate
    """
    _print_own(_keys(context).rotate(), as_json=as_json)


def _print_own(key: OwnKey, *, as_json: bool) -> None:
    if as_json:
        print_json(key)
        return
    out.print(key.key, soft_wrap=True)
    err.print("publish this key, so that others can check your bundles: --key")


@key_app.command()
def show(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List the public keys of this library, old ones too, and those that it trusts.

    \b
    Example: fonds key show
    """
    keys = _keys(context)
    public = keys.public()
    if as_json:
        print_json(asdict(public))
        return
    rows = [
        (own.key, "own, retired" if own.retired_at else "own", "", own.created_at)
        for own in public.own
    ]
    rows += [(each.key, "trusted", safe(each.name), each.added_at) for each in public.trusted]
    if not rows:
        err.print("no keys: `fonds key create` makes one, `fonds key trust` adds another's")
        return
    print_table(["key", "kind", "name", "since"], rows)


@key_app.command()
def trust(
    context: typer.Context,
    key: Annotated[str, typer.Argument(help="A public key, as `fonds key show` prints it.")],
    *,
    name: Annotated[str | None, typer.Option(help="How it is called from now on.")] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Trust a key, given by itself or its name, no more.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Trust the key of another library under a name, which `--key` of other commands takes.

    \b
    Examples: fonds key trust ed25519:mCx… --name newsroom
              fonds key trust newsroom --remove
    """
    keys = _keys(context)
    if remove:
        keys.distrust(key)
    elif name is None or not name.strip() or name.startswith("ed25519"):
        raise UsageError("give the key a name: --name newsroom")
    else:
        keys.trust(key, name)
    if as_json:
        print_json(asdict(keys.public())["trusted"])
    else:
        err.print("removed" if remove else f"trusted as {safe(name or '')}")


def _keys(context: typer.Context) -> KeyFolder:
    settings = context.obj.settings()
    require_library(settings)
    return KeyFolder(settings, SystemClock())
