from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.chunk.boundaries import blocks
from fonds.chunk.chunker import Chunker
from fonds.chunk.enumeration import Enumeration, read_enumeration
from fonds.chunk.headings import read_outline
from fonds.chunk.tokens import count
from fonds.model import Chunk, NormalizedBody
from fonds.results import ChunkLocator
from fonds.stores.passages import chunk_meta

FILLER = "each vessel holds a volatile liquid under the limits of this part and is inspected yearly"


def enumeration_of(text: str) -> Enumeration:
    return read_enumeration(text, list(blocks(read_outline(text), 0, len(text))))


def paths_of(*paragraphs: str) -> list[str]:
    text = "\n\n".join(paragraphs)
    enumeration = enumeration_of(text)
    return ["".join(enumeration.path(text.index(paragraph))) for paragraph in paragraphs]


def chunks_of(text: str, cap: int, overlap: int = 0) -> list[Chunk]:
    return Chunker(max_tokens=cap, overlap_tokens=overlap).chunk(NormalizedBody(markdown=text))


def test_paths_follow_the_sequence_of_labels() -> None:
    assert paths_of(
        "The owner shall:", "(a) one:", "(1) two", "(2) three—", "(A) four", "(B) five", "(b) six"
    ) == ["", "(a)", "(a)(1)", "(a)(2)", "(a)(2)(A)", "(a)(2)(B)", "(b)"]


def test_letter_i_continues_letters() -> None:
    assert paths_of("(g) x.", "(h) y.", "(i) z.", "(j) w.") == ["(g)", "(h)", "(i)", "(j)"]


def test_numeral_i_opens_a_list() -> None:
    found = paths_of("(h) x:", "(1) y:", "(i) z;", "(ii) w.", "(i) v.", "(j) u.")
    assert found == ["(h)", "(h)(1)", "(h)(1)(i)", "(h)(1)(ii)", "(i)", "(j)"]


def test_letter_i_with_numerals_of_its_own_is_a_letter() -> None:
    found = paths_of("(h) x.", "(i) y.", "(1) z:", "(i) w;", "(ii) v.", "(j) u.")
    assert found == ["(h)", "(i)", "(i)(1)", "(i)(1)(i)", "(i)(1)(ii)", "(j)"]


def test_numeral_v_continues_numerals_though_u_came_before() -> None:
    found = paths_of("(u) x:", "(1) a:", "(i) b", "(ii) c", "(iii) d", "(iv) e", "(v) f", "(vi) g")
    assert found[-2:] == ["(u)(1)(v)", "(u)(1)(vi)"]


def test_fifth_level_of_regulations_repeats_the_second() -> None:
    found = paths_of("(a) x:", "(1) y:", "(i) z:", "(A) w:", "(1) v", "(2) u", "(B) t", "(2) s")
    assert found[4:] == ["(a)(1)(i)(A)(1)", "(a)(1)(i)(A)(2)", "(a)(1)(i)(B)", "(a)(2)"]


def test_labels_put_in_later_stand_between() -> None:
    assert paths_of("(1) x", "(1a) y", "(2) z") == ["(1)", "(1a)", "(2)"]
    assert paths_of("(a) x", "(a-1) y", "(b) z") == ["(a)", "(a-1)", "(b)"]


def test_repealed_labels_leave_a_gap() -> None:
    assert paths_of("(a) x:", "(1) y", "(5) z", "(d) w") == ["(a)", "(a)(1)", "(a)(5)", "(d)"]


def test_german_and_japanese_lists_nest() -> None:
    assert paths_of("(1) Wer", "1. eins", "a) zwei", "b) drei", "2. vier", "(2) Der") == [
        "(1)", "(1)1.", "(1)1.a)", "(1)1.b)", "(1)2.", "(2)",
    ]  # fmt: skip
    assert paths_of("１　この", "一　法人", "イ　個人", "ロ　団体", "二　国", "２　前項") == [
        "１", "１一", "１一イ", "１一ロ", "１二", "２",
    ]  # fmt: skip


def test_quoted_provision_has_a_numbering_of_its_own() -> None:
    found = paths_of("(a) as follows:", "> “(3) new", "> “(4) newer", "(b) further")
    assert found == ["(a)", "(a)“(3)", "(a)“(4)", "(b)"]


def test_flush_text_belongs_to_the_list_and_a_credit_to_nothing() -> None:
    found = paths_of("(a) x:", "(1) y", "(2) z.", "The list is closed.", "(Pub. L. 90–1, § 1.)")
    assert found[3:] == ["(a)", ""]


def test_terms_start_lists_anew() -> None:
    found = paths_of("*Act.* One:", "(a) x", "(b) y", "*Bill.* Two:", "(a) z")
    assert found == ["", "(a)", "(b)", "", "(a)"]


def test_initial_of_a_name_is_no_label() -> None:
    assert paths_of("1. One", "J. Smith wrote", "2. Two") == ["1.", "", "2."]


def test_lead_ins_are_those_of_the_lists_around() -> None:
    text = "For this part:\n\n(a) *Vessel* means—\n\n(1) one\n\n(2) two:\n\n(i) three\n\n(ii) four"
    enumeration = enumeration_of(text)
    assert enumeration.lead_ins(text.index("(ii)")) == ("For this part:", "Vessel means—", "two:")
    assert enumeration.lead_ins(text.index("(2)")) == ("For this part:", "Vessel means—")
    assert enumeration.lead_ins(text.index("four")) == (
        "For this part:", "Vessel means—", "two:", "four",
    )  # fmt: skip
    assert enumeration.lead_ins(0) == ()


def test_long_lead_in_is_its_last_sentence_or_shortened() -> None:
    long = f"(a) {FILLER} {FILLER} {FILLER}. The owner shall:"
    text = f"{long}\n\n(1) one\n\n(2) two"
    assert enumeration_of(text).lead_ins(text.index("(2)")) == ("The owner shall:",)
    text = text.replace(". The owner shall:", ":")
    (lead_in,) = enumeration_of(text).lead_ins(text.index("(2)"))
    assert lead_in.startswith("each vessel")
    assert lead_in.endswith("…")
    assert len(lead_in) <= 201


def test_one_label_is_no_enumeration() -> None:
    assert not enumeration_of("(a) only one\n\nand text")
    assert enumeration_of("(a) one\n\n(b) two")


SECTION = "\n\n".join(
    [
        "# § 60.112b Standard",
        "The owner of each vessel shall meet these requirements:",
        f"(a) {FILLER}, with one of:",
        f"(1) {FILLER}:",
        *[f"({roman}) {FILLER}." for roman in ("i", "ii", "iii")],
        f"(2) {FILLER}.",
        f"(b) {FILLER}:",
        *[f"({number}) {FILLER}." for number in (1, 2, 3)],
        f"(c) {FILLER}.",
    ]
)


def test_section_is_cut_at_the_shallowest_labels_that_fill_passages() -> None:
    chunks = chunks_of(SECTION, 80)
    assert [("".join(chunk.enumeration), chunk.lead_ins) for chunk in chunks] == [
        ("", ()),
        ("(a)(1)(ii)", (
            "The owner of each vessel shall meet these requirements:",
            f"{FILLER}, with one of:",
            f"{FILLER}:",
        )),
        ("(b)", ("The owner of each vessel shall meet these requirements:",)),
        ("(c)", ("The owner of each vessel shall meet these requirements:",)),
    ]  # fmt: skip
    assert [chunk.text[:4] for chunk in chunks[1:]] == ["(ii)", "(b) ", "(c) "]


def test_passage_at_a_label_repeats_nothing() -> None:
    for before, after in pairwise(chunks_of(SECTION, 80, 40)):
        assert before.end <= after.start


def test_section_that_fits_says_nothing_of_its_labels() -> None:
    (chunk,) = chunks_of(SECTION, 2000)
    assert (chunk.enumeration, chunk.lead_ins) == ((), ())


def test_quoted_list_is_cut_at_its_labels() -> None:
    quoted = "\n>\n".join(f"> “({number}) {FILLER}." for number in range(1, 9))
    chunks = chunks_of(f"It is amended to read as follows:\n\n{quoted}", 64)
    assert len(chunks) > 3
    assert all(chunk.text.startswith("> “(") for chunk in chunks[1:])


STYLES = (
    lambda n: f"({'abcdefghjkmnopqrstuwyz'[n]})",
    lambda n: f"({n + 1})",
    lambda n: f"({('i', 'ii', 'iii', 'iv', 'v', 'vi', 'vii', 'viii')[n]})",
    lambda n: f"({'ABCDEFGHJKMN'[n]})",
)
Tree = list["Tree"]
TREES: st.SearchStrategy[Tree] = st.recursive(
    st.just([]), lambda children: st.lists(children, max_size=4), max_leaves=25
)


def written(tree: Tree, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], str]]:
    """Each item's path and its paragraph; letters that are also numerals are left out."""
    rows: list[tuple[tuple[str, ...], str]] = []
    for number, below in enumerate(tree):
        if len(path) == len(STYLES):
            break
        label = STYLES[len(path)](number)
        mark = ":" if below else "."
        here = (*path, label)
        rows += [(here, f"{label} {FILLER} {''.join(here)}{mark}"), *written(below, here)]
    return rows


@settings(max_examples=60)
@given(tree=TREES, cap=st.integers(32, 200), overlap=st.integers(0, 16))
def test_paths_of_random_trees_are_found(tree: Tree, cap: int, overlap: int) -> None:
    rows = written(tree)
    text = "\n\n".join(paragraph for _, paragraph in rows)
    chunks = chunks_of(f"# Heading\n\n{text}", cap, overlap)
    paths = {paragraph: path for path, paragraph in rows}
    for chunk in chunks:
        assert chunk.tokens == count(chunk.text) <= cap
        if len(chunks) > 1 and len(rows) > 1:
            whole = next((p for p in paths if chunk.text.startswith(p)), None)
            assert whole is None or chunk.enumeration == paths[whole]
    for before, after in pairwise(chunks):
        assert before.start < after.start
    if rows and not overlap:
        assert " ".join(chunk.text for chunk in chunks).split() == text.split()


def test_locator_carries_path_and_lead_ins_only_where_there_are_any() -> None:
    whole, cut = chunks_of(SECTION, 2000)[0], chunks_of(SECTION, 80)[2]
    assert set(chunk_meta(whole)["locator"]) == {"heading_path"}
    locator = ChunkLocator(**chunk_meta(cut)["locator"])
    assert locator.enumeration == ["(b)"]
    assert locator.lead_ins == ["The owner of each vessel shall meet these requirements:"]
    assert "enumeration" in locator.model_dump()
    assert set(ChunkLocator().model_dump()) == {"heading_path", "section", "page"}


def test_jumbled_lists_do_not_nest_without_end() -> None:
    text = "\n\n".join(["(1) x", "(a) y"] * 500)
    assert len(enumeration_of(text).path(len(text) - 1)) <= 14


def test_empty_lines_of_a_quotation_are_read_once() -> None:
    text = "> (a) x\n" + ">\n" * 100_000 + "> (b) y\n" + ">\n" * 100_000
    assert enumeration_of(text).path(text.index("y")) == ("(b)",)
