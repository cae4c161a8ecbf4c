"""Results to the agents of main: what is set, in which order, and what a failure leaves."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from sample_agents import LastDrawRandom

from pams_parallel._applier import (
    AgentResult,
    ReceivedAttributes,
    apply_result,
    set_attributes,
    set_prng_state,
)


class Thing:
    """An agent, as far as the applier knows one."""

    def __init__(self, **attributes: object) -> None:
        vars(self).update(attributes)


class Recorder:
    """A logger that notes its calls."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def write(self, *args: object, **kwargs: object) -> None:
        """Note the call."""
        self.calls.append(("write", args, kwargs))

    def bulk_write(self, *args: object, **kwargs: object) -> None:
        """Note the call."""
        self.calls.append(("bulk_write", args, kwargs))


class StepError(Exception):
    """What a step of these tests raises."""


class Guarded(Thing):
    """Refuses to have some attributes set."""

    refused: tuple[str, ...] = ()

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.refused:
            raise StepError(name)
        super().__setattr__(name, value)


def result_for(
    agent: object,
    attributes: Mapping[str, object] | None = None,
    deleted: tuple[str, ...] = (),
    *,
    orders: Any = None,
    calls: list[Any] | None = None,
    prng_state: Any = None,
) -> AgentResult:
    """Return a result that lists what comes back."""
    received = ReceivedAttributes(attributes or {}, deleted)
    return AgentResult(
        agent=agent,
        orders=[] if orders is None else orders,
        calls=calls or [],
        prng_state=prng_state,
        names=(*received, *deleted),
        attributes=received,
    )


def receive_orders(agent: Any, orders: Any, prng_state: Any) -> Any:
    """Do what the runner's hook does by default."""
    set_prng_state(agent, prng_state)
    return orders


def fail(*args: object) -> Any:
    """Do what a broken hook does."""
    raise StepError("of the hook")


def apply(result: AgentResult, **hooks: Callable[..., Any]) -> Any:
    """Apply a result with the runner's own hooks, unless others are given."""
    return apply_result(
        result,
        hooks.get("attributes", set_attributes),
        hooks.get("orders", receive_orders),
    )


# ---------------------------------------------------------------------- what is applied


def test_all_parts() -> None:
    """Attributes, generator and orders of a result come to its agent."""
    agent = Thing(a=1, b=2, other=3, prng=random.Random(1))
    orders = [object()]
    state = random.Random(2).getstate()
    value = [5]
    assert apply(result_for(agent, {"a": value}, ("b",), orders=orders, prng_state=state)) is orders
    assert list(vars(agent)) == ["a", "other", "prng"]
    assert vars(agent)["a"] is value
    assert vars(agent)["prng"].getstate() == state


@pytest.mark.parametrize("value", [None, 0, -0.0, "", False, [], (), {}], ids=repr)
def test_falsy_value(value: object) -> None:
    """A falsy value is set as it is."""
    agent = Thing(a="of main")
    apply(result_for(agent, {"a": value}))
    assert vars(agent)["a"] is value


def test_same_generator() -> None:
    """The agent's generator is brought to the state; it is not replaced."""
    prng = LastDrawRandom(1)
    other = LastDrawRandom(2)
    other.random()
    agent = Thing(prng=prng)
    apply(result_for(agent, prng_state=other.getstate()))
    assert vars(agent)["prng"] is prng
    assert (prng.n_draws, prng.random()) == (1, other.random())


def test_agent_without_a_generator() -> None:
    """A result without a generator state leaves the generator alone, or its absence."""
    apply(result_for(Thing(), {"a": 1}))
    agent = Thing(prng=random.Random(1))
    apply(result_for(agent, {"a": 1}))
    assert vars(agent)["prng"].getstate() == random.Random(1).getstate()


def test_order_of_the_steps() -> None:
    """Log calls come first, then attributes, then generator and orders."""
    steps: list[str] = []

    class Watched(Thing):
        def __setattr__(self, name: str, value: object) -> None:
            steps.append(f"set {name}")
            super().__setattr__(name, value)

    class Log:
        def write(self, text: str) -> None:
            steps.append(text)

    def orders(agent: Any, orders: Any, prng_state: Any) -> Any:
        steps.append("orders")
        return orders

    calls: list[Any] = [(Log(), "write", ("log 1",), {}), (Log(), "write", ("log 2",), {})]
    apply(result_for(Watched(), {"a": 1, "b": 2}, calls=calls), orders=orders)
    assert steps == ["log 1", "log 2", "set a", "set b", "orders"]


def test_log_calls_as_made() -> None:
    """Each call is made on its own logger, with the arguments that it had."""
    first, second = Recorder(), Recorder()
    calls: list[Any] = [
        (first, "write", ("x",), {}),
        (second, "bulk_write", (), {"logs": ["y"]}),
        (first, "bulk_write", (["z"],), {}),
    ]
    apply(result_for(Thing(), calls=calls))
    assert first.calls == [("write", ("x",), {}), ("bulk_write", (["z"],), {})]
    assert second.calls == [("bulk_write", (), {"logs": ["y"]})]


def test_hook_for_attributes_only_where_names_are_listed() -> None:
    """The hook for attributes is called for agents that list names, else not at all."""
    seen: list[Any] = []

    def attributes(agent: Any, received: ReceivedAttributes) -> None:
        seen.append((agent, dict(received), received.deleted))

    agent = Thing()
    apply(result_for(agent), attributes=attributes)
    assert seen == []
    apply(result_for(agent, {"a": 1}, ("b",)), attributes=attributes)
    assert seen == [(agent, {"a": 1}, ("b",))]
    assert vars(agent) == {}


def test_hook_for_attributes_where_all_are_deleted() -> None:
    """The hook is called also when nothing came back but deletions."""
    agent = Thing(a=1)
    apply(result_for(agent, {}, ("a",)))
    assert vars(agent) == {}


def test_hook_for_orders_always() -> None:
    """The hook for orders is called for every result, and what it returns is what counts."""
    state = random.Random(2).getstate()
    seen: list[Any] = []

    def orders(agent: Any, orders: Any, prng_state: Any) -> Any:
        seen.append((agent, orders, prng_state))
        return ["changed"]

    agent = Thing(prng=random.Random(1))
    assert apply(result_for(agent, orders=[], prng_state=state), orders=orders) == ["changed"]
    assert seen == [(agent, [], state)]


# ---------------------------------------------------------------------- setting, deleting


class Propertied:
    """Has a property, with a setter and a deleter."""

    def __init__(self) -> None:
        self.inner: list[object] = []

    @property
    def level(self) -> object:
        """Return the last."""
        return self.inner[-1]

    @level.setter
    def level(self, value: object) -> None:
        self.inner.append(value)

    @level.deleter
    def level(self) -> None:
        self.inner.append("deleted")


class Slotted:
    """Has a slot and a dict."""

    __slots__ = ("__dict__", "level")
    level: int


class OfClass:
    """Has an attribute as a class."""

    shared = "of the class"


def test_values_are_set_with_setattr() -> None:
    """A property's setter and a slot take the values."""
    thing, slotted = Propertied(), Slotted()
    set_attributes(thing, {"level": 5})
    set_attributes(slotted, {"level": 5})
    assert thing.inner == [5]
    assert "level" not in vars(thing)
    assert slotted.level == 5


def test_deleted_names() -> None:
    """What the worker's agent lacks is deleted: in the dict, in a slot, through a property."""
    plain, slotted, thing = Thing(a=1, b=2), Slotted(), Propertied()
    slotted.level = 5
    set_attributes(plain, ReceivedAttributes({}, ("a",)))
    set_attributes(slotted, ReceivedAttributes({}, ("level",)))
    set_attributes(thing, ReceivedAttributes({}, ("level",)))
    assert vars(plain) == {"b": 2}
    assert not hasattr(slotted, "level")
    assert thing.inner == ["deleted"]


def test_deleting_what_is_not_there() -> None:
    """A name that main's agent lacks, too, is no error, and those after it are still deleted."""
    thing = Thing(b=1)
    set_attributes(thing, ReceivedAttributes({}, ("a", "b", "c")))
    assert vars(thing) == {}


def test_attribute_of_the_class_stays() -> None:
    """A deleted name that the class has, too, stays the class's."""
    plain, hiding = OfClass(), OfClass()
    hiding.shared = "of the instance"
    set_attributes(plain, ReceivedAttributes({}, ("shared",)))
    set_attributes(hiding, ReceivedAttributes({}, ("shared",)))
    assert plain.shared == hiding.shared == OfClass.shared == "of the class"


def test_plain_dict_deletes_nothing() -> None:
    """A hook that hands on a dict of its own sets what is in it, and deletes nothing."""
    thing = Thing(a=1, b=2)
    set_attributes(thing, {"a": 9})
    assert vars(thing) == {"a": 9, "b": 2}


def test_other_error_of_a_deleter_passes() -> None:
    """An error of a property's deleter that says something else than absence is not hidden."""

    class Refusing:
        @property
        def level(self) -> int:
            return 1

        @level.deleter
        def level(self) -> None:
            raise StepError("of the deleter")

    with pytest.raises(StepError):
        set_attributes(Refusing(), ReceivedAttributes({}, ("level",)))


def test_received_attributes_are_a_dict() -> None:
    """A hook gets a dict of the values, which knows the deleted names."""
    received = ReceivedAttributes({"a": 1}, ("b",))
    assert received == {"a": 1}
    assert isinstance(received, dict)
    assert received.deleted == ("b",)
    assert ReceivedAttributes({}).deleted == ()


# ----------------------------------------------------------------------------- failures


STATE: Any = random.Random(2).getstate()

FAILURES: dict[str, Callable[[Any], None]] = {
    "first setter": lambda agent: apply(
        result_for(guard(agent, "a"), {"a": 9, "b": 9}, prng_state=STATE)
    ),
    "later setter": lambda agent: apply(
        result_for(guard(agent, "b"), {"a": 9, "new": 9, "b": 9}, ("c",), prng_state=STATE)
    ),
    "hook for attributes": lambda agent: apply(
        result_for(agent, {"a": 9}, prng_state=STATE), attributes=set_and_fail
    ),
    "hook for orders": lambda agent: apply(
        result_for(agent, {"a": 9, "new": 9}, ("c",), prng_state=STATE), orders=fail
    ),
    "after the generator": lambda agent: apply(
        result_for(agent, {"a": 9}, ("c",), prng_state=STATE), orders=receive_and_fail
    ),
    "generator replaced": lambda agent: apply(
        result_for(agent, {"a": 9}, prng_state=STATE), orders=replace_and_fail
    ),
    "bad state": lambda agent: apply_bad_state(agent),
}


def guard(agent: Any, *refused: str) -> Any:
    """Make an agent refuse to have these attributes set."""
    vars(agent)["refused"] = refused
    return agent


def set_and_fail(agent: Any, attributes: ReceivedAttributes) -> None:
    """Set the attributes, then fail."""
    set_attributes(agent, attributes)
    raise StepError


def receive_and_fail(agent: Any, orders: Any, prng_state: Any) -> Any:
    """Set the state of the generator, then fail."""
    set_prng_state(agent, prng_state)
    raise StepError


def replace_and_fail(agent: Any, orders: Any, prng_state: Any) -> Any:
    """Draw from the generator, put another in its place, then fail."""
    agent.prng.random()
    agent.prng = random.Random(3)
    raise StepError


def apply_bad_state(agent: Any) -> None:
    """Apply a state that the generator refuses."""
    try:
        apply(result_for(agent, {"a": 9}, prng_state=(99, (), None)))
    except ValueError as error:
        raise StepError from error


@pytest.mark.parametrize("failing", FAILURES.values(), ids=FAILURES)
def test_agent_is_as_before_after_a_failure(failing: Callable[[Any], None]) -> None:
    """A setter or hook that raises leaves the agent with its attributes, in their order, and state.

    What was deleted is there again, what was new is gone.
    """
    agent = Guarded(refused=(), a=[1], b=2, c=3, prng=random.Random(1))
    values, prng = dict(vars(agent)), vars(agent)["prng"]
    with pytest.raises(StepError):
        failing(agent)
    vars(agent)["refused"] = values["refused"]
    assert list(vars(agent)) == list(values)
    assert all(vars(agent)[name] is value for name, value in values.items())
    assert vars(agent)["prng"] is prng
    assert prng.getstate() == random.Random(1).getstate()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_interrupt_is_a_failure(error: type[BaseException]) -> None:
    """Ctrl-C in the midst of an agent leaves it as before, too."""

    def interrupt(*args: object) -> Any:
        raise error

    agent = Thing(a=1)
    with pytest.raises(error):
        apply(result_for(agent, {"a": 9}), orders=interrupt)
    assert vars(agent) == {"a": 1}


def test_slots_are_as_before_after_a_failure() -> None:
    """Listed attributes that are in slots are put back, too: set, deleted, and new ones."""

    class TwoSlots(Slotted):
        __slots__ = ("fresh", "gone")
        fresh: int
        gone: int

    agent = TwoSlots()
    agent.level, agent.gone = 1, 2
    with pytest.raises(StepError):
        apply(result_for(agent, {"level": 9, "fresh": 9}, ("gone",)), orders=fail)
    assert agent.level == 1
    assert getattr(agent, "gone", None) == 2
    assert not hasattr(agent, "fresh")


class Checked:
    """Has a property of the same name as the attribute that it is kept in."""

    @property
    def level(self) -> object:
        """Return the level."""
        return vars(self)["level"]

    @level.setter
    def level(self, value: object) -> None:
        raise StepError("of the setter")


def test_property_is_not_asked_when_attributes_are_put_back() -> None:
    """What is put back into an agent's dict does not go through a property that hides it."""
    agent = Checked()
    vars(agent).update(a=1, level=2, b=3)
    with pytest.raises(StepError, match="of the setter") as caught:
        apply(result_for(agent, {"a": 9, "level": 9}))
    assert caught.value.__context__ is None
    assert list(vars(agent).items()) == [("a", 1), ("level", 2), ("b", 3)]


def test_logger_that_fails() -> None:
    """An error of the logger comes before anything is set; later calls are not made."""
    recorder = Recorder()
    calls: list[Any] = [
        (recorder, "write", (1,), {}),
        (Recorder(), "absent", (), {}),
        (recorder, "write", (), {}),
    ]
    agent = Thing(a=1)
    with pytest.raises(AttributeError, match="absent"):
        apply(result_for(agent, {"a": 9}, calls=calls))
    assert vars(agent) == {"a": 1}
    assert recorder.calls == [("write", (1,), {})]
