from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.errors import MalformedError, ParseError, WrongContentError
from fonds.sources.formats.feeds import (
    Feed,
    FeedItem,
    from_params,
    read_date,
    read_feed,
    text_only,
    to_params,
)

RSS = """<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"
     xmlns:content="http://purl.org/rss/1.0/modules/content/"
     xmlns:media="http://search.yahoo.com/mrss/">
 <channel>
  <title>Office of Ponds &amp;amp; Lakes</title>
  <atom:link href="https://ponds.example/rss.xml" rel="self"/>
  <link>https://ponds.example/</link>
  <item>
   <media:title>Not this one</media:title>
   <title>Ponds: T&amp;amp;E Plans Are Late</title>
   <link>https://ponds.example/products/p-1</link>
   <description>What We Found: T&amp;amp;E is late.</description>
   <content:encoded><![CDATA[<p>What We <b>Found</b></p><p>R&amp;D is late.</p>]]></content:encoded>
   <pubDate>Tue, 03 Mar 2026 09:00:00 -0500</pubDate>
   <guid isPermaLink="false">/products/p-1</guid>
   <category>Water</category><category>Water</category><category>Fish &amp; Frogs</category>
  </item>
 </channel>
</rss>
"""

RDF = """<rdf:RDF xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"
  xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
 <channel rdf:about="https://ponds.example/"><title>Ponds</title><link>https://ponds.example/</link>
  <items><rdf:Seq><rdf:li resource="https://ponds.example/1"/></rdf:Seq></items></channel>
 <item rdf:about="https://ponds.example/1"><title>One</title><link>https://ponds.example/1</link>
  <dc:date>2026-03-03T09:00:00-05:00</dc:date><dc:subject>Frogs</dc:subject></item>
</rdf:RDF>
"""

ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title type="text">Ponds</title>
 <link rel="self" href="https://ponds.example/atom"/><link href="https://ponds.example/"/>
 <entry><id>tag:ponds.example,2026:1</id><title type="html">Frogs &amp;amp; Toads</title>
  <link rel="edit" href="https://ponds.example/edit/1"/>
  <link rel="alternate" href="news/1"/>
  <updated>2026-03-04T00:00:00Z</updated><published>2026-03-03T14:00:00Z</published>
  <category term="frogs" label="Frogs"/><summary>Short</summary>
  <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>Long</p></div></content></entry>
</feed>
"""

NINE = datetime(2026, 3, 3, 14, tzinfo=UTC)


def only(document: str) -> FeedItem:
    [item] = read_feed(document.encode()).items
    return item


def rss(inner: str, channel: str = "") -> str:
    return f"<rss version='2.0'><channel>{channel}<item>{inner}</item></channel></rss>"


def test_an_rss_feed_is_read_with_its_extensions_left_aside() -> None:
    feed = read_feed(RSS.encode())
    assert feed == Feed(
        title="Office of Ponds & Lakes",
        link="https://ponds.example/",
        items=(
            FeedItem(
                title="Ponds: T&E Plans Are Late",
                link="https://ponds.example/products/p-1",
                guid="/products/p-1",
                published=NINE,
                description="What We Found: T&E is late.",
                html="<p>What We <b>Found</b></p><p>R&amp;D is late.</p>",
                categories=("Water", "Fish & Frogs"),
            ),
        ),
    )


def test_an_rdf_feed_is_read_alike() -> None:
    feed = read_feed(RDF.encode())
    assert (feed.title, feed.link) == ("Ponds", "https://ponds.example/")
    assert feed.items == (
        FeedItem(
            title="One",
            link="https://ponds.example/1",
            guid="https://ponds.example/1",
            published=NINE,
            categories=("Frogs",),
        ),
    )


def test_an_atom_feed_is_read_alike() -> None:
    feed = read_feed(ATOM.encode())
    assert feed.link == "https://ponds.example/"
    [item] = feed.items
    assert item.title == "Frogs & Toads"
    assert item.link == "https://ponds.example/news/1"
    assert item.guid == "tag:ponds.example,2026:1"
    assert item.published == NINE
    assert item.description == "Short"
    assert item.html is not None
    assert "<p>Long</p>" in item.html
    assert item.categories == ("Frogs",)


@pytest.mark.parametrize("document", [RSS, RDF, ATOM, rss("<title/>")])
def test_an_entry_survives_the_way_through_a_task(document: str) -> None:
    item = only(document)
    assert from_params(json.loads(json.dumps(to_params(item)))) == item


def test_names_in_lower_case_relative_links_and_spaces_are_understood() -> None:
    item = only(
        rss(
            "<title>T</title><link>index.cfm?Type=Press Release&amp;id=7</link>"
            "<pubdate>Thu, 02 May 2013 11:27:00 EST</pubdate>",
            "<link>http://www.senator.example/public/</link>",
        )
    )
    assert item.link == "http://www.senator.example/public/index.cfm?Type=Press%20Release&id=7"
    assert item.published == datetime(2013, 5, 2, 15, 27, tzinfo=UTC)


def test_a_permanent_guid_stands_for_a_missing_link() -> None:
    assert only(rss("<guid>https://x.example/1</guid>")).link == "https://x.example/1"
    for guid in ('<guid isPermaLink="false">https://x.example/1</guid>', "<guid>7 at x</guid>"):
        assert only(rss(guid)).link is None


def test_a_namespace_of_the_publishers_own_changes_nothing() -> None:
    named = rss("<title>T</title>").replace("<rss ", "<rss xmlns='http://x.example/rss2' ")
    assert only(named).title == "T"


def test_an_empty_item_is_an_item_that_says_nothing() -> None:
    assert only(rss("<title/><pubDate>soon</pubDate><description> </description>")) == FeedItem()


def test_a_feed_without_items_is_a_feed() -> None:
    assert read_feed(b"<rss><channel><title>T</title></channel></rss>").items == ()


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("Tue, 03 Mar 2026 09:00:00 EST", NINE),
        ("Thu, 02 Jul 2026 10:00:00 EST", datetime(2026, 7, 2, 14, tzinfo=UTC)),
        ("Thu, 02 Jul 2026 10:00:00 EDT", datetime(2026, 7, 2, 14, tzinfo=UTC)),
        ("Thu, 02 Jul 2026 10:00:00 -0500", datetime(2026, 7, 2, 15, tzinfo=UTC)),
        ("Thu, 02 Jul 2026 10:00:00 CST", datetime(2026, 7, 2, 15, tzinfo=UTC)),
        ("Thu, 02 Jul 2026 10:00:00 GMT", datetime(2026, 7, 2, 10, tzinfo=UTC)),
        ("Thu, 02 Jul 2026 10:00:00 -0000", datetime(2026, 7, 2, 10, tzinfo=UTC)),
        ("Thu, 02 Jul 2026 10:00:00", datetime(2026, 7, 2, 14, tzinfo=UTC)),
        ("2 Jul 26 10:00 GMT", datetime(2026, 7, 2, 10, tzinfo=UTC)),
        ("Thu,  02 Jul 2026", datetime(2026, 7, 2, 4, tzinfo=UTC)),
        ("2026-07-02T10:00:00Z", datetime(2026, 7, 2, 10, tzinfo=UTC)),
        ("2026-07-02T10:00:00", datetime(2026, 7, 2, 14, tzinfo=UTC)),
        ("2026-07-02 10:00:00+02:00", datetime(2026, 7, 2, 8, tzinfo=UTC)),
        ("Thu, 02 Jul 2026 10:00:00 +0200", datetime(2026, 7, 2, 8, tzinfo=UTC)),
        ("2026-03-02", datetime(2026, 3, 2, 5, tzinfo=UTC)),
    ],
)
def test_moments_are_read_from_every_form(written: str, moment: datetime) -> None:
    assert read_date(written) == moment


@pytest.mark.parametrize(
    "written",
    [None, "", "soon", "Thu, 99 Jul 2026 10:00:00 GMT", "1 Jan 2026 10:99:00", "2026-13-01"],
)
def test_what_is_no_date_is_none(written: str | None) -> None:
    assert read_date(written) is None


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("T&amp;E", "T&E"),
        ("T&amp;amp;E", "T&E"),
        ("T&E", "T&E"),
        ("how R&D writes &amp;", "how R&D writes &amp;"),
        ("&quot;Yes&quot; &#8211; &#x201c;no", '"Yes" – “no'),
        ("?a=1&copy=2", "?a=1&copy=2"),
        ("5 < 6 and 7 > 6", "5 < 6 and 7 > 6"),
        ("<p>One&nbsp;two</p><p>three<br/>four <em>fi</em>ve</p>", "One two three four five"),
        ("<p>T&amp;amp;E</p>", "T&E"),
        ("&lt;p&gt;R&amp;amp;D&lt;/p&gt;", "R&D"),
        ("<script>no()</script>yes", "yes"),
        ("<p></p>", None),
        (" ", None),
        (None, None),
    ],
)
def test_readers_see_no_escapes_and_no_tags(written: str | None, seen: str | None) -> None:
    assert text_only(written) == seen


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (b"<!DOCTYPE html><html><body>Gone</body></html>", WrongContentError, "HTML page"),
        (b"<!-- x -->\n<html><body>Gone</body></html>", WrongContentError, "HTML page"),
        (b"<?xml version='1.0'?><html xmlns='x'/>", WrongContentError, "HTML page"),
        (b"<response><item/></response>", WrongContentError, "response"),
        (b'{"items": []}', WrongContentError, "not XML"),
        (b"", MalformedError, "empty"),
        (b"<rss><channel>", MalformedError, "well-formed"),
        (b'<!DOCTYPE rss [<!ENTITY a "b">]><rss/>', MalformedError, "entities"),
    ],
)
def test_what_is_no_feed_says_what_it_is(data: bytes, error: type[ParseError], cause: str) -> None:
    with pytest.raises(error, match=cause):
        read_feed(data)


def test_dirt_around_and_inside_the_file_is_wiped_off() -> None:
    data = b'\xef\xbb\xbf\r\n <?xml version="1.0"?>' + rss("<title>A\x0bB</title>").encode()
    assert [item.title for item in read_feed(data).items] == ["AB"]


def test_utf_16_is_read() -> None:
    data = ('<?xml version="1.0" encoding="utf-16"?>' + rss("<title>é</title>")).encode("utf-16")
    assert [item.title for item in read_feed(data).items] == ["é"]


@settings(max_examples=60)
@given(st.binary(max_size=60), st.integers(0, len(RSS)), st.integers(0, 20))
def test_damage_is_always_a_named_error(noise: bytes, place: int, cut: int) -> None:
    data = RSS.encode()
    with suppress(ParseError):
        read_feed(data[:place] + noise + data[place + cut :])


@settings(max_examples=60)
@given(st.text(max_size=80))
def test_no_text_breaks_dates_or_plain_text(written: str) -> None:
    moment = read_date(written)
    assert moment is None or moment.tzinfo is not None
    seen = text_only(written)
    assert seen is None or seen == " ".join(seen.split())
