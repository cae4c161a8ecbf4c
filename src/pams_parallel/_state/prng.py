"""The states of random number generators, short enough to be read."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import numpy as np


def generator_items(value: object) -> list[tuple[str, object]] | None:
    """Return the state of a generator by parts, or None for anything else.

    The 624 words of a Mersenne Twister are told by their SHA-256: which word differs tells nothing.
    """
    if isinstance(value, random.Random):
        return _random_items(value)
    if isinstance(value, np.random.Generator):
        return _numpy_items(value.bit_generator.state)
    if isinstance(value, np.random.BitGenerator):
        return _numpy_items(value.state)
    if isinstance(value, np.random.RandomState):
        return _numpy_items(value.get_state(legacy=False))
    return None


def _random_items(value: random.Random) -> list[tuple[str, object]]:
    try:
        state: Any = value.getstate()
    except NotImplementedError:
        # the system's own source of randomness has no state
        return []
    if not (isinstance(state, tuple) and len(state) == 3 and isinstance(state[1], tuple)):
        return [(".state", state)]
    version, words, gauss = state
    return [
        (".version", version),
        (".position", words[-1] if words else None),
        (".words", _sha(words[:-1])),
        (".gauss_next", gauss),
    ]


def _numpy_items(state: Any) -> list[tuple[str, object]]:
    items: list[tuple[str, object]] = []
    for key in sorted(state):
        part = state[key]
        if isinstance(part, dict):
            items.extend((f".{key}{label}", inner) for label, inner in _numpy_items(part))
        else:
            items.append((f".{key}", _sha(part.tolist()) if isinstance(part, np.ndarray) else part))
    return items


def _sha(words: Any) -> str:
    return hashlib.sha256(repr([*words]).encode()).hexdigest()
