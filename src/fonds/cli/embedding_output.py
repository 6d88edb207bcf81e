"""How embedding is told to people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fonds.cli.output import err, out, print_table, safe

if TYPE_CHECKING:
    from fonds.embed.migration import Migration
    from fonds.embed.plan import EmbeddingPlan
    from fonds.embed.status import EmbeddingStatus
    from fonds.embed.worker import EmbeddingReport


def said(result: EmbeddingReport) -> str:
    """What came of embedding, in words."""
    words = f"{result.embedded:,} passages embedded"
    for number, word in (
        (result.reused, "of equal text"),
        (result.done, "documents done"),
        (result.retries, "requests repeated"),
        (result.failed, "documents failed"),
        (result.waiting, "documents wait"),
        (result.given_up, "given up"),
    ):
        words += f", {number:,} {word}" if number else ""
    return words + (f", {_money(result.cost)}" if result.cost else "")


def print_migration(result: Migration, setting: str) -> None:
    """Say how far a change of the model came; `setting` is the model in the settings."""
    name = safe(f"{result.generation.name} {result.generation.version}")
    filling = result.filling
    known = f", {filling.reused:,} of equal text" if filling.reused else ""
    cost = f", {_money(filling.cost)}" if filling.cost else ""
    out.print(f"{name}: {filling.embedded:,} passages embedded{known}{cost}")
    if not result.is_filled:
        failed = f"{filling.failed:,} documents failed; " if filling.failed else ""
        err.print(f"not switched: {failed}run the same command again to go on", style="red")
        return
    _print_overlap(result)
    if result.is_searched:
        out.print(f"searched from now on: {name}")
        if result.generation.id != result.before.id:
            out.print("`fonds embed rollback` goes back")
        if setting != result.generation.embedder:
            out.print(f"set `embedder` to {safe(result.generation.embedder)}, too")
        mention_waiting(result.waiting)
    else:
        out.print(f"still searched: {safe(result.before.name)} {safe(result.before.version)}")


def print_status(status: EmbeddingStatus) -> None:
    """Show how embedding stands."""
    if status.generations:
        print_table(
            ["generation", "model", "version", "opened as", "dims", "vectors", "passages", ""],
            [
                (
                    each.id,
                    safe(each.model),
                    safe(each.version),
                    safe(each.embedder),
                    each.dims,
                    each.vectors,
                    status.passages,
                    "searched" if each.is_current else "before" if each.is_previous else "",
                )
                for each in status.generations
            ],
        )
    else:
        out.print(f"no vectors yet for {status.passages:,} passages; `fonds embed` makes them")
    lately = status.last_hour
    out.print(
        f"\n{status.waiting:,} documents wait, {status.given_up:,} given up; in the last hour"
        f" {lately['texts']:,} texts embedded, {lately['tokens']:,} tokens"
    )
    for error in status.errors:
        out.print(f"  {error['documents']:,} × {safe(error['cause'])}", style="red")
    if status.costs:
        out.print()
        print_table(
            ["source", "texts", "tokens", "requests", "retries", "cost"],
            [
                (c.name, c.texts, c.tokens, c.requests, c.retries, _money(c.cost))
                for c in status.costs
            ],
        )


def print_plan(plan: EmbeddingPlan) -> None:
    """Show what embedding will take."""
    out.print(
        f"{safe(plan.model)} {safe(plan.version)}: {plan.passages:,} passages of"
        f" {plan.documents:,} documents have no vector"
    )
    out.print(
        f"to be embedded: {plan.texts:,} texts, {plan.tokens:,} tokens,"
        f" {plan.requests:,} requests, {_money(plan.cost)}"
    )
    if plan.is_remote:
        out.print("the texts leave this machine")
    out.print(f"time: {_duration(plan.seconds)}")


def mention_waiting(waiting: int) -> None:
    """Say what is left for `fonds embed` after a switch."""
    if waiting:
        err.print(f"{waiting:,} documents wait for such vectors; `fonds embed` makes them")


def _print_overlap(result: Migration) -> None:
    overlap = result.overlap
    if result.not_compared:
        err.print(f"not compared: {result.not_compared}", markup=False)
    if overlap is None:
        return
    out.print(
        f"top {overlap.top} of {overlap.queries} questions: {overlap.mean:.0%} are found by both,"
        f" {overlap.worst:.0%} at worst"
    )
    for each in overlap.most_different:
        out.print(f"  {each.shared:4.0%}  {safe(each.query)}")


def _money(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.6f}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "as the endpoint goes; the setting `embed_rate` names its limits"
    for size, word in ((3600.0, "hours"), (60.0, "minutes")):
        if seconds >= size:
            return f"about {seconds / size:.1f} {word}"
    return f"about {max(seconds, 1):.0f} s"
