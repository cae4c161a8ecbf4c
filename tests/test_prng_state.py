"""The packed state of a generator: examples, and what cannot be packed."""

from __future__ import annotations

import random
import secrets
from typing import Any

import numpy as np
import pytest

from pams_parallel._codec.prng_state import (
    PACKED_SIZE,
    is_packable,
    make_prng,
    pack_prng,
    unpack_prng,
)


class Subclass(random.Random):
    """May have a state of its own."""


def test_same_draws() -> None:
    """A generator made from a packed state draws what the first one draws, the gauss included."""
    prng = random.Random(3)
    prng.gauss(0.0, 1.0)
    copy = make_prng(pack_prng(prng))
    for _ in range(3):
        assert copy.gauss(0.0, 1.0) == prng.gauss(0.0, 1.0)
        assert copy.getrandbits(99) == prng.getrandbits(99)
        assert copy.sample(range(1000), 9) == prng.sample(range(1000), 9)


def test_packing_does_not_draw() -> None:
    """A generator is after packing as it was before."""
    prng = random.Random(3)
    before = prng.getstate()
    pack_prng(prng)
    assert prng.getstate() == before


def test_size_is_constant() -> None:
    """Packed states can be laid one behind the other: all have the same size, of 2.5 kB."""
    fresh, used = random.Random(1), random.Random(2)
    used.gauss(0.0, 1.0)
    assert len(pack_prng(fresh)) == len(pack_prng(used)) == PACKED_SIZE
    assert PACKED_SIZE < 2520


def test_reads_from_a_view() -> None:
    """A state is read from a part of a larger buffer, without a copy of it."""
    first, second = random.Random(1), random.Random(2)
    view = memoryview(pack_prng(first) + pack_prng(second))
    assert make_prng(view[PACKED_SIZE:]).getstate() == second.getstate()
    assert unpack_prng(view[:PACKED_SIZE]) == first.getstate()


@pytest.mark.parametrize("size", [0, PACKED_SIZE - 1, PACKED_SIZE + 1])
def test_wrong_size(size: int) -> None:
    """Bytes of another size are no state."""
    with pytest.raises(Exception, match="buffer"):
        unpack_prng(bytes(size))


@pytest.mark.parametrize(
    ("prng", "packable"),
    [
        (random.Random(1), True),
        (Subclass(1), False),
        (secrets.SystemRandom(), False),
        (np.random.default_rng(1), False),
        (np.random.RandomState(1), False),
        (random, False),
        (None, False),
    ],
    ids=repr,
)
def test_only_the_standard_generator_is_packable(prng: Any, packable: bool) -> None:
    """A subclass may have more state: only `random.Random` itself is packed."""
    assert is_packable(prng) is packable
