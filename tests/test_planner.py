"""Chunks: examples of the plan, and what is refused of an overridden one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from pams_parallel import ChunkingError
from pams_parallel._planner import check_chunks, plan_chunks


class Twin:
    """Equal to every other, as an agent class with an equality of its own may be."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Twin)

    def __hash__(self) -> int:
        return 0


AGENTS = [Twin() for _ in range(4)]
A, B, C, D = AGENTS

Chunks = Iterable[Iterable[Twin]]


@pytest.mark.parametrize(
    ("n_agents", "n_chunks", "sizes"),
    [
        (10, 3, [4, 3, 3]),
        (5, 2, [3, 2]),
        (6, 3, [2, 2, 2]),
        (3, 5, [1, 1, 1]),
        (7, 1, [7]),
        (1, 1, [1]),
        (0, 4, []),
    ],
)
def test_plan(n_agents: int, n_chunks: int, sizes: list[int]) -> None:
    """Chunks are as many as can be, the larger first."""
    chunks = plan_chunks(range(n_agents), n_chunks)
    assert [len(chunk) for chunk in chunks] == sizes
    assert [agent for chunk in chunks for agent in chunk] == list(range(n_agents))


def test_plan_leaves_the_batch_alone() -> None:
    """The chunks are new lists: what is done to them is not done to the batch."""
    batch = [1, 2, 3]
    plan_chunks(batch, 1)[0].clear()
    assert batch == [1, 2, 3]


REFUSED: dict[str, tuple[Chunks, str]] = {
    "one is lost": ([[A, B], [C]], "lost 1 of 4 agents"),
    "all are lost": ([], "lost 4 of 4 agents"),
    "one stands for another": ([[A, B], [C, C]], "lost 1 of 4 agents"),
    "one is repeated": ([[A, B], [B, C, D]], "more than once"),
    "all are repeated": ([AGENTS, AGENTS], "more than once"),
    "two are exchanged": ([[A, C], [B, D]], "changed the order"),
    "the chunks are exchanged": ([[C, D], [A, B]], "changed the order"),
    "an equal copy": ([[A, B], [C, Twin()]], "not among the given agents"),
    "an equal copy more": ([[A, B], [C, D, Twin()]], "not among the given agents"),
}


@pytest.mark.parametrize(("chunks", "problem"), REFUSED.values(), ids=REFUSED)
def test_no_partition_is_refused(chunks: Chunks, problem: str) -> None:
    """Agents that are lost, repeated, reordered or copied are an error that names the hook."""
    with pytest.raises(ChunkingError, match="^_split_agents_into_chunks .*" + problem):
        check_chunks(AGENTS, chunks)


ACCEPTED: dict[str, Callable[[], Chunks]] = {
    "lists": lambda: [[A, B], [C, D]],
    "tuples": lambda: ((A, B), (C, D)),
    "with empty ones": lambda: [[], [A, B], [], [C, D], []],
    "generators": lambda: (iter(chunk) for chunk in ([A, B], [C, D])),
}


@pytest.mark.parametrize("make", ACCEPTED.values(), ids=ACCEPTED)
def test_partition_is_accepted(make: Callable[[], Chunks]) -> None:
    """Any iterables that put together are the batch come back as lists, the empty ones dropped."""
    checked = check_chunks(AGENTS, make())
    assert [[id(agent) for agent in chunk] for chunk in checked] == [[id(A), id(B)], [id(C), id(D)]]


@pytest.mark.parametrize("chunks", [[], [[]], [[], []]])
def test_nothing_to_split(chunks: list[list[Twin]]) -> None:
    """No agents in no chunks, or in empty ones, are no chunks."""
    assert check_chunks([], chunks) == []


@pytest.mark.parametrize("chunks", [None, 3, AGENTS, [AGENTS, None]], ids=repr)
def test_what_cannot_be_iterated_is_refused(chunks: Any) -> None:
    """What is no iterable of iterables is an error that names the hook, with Python's own words."""
    with pytest.raises(ChunkingError, match=r"^_split_agents_into_chunks .*not iterable") as caught:
        check_chunks(AGENTS, chunks)
    assert isinstance(caught.value.__cause__, TypeError)


def test_error_of_a_generator_is_its_own() -> None:
    """An error that an overridden hook raises while it yields is not taken for a bad split."""

    def broken() -> Iterator[list[Twin]]:
        yield [A]
        raise LookupError("of the hook")

    with pytest.raises(LookupError, match="of the hook"):
        check_chunks(AGENTS, broken())
