from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.embed.batches import MAX_TEXTS, MAX_TWINS, BatchBuilder, PassageBatch
from fonds.stores.vector_buffer import PendingPassage


def passage(row: int, sha: str | None = None, tokens: int = 100) -> PendingPassage:
    return PendingPassage(row, 0, sha or f"sha {row}", f"text {row}", tokens, False, f"note:{row}")


def gathered(gatherer: BatchBuilder, passages: list[PendingPassage]) -> list[PassageBatch]:
    batches = [gatherer.add(one) for one in passages]
    return [batch for batch in (*batches, gatherer.close()) if batch is not None]


def sizes(batches: list[PassageBatch]) -> list[int]:
    return [len(batch.leaders) for batch in batches]


def test_a_batch_has_no_more_texts_than_a_request_may_have() -> None:
    batches = gathered(BatchBuilder(10**9), [passage(row) for row in range(600)])
    assert sizes(batches) == [MAX_TEXTS, MAX_TEXTS, 600 - 2 * MAX_TEXTS]


def test_a_batch_has_no_more_tokens_than_the_model_wants() -> None:
    batches = gathered(BatchBuilder(1000), [passage(row, tokens=300) for row in range(7)])
    assert sizes(batches) == [3, 3, 1]


def test_a_text_larger_than_a_batch_goes_alone() -> None:
    tokens = [10, 5000, 10, 10]
    batches = gathered(BatchBuilder(1000), [passage(row, tokens=n) for row, n in enumerate(tokens)])
    assert sizes(batches) == [1, 1, 2]


def test_equal_texts_are_sent_once() -> None:
    (batch,) = gathered(BatchBuilder(1000), [passage(1, "a"), passage(2, "b"), passage(3, "a")])
    assert [one.row for one in batch.leaders] == [1, 2]
    assert [one.row for one in batch.twins] == [3]


def test_a_text_that_was_sent_is_waited_for_until_it_is_settled() -> None:
    gatherer = BatchBuilder(1000)
    (batch,) = gathered(gatherer, [passage(1, "a")])
    assert gatherer.add(passage(2, "a")) is None
    assert gatherer.close() is None
    assert [one.row for one in gatherer.finish(batch)] == [2]
    assert gatherer.finish(batch) == []
    gatherer.add(passage(3, "a"))
    assert gatherer.close() is not None


def test_a_thousand_equal_texts_do_not_pile_up() -> None:
    gatherer = BatchBuilder(1000)
    same = [passage(row, "a") for row in range(MAX_TWINS + 1)]
    batch = [gatherer.add(one) for one in same][-1]
    assert batch is not None
    assert len(batch.twins) == MAX_TWINS
    for row in range(MAX_TWINS):
        assert not gatherer.is_full
        gatherer.add(passage(row, "a"))
    assert gatherer.is_full


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 700)), max_size=60))
def test_every_passage_is_in_exactly_one_batch_and_every_text_sent_once(
    drawn: list[tuple[int, int]],
) -> None:
    passages = [passage(row, f"{sha}", tokens) for row, (sha, tokens) in enumerate(drawn)]
    gatherer = BatchBuilder(1000)
    batches = gathered(gatherer, passages)
    late = [one for batch in batches for one in gatherer.finish(batch)]
    seen = [one.row for batch in batches for one in (*batch.leaders, *batch.twins)]
    assert sorted(seen + [one.row for one in late]) == [one.row for one in passages]
    texts = [one.sha for batch in batches for one in batch.leaders]
    assert sorted(texts) == sorted({one.sha for one in passages})
    for batch in batches:
        assert len(batch.leaders) == 1 or sum(one.tokens for one in batch.leaders) <= 1000
        assert {one.sha for one in batch.twins} <= {one.sha for one in batch.leaders}
