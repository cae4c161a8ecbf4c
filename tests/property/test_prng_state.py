"""The law of packed generator states."""

from __future__ import annotations

import random
import struct

from hypothesis import example, given
from hypothesis import strategies as st

from pams_parallel._codec.prng_state import make_prng, pack_prng, unpack_prng


def bits(value: float | None) -> bytes | None:
    """Return all of a float, the sign of zero and of NaN included."""
    return None if value is None else struct.pack("<d", value)


@given(
    words=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=624),
    position=st.integers(0, 624),
    gauss=st.none() | st.floats(),
)
@example([0], 624, -0.0)
@example([1], 0, 0.0)
@example([2**32 - 1], 1, None)
def test_every_state_comes_back_to_the_bit(
    words: list[int], position: int, gauss: float | None
) -> None:
    """Unpacking a packed state gives the state: version, words, position and pending gauss."""
    repeated = (words * 624)[:624]
    prng = random.Random(0)
    prng.setstate((3, (*repeated, position), gauss))
    data = pack_prng(prng)
    for version, numbers, pending in (unpack_prng(data), make_prng(data).getstate()):
        assert version == 3
        assert numbers == (*repeated, position)
        assert bits(pending) == bits(gauss)
