"""Commands about websites: crawling them for their PDFs, and seeing how that is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fonds.cli.output import AsJson, err, out, print_json, print_table, safe
from fonds.cli.process import run_until_stopped
from fonds.cli.progress import exit_code, print_reports
from fonds.errors import UsageError

if TYPE_CHECKING:
    from rich.progress import TaskID

    from fonds.library import Library
    from fonds.runs.state import RunReport
    from fonds.sites.models import WebsiteConfiguration
    from fonds.sites.probe import PageProbe
    from fonds.sites.session import CrawlWatch, Plan, WebsiteProgress

LEAN: Final = {"sqlite_cache_mib": 1, "batch_records": 100}
"""Settings by which a crawl needs little memory: it writes much, and reads little twice."""
SHOWN: int = 10
"""Matches that `site probe` prints; --json has them all."""

site_app = typer.Typer(
    help="Websites: how their PDFs are found, and what came of them.", no_args_is_help=True
)
InBrowser = Annotated[
    bool,
    typer.Option("--browser", help="Render pages in Chromium first: scripts build their lists."),
]
WebsiteId = Annotated[str, typer.Argument(metavar="ID", help="See `fonds site list`.")]


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.command()(crawl)
    app.add_typer(site_app, name="site")


def crawl(
    context: typer.Context,
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG.json", help="The websites; see the example below.")
    ],
    *,
    output: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Where files go: a folder, s3://…, az://… or abfs://…."
        ),
    ],
    parallelism: Annotated[
        int, typer.Option(min=1, max=32, help="Requests under way at once, on all websites.")
    ] = 4,
    max_files: Annotated[int | None, typer.Option(min=1, help="Stop after so many PDFs.")] = None,
    max_pages: Annotated[int, typer.Option(min=1, help="Pages visited on each website.")] = 1000,
    max_depth: Annotated[
        int, typer.Option(min=0, help="Links followed from the base address.")
    ] = 5,
    site: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Only this website; repeatable.")
    ] = None,
    dedupe: Annotated[
        bool, typer.Option("--dedupe", help="Store equal files once, with all their addresses.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where the crawl in this output was stopped.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be fetched, and fetch no PDF.")
    ] = False,
    browser: InBrowser = False,
    as_json: AsJson = False,
) -> None:
    """Crawl websites for their PDFs; each becomes a document, and a file with a good name.

    CONFIG.json: {"version": "1.0", "websites": [{"id": "tokyo", "name": "Tokyo Election
    Commission", "base_url": "https://…/reports/"}]}

    \b
    Examples: fonds crawl sites.json --output reports --dry-run
              fonds crawl sites.json --output reports
              fonds crawl sites.json --output reports --resume
    """
    from fonds.sites.session import CrawlLimits, Plan  # noqa: PLC0415 — as above
    from fonds.sites.strategy_manager import advisors_of  # noqa: PLC0415 — as above

    websites = _chosen(config, site or [])
    plan = Plan(
        websites=websites,
        output=output,
        config_path=str(config),
        advisors=advisors_of(context.obj.settings()),
        limits=CrawlLimits(
            parallelism=parallelism,
            max_files=max_files,
            max_pages=max_pages,
            max_depth=max_depth,
        ),
        dedupe=dedupe,
        resume=resume,
        browser=browser,
    )
    with (
        context.obj.library(**LEAN) as library,
        _display(quiet=as_json) as watch,
    ):
        if dry_run:
            listed = run_until_stopped(_look(library, plan, watch))
        else:
            reports = run_until_stopped(library.crawl(plan, watch=watch))
    if dry_run:
        _print_listed(listed, as_json=as_json)
        return
    _print_crawled(reports, plan, as_json=as_json)
    raise typer.Exit(exit_code(reports))


def _chosen(config: Path, only: list[str]) -> list[WebsiteConfiguration]:
    from fonds.sites.models import read_configuration  # noqa: PLC0415 — as above

    try:
        data = sys.stdin.buffer.read() if str(config) == "-" else config.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"there is no file {config}") from None
    websites = read_configuration(data, path=str(config)).websites
    unknown = sorted(set(only) - {website.id for website in websites})
    if unknown:
        raise UsageError(f"{config} has no website {unknown[0]!r}")
    return [website for website in websites if not only or website.id in only]


async def _look(library: Library, plan: Plan, watch: CrawlWatch) -> list[dict[str, Any]]:
    from fonds.sites.probe import open_dry_run  # noqa: PLC0415 — as above

    found: list[dict[str, Any]] = []
    async with (
        library.open_context() as context,
        open_dry_run(plan, context, watch=watch) as session,
    ):
        for website in session.websites():
            name = website.website.configuration.id
            found += [{"website": name, **_facts(pdf)} async for pdf in website.explore()]
    return found


def _facts(listed: Any) -> dict[str, Any]:
    names = ("url", "text", "organization", "period", "found_on")
    return {name: getattr(listed, name) for name in names if hasattr(listed, name)}


def _print_listed(listed: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(listed)
        return
    for one in listed:
        told = " · ".join(filter(None, (one["organization"], one["period"], one["text"])))
        out.print(f"{safe(one['url'])}  {safe(told)}")
    err.print(f"{len(listed):,} PDFs would be fetched")


def _print_crawled(reports: list[RunReport], plan: Plan, *, as_json: bool) -> None:
    if as_json:
        print_json({"output": plan.output, "websites": reports})
        return
    print_reports(reports)
    if not reports:
        out.print("nothing was left to be crawled")
    err.print(f"what was found, fetched and failed on stands in {plan.output}/metadata.json")


@contextmanager
def _display(*, quiet: bool) -> Iterator[CrawlWatch]:
    """A live line for each website; silent where nobody watches."""
    if quiet or not err.is_terminal:
        yield lambda _website, _progress: None
        return
    from rich import progress as bars  # noqa: PLC0415 — it takes memory, and most crawls are unseen

    columns = (
        bars.SpinnerColumn(),
        bars.TextColumn("{task.description}"),
        bars.TimeElapsedColumn(),
    )
    with bars.Progress(*columns, console=err, transient=True) as display:
        lines: dict[str, tuple[TaskID, float]] = {}

        def draw(website: str, progress: WebsiteProgress) -> None:
            if website not in lines:
                lines[website] = display.add_task(website, total=None), time.monotonic()
            line, begun = lines[website]
            display.update(line, description=_line(website, progress, time.monotonic() - begun))

        yield draw


def _line(website: str, progress: WebsiteProgress, seconds: float) -> str:
    rate = progress.fetched / seconds if seconds > 1 else 0.0
    parts = [f"{progress.pages:,} pages", f"{progress.found:,} found"]
    parts += [f"{progress.fetched:,} fetched ({rate:.1f}/s)"]
    parts += [f"{progress.unchanged:,} unchanged"] if progress.unchanged else []
    parts += [f"[red]{progress.failed:,} failed[/red]"] if progress.failed else []
    parts += [f"{progress.forbidden:,} forbidden"] if progress.forbidden else []
    return f"{website}  {', '.join(parts)}"


# One website ------------------------------------------------------------------------------


@site_app.command()
def probe(
    context: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="A page that lists PDFs.")],
    *,
    browser: InBrowser = False,
    as_json: AsJson = False,
) -> None:
    """Show the strategy that a page would be read by, and what it matches there.

    \b
    Example: fonds site probe https://example.org/reports/
    """
    from fonds.sites.probe import probe as examine  # noqa: PLC0415 — other commands need none
    from fonds.sites.strategy_manager import advisors_of  # noqa: PLC0415 — as above

    async def work(library: Library) -> PageProbe:
        async with library.open_context() as opened:
            advisors = advisors_of(library.settings)
            return await examine(url, opened, advisors, browser=browser)

    with context.obj.library() as library:
        found = run_until_stopped(work(library))
    if as_json:
        print_json(_probe_facts(found))
    else:
        _print_probe(found)


def _probe_facts(found: PageProbe) -> dict[str, Any]:
    return {
        "url": found.url,
        "title": found.title,
        "advisor": found.advisor,
        "strategy": found.strategy,
        "score": found.sighting.score,
        "matches": [_facts(one) for one in found.sighting.found],
        "next_pages": found.sighting.next_pages,
        "further": [{"url": url, "text": text} for url, text in found.sighting.further],
    }


def _print_probe(found: PageProbe) -> None:
    out.print(f"[bold]{safe(found.title or found.url)}[/bold]")
    if found.strategy is None:
        out.print("lists no PDFs that could be told from the rest of the page")
    else:
        _print_strategy(found.strategy, found.advisor)
    matches = found.sighting.found
    for one in matches[:SHOWN]:
        told = " · ".join(filter(None, (one.organization, one.period, one.text)))
        out.print(f"  {safe(one.url)}  {safe(told)}")
    if len(matches) > SHOWN:
        out.print(f"  … and {len(matches) - SHOWN:,} more")
    out.print(
        f"{len(matches):,} PDFs, {len(found.sighting.next_pages)} next pages,"
        f" {len(found.sighting.further):,} pages worth a visit"
    )


def _print_strategy(strategy: Any, advisor: str) -> None:
    out.print(f"{strategy.strategy_type}, confidence {strategy.confidence:.2f}, by {advisor}")
    for selector in strategy.pdf_link_selectors:
        out.print(f"  links         {safe(selector)}")
    if strategy.pagination_selector:
        out.print(f"  next page     {safe(strategy.pagination_selector)}")
    for name, selector in (strategy.metadata_extraction or {}).items():
        out.print(f"  {name:12}  {safe(selector)}")


@site_app.command("list")
def list_sites(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Show the websites that were crawled.

    \b
    Example: fonds site list
    """
    from fonds.sites.website import summaries  # noqa: PLC0415 — other commands need none

    with context.obj.library() as library:
        rows = summaries(library.database)
    if as_json:
        print_json(rows)
        return
    print_table(
        ["website", "name", "pages", "PDFs", "failed", "strategy", "base address"],
        [
            (
                row["id"],
                safe(row["name"]),
                row["pages"],
                row["pdfs"],
                row["failed"],
                row["strategy_state"],
                safe(row["base_url"]),
            )
            for row in rows
        ],
        prose=["name"],
    )


@site_app.command()
def show(context: typer.Context, website: WebsiteId, *, as_json: AsJson = False) -> None:
    """Show one website: its pages, its PDFs by state, and what failed.

    \b
    Example: fonds site show tokyo
    """
    from fonds.sites.website import details  # noqa: PLC0415 — other commands need none

    with context.obj.library() as library:
        told = details(library.database, website)
    if as_json:
        print_json(told)
        return
    out.print(f"[bold]{safe(told['name'])}[/bold]  {safe(told['base_url'])}")
    out.print(f"files in {safe(told['output'] or '–')}; source {told['source']}")
    for kind in ("pages", "pdfs"):
        states = ", ".join(f"{number:,} {state}" for state, number in told[kind].items())
        out.print(f"{kind}: {states or 'none'}")
    for failure in told["failures"]:
        out.print(f"  {safe(failure['url'])}: {safe(failure['error'] or '')}", style="red")


@site_app.command()
def strategy(
    context: typer.Context,
    website: WebsiteId,
    *,
    forget: Annotated[
        bool, typer.Option("--forget", help="Find a new one in the next crawl.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the strategy in use on a website, with its state and scores.

    \b
    Examples: fonds site strategy tokyo
              fonds site strategy tokyo --forget
    """
    from fonds.sites import website as websites  # noqa: PLC0415 — other commands need none of it

    with context.obj.library() as library:
        websites.get_website(library.database, website)
        standing = websites.read_standing(library.database, website)
        if forget:
            websites.write_standing(library.database, website, None, library.seams.clock)
    if forget:
        err.print("forgotten")
    elif as_json:
        print_json(standing and standing.to_json())
    elif standing is None:
        out.print("none is known; the next crawl finds one")
    else:
        out.print(f"{standing.state}")
        _print_strategy(standing.strategy, "the crawl")
