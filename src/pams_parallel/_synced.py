"""``synced_attributes``: which attributes of an agent come back from a worker."""

from __future__ import annotations

from typing import Final

from .exceptions import SyncedAttributesError

# The runner itself keeps the first three the same in main and workers; __dict__ holds everything,
# these three among it.
FORBIDDEN_NAMES: Final = ("simulator", "logger", "prng", "__dict__")


class SyncedAttributesMixin:
    """Gives an agent class the typed class attribute ``synced_attributes``.

    PAMS's ``Agent`` does not declare it. Any agent may set the attribute without this mixin; with
    it a type checker knows the attribute.

    Attributes:
        synced_attributes: names of the attributes that ``submit_orders`` changes and that are
            brought back to the main process after every call. May be set on the class or on an
            instance, and is read anew every time the agent is asked.
    """

    synced_attributes: tuple[str, ...] | list[str] = ()


def read_synced_names(agent: object) -> tuple[str, ...]:
    """Return the listed names of an agent, each once, in their order.

    Raises:
        SyncedAttributesError: they are no tuple or list of str, or one is managed by the runner.
    """
    names: object = getattr(agent, "synced_attributes", ())
    if not names and isinstance(names, (tuple, list)):
        return ()
    agent_class = type(agent).__name__
    if not isinstance(names, (tuple, list)):
        problem = f"must be a tuple or list of str, but is the {type(names).__name__} {names!r}"
        raise SyncedAttributesError(agent_class, problem)
    for name in names:
        if not isinstance(name, str):
            problem = f"must hold str only, but holds {name!r} of type {type(name).__name__}"
            raise SyncedAttributesError(agent_class, problem)
        if name in FORBIDDEN_NAMES:
            why = (
                "it holds all attributes: list those that change"
                if name == "__dict__"
                else "the runner keeps it itself"
            )
            raise SyncedAttributesError(agent_class, f"must not list {name!r}: {why}")
    return tuple(dict.fromkeys(names))
