"""Commands about websites: crawl them for their PDFs, and examine how these are found."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from fonds.cli.output import AsJson, err, out, print_json, print_table, safe
from fonds.cli.process import run_until_stopped, set_up_logging
from fonds.cli.progress import exit_code, print_reports
from fonds.errors import UsageError
from fonds.sites import website as websites
from fonds.sites.models import WebsiteConfiguration, read_configuration
from fonds.sites.strategy_manager import advisors_of

if TYPE_CHECKING:
    from fonds.library import Library
    from fonds.runs.state import RunReport
    from fonds.sites.probe import PageProbe
    from fonds.sites.session import CrawlWatch, Plan, WebsiteProgress

LOW_MEMORY: Final = {"sqlite_cache_mib": 1, "batch_records": 100}
"""Settings of a crawl, which writes much and reads little of it again."""
MAX_PRINTED_MATCHES: Final = 10
"""Matches that `site probe` prints; --json has all."""

site_app = typer.Typer(
    help="Websites: how their PDFs are found, and crawl results.", no_args_is_help=True
)
InBrowser = Annotated[
    bool,
    typer.Option("--browser", help="Render pages in Chromium first, for lists that scripts build."),
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
        int, typer.Option(min=1, max=32, help="Concurrent requests, over all websites.")
    ] = 4,
    max_files: Annotated[int | None, typer.Option(min=1, help="Stop after this many PDFs.")] = None,
    max_pages: Annotated[
        int, typer.Option(min=1, help="Maximum number of pages per website.")
    ] = 1000,
    max_depth: Annotated[
        int, typer.Option(min=0, help="Maximum number of links from the base address.")
    ] = 5,
    site: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Only this website; repeatable.")
    ] = None,
    dedupe: Annotated[
        bool, typer.Option("--dedupe", help="Store equal files once, with all their addresses.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the last crawl, and retry what failed.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the PDFs that would be fetched; fetch none.")
    ] = False,
    browser: InBrowser = False,
    as_json: AsJson = False,
) -> None:
    """Crawl websites and download their PDFs.

    Each PDF becomes a document, and a file named by organisation and period.

    CONFIG.json: {"version": "1.0", "websites": [{"id": "tokyo", "name": "Tokyo Election
    Commission", "base_url": "https://…/reports/"}]}

    \b
    Examples: fonds crawl sites.json --output reports --dry-run
              fonds crawl sites.json --output reports
              fonds crawl sites.json --output reports --resume
    """
    from fonds.sites.session import CrawlLimits, Plan  # noqa: PLC0415 — `site` starts 60 ms faster

    plan = Plan(
        websites=_configured_websites(config, site or []),
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
        context.obj.library(create=True, **LOW_MEMORY) as library,
        _display(quiet=as_json) as watch,
    ):
        if dry_run:
            pdfs = run_until_stopped(_list_pdfs(library, plan, watch))
        else:
            reports = run_until_stopped(library.crawl(plan, watch=watch))
    if dry_run:
        _print_pdfs(pdfs, as_json=as_json)
        return
    _print_crawled(reports, plan, as_json=as_json)
    raise typer.Exit(exit_code(reports))


def _configured_websites(config: Path, only: list[str]) -> list[WebsiteConfiguration]:
    try:
        data = sys.stdin.buffer.read() if str(config) == "-" else config.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"no such file: {config}") from None
    configured = read_configuration(data, path=str(config)).websites
    unknown = sorted(set(only) - {website.id for website in configured})
    if unknown:
        raise UsageError(f"{config} has no website {unknown[0]!r}")
    return [website for website in configured if not only or website.id in only]


async def _list_pdfs(library: Library, plan: Plan, watch: CrawlWatch) -> list[dict[str, Any]]:
    from fonds.sites.probe import open_dry_run  # noqa: PLC0415 — as above

    pdfs: list[dict[str, Any]] = []
    async with (
        library.open_context() as context,
        open_dry_run(plan, context, watch=watch) as session,
    ):
        for website in session.websites():
            name = website.website.configuration.id
            pdfs += [{"website": name, **_pdf_fields(match)} async for match in website.explore()]
    return pdfs


def _pdf_fields(match: Any) -> dict[str, Any]:
    names = ("url", "text", "organization", "period", "guesses", "found_on")
    return {name: getattr(match, name) for name in names if hasattr(match, name)}


def _details(pdf: dict[str, Any]) -> str:
    """The organisation, period and text of a PDF, with guesses marked."""
    fields = [
        f"{pdf[name]} (guess)" if name in pdf["guesses"] else pdf[name]
        for name in ("organization", "period", "text")
    ]
    return " · ".join(filter(None, fields))


def _print_pdfs(pdfs: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(pdfs)
        return
    for pdf in pdfs:
        details = _details(pdf)
        out.print(f"{safe(pdf['url'])}  {safe(details)}")
    err.print(f"{len(pdfs):,} PDFs would be fetched")


def _print_crawled(reports: list[RunReport], plan: Plan, *, as_json: bool) -> None:
    if as_json:
        print_json({"output": plan.output, "websites": reports})
        return
    print_reports(reports)
    if not reports:
        out.print("nothing left to crawl")
    err.print(f"files, addresses and failures are listed in {plan.output}/metadata.json")


@contextmanager
def _display(*, quiet: bool) -> Iterator[CrawlWatch]:
    """Show a live line for each website if stderr is a terminal."""
    if quiet or not err.is_terminal:
        yield lambda _website, _progress: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as display:
        lines: dict[str, tuple[TaskID, float]] = {}

        def draw(website: str, progress: WebsiteProgress) -> None:
            if website not in lines:
                lines[website] = display.add_task(website, total=None), time.monotonic()
            line, started = lines[website]
            display.update(line, description=_line(website, progress, time.monotonic() - started))

        yield draw


def _line(website: str, progress: WebsiteProgress, seconds: float) -> str:
    rate = progress.fetched / seconds if seconds > 1 else 0.0
    parts = [f"{progress.pages:,} pages", f"{progress.listed:,} found"]
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
    """Show the strategy that would be used on a page, and the PDFs it matches.

    \b
    Example: fonds site probe https://example.org/reports/
    """
    from fonds.sites.probe import probe as probe_page  # noqa: PLC0415 — as above

    async def work(library: Library) -> PageProbe:
        async with library.open_context() as opened:
            advisors = advisors_of(library.settings)
            return await probe_page(url, opened, advisors, browser=browser)

    from fonds.library import Library  # noqa: PLC0415 — as above

    with TemporaryDirectory() as scratch:
        # A look at a page needs no library, and must not create one.
        settings = replace(context.obj.settings(), home=Path(scratch), database="", blobs="")
        set_up_logging(settings)
        with closing(Library(settings)) as library:
            result = run_until_stopped(work(library))
    if as_json:
        print_json(_probe_fields(result))
    else:
        _print_probe(result)


def _probe_fields(result: PageProbe) -> dict[str, Any]:
    match = result.match
    return {
        "url": result.url,
        "title": result.title,
        "advisor": result.advisor,
        "strategy": result.strategy,
        "score": match.score,
        "matches": [_pdf_fields(pdf) for pdf in match.pdfs],
        "next_pages": match.next_pages,
        "further": [{"url": url, "text": text} for url, text in match.further],
    }


def _print_probe(result: PageProbe) -> None:
    out.print(f"[bold]{safe(result.title or result.url)}[/bold]")
    if result.strategy is None:
        out.print("no strategy found: no PDF links could be recognised on this page")
    else:
        _print_strategy(result.strategy, result.advisor)
    matches = result.match.pdfs
    for match in matches[:MAX_PRINTED_MATCHES]:
        details = _details(_pdf_fields(match))
        out.print(f"  {safe(match.url)}  {safe(details)}")
    if len(matches) > MAX_PRINTED_MATCHES:
        out.print(f"  … and {len(matches) - MAX_PRINTED_MATCHES:,} more")
    out.print(
        f"{len(matches):,} PDFs, {len(result.match.next_pages)} next pages,"
        f" {len(result.match.further):,} further pages to visit"
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
    """List the websites that were crawled.

    \b
    Example: fonds site list
    """
    with context.obj.library() as library:
        rows = websites.summaries(library.database)
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
    """Show one website: its pages, its PDFs by state, and failures.

    \b
    Example: fonds site show tokyo
    """
    with context.obj.library() as library:
        details = websites.details(library.database, website)
    if as_json:
        print_json(details)
        return
    out.print(f"[bold]{safe(details['name'])}[/bold]  {safe(details['base_url'])}")
    out.print(f"files in {safe(details['output'] or '–')}; source {details['source']}")
    for kind in ("pages", "pdfs"):
        states = ", ".join(f"{number:,} {state}" for state, number in details[kind].items())
        out.print(f"{kind}: {states or 'none'}")
    for failure in details["failures"]:
        out.print(f"  {safe(failure['url'])}: {safe(failure['error'] or '')}", style="red")


@site_app.command()
def strategy(
    context: typer.Context,
    website: WebsiteId,
    *,
    forget: Annotated[
        bool, typer.Option("--forget", help="Delete it; the next crawl finds a new one.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the strategy in use on a website, with its state and scores.

    \b
    Examples: fonds site strategy tokyo
              fonds site strategy tokyo --forget
    """
    with context.obj.library() as library:
        websites.get_website(library.database, website)
        current = websites.read_health(library.database, website)
        if forget:
            websites.write_health(library.database, website, None, library.seams.clock)
    if forget:
        err.print("deleted; the next crawl finds a new strategy")
    elif as_json:
        print_json(current and current.to_json())
    elif current is None:
        out.print("no strategy is stored; the next crawl finds one")
    else:
        out.print(f"{current.state}")
        _print_strategy(current.strategy, "the crawl")
