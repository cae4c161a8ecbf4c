"""From a worker's result to the agent of main."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ._codec.diagnose import attributes_of
from ._codec.prng_state import unpack_prng


class ReceivedAttributes(dict[str, object]):
    """The listed attributes that came back from a worker: name to value.

    Attributes:
        deleted: listed names that the agent no longer has.
    """

    def __init__(self, values: Mapping[str, object], deleted: tuple[str, ...] = ()) -> None:
        super().__init__(values)
        self.deleted = deleted


@dataclass(slots=True)
class AgentResult:
    """What came of asking an agent, as objects of main.

    Attributes:
        agent: the agent of main.
        orders: what it returned.
        calls: its writes to loggers: logger, method, positional and keyword arguments.
        prng_state: the state of its generator, in the form that ``setstate`` takes; None when it
            has none, or where it is packed.
        names: its listed attributes.
        attributes: what came back of them.
        prng_before: the packed state that its generator has now; None where that is not known.
        packed_prng: the packed state. States of a thousand agents would fill 22 MB when unpacked:
            each is taken apart when it is needed.
        lost: objects of main of which changes in the worker did not come back, and the names.
        fundamentals_until: see ``AgentReport``.
    """

    agent: Any
    orders: Any
    calls: list[tuple[object, str, tuple[object, ...], dict[str, object]]]
    prng_state: Any
    names: tuple[str, ...]
    attributes: ReceivedAttributes
    lost: tuple[tuple[object, tuple[str, ...]], ...] = ()
    fundamentals_until: int | None = None
    prng_before: bytes | None = None
    packed_prng: bytes | None = None


def apply_result(
    result: AgentResult,
    receive_attributes: Callable[[Any, ReceivedAttributes], None],
    receive_orders: Callable[[Any, Any, Any], Any],
) -> Any:
    """Bring a result to its agent: log calls, listed attributes, then PRNG state and orders.

    When a hook, a setter or the logger raises, the attributes and the generator of this agent are
    as before; what a logger has been told cannot be taken back.

    Args:
        result: what came from the worker.
        receive_attributes: sets the listed attributes; called only if there are listed names.
        receive_orders: sets the state of the generator and returns the orders to handle.

    Returns:
        The orders to handle.
    """
    for logger, method, args, kwargs in result.calls:
        getattr(logger, method)(*args, **kwargs)
    agent = result.agent
    own = dict(getattr(agent, "__dict__", {}))
    slots = {name: value for name, value in attributes_of(agent) if name not in own}
    prng: Any = getattr(agent, "prng", None)
    prng_before: Any = None
    state = result.prng_state
    if result.packed_prng is not None:
        state = unpack_prng(result.packed_prng)
    if result.prng_before is None and state is not None:
        prng_before = prng.getstate()
    try:
        if result.names:
            receive_attributes(agent, result.attributes)
        return receive_orders(agent, result.orders, state)
    except BaseException:
        _put_back(agent, own, slots)
        if result.prng_before is not None:
            prng_before = unpack_prng(result.prng_before)
        if prng_before is not None:
            prng.setstate(prng_before)
        raise


def _put_back(agent: object, own: Mapping[str, object], slots: Mapping[str, object]) -> None:
    """Give an agent back the attributes that it had, in its dict and in its slots."""
    if hasattr(agent, "__dict__"):
        vars(agent).clear()
    # not through the class's own __setattr__, which may be what has just failed
    for name, _ in attributes_of(agent):
        if name not in slots:
            object.__delattr__(agent, name)
    for name, value in slots.items():
        object.__setattr__(agent, name, value)
    if own:
        vars(agent).update(own)


def set_attributes(agent: object, attributes: Mapping[str, object]) -> None:
    """Set the values on the agent with ``setattr``, and delete what the worker's agent lacks.

    Doing it again changes nothing. What is to be deleted and is not there, or is only the class's,
    is left alone.
    """
    for name, value in attributes.items():
        setattr(agent, name, value)
    for name in getattr(attributes, "deleted", ()):
        try:
            delattr(agent, name)
        except AttributeError:  # already gone, or never the agent's own
            continue


def set_prng_state(agent: Any, state: Any) -> None:
    """Bring the agent's generator to a state."""
    if state is not None:
        agent.prng.setstate(state)
