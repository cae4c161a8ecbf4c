"""The laws of the applier."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pams_parallel._applier import (
    AgentResult,
    ReceivedAttributes,
    apply_result,
    set_attributes,
    set_prng_state,
)


class Thing:
    """An agent, as far as the applier knows one."""

    def __init__(self, attributes: dict[str, object], seed: int) -> None:
        vars(self).update(attributes)
        self.prng = random.Random(seed)


class Failing(Thing):
    """Fails when one of its attributes is set."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == vars(self).get("bad"):
            raise LookupError(name)
        super().__setattr__(name, value)


names = st.sampled_from("abcdefgh")
values = st.none() | st.booleans() | st.integers() | st.lists(st.integers(), max_size=2)
attributes = st.dictionaries(names, values)
seeds = st.integers(0, 5)


@st.composite
def received(draw: st.DrawFn) -> ReceivedAttributes:
    """Draw values of some names, and other names that are deleted."""
    present = draw(attributes)
    deleted = draw(st.lists(names, unique=True))
    return ReceivedAttributes(present, tuple(name for name in deleted if name not in present))


def apply(agent: Any, back: ReceivedAttributes, seed: int) -> Any:
    """Apply a result in the runner's own way."""

    def receive_orders(agent: Any, orders: Any, prng_state: Any) -> Any:
        set_prng_state(agent, prng_state)
        return orders

    state = random.Random(seed).getstate()
    result = AgentResult(agent, ["order"], [], state, (*back, *back.deleted), back)
    return apply_result(result, set_attributes, receive_orders)


@given(attributes, received(), seeds)
def test_listed_attributes_are_as_in_the_worker(
    before: dict[str, object], back: ReceivedAttributes, seed: int
) -> None:
    """What came back is there as the very object, and what was deleted is not."""
    agent = Thing(before, 0)
    assert apply(agent, back, seed) == ["order"]
    assert all(vars(agent)[name] is value for name, value in back.items())
    assert not any(name in vars(agent) for name in back.deleted)
    assert agent.prng.getstate() == random.Random(seed).getstate()


@given(attributes, received(), seeds)
def test_touches_listed_attributes_only(
    before: dict[str, object], back: ReceivedAttributes, seed: int
) -> None:
    """All other attributes are the objects that they were, in their order, and none is added."""
    agent = Thing(before, 0)
    others = {
        name: value
        for name, value in vars(agent).items()
        if name not in back and name not in back.deleted
    }
    apply(agent, back, seed)
    left = {name: value for name, value in vars(agent).items() if name not in back}
    assert list(left) == list(others)
    assert all(left[name] is value for name, value in others.items())


@given(attributes, received(), seeds)
def test_idempotent(before: dict[str, object], back: ReceivedAttributes, seed: int) -> None:
    """Applying a result again changes nothing."""
    agent = Thing(before, 0)
    apply(agent, back, seed)
    once, state = dict(vars(agent)), agent.prng.getstate()
    apply(agent, back, seed)
    assert list(vars(agent)) == list(once)
    assert all(vars(agent)[name] is value for name, value in once.items())
    assert agent.prng.getstate() == state


@given(attributes, received(), seeds, st.data())
def test_all_or_nothing(
    before: dict[str, object], back: ReceivedAttributes, seed: int, data: st.DataObject
) -> None:
    """When one of the values cannot be set, none is: the agent is as before."""
    assume(len(back) > 0)
    agent = Failing(before, 0)
    vars(agent)["bad"] = data.draw(st.sampled_from(sorted(back)))
    kept, state = dict(vars(agent)), agent.prng.getstate()
    with pytest.raises(LookupError):
        apply(agent, back, seed)
    assert list(vars(agent)) == list(kept)
    assert all(vars(agent)[name] is value for name, value in kept.items())
    assert agent.prng.getstate() == state
