"""From a batch of agents to the chunks that workers get."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise, zip_longest
from typing import Final, TypeVar

from .exceptions import ChunkingError

T = TypeVar("T")

_NOTHING: Final = object()


def plan_chunks(agents: Sequence[T], num_chunks: int) -> list[list[T]]:
    """Split agents into consecutive chunks of nearly equal size.

    Args:
        agents: the batch, in asked order.
        num_chunks: the largest number of chunks, at least 1.

    Returns:
        At most ``num_chunks`` chunks, none empty, sizes differing by at most one and the larger
        first; put together they are the batch.
    """
    num_chunks = min(num_chunks, len(agents))
    if num_chunks == 0:
        return []
    size, larger = divmod(len(agents), num_chunks)
    ends = [size * i + min(i, larger) for i in range(num_chunks + 1)]
    return [list(agents[start:end]) for start, end in pairwise(ends)]


def check_chunks(agents: Sequence[T], chunks: Iterable[Iterable[T]]) -> list[list[T]]:
    """Return the chunks of an overridden hook without the empty ones, if they are a partition.

    Agents are compared by identity: a class may define an equality of its own.

    Raises:
        ChunkingError: agents are lost, repeated, reordered or copied.
    """
    try:
        checked = [list(chunk) for chunk in chunks]
    except TypeError as error:
        raise ChunkingError(f"must return a list of lists of agents ({error})") from error
    planned = [agent for chunk in checked for agent in chunk]
    for given, got in zip_longest(agents, planned, fillvalue=_NOTHING):
        if given is not got:
            raise ChunkingError(_describe(agents, planned))
    return [chunk for chunk in checked if chunk]


def _describe(agents: Sequence[T], planned: Sequence[T]) -> str:
    """Say in which way the planned agents are not the given ones."""
    given_ids = {id(agent) for agent in agents}
    planned_ids = {id(agent) for agent in planned}
    if planned_ids - given_ids:
        return "returned objects that are not among the given agents (copies?)"
    if given_ids - planned_ids:
        return f"lost {len(given_ids - planned_ids)} of {len(agents)} agents"
    if len(planned) > len(agents):
        return "returned an agent more than once"
    return "changed the order of the agents"
