"""Pages in a real Chromium: what scripts build is seen, and what they try stays inside."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Final, Self

import psutil
import pytest
from tests.support.upstreams.misbehaving import MisbehavingServer, Request, Response
from tests.support.upstreams.redirecting_loop import RedirectingLoop

from fonds.engine.readers import ReaderPool
from fonds.errors import (
    BudgetSpentError,
    FetchError,
    FetchTimeoutError,
    TooLargeError,
    UpstreamDownError,
    UsageError,
)
from fonds.fetch.client import Download, Fetcher
from fonds.fetch.transport import HttpTransport
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.sites.browser import Browser, find_program
from fonds.sites.browser_page import Fetch, PageLimits
from fonds.sites.page_reading import PageBytes, UnparsedPage
from fonds.sites.pages.page import WebPage
from fonds.sites.robots import Robots

HOME: Final = "http://www.example.org"
PUBLIC: Final = "93.184.215.14"
HTML: Final = "text/html; charset=utf-8"
QUICK: Final = PageLimits(seconds=3.0)


async def names(host: str, _port: int) -> list[str]:
    if host == "localhost":
        return ["127.0.0.1"]
    if not host.endswith(".example.org"):
        raise socket.gaierror(-2, "Name or service not known")
    return [PUBLIC]


class Desk:
    """A browser, the fetcher that it asks, and the server behind all public names."""

    def __init__(self, folder: Path, upstream: MisbehavingServer, browser: Browser) -> None:
        settings = Settings(home=folder, rate_factor=0, retries=1, timeout=5)
        transport = HttpTransport(allow_private=False, look_up=names)
        self.fetcher = Fetcher(settings, seams=Seams(), folder=folder, transport=transport)
        self.upstream, self.browser = upstream, browser
        self._readers = ReaderPool(workers=1)
        self._loop = RedirectingLoop(upstream.port)
        self._runner = asyncio.Runner(loop_factory=lambda: self._loop)

    def __enter__(self) -> Self:
        self._runner.run(self.fetcher.__aenter__())
        self._runner.run(self.browser.__aenter__())
        return self

    def __exit__(self, *_error: object) -> None:
        self._runner.run(self.browser.__aexit__(None, None, None))
        self._runner.run(self.fetcher.__aexit__(None, None, None))
        self._runner.close()
        self._readers.close()
        assert set(self._loop.connected) <= {PUBLIC}

    def render(self, html: str, address: str = f"{HOME}/list.html") -> WebPage:
        """A page that holds this, after its scripts."""
        return self._runner.run(self.rendered(html, address))

    def render_all(self, *pages: str) -> list[WebPage | BaseException]:
        """Several pages side by side."""

        async def work() -> list[WebPage | BaseException]:
            tasks = [self.rendered(html, f"{HOME}/{n}.html") for n, html in enumerate(pages)]
            return await asyncio.gather(*tasks, return_exceptions=True)

        return self._runner.run(work())

    async def rendered(self, html: str, address: str = f"{HOME}/list.html") -> WebPage:
        robots = Robots(self.fetcher, source="site-test", agent="fonds")

        async def ask(url: str) -> Download:
            rules = await robots.rules(url)
            rules.require(url)
            download = await self.fetcher.download(url, source="site-test", pace=rules.pace)
            assert download is not None
            return download

        return await self.parsed(self.unparsed(html.encode(), address), ask)

    def unparsed(
        self, content: bytes, address: str = f"{HOME}/list.html", media_type: str = HTML
    ) -> UnparsedPage:
        """A page as it was served."""
        source = PageBytes(url=address, content=content, media_type=media_type)
        return UnparsedPage(source, self._readers)

    async def parsed(self, page: UnparsedPage, fetch: Fetch) -> WebPage:
        """A page after its scripts, parsed here."""
        return (await self.browser.render(page, fetch=fetch)).source.parse()

    def asked(self) -> list[str]:
        """The paths that were asked for, robots.txt apart."""
        targets = [seen.target for seen in self.upstream.requests]
        return [target for target in targets if target != "/robots.txt"]


class Ears:
    """A TCP and a UDP port of this machine, and whether anything ever came there."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self._stop = threading.Event()
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", 0))
        self.tcp, self.udp = self._tcp.getsockname()[1], self._udp.getsockname()[1]
        self._threads = [threading.Thread(target=each) for each in (self._accept, self._receive)]

    def __enter__(self) -> Self:
        for each in (self._tcp, self._udp):
            each.settimeout(0.1)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._tcp.close()
        self._udp.close()

    def _accept(self) -> None:
        while not self._stop.is_set():
            with suppress(TimeoutError):
                connection, _ = self._tcp.accept()
                self.heard.append("tcp")
                connection.close()

    def _receive(self) -> None:
        while not self._stop.is_set():
            with suppress(TimeoutError):
                self._udp.recvfrom(100)
                self.heard.append("udp")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with (
        MisbehavingServer() as upstream,
        Desk(tmp_path_factory.mktemp("desk"), upstream, Browser(limits=QUICK)) as desk,
    ):
        yield desk


@pytest.fixture
def desk(shared: Desk) -> Desk:
    shared.upstream.requests.clear()
    return shared


@pytest.fixture
def ears() -> Iterator[Ears]:
    with Ears() as ears:
        yield ears


def pdfs(page: WebPage) -> list[str]:
    """Those that stand in the page's elements; others its script may be seen to speak of."""
    links = [link.url for link in page.links() if link.kind == "anchor"]
    return [url for url in links if url.endswith(".pdf")]


def script(text: str, body: str = "<ul></ul>") -> str:
    """A page with a script after its elements."""
    return f"<!DOCTYPE html><title>Reports</title><body>{body}<script>{text}</script>"


ADD = "const add = u => document.body.insertAdjacentHTML('beforeend', `<a href='${u}'>${u}</a>`);"
DONE = ADD + "add('/done.pdf');"

# What is seen -----------------------------------------------------------------------------


@pytest.mark.browser
def test_a_list_that_a_script_builds_from_data_is_seen(desk: Desk) -> None:
    desk.upstream.serve("/reports.json", '["/a.pdf", "b.pdf"]', "application/json")
    page = desk.render(
        script(ADD + "fetch('reports.json').then(r => r.json()).then(l => l.forEach(add))")
    )
    assert pdfs(page) == [f"{HOME}/a.pdf", f"{HOME}/b.pdf"]
    assert page.url == f"{HOME}/list.html"
    assert desk.asked() == ["/reports.json"]  # the page itself is not asked for again


@pytest.mark.browser
def test_a_list_that_comes_late_is_waited_for(desk: Desk) -> None:
    page = desk.render(script(ADD + "setTimeout(() => add('/late.pdf'), 500)"))
    assert pdfs(page) == [f"{HOME}/late.pdf"]


@pytest.mark.browser
def test_a_script_from_another_host_is_run_and_asked_for_once(desk: Desk) -> None:
    library = "window.list = ['/one.pdf'];"
    desk.upstream.serve("/library-1.js", library, "text/javascript")
    source = "http://cdn.example.org/library-1.js"
    html = f"<body><script src='{source}' crossorigin='anonymous'></script>" + script(
        ADD + "list.forEach(add)"
    )
    assert pdfs(desk.render(html)) == pdfs(desk.render(html)) == [f"{HOME}/one.pdf"]
    assert desk.asked() == ["/library-1.js"]


@pytest.mark.browser
def test_data_of_another_public_host_is_read(desk: Desk) -> None:
    desk.upstream.serve("/api.json", '["/elsewhere.pdf"]', "application/json")
    page = desk.render(
        script(
            ADD + "fetch('http://api.example.org/api.json', {headers: {'X-A': 'b'}})"
            ".then(r => r.json()).then(l => l.forEach(add))"
        )
    )
    assert pdfs(page) == [f"{HOME}/elsewhere.pdf"]


@pytest.mark.browser
def test_links_stand_where_the_page_says_it_is_and_keep_its_encoding(desk: Desk) -> None:
    html = "<body><a href='x.pdf'>報告</a><script>history.pushState({}, '', '/2024/')</script>"

    async def work() -> WebPage:
        page = desk.unparsed(html.encode("cp932"), f"{HOME}/list", "text/html; charset=shift_jis")
        assert page.source.parse().encoding != "utf-8"
        rendered = await desk.parsed(page, desk.fetcher.download)  # type: ignore[arg-type]
        assert rendered.encoding == page.source.parse().encoding
        return rendered

    page = desk._runner.run(work())
    assert [(link.url, link.text) for link in page.links()] == [(f"{HOME}/2024/x.pdf", "報告")]


@pytest.mark.browser
def test_what_is_missing_is_told_to_the_script(desk: Desk) -> None:
    page = desk.render(script(ADD + "fetch('/nothing').then(r => add(`/${r.status}.pdf`))"))
    assert pdfs(page) == [f"{HOME}/404.pdf"]


# What is not let out ----------------------------------------------------------------------


@pytest.mark.browser
def test_the_guard_holds_for_what_scripts_ask(desk: Desk, ears: Ears) -> None:
    targets = [
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        f"http://127.0.0.1:{ears.tcp}/",
        f"http://localhost:{ears.tcp}/",
        f"http://[::1]:{ears.tcp}/",
        "file:///etc/passwd",
    ]
    tries = "".join(
        f"fetch('{url}').then(() => add('/reached.pdf'), () => add('/refused-{n}.pdf'));"
        for n, url in enumerate(targets)
    )
    page = desk.render(script(ADD + tries))
    assert sorted(pdfs(page)) == [f"{HOME}/refused-{n}.pdf" for n in range(len(targets))]
    assert ears.heard == []


@pytest.mark.browser
def test_nothing_leaves_by_ways_that_are_not_intercepted(desk: Desk, ears: Ears) -> None:
    tcp, udp = f"127.0.0.1:{ears.tcp}", f"127.0.0.1:{ears.udp}"
    rules = f'{{"prefetch": [{{"source": "list", "urls": ["http://{tcp}/spec"]}}]}}'
    head = (
        f"<link rel=preconnect href='http://{tcp}/'><link rel=prefetch href='http://{tcp}/p'>"
        f"<link rel=dns-prefetch href='//{tcp}'><script type=speculationrules>{rules}</script>"
    )
    attempts = f"""
    const quietly = act => {{ try {{ act() }} catch (e) {{}} }};
    const blob = text => URL.createObjectURL(new Blob([text]));
    quietly(() => {{
      const peer = new RTCPeerConnection({{iceServers: [
        {{urls: ['stun:{udp}', 'turn:{udp}'], username: 'a', credential: 'b'}},
        {{urls: 'turn:{tcp}?transport=tcp', username: 'a', credential: 'b'}}]}});
      peer.createDataChannel('x');
      peer.createOffer().then(offer => peer.setLocalDescription(offer));
    }});
    quietly(() => new WebSocket('ws://{tcp}/'));
    quietly(() => new WebTransport('https://{udp}/'));
    quietly(() => new EventSource('http://{tcp}/'));
    quietly(() => navigator.sendBeacon('http://{tcp}/', 'x'));
    quietly(() => new SharedWorker(blob("fetch('http://{tcp}/')")));
    quietly(() => new Worker(blob("fetch('http://{tcp}/'); new WebSocket('ws://{tcp}/')")));
    quietly(() => navigator.serviceWorker.register('/worker.js'));
    setTimeout(() => add('/done.pdf'), 800);
    """
    assert pdfs(desk.render(script(ADD + attempts, body=head))) == [f"{HOME}/done.pdf"]
    assert ears.heard == []
    assert desk.asked() == []


@pytest.mark.browser
def test_pictures_styles_frames_and_forms_are_not_asked_for(desk: Desk) -> None:
    body = (
        "<link rel=stylesheet href=/a.css><img src=/a.png><iframe src=/frame.html></iframe>"
        "<video src=/a.mp4></video><style>@font-face{font-family:f;src:url(/f.woff)}</style>"
        "<p style='font-family:f'>x</p>"
    )
    page = desk.render(script("fetch('/post', {method: 'POST'}).catch(() => 0);" + DONE, body))
    assert pdfs(page) == [f"{HOME}/done.pdf"]
    assert desk.asked() == []


@pytest.mark.browser
def test_what_robots_txt_forbids_is_not_asked_for(desk: Desk) -> None:
    desk.upstream.serve("/robots.txt", "User-agent: *\nDisallow: /private/")
    try:
        page = desk.render(script("fetch('/private/list.json').catch(() => 0);" + DONE))
    finally:
        desk.upstream.remove("/robots.txt")
    assert pdfs(page) == [f"{HOME}/done.pdf"]
    assert desk.asked() == []


@pytest.mark.browser
@pytest.mark.parametrize(
    "leaving",
    [
        "location.href = '/other.html';",
        "window.open('/other.html'); window.open('about:blank');",
        "alert('a'); confirm('b'); prompt('c'); onbeforeunload = e => e.preventDefault();",
        "const a = document.createElement('a'); a.href = '/big.zip'; a.download = ''; a.click();",
        "document.body.innerHTML = '<form action=/x></form>'; document.forms[0].submit();",
        "location.href = 'file:///etc/passwd';",
        "location.href = 'mailto:a@example.org';",
        "window.print(); Notification.requestPermission();",
    ],
)
def test_a_page_that_would_rather_be_elsewhere_stays(desk: Desk, leaving: str) -> None:
    page = desk.render(script(f"try {{ {leaving} }} catch (e) {{}}" + DONE))
    assert pdfs(page) == [f"{HOME}/done.pdf"]
    assert desk.asked() == []


@pytest.mark.browser
def test_one_page_leaves_nothing_for_the_next(desk: Desk) -> None:
    leave = "document.cookie = 'a=1'; localStorage.setItem('a', '1');"
    told = "add(`/${document.cookie || localStorage.getItem('a')}.pdf`);"
    desk.render(script(leave))
    assert pdfs(desk.render(script(ADD + told))) == [f"{HOME}/null.pdf"]


@pytest.mark.browser
def test_where_private_hosts_may_be_asked_pages_read_only_their_own(tmp_path: Path) -> None:
    both = "'/own.json', 'http://intranet.example.org/secret.json'"
    html = script(
        ADD + f"[{both}].forEach(u => fetch(u).then(() => add('/got' + u.length + '.pdf')"
        ", () => 0))"
    )
    browser = Browser(limits=QUICK, is_guarded=False)
    with MisbehavingServer() as upstream, Desk(tmp_path, upstream, browser) as desk:
        upstream.serve("/own.json", "{}", "application/json")
        upstream.serve("/secret.json", "{}", "application/json")
        assert pdfs(desk.render(html)) == [f"{HOME}/got9.pdf"]
        assert desk.asked() == ["/own.json"]


# What it may take -------------------------------------------------------------------------


@pytest.mark.browser
def test_a_script_without_end_fails_its_page_and_no_other(desk: Desk) -> None:
    endless, fine = desk.render_all(script("for (;;) {}"), script(DONE))
    assert isinstance(endless, FetchTimeoutError)
    assert "0.html" in str(endless)
    assert isinstance(fine, WebPage)
    assert pdfs(desk.render(script(DONE))) == [f"{HOME}/done.pdf"]


@pytest.mark.browser
def test_a_page_that_never_rests_is_taken_as_it_is(desk: Desk) -> None:
    restless = "setInterval(() => document.body.append(document.createElement('p')), 50);"
    assert pdfs(desk.render(script(restless + DONE))) == [f"{HOME}/done.pdf"]


@pytest.mark.browser
def test_a_page_asks_for_no_more_than_its_number(desk: Desk) -> None:
    desk.upstream.route("/many/*", lambda _request: Response(b"{}"))
    many = "for (let n = 0; n < 200; n++) fetch('/many/' + n).catch(() => 0);"
    desk.render(script(many))
    assert len(desk.asked()) == QUICK.requests


@pytest.mark.browser
def test_the_same_answer_is_had_once(desk: Desk) -> None:
    desk.upstream.route("/poll", lambda _request: Response(b"{}"))
    desk.render(script("for (let n = 0; n < 5; n++) fetch('/poll').catch(() => 0)"))
    desk.render_all(*[script("setInterval(() => fetch('/poll').catch(() => 0), 100)")] * 2)
    assert desk.asked() == ["/poll"]


@pytest.mark.browser
@pytest.mark.parametrize(
    "greedy",
    [
        "new Uint8Array(1 << 24).fill(1)",
        "Array.from({length: 1 << 20}, (_, n) => ({n}))",
        "document.createElement('p').appendChild(new Text('x'.repeat(1 << 22) + l.length))",
    ],
)
def test_a_page_does_not_get_all_the_memory_it_wants(tmp_path: Path, greedy: str) -> None:
    html = script(f"const l = []; for (let n = 0; n < 1000; n++) l.push({greedy});" + DONE)
    with (
        MisbehavingServer() as upstream,
        Desk(tmp_path, upstream, Browser(limits=PageLimits(memory_mib=768))) as desk,
    ):
        with suppress(FetchError):  # or its script is told that there is no more
            assert pdfs(desk.render(html)) == []
        assert pdfs(desk.render(script(DONE))) == [f"{HOME}/done.pdf"]


@pytest.mark.browser
def test_a_page_that_grows_beyond_measure_is_not_taken(tmp_path: Path) -> None:
    with (
        MisbehavingServer() as upstream,
        Desk(tmp_path, upstream, Browser(limits=PageLimits(seconds=3, max_size=10_000))) as desk,
        pytest.raises(TooLargeError),
    ):
        desk.render(script("document.body.append('x'.repeat(20000))"))


@pytest.mark.browser
def test_data_that_is_too_much_for_a_page_fails_it(tmp_path: Path) -> None:
    with (
        MisbehavingServer() as upstream,
        Desk(tmp_path, upstream, Browser(limits=PageLimits(seconds=3, max_size=10_000))) as desk,
    ):
        upstream.route("/much/*", lambda _request: Response(bytes(6_000)))
        with pytest.raises(TooLargeError, match="/much/"):
            desk.render(script("for (const n of [1, 2]) fetch('/much/' + n).catch(() => 0)"))


@pytest.mark.browser
def test_a_list_whose_data_failed_is_no_success(desk: Desk) -> None:
    desk.upstream.serve("/down.json", "", status=500)
    with pytest.raises(UpstreamDownError):
        desk.render(script("fetch('/down.json').catch(() => 0)"))


@pytest.mark.browser
def test_a_tracker_that_is_down_costs_nothing(desk: Desk) -> None:
    page = desk.render(script(DONE, "<script src='http://gone.example.com/t.js'></script>"))
    assert pdfs(page) == [f"{HOME}/done.pdf"]


@pytest.mark.browser
def test_what_is_no_failure_of_the_page_is_told_by_whom_it_was_charged_to(desk: Desk) -> None:
    payer = ContextVar("payer", default="nobody")

    async def work() -> None:
        async def ask(_url: str) -> Download:
            raise BudgetSpentError(payer.get())

        payer.set("the crawl")
        await desk.parsed(desk.unparsed(script("fetch('/x').catch(() => 0)").encode()), ask)

    with pytest.raises(BudgetSpentError, match="the crawl"):
        desk._runner.run(work())


# When it dies -----------------------------------------------------------------------------


def started(word: str) -> dict[int, str]:
    """The processes that this one started with a word, without the browser's own children."""
    children = psutil.Process().children(recursive=True)
    lines = {each.pid: _line(each) for each in children}
    return {pid: line for pid, line in lines.items() if word in line and "--type=" not in line}


def _line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


class Killer:
    """A route that ends processes which were started after it was made."""

    def __init__(self, word: str, times: int) -> None:
        self._word, self._left = word, times
        self._spared = started(word)

    def __call__(self, _request: Request) -> Response:
        if self._left:
            self._left -= 1
            for pid in started(self._word).keys() - self._spared.keys():
                os.kill(pid, signal.SIGKILL)
        return Response(b"{}")


DEADLY: Final = "fetch('/deadly?' + Math.random()).catch(() => 0)"


@pytest.mark.browser
@pytest.mark.parametrize("word", ["--remote-debugging-pipe", "run-driver"])
def test_a_browser_that_died_is_started_again_for_its_page(tmp_path: Path, word: str) -> None:
    killer = Killer(word, times=1)
    with MisbehavingServer() as upstream, Desk(tmp_path, upstream, Browser(limits=QUICK)) as desk:
        upstream.route("/deadly", killer)
        page = desk.render(script(f"{DEADLY}.then(() => {{ {DONE} }})"))
        assert pdfs(page) == [f"{HOME}/done.pdf"]
        assert len(upstream.seen("/deadly")) == 2


@pytest.mark.browser
def test_a_page_that_ends_the_browser_twice_fails_by_name(tmp_path: Path) -> None:
    killer = Killer("--remote-debugging-pipe", times=2)
    with MisbehavingServer() as upstream, Desk(tmp_path, upstream, Browser(limits=QUICK)) as desk:
        upstream.route("/deadly", killer)
        with pytest.raises(FetchError, match=r"list\.html .*twice"):
            desk.render(script(DEADLY))
        assert pdfs(desk.render(script(DONE))) == [f"{HOME}/done.pdf"]


# What is needed ---------------------------------------------------------------------------


def test_a_missing_browser_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="apt-get install chromium"):
        find_program("")
    with pytest.raises(UsageError, match="FONDS_BROWSER"):
        find_program(str(tmp_path / "chromium"))


def test_without_a_browser_nothing_of_playwright_is_imported() -> None:
    code = "import sys, fonds.sites.browser, fonds.cli.main; print('playwright' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert told.stdout.strip() == "False"


@pytest.mark.browser
def test_a_program_that_is_no_browser_is_told_of() -> None:
    async def work() -> None:
        async with Browser("/bin/false"):
            pass

    with pytest.raises(UsageError, match="/bin/false does not start"):
        asyncio.run(work())
