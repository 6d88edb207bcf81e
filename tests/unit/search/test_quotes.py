"""Quoted words in a text, and what comes nearest to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fonds.search.quote_match import TextSpan, find_quote, nearest, normalize

TEXT = """# § 103. Requests

> (a) **Time.—** The keeper shall answer a *request*
> within ten working days.[^1] Within the same time the re\u00adcord shall be copied — or shown.

- (b) “Form” means a \\[printed\\] sheet; see [the list](https://x.example/l) &amp; its o\ufb03ce.

| Fee | Days |
|---|---|
| $5 | 10\u201315 |

<!-- page 12 -->The keeper’s copy is free\\*. \\_Draft\\_ 請求は十日以内に答える。

[^1]: See 90 Stat. 1.
"""


def found(quote: str, text: str = TEXT) -> str | None:
    span = find_quote(normalize(text), quote)
    return None if span is None else text[span.start : span.end]


@pytest.mark.parametrize(
    "quote",
    [
        "The keeper shall answer a request within ten working days.",
        "The  keeper\nshall\tanswer a\u00a0request within ten",
        "(a) Time. - The keeper shall",
        "**Time.—** The keeper",
        "working days. Within the same time the record shall",
        "the re\u00adcord shall be copied—or shown",
        "copied -- or shown",
        '"Form" means a [printed] sheet',
        "‘Form’ means a printed sheet",
        "``Form'' means",
        "see the list & its office",
        "its o\ufb03ce",
        "10-15",
        "10—15",
        "days. Within",
        "The keeper's copy is free*",
        "The keeper’s copy is free",
        "copy is free. Draft",
        "請求は十日以内に",
        "請求は 十日以内に答える",
        "§ 103. Requests (a) Time",
        "Fee | Days",
        "ten working days,",
        "“ten working days.”",
    ],
)
def test_what_only_printing_changes_makes_no_difference(quote: str) -> None:
    assert found(quote) is not None


@pytest.mark.parametrize(
    "quote",
    [
        "the keeper shall answer",
        "The keeper must answer",
        "keeper shall answer request",
        "en working days",
        "ten working day",
        "The keepershall",
        "ten wor king days",
        "Form means",
        "10.15",
        "https://x.example/l",
        "page 12",
        "The keeper shall answer a request? within",
    ],
)
def test_every_word_and_sign_and_case_counts(quote: str) -> None:
    assert found(quote) is None


@pytest.mark.parametrize(
    ("quote", "stands"),
    [
        ("keeper shall … within the same", None),
        (
            "keeper shall … ten working days",
            "keeper shall answer a *request*\n> within ten working days",
        ),
        ("keeper shall . . . ten working", "keeper shall answer a *request*\n> within ten working"),
        ("keeper shall [...] ten working", "keeper shall answer a *request*\n> within ten working"),
        ("keeper shall * * * ten working", "keeper shall answer a *request*\n> within ten working"),
        ("… ten working days …", "ten working days"),
        ("ten working days . . . . Within", "ten working days.[^1] Within"),
        ("ten working … keeper shall answer", None),
        ("keeper shall (citation omitted) answer", "keeper shall answer"),
        ("keeper [sic] shall", "keeper shall"),
        ("keeper shall answer (emphasis added)", "keeper shall answer"),
        ("[t]he keeper shall", "The keeper shall"),
        ("[W]ithin ten working", "within ten working"),
        ("[w]ithin Ten working", None),
        ("answer [the] request", "answer a *request"),
        ("answer [the] requests", None),
        ("answer [every] *request* within", "answer a *request*\n> within"),
        ("[An officer] shall answer", "shall answer"),
        ("ten working day[s]. Within", "ten working days.[^1] Within"),
        ("a request[s] within", "a *request*\n> within"),
        ("keeper[] shall", "keeper shall"),
        ("The [officer and every one of her deputies] shall", "The keeper shall"),
    ],
)
def test_omissions_and_alterations_are_read_as_such(quote: str, stands: str | None) -> None:
    assert found(quote) == stands


def test_shortest_stretch_is_taken_for_an_omission() -> None:
    text = "The fee is five. The fee is six. The end."
    assert found("The fee … The end", text) == "The fee is six. The end"


def test_brackets_and_remarks_of_the_publisher_may_be_quoted() -> None:
    text = "An Order Nunbered [sic] 11440 of May 11 [May 10], 1954."
    assert found("Order Nunbered [sic] 11440 of May 11 [May 10], 1954", text) is not None
    assert found("Order Nunbered 11440", text) is None


def test_words_in_brackets_stand_for_few_words_only() -> None:
    text = f"The keeper {'x ' * 100}shall answer."
    assert found("The keeper [at once] shall answer", text) is None
    assert found("The keeper … shall answer", text) is not None


def test_stretch_can_be_told() -> None:
    text = "Ten days. Twenty days. Ten days."
    within = TextSpan(text.index("Twenty"), len(text))
    assert find_quote(normalize(text), "Ten days", within) == TextSpan(23, 31)
    assert find_quote(normalize(text), "Ten days. Twenty", within) is None
    assert find_quote(normalize(text), "Twenty days", TextSpan(0, 15)) is None


@pytest.mark.parametrize(
    "nothing", ["", " \n ", "…", "* * *", "[sic]", "**", "\u00ad", "<!-- x -->"]
)
def test_quotation_without_words_is_found_nowhere(nothing: str) -> None:
    assert found(nothing) is None


@pytest.mark.parametrize(
    "hostile",
    [
        "(a+)+$",
        "\\",
        "[",
        "](",
        "<!--",
        "[^",
        "…a",
        "[b] ",
        "'",
        "—",
        "&#x",
        "\ue000[a]",
        "* ",
        "\0",
    ],
)
def test_hostile_quotations_and_texts_are_only_not_found(hostile: str) -> None:
    long = hostile * (40_000 // len(hostile))
    assert find_quote(normalize(TEXT), f"{long}zz") is None
    assert find_quote(normalize(long), "The keeper shall") is None
    assert nearest(TEXT, normalize(TEXT), f"{long}zz") is None


def test_long_text_quoted_whole_is_found() -> None:
    text = "The *keeper* shall answer—“in ten days”.\n\n" * 2_000
    span = find_quote(normalize(text), text)
    assert span is not None
    assert span.start == 0


words = st.text(alphabet="ab A.,'\"-–—*_[](){}\n\\#>|é…ﬁ字\u00ad", max_size=60)


@given(words, st.data())
def test_places_of_the_folded_text_lead_back_to_the_original(
    text: str, data: st.DataObject
) -> None:
    folded = normalize(text)
    assert folded.starts[-1] == len(folded.text)
    ends = [folded.origin(place) for place in range(len(folded.text))]
    assert all(0 <= start < end <= len(text) for start, end in ends)
    assert [start for start, _ in ends] == sorted(start for start, _ in ends)
    at = data.draw(st.integers(0, len(text)))
    place = folded.position(at)
    assert all(end <= at for _, end in ends[:place] if end - 1 < at)
    assert all(end > at for _, end in ends[place:])


SPOKEN = ("keeper", "shall", "answer,", "(a)", "ten", "“days”—or", "–", "not.", "§ 5")


@given(st.lists(st.sampled_from(SPOKEN), min_size=1).filter(lambda each: "ten" in each))
def test_any_whole_words_of_a_text_are_found_in_it(spoken: list[str]) -> None:
    printed = "*\n> *".join(spoken)
    text = f"Before: *{printed}* after."
    assert find_quote(normalize(text), " ".join(spoken)) is not None


def redlined(quote: str, text: str = TEXT) -> str:
    near = nearest(text, normalize(text), quote)
    signs = {"keep": "{}", "delete": "[-{}-]", "insert": "{{+{}+}}"}
    return " ".join(signs[change.op].format(change.text) for change in near.redline) if near else ""


@pytest.mark.parametrize(
    ("quote", "redline"),
    [
        (
            "The keeper shall answer a request within thirty working days.",
            "The keeper shall answer a request within [-thirty-] {+ten+} working days.",
        ),
        (
            "The keeper shall answer a request, within ten working days",
            "The keeper shall answer a request [-,-] within ten working days",
        ),
        (
            "the same time the record may be copied",
            "the same time the record [-may-] {+shall+} be copied",
        ),
        ("nothing of this kind was ever said there", ""),
        ("days", "days"),
    ],
)
def test_nearest_words_are_shown_with_what_differs(quote: str, redline: str) -> None:
    assert redlined(quote) == redline


def test_nearest_is_a_stretch_of_the_text() -> None:
    near = nearest(
        TEXT, normalize(TEXT), "the keeper shall answer a request within ten working days"
    )
    assert near is not None
    assert TEXT[slice(*near.span)].startswith("The keeper")
    assert TEXT[slice(*near.span)].endswith("days")
    assert 0.8 < near.similarity < 1
