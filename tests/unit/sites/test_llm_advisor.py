"""A model behind a real endpoint: well-behaved, confused, and hostile."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from tests.support.page_readers import hasty_readers
from tests.support.upstreams.loopback import LoopbackServer

from fonds.chunk.tokens import count
from fonds.errors import (
    ConnectionFailedError,
    FondsError,
    RefusedError,
    SettingsError,
    TooLargeError,
    UpstreamDownError,
    WrongContentError,
)
from fonds.sites.llm_advisor import MAX_ATTEMPTS, ModelAdvisor, outline, schema
from fonds.sites.models import ScrapingStrategy, WebsiteConfiguration
from fonds.sites.page_reading import PageBytes, UnparsedPage
from fonds.sites.strategy import match_page

SITE = WebsiteConfiguration(id="e", name="Commission", base_url="https://e.gov/")
KEY = "sk-not-for-anybody-else"
GOOD: dict[str, Any] = {
    "strategy_type": "css_selector",
    "pdf_link_selectors": ["td a"],
    "pagination_selector": None,
    "max_pages": 5,
    "metadata_extraction": {"organization": "ancestor::tr[1]/td[1]", "period": None},
    "confidence": 0.9,
}


READERS = hasty_readers()


@pytest.fixture(scope="module", autouse=True)
def readers() -> Iterator[None]:
    """Processes that end with the tests of this module; they start with the first page."""
    yield
    READERS.close()


def unparsed(markup: str) -> UnparsedPage:
    return UnparsedPage(PageBytes(url="https://e.gov/l", content=markup.encode()), READERS)


def page(rows: int = 40) -> UnparsedPage:
    told = "".join(
        f"<tr class='row r{n}'><td>Party {n}</td><td><a href=/f/{n}-2024.pdf>2024</a></td></tr>"
        for n in range(rows)
    )
    return unparsed(f"<body><h1>Returns</h1><table id=t>{told}</table>")


class Endpoint:
    """Gives its answers one after the other, the last one for ever."""

    def __init__(self, answers: Sequence[tuple[int, Any]]) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []


@contextmanager
def endpoint(*answers: Any) -> Iterator[tuple[str, Endpoint]]:
    """Answers are texts of a model, or pairs of a status and a whole body."""
    state = Endpoint([each if isinstance(each, tuple) else (200, said(each)) for each in answers])

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 — the library's name
            """Says nothing."""

        def do_POST(self) -> None:
            state.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            state.keys.append(self.headers.get("Authorization"))
            status, body = state.answers[min(len(state.asked), len(state.answers)) - 1]
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status if self.path == "/v1/chat/completions" else 404)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(data)

    server = LoopbackServer(Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", state
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
    assert not server.crashes


def said(answer: Any) -> dict[str, Any]:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return {"choices": [{"message": {"role": "assistant", "content": text}}]}


def advice(url: str, **more: Any) -> ScrapingStrategy:
    return asyncio.run(ModelAdvisor(url, KEY, "m", **more).advise(SITE, page()))


def test_a_good_answer_becomes_a_strategy_of_the_site() -> None:
    with endpoint(GOOD) as (url, state):
        strategy = advice(url)
    assert (strategy.website_id, strategy.pdf_link_selectors) == ("e", ["td a"])
    assert strategy.metadata_extraction == {"organization": "ancestor::tr[1]/td[1]"}
    assert len(match_page(strategy, page().source.parse()).pdfs) == 40
    [asked] = state.asked
    assert asked["response_format"]["json_schema"]["schema"] == schema()
    assert state.keys == [f"Bearer {KEY}"]


def test_the_schema_is_one_that_strict_output_takes() -> None:
    told = schema()
    assert set(told["required"]) == set(told["properties"]) == set(GOOD)
    assert told["additionalProperties"] is False
    assert "default" not in json.dumps(told)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ("I think you should look at the table.", "not JSON"),
        ([GOOD], "not a JSON object"),
        (GOOD | {"confidence": 7}, "confidence"),
        (GOOD | {"pdf_link_selectors": []}, "pdf_link_selectors"),
        (GOOD | {"pdf_link_selectors": ["a["]}, "is invalid at"),
        (GOOD | {"pdf_link_selectors": ["li.report a"]}, "match no link"),
        (GOOD | {"strategy_type": "xpath", "pdf_link_selectors": ["//a[document('x')]"]}, "XPath"),
        (GOOD | {"metadata_extraction": {"organization": "//a[//b]"}}, "whole page"),
        (GOOD | {"strategy_type": "regex", "pdf_link_selectors": ["(a{999}){999}"]}, "too much"),
    ],
)
def test_a_wrong_answer_is_told_and_asked_for_again(wrong: Any, complaint: str) -> None:
    with endpoint(wrong, GOOD) as (url, state):
        assert advice(url).pdf_link_selectors == ["td a"]
    assert complaint in state.asked[1]["messages"][-1]["content"]
    assert state.asked[1]["messages"][-2]["role"] == "assistant"


def test_an_xpath_that_takes_too_long_on_the_page_is_told_and_asked_for_again() -> None:
    far_axes = "//*[count(preceding::*/preceding::*) > 3]"
    slow = GOOD | {"strategy_type": "xpath", "pdf_link_selectors": [far_axes]}
    with endpoint(slow, GOOD) as (url, state):
        asked = ModelAdvisor(url, KEY, "m").advise(SITE, page(rows=1500))
        assert asyncio.run(asked).pdf_link_selectors == ["td a"]
    assert "longer than 2 s" in state.asked[1]["messages"][-1]["content"]


def test_asking_again_comes_to_an_end() -> None:
    with endpoint("no idea") as (url, state), pytest.raises(WrongContentError, match="not JSON"):
        advice(url)
    assert len(state.asked) == MAX_ATTEMPTS


def test_an_answer_in_a_fence_is_read() -> None:
    with endpoint(f"```json\n{json.dumps(GOOD)}\n```") as (url, _):
        assert advice(url).max_pages == 5


def test_confidence_is_no_higher_than_the_page_bears_out() -> None:
    half = GOOD | {"pdf_link_selectors": ["tr:nth-child(4n) a"], "confidence": 1.0}
    with endpoint(half) as (url, _):
        assert advice(url).confidence < 0.7


def test_trouble_that_may_pass_is_tried_again() -> None:
    with endpoint((429, {}), (503, {}), (200, said(GOOD))) as (url, state):
        assert advice(url).confidence == 0.9
    assert len(state.asked) == 3


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((500, {}), UpstreamDownError),
        ((200, b"<html>sorry"), UpstreamDownError),
        ((200, {"choices": []}), UpstreamDownError),
        ((401, {"error": {"message": f"bad key {KEY}"}}), RefusedError),
        ((400, {"error": {"message": f"you sent {KEY}"}}), RefusedError),
        ((200, b"x" * (2 << 20)), TooLargeError),
    ],
)
def test_an_endpoint_that_fails_is_told_without_the_key(
    answer: tuple[int, Any], error: type[FondsError]
) -> None:
    with endpoint(answer) as (url, _), pytest.raises(error) as told:
        advice(url)
    assert KEY not in str(told.value)


def test_an_endpoint_that_is_not_there_is_told() -> None:
    with endpoint(GOOD) as (url, _):
        pass
    with pytest.raises(ConnectionFailedError):
        advice(url)


@pytest.mark.parametrize("base", ["ftp://x/", "nowhere", "https://u:p@host/v1"])
def test_an_address_that_cannot_be_used_is_refused(base: str) -> None:
    with pytest.raises(SettingsError):
        ModelAdvisor(base, "", "m")


def test_a_key_with_a_line_break_is_refused() -> None:
    with pytest.raises(SettingsError):
        ModelAdvisor("https://host/v1", "a\nb", "m")


@pytest.mark.parametrize("tokens", [100, 500, 3000])
def test_a_page_is_rendered_within_its_tokens(tokens: int) -> None:
    text = outline(page(500).source.parse(), tokens=tokens)
    assert count(text) <= tokens
    assert "table#t" in text


def test_a_rendering_leaves_out_what_repeats_and_says_so() -> None:
    text = outline(page(500).source.parse(), tokens=3000)
    assert "496 more like this" in text
    assert '[href="/f/0-2024.pdf"]' in text
    assert "Party 499" not in text


def test_a_page_larger_than_the_window_is_asked_about_all_the_same() -> None:
    wide = "".join(
        f"<div class=c{'x' * n}><a href={n}.pdf>Party {n} 2024</a></div>" for n in range(300)
    )
    markup = unparsed(f"<body>{wide}")
    with endpoint(GOOD | {"pdf_link_selectors": ["div > a"]}) as (url, state):
        asyncio.run(ModelAdvisor(url, "", "m", window=5000).advise(SITE, markup))
    assert sum(count(each["content"]) for each in state.asked[0]["messages"]) < 5000
    assert state.keys == [None]
