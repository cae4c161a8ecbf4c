"""The laws of the planner."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from pams_parallel import ChunkingError
from pams_parallel._planner import check_chunks, plan_chunks


class Twin:
    """Equal to every other: only identity tells two of them apart."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Twin)

    def __hash__(self) -> int:
        return 0


def ids(agents: list[Twin]) -> list[int]:
    """Return who is there, by identity."""
    return [id(agent) for agent in agents]


batches = st.integers(0, 120).map(lambda size: [Twin() for _ in range(size)])
numbers_of_chunks = st.integers(1, 150)


@given(batches, numbers_of_chunks)
def test_chunks_put_together_are_the_batch(batch: list[Twin], number: int) -> None:
    """Chunks are a partition of the batch that keeps its order."""
    chunks = plan_chunks(batch, number)
    assert ids([agent for chunk in chunks for agent in chunk]) == ids(batch)


@given(batches, numbers_of_chunks)
def test_sizes_differ_by_one_at_most(batch: list[Twin], number: int) -> None:
    """The largest chunk has at most one agent more than the smallest, and the larger come first."""
    sizes = [len(chunk) for chunk in plan_chunks(batch, number)]
    assert max(sizes, default=0) - min(sizes, default=0) <= 1
    assert sizes == sorted(sizes, reverse=True)


@given(batches, numbers_of_chunks)
def test_no_worker_is_idle_without_need(batch: list[Twin], number: int) -> None:
    """There are as many chunks as asked for, or as agents if these are fewer; none is empty."""
    chunks = plan_chunks(batch, number)
    assert len(chunks) == min(number, len(batch))
    assert all(chunks)


@given(batches, st.data())
def test_every_cut_of_the_batch_is_accepted(batch: list[Twin], data: st.DataObject) -> None:
    """Consecutive chunks of any sizes pass the check as they are, the empty ones left out."""
    cuts = data.draw(st.lists(st.integers(0, len(batch))).map(sorted))
    chunks = [batch[i:j] for i, j in zip([0, *cuts], [*cuts, len(batch)], strict=True)]
    expected = [ids(chunk) for chunk in chunks if chunk]
    assert [ids(chunk) for chunk in check_chunks(batch, chunks)] == expected


@given(st.integers(0, 4), st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=4))
@example(3, [[0, 1], [2]])
@example(3, [[0], [], [1, 2]])
def test_only_the_batch_itself_is_accepted(size: int, picks: list[list[int]]) -> None:
    """Chunks pass the check if and only if put together they are the batch, by identity."""
    known = [Twin() for _ in range(6)]
    batch = known[:size]
    chunks = [[known[number] for number in chunk] for chunk in picks]
    try:
        check_chunks(batch, chunks)
    except ChunkingError:
        accepted = False
    else:
        accepted = True
    assert accepted == ([number for chunk in picks for number in chunk] == list(range(size)))
