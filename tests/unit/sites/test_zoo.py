"""The zoo itself: its sites say what their truth says, and its judge is fair."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

import pypdfium2
import pytest
from tests.zoo import SITES, Truth, Zoo, ZooSite, judge, pdf, same_organization, serve, total
from tests.zoo.hostile import BUSY, SLOW, WALLED
from tests.zoo.large import large
from tests.zoo.lists import DEFINITIONS, FLAT
from tests.zoo.site import ELSEWHERE, Key, key
from tests.zoo.traps import ROBOTS

ROOT = Path(__file__).parents[3]
AGENT = {"User-Agent": "fonds/0.1 (+https://github.com/fonds/fonds)"}
# Whatever looks like an address in markup, in scripts and in sitemaps; read without any parser.
SHOWN = re.compile(
    r"""(?:href|src|data-url|data-href)\s*=\s*["']?([^"'>]+)|url=([^"'>]+)|<loc>([^<]+)"""
    r"""|["']((?:\\?/|http)[^"'<>]*?\.pdf)["']|Sitemap: (\S+)""",
    re.IGNORECASE,
)


@pytest.fixture(scope="module")
def zoo() -> Iterator[Zoo]:
    with serve() as zoo:
        yield zoo


class Reply:
    def __init__(self, address: str, headers: dict[str, str] | None = None) -> None:
        parts = urlsplit(address)
        target = quote(parts.path, safe="/%;()") + (f"?{parts.query}" if parts.query else "")
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=10)
        try:
            connection.request("GET", target, headers=AGENT | (headers or {}))
            response = connection.getresponse()
            self.status, self.headers = response.status, dict(response.getheaders())
            self.body = response.read()
        finally:
            connection.close()


def address(zoo: Zoo, site: ZooSite, path: str) -> str:
    if path.startswith(ELSEWHERE):
        assert site.files
        return zoo.base(site.files) + path.removeprefix(ELSEWHERE)
    return zoo.base(site) + path


def shown(zoo: Zoo, site: ZooSite) -> tuple[set[Key], str]:
    """Every address and text that a reader of a site comes across, as far as 70 pages go."""
    base = zoo.base(site)
    waiting, seen = [base + site.start, base + "/robots.txt"], set[Key]()
    asked, texts = set[Key](), list[str]()
    while waiting and len(asked) < 70:
        here = waiting.pop(0)
        place = key(here)
        if place in asked:
            continue
        asked.add(place)
        reply = Reply(here)
        text = _text(site, reply.body)
        texts.append(unescape(text))
        told = re.search(r'<base href="([^"]+)"', text)
        within = urljoin(here, told[1]) if told else here
        for link in (*_addresses(text), *_choices(text)):
            there = re.sub(r";jsessionid=\w+", "", urljoin(within, link))
            seen.add(key(there))
            if there.startswith(base) and ".pdf" not in there and "/events/" not in there:
                waiting.append(there)
    return seen, "\n".join(texts)


def _text(site: ZooSite, body: bytes) -> str:
    if body.startswith(b"\x1f\x8b"):
        body = gzip.decompress(body)
    text = body.decode(site.encoding, "replace")
    return re.sub(r"\\u([0-9a-f]{4})", lambda told: chr(int(told[1], 16)), text)


def _addresses(text: str) -> list[str]:
    found = ("".join(groups) for groups in SHOWN.findall(text))
    return [_opened(unescape(each)).replace("\\/", "/") for each in found]


def _opened(link: str) -> str:
    told = re.search(r"'(/[^']+)'", link)
    return told[1] if told else link


def _choices(text: str) -> list[str]:
    named = re.search(r'<form action="([^"]+)"[^>]*>.*?<select name="(\w+)"', text, re.DOTALL)
    values = re.findall(r'<option value="(\w+)"', text)
    return [f"{named[1]}?{named[2]}={value}" for value in values] if named else []


def _target(reply: Reply, path: str) -> str | None:
    """Where a redirect or a page that refreshes itself leads; the same path, to be asked again."""
    refreshed = re.search(rb'http-equiv="refresh" content="0; url=([^"]+)"', reply.body)
    if reply.status in {301, 302, 303, 307, 308, 429}:
        return reply.headers.get("Location", path)
    return refreshed[1].decode() if refreshed else None


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.id)
def test_what_a_site_lists_is_there_and_opens(zoo: Zoo, site: ZooSite) -> None:
    bodies = set()
    for truth in site.listed:
        reply = Reply(address(zoo, site, truth.path))
        for _ in range(2):
            target = _target(reply, truth.path)
            if target is not None and target not in site.forbidden:
                reply = Reply(address(zoo, site, target))
        opens = reply.status == 200 and reply.body.startswith(b"%PDF-")
        assert opens == truth.downloads, truth.path
        if opens:
            assert len(pypdfium2.PdfDocument(reply.body)) == 1
            bodies.add(reply.body)
    originals = [t for t in site.listed if t.downloads and not t.copy_of]
    assert len(bodies) == len(originals)


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.id)
def test_pages_show_what_the_truth_lists_and_what_is_unwanted(zoo: Zoo, site: ZooSite) -> None:
    found, text = shown(zoo, site)
    for path in [*(t.path for t in site.listed), *site.unwanted, *site.forbidden]:
        assert key(address(zoo, site, path)) in found, path
    for truth in site.listed:
        assert truth.organization is None or truth.organization in text


def test_sites_are_many_and_told_apart() -> None:
    assert len(SITES) >= 28
    assert len({site.id for site in SITES}) == len(SITES)
    assert all(re.fullmatch(r"[a-z0-9-]+", site.id) and site.notes for site in SITES)
    assert all(5 <= len(site.listed) <= 180 for site in SITES)
    assert sum("県" in site.name for site in SITES) * 3 >= len(SITES) - 3


def test_no_listed_pdf_is_also_unwanted_or_forbidden() -> None:
    for site in SITES:
        listed = {key(path) for t in site.listed for path in (t.path, *t.aliases)}
        assert not listed & {key(path) for path in site.unwanted | site.forbidden}


def test_periods_of_the_truth_have_their_form() -> None:
    form = re.compile(r"20\d\d-(Q[1-4]|H[12]|0[1-9]|1[0-2]|annual)")
    periods = [t.period for site in SITES for t in site.listed if t.period]
    assert all(form.fullmatch(period) for period in periods)


def test_a_known_pdf_is_not_sent_again_where_the_site_keeps_validators(zoo: Zoo) -> None:
    where = zoo.base(FLAT) + FLAT.listed[0].path
    first = Reply(where)
    again = Reply(where, {"If-None-Match": first.headers["ETag"]})
    since = Reply(where, {"If-Modified-Since": first.headers["Last-Modified"]})
    assert (again.status, since.status, again.body) == (304, 304, b"")
    plain = Reply(zoo.base(DEFINITIONS) + DEFINITIONS.listed[0].path)
    assert not {"ETag", "Last-Modified"} & set(plain.headers)


def test_the_wall_refuses_agents_that_name_no_contact(zoo: Zoo) -> None:
    start = zoo.start(WALLED)
    assert Reply(start, {"User-Agent": "python-httpx/0.28.1"}).status == 403
    assert Reply(start, {"User-Agent": "Mozilla/5.0"}).status == 200
    assert Reply(start).status == 200


def test_too_many_is_said_once_and_again_after_a_reset() -> None:
    with serve([BUSY]) as zoo:
        where = zoo.base(BUSY) + BUSY.listed[0].path
        refused = Reply(where)
        assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
        assert Reply(where).status == 200
        zoo.reset()
        assert Reply(where).status == 429
        assert [seen.status for seen in zoo.asked(BUSY)] == [429]


def test_requests_are_written_down_in_order() -> None:
    with serve([FLAT, ROBOTS]) as zoo:
        Reply(zoo.start(FLAT))
        Reply(zoo.base(ROBOTS) + "/robots.txt", {"X-Told": "yes"})
        Reply(zoo.base(FLAT) + "/nothing?a=1")
    told = [(seen.site, seen.path, seen.status) for seen in zoo.requests]
    assert told == [
        ("aotea-flat", FLAT.start, 200),
        ("bezirk-robots", "/robots.txt", 200),
        ("aotea-flat", "/nothing?a=1", 404),
    ]
    assert zoo.requests[1].headers["x-told"] == "yes"
    assert [seen.time for seen in zoo.requests] == sorted(seen.time for seen in zoo.requests)


def test_a_connection_serves_several_requests_also_after_a_drip(zoo: Zoo) -> None:
    parts = urlsplit(zoo.base(SLOW))
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    bodies = []
    for truth in SLOW.listed[:2]:
        connection.request("GET", truth.path)
        bodies.append(connection.getresponse().read())
        assert connection.sock is not None
    connection.request("HEAD", SLOW.listed[0].path)
    head = connection.getresponse()
    connection.close()
    assert all(body.startswith(b"%PDF-") and body.endswith(b"%%EOF\n") for body in bodies)
    assert int(head.headers["Content-Length"]) == len(bodies[0])


def _site(*listed: Truth, forbidden: frozenset[str] = frozenset()) -> ZooSite:
    return ZooSite(id="x", name="X", listed=listed, pages={}, forbidden=forbidden)


def _truth(path: str, organization: str | None = "A", period: str | None = "2024-annual") -> Truth:
    return Truth(path=path, organization=organization, period=period)


def test_a_verdict_tells_of_missing_wrong_and_mistaken() -> None:
    site = _site(_truth("/a b.pdf"), _truth("/go?x=1&id=2", "B"), _truth("/c.pdf", None, None))
    base = "http://127.0.0.1:1"
    found: list[tuple[str, str | None, str | None]] = [
        (base + "/a%20b.pdf", "a", "2024-annual"),
        (base + "/go?id=2&x=1", "Z", "2023-annual"),
        (base + "/privacy.pdf", None, None),
        (base + "0/c.pdf", None, None),
    ]
    verdict = judge(site, base, found)
    assert verdict.missing == ["/c.pdf"]
    assert verdict.wrong_links == ["/privacy.pdf", ELSEWHERE + "/c.pdf"]
    assert verdict.mistaken == [
        ("/go?x=1&id=2", "B", "Z"),
        ("/go?x=1&id=2", "2024-annual", "2023-annual"),
    ]
    assert (verdict.recall, verdict.wrong) == (2 / 3, 0.5)
    assert (verdict.organizations_right, verdict.periods_right) == (0.5, 0.5)
    both = total([verdict, judge(site, base, [])])
    assert (both.recall, both.organizations) == (2 / 6, (1, 2))


def test_nothing_is_owed_where_a_page_states_nothing() -> None:
    site = _site(_truth("/c.pdf", None, None))
    verdict = judge(site, "http://h", [("http://h/c.pdf", "Somebody", "1999-annual")])
    assert (verdict.organizations_right, verdict.periods_right, verdict.mistaken) == (1.0, 1.0, [])


def test_an_alias_counts_once_and_a_forbidden_file_is_no_wrong_link() -> None:
    site = _site(
        Truth(path="/go?id=1", aliases=("/1.pdf",), organization="A", period=None),
        forbidden=frozenset({"/intern/2.pdf"}),
    )
    told = [(f"http://h{path}", "A", None) for path in ("/1.pdf", "/go?id=1", "/intern/2.pdf")]
    verdict = judge(site, "http://h", told)
    assert (verdict.recall, verdict.wrong_links) == (1.0, [])
    assert judge(site, "http://h", told[:1]).recall == 1.0


@pytest.mark.parametrize(
    ("true", "told"),
    [
        ("Harbour Party", "HARBOUR  PARTY"),
        ("北浦県医師政治連盟", "北浦県医師政治連盟（PDFファイル：273KB）"),
        ("自由みらい党 県連", "自由みらい党　県連"),
        ("Bürgerbund Nord (BBN)", "Bürgerbund Nord"),
    ],
)
def test_noise_around_a_name_does_not_make_it_another(true: str, told: str) -> None:
    assert same_organization(true, told)
    assert same_organization(told, true)


@pytest.mark.parametrize(
    ("true", "told"),
    [
        ("Rivers & Rail", "Rivers &amp; Rail"),
        ("Harbour Party", "Harbour Party – annual return"),
        ("Harbour Party", "Harbour"),
        ("公正党", "公正党（本部）"),
        ("公正党北浦県本部", "北浦県選挙管理委員会"),
        ("Harbour Party", ""),
        ("Harbour Party", None),
    ],
)
def test_any_other_word_makes_it_another_name(true: str, told: str | None) -> None:
    assert not same_organization(true, told)


def test_a_pdf_says_its_text_and_has_its_length() -> None:
    document = pypdfium2.PdfDocument(pdf("A (b) \\ c", padding=5000))
    assert document[0].get_textpage().get_text_range() == "A (b) \\ c"
    assert 5000 < len(pdf("x", padding=5000)) < 6200


def test_a_large_site_lists_every_pdf_once_on_the_pages_it_was_given() -> None:
    site = large(pages=30, pdfs=70, size=3000)
    with serve([site]) as zoo:
        found, _ = shown(zoo, site)
        assert {key(zoo.base(site) + t.path) for t in site.listed} <= found
        assert len([seen for seen in zoo.requests if seen.status == 200]) == 30
        bodies = {Reply(zoo.base(site) + t.path).body for t in site.listed}
    assert len(bodies) == 70
    assert all(len(pypdfium2.PdfDocument(body)) == 1 for body in bodies)
    assert all(2900 < len(body) < 3100 for body in bodies)


def test_a_large_site_runs_in_a_process_of_its_own_and_tells_what_was_asked() -> None:
    command = [sys.executable, "-m", "tests.zoo.large", "--pages", "5", "--pdfs", "9"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            base = process.stdout.readline().strip()
            assert Reply(base + "/").status == 200
            assert Reply(base + "/none").status == 404
            assert b'"/none", 404' in Reply(base + "/requests.json").body
        finally:
            process.terminate()
