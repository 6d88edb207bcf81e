"""What a library holds after runs over feeds that change, die, and come back."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

from tests.sources.publishing import library_of

from fonds.demo.http import Handler, Request, Response, not_found
from fonds.runs.state import RunStatus
from fonds.sources.member_statements import source

MEMBERS = """
- id: {bioguide: P901004}
  name: {official_full: Cornelius F. Pettibone}
  terms: [{type: rep, state: NJ, rss_url: 'https://pettibone.example/rss.xml'}]
- id: {bioguide: W901008}
  name: {official_full: Rosamund Whitlock}
  terms: [{type: rep, state: MI, rss_url: 'https://whitlock.example/rss.xml'}]
"""
PAGE = b"<html><body><main><p>Harbors first.</p></main></body></html>"


def feed(*names: str) -> bytes:
    items = "".join(
        f"<item><title>{name}</title><link>https://pettibone.example/{name}</link></item>"
        for name in names
    )
    return f"<rss><channel><title>Office</title>{items}</channel></rss>".encode()


def site(answers: Mapping[str, bytes]) -> Handler:
    def answer(request: Request) -> Response:
        body = answers.get(request.path)
        return not_found() if body is None else Response(body=body)

    return answer


def offices(pettibone: Mapping[str, bytes], whitlock: Mapping[str, bytes]) -> dict[str, Handler]:
    members = {"/congress-legislators/legislators-current.yaml": MEMBERS.encode()}
    return {
        "unitedstates.github.io": site(members),
        "pettibone.example": site(pettibone),
        "whitlock.example": site(whitlock),
    }


def test_a_statement_that_left_its_feed_stays(tmp_path: Path) -> None:
    pettibone = {"/rss.xml": feed("two", "one"), "/one": PAGE, "/two": PAGE, "/three": PAGE}
    sites = offices(pettibone, {"/rss.xml": feed()})
    with library_of(tmp_path, source, sites) as library:
        assert library.run().counts.inserted == 4  # two statements and two feeds
        pettibone["/rss.xml"] = feed("three", "two")
        second = library.run()
        assert (second.status, second.counts.inserted, second.counts.gone) == (
            RunStatus.SUCCESS,
            1,
            0,
        )
        assert library.titles() == ["one", "three", "two"]


def test_a_run_without_news_is_no_empty_run(tmp_path: Path) -> None:
    sites = offices({"/rss.xml": feed("one"), "/one": PAGE}, {"/rss.xml": feed()})
    with library_of(tmp_path, source, sites) as library:
        library.run()
        again = library.run()
        assert (again.status, again.counts.parsed) == (RunStatus.SUCCESS, 0)


def test_a_dead_feed_is_a_failure_of_its_own(tmp_path: Path) -> None:
    whitlock = {"/rss.xml": b"<!DOCTYPE html><html><body>Gone</body></html>"}
    sites = offices({"/rss.xml": feed("one"), "/one": PAGE}, whitlock)
    with library_of(tmp_path, source, sites) as library:
        first = library.run()
        assert (first.status, first.counts.error) == (RunStatus.PARTIAL, 1)
        assert library.titles() == ["one"]
        whitlock["/rss.xml"] = feed()
        assert library.run().status == RunStatus.SUCCESS


def test_a_refused_page_costs_the_text_only(tmp_path: Path) -> None:
    def refuse(request: Request) -> Response:
        if request.path == "/rss.xml":
            return Response(body=feed("one"))
        return Response(status=HTTPStatus.FORBIDDEN)

    sites = offices({}, {"/rss.xml": feed()}) | {"pettibone.example": refuse}
    with library_of(tmp_path, source, sites) as library:
        assert library.run().status == RunStatus.SUCCESS
        assert library.titles() == ["one"]
