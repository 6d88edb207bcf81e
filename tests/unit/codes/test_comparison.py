"""Matching the sections of two editions by their texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fonds.codes.diff.renumbering import (
    TEXT_BATCH_SIZE,
    Match,
    match_sections,
    shingles,
    similarity,
    sketch,
    without_currency_lines,
)

SUBJECTS = ["harbor", "museum", "orchard", "railway", "ferry", "archive", "quarry", "theatre"]


def law(subject: str, number: str = "1", days: int = 30) -> str:
    """A section about its subject, in words no other subject shares three in a row."""
    about = "\n\n".join(
        f"({letter}) Every {subject} {subject}{letter} keeper{letter} of a {subject} pays within "
        f"{days} {subject} days what {subject} board {letter}{subject} asks of each {subject}."
        for letter in "abcdef"
    )
    return f"# § {number}. On the {subject}\n\n{about}\n"


class Shelf:
    """Texts by path, which remembers how many were asked for at a time."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self.asked: list[int] = []

    def read(self, paths: Sequence[str]) -> dict[str, str]:
        self.asked.append(len(paths))
        return {path: self.texts[path] for path in paths}


def matched(old: Mapping[str, str], new: Mapping[str, str]) -> list[Match]:
    return match_sections(old, new, Shelf(old).read, Shelf(new).read)


def pairs(old: Mapping[str, str], new: Mapping[str, str]) -> set[tuple[str, str, str]]:
    return {(match.old, match.new, match.recognised_by) for match in matched(old, new)}


def test_equal_text_under_another_number_is_the_same_section() -> None:
    old, new = {"t/s-5": law("harbor", "5")}, {"t/s-9": law("harbor", "9")}
    assert matched(old, new) == [
        Match(old="t/s-5", new="t/s-9", recognised_by="text", similarity=1.0)
    ]


def test_amended_text_under_another_number_is_recognised_by_its_similarity() -> None:
    old = {f"t/s-{n}": law(subject) for n, subject in enumerate(SUBJECTS)}
    new = {f"t/s-{n + 100}": law(subject, days=60) for n, subject in enumerate(SUBJECTS)}
    expected = {(f"t/s-{n}", f"t/s-{n + 100}", "similarity") for n in range(len(SUBJECTS))}
    assert pairs(old, new) == expected
    assert all(0.55 <= match.similarity < 1 for match in matched(old, new))


def test_different_texts_are_not_paired() -> None:
    assert matched({"t/s-5": law("harbor")}, {"t/s-9": law("museum")}) == []


def test_number_kept_under_another_parent_needs_less_similarity() -> None:
    tail = "\n\n".join(law("quarry").split("\n\n")[1:])
    before, after = law("harbor"), law("harbor") + tail + tail.replace("quarry", "bakery")
    assert 0.25 <= similarity(shingles(before), shingles(after)) < 0.55
    assert pairs({"t/c-1/s-5": before}, {"t/c-2/s-5": after}) == {
        ("t/c-1/s-5", "t/c-2/s-5", "number")
    }
    assert pairs({"t/c-1/s-5": before}, {"t/c-2/s-6": after}) == set()


def test_short_equal_texts_are_not_paired() -> None:
    reserved = "# § {}. Reserved\n\nReserved for later use.\n"
    assert matched({"t/s-5": reserved.format(5)}, {"t/s-9": reserved.format(9)}) == []


def test_equal_texts_prefer_their_own_number() -> None:
    same = law("harbor")
    old = {"t/c-1/s-1": same, "t/c-1/s-2": same}
    new = {"t/c-2/s-2": same, "t/c-2/s-1": same}
    assert pairs(old, new) == {
        ("t/c-1/s-1", "t/c-2/s-1", "text"),
        ("t/c-1/s-2", "t/c-2/s-2", "text"),
    }


def test_repeated_numbers_are_paired_by_their_texts() -> None:
    old = {"t/s-548": law("harbor"), "t/s-548~2": law("harbor", days=60)}
    new = {"t/s-548": law("harbor", days=60)}
    assert pairs(old, new) == {("t/s-548~2", "t/s-548", "text")}


def test_no_section_is_paired_twice() -> None:
    old = {"t/s-1": law("harbor", days=30)}
    new = {"t/s-2": law("harbor", days=31), "t/s-3": law("harbor", days=32)}
    assert len(matched(old, new)) == 1


def test_few_texts_are_read_at_a_time() -> None:
    old = Shelf({f"t/s-{n}": law(f"subject{n}") for n in range(60)})
    new = Shelf({f"t/s-{n + 100}": law(f"subject{n}", days=45) for n in range(60)})
    assert len(match_sections(old.texts, new.texts, old.read, new.read)) == 60
    assert max(old.asked + new.asked) <= TEXT_BATCH_SIZE


def test_boilerplate_neither_matches_nor_makes_every_pair_a_candidate() -> None:
    closing = " This section takes effect on the day on which it is published in the gazette."
    old = Shelf({f"t/s-{n}": f"# § {n}.\n\nold{n}a old{n}b old{n}c.{closing}" for n in range(50)})
    new = Shelf({f"t/s-{n + 99}": f"# § {n}.\n\nnew{n}a new{n}b.{closing}" for n in range(50)})
    assert match_sections(old.texts, new.texts, old.read, new.read) == []
    assert sum(old.asked) == 50


def test_similarity_ignores_heading_and_number() -> None:
    assert sketch("# § 5. Fees\n\nTen dollars.") == sketch("# § 9. Charges\n\nTen dollars.")
    assert sketch("§ 5. Ten dollars.").core == sketch("§ 9. Ten dollars.").core
    assert sketch("§ 5. Ten dollars.").core != sketch("§ 5. Two dollars.").core


def test_currency_line_of_the_edition_is_removed_and_law_about_dates_is_not() -> None:
    stamped = "# § 5. Fees\n\nTen dollars.\n\nCurrent through the 2025 session.\n"
    assert without_currency_lines(stamped) == "# § 5. Fees\n\nTen dollars.\n\n"
    law_text = "(a) Current as of 2025, the fee is ten dollars.\n\nThe fee current through 2025.\n"
    assert without_currency_lines(law_text) == law_text


def test_similarity_of_empty_texts_is_none() -> None:
    assert similarity(shingles("# § 1."), shingles("# § 2.")) == 0.0
