"""Asking the agents of a task, and what comes of it: values, a failure, changes that are lost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, cast

from pams import Order, Simulator
from pams.agents import Agent

from ._codec import TaskCodec
from ._codec.marks import ForeignTest
from ._codec.prng_state import is_packable, pack_prng
from ._messages import AgentReport, Ask, ChunkReport, Failure, FailureKind, LostChanges
from ._replica import PublicObjects, Replica
from ._replica_logger import LoggerPartMissing, LoggerTraffic
from ._simulation import ForeignObjects, describe
from ._watch import changed_names, generator_states, read_state
from .exceptions import PamsParallelError, PayloadError

_MISSING: Final = object()


@dataclass(slots=True)
class _Asked:
    """An agent that has been asked, and its values for the payload."""

    report: AgentReport
    agent: object
    values: list[object]


@dataclass(slots=True)
class _State:
    """What has been found out while the agents of a chunk are asked."""

    asked: list[_Asked] = field(default_factory=list)
    failure: Failure | None = None


class Questioner:
    """Asks the agents of one task."""

    def __init__(self, replica: Replica, traffic: LoggerTraffic, codec: TaskCodec) -> None:
        self._replica = replica
        self._traffic = traffic
        self._codec = codec
        self._simulator = cast("Simulator", replica.objects[replica.simulator])
        self._public = PublicObjects(replica)
        # attributes of agents after they were asked
        self._accepted: dict[int, dict[str, object]] = {}
        self._reported: set[int] = set()
        self._foreign: ForeignTest | None = None

    def ask_all(self, asks: tuple[Ask, ...]) -> ChunkReport:
        """Ask the agents in order, up to the first that fails: those after it do not matter."""
        state = _State()
        for position, ask in enumerate(asks):
            try:
                state.asked.append(self._ask(ask))
            except LoggerPartMissing:
                pass
            except BaseException as error:  # an agent's SystemExit is the agent's error too
                image = self._codec.encode_exception(error, self._public)
                state.failure = Failure(FailureKind.AGENT, position, image)
            if self._traffic.needs:
                # also when the agent caught the signal and went on with something else
                return ChunkReport(logger_needs=tuple(sorted(self._traffic.needs)))
            if state.failure is not None:
                break
        if state.asked:
            self._look_at_others(state.asked)
        return self._encode(state)

    def _ask(self, ask: Ask) -> _Asked:
        agent = cast("Agent", self._replica.objects[ask.number])
        if ask.prng is not None:
            self._replica.set_generator(agent, ask.prng)
        # what agents asked before it have done to it
        before = _attributes(agent)
        by_others: tuple[str, ...] = ()
        if self._replica.rows.has_changed(ask.number):
            by_others = changed_names(self._as_sent(ask.number), before, ask.names)
        generators = generator_states(agent, ask.names)
        generated_until = getattr(self._simulator.fundamentals, "_generated_until", None)
        self._traffic.calls = []
        orders = agent.submit_orders(markets=self._simulator.markets)
        len(orders)  # what PAMS asks of the result first; a generator has none and cannot travel
        self._accepted[ask.number] = _attributes(agent)
        changed = changed_names(before, self._accepted[ask.number], ask.names)
        if generators:
            after = generator_states(agent, ask.names)
            drawn = {name for name, old in generators.items() if after.get(name, old) != old}
            changed = tuple(sorted(drawn.union(changed)))
        lost = [LostChanges(ask.number, names) for names in (by_others, changed) if names]
        until = getattr(self._simulator.fundamentals, "_generated_until", None)
        prng: Any = getattr(agent, "prng", None)
        attributes = {name: _read_listed(agent, name) for name in ask.names}
        present = {name: item for name, item in attributes.items() if item is not _MISSING}
        report = AgentReport(
            prng=pack_prng(prng) if is_packable(prng) else None,
            present=tuple(present),
            deleted=tuple(name for name in ask.names if name not in present),
            lost=tuple(lost),
            fundamentals_until=until if until != generated_until else None,
        )
        state = read_state(prng) if report.prng is None else None
        return _Asked(
            report=report,
            agent=agent,
            values=[
                orders,
                [tuple(call) for call in self._traffic.calls],
                state,
                *present.values(),
            ],
        )

    def _as_sent(self, number: int) -> dict[str, object]:
        """Return the attributes that an object had when nobody had been asked."""
        row = self._replica.rows.of(number)
        if row is None:
            return _attributes(self._replica.objects[number])
        keys, values = row
        own = keys.index(None) if None in keys else len(keys)
        return dict(zip(cast("tuple[str, ...]", keys[:own]), values, strict=False))

    def _look_at_others(self, asked: list[_Asked]) -> None:
        """Add to the last report what any agent changed on objects that are not itself.

        Other agents, and orders, are many: they are looked at when the answer is on its way.
        """
        changed = [n for n in self._public.structure() if self._replica.rows.has_changed(n)]
        if changed:
            self._foreign = ForeignObjects(self._simulator, self._replica).name
        changes = self._changes_of((*changed, *self._accepted))
        changes += [
            LostChanges(index, tuple(sorted(names)))
            for index, names in sorted(self._traffic.changed.items())
        ]
        self._reported = {*changed, *self._accepted}
        if changes:
            last = asked[-1].report
            asked[-1].report = last._replace(lost=(*last.lost, *changes))

    def changes_of_others(self, changed: Iterable[int]) -> list[LostChanges]:
        """Return what is not reported yet of objects that agents changed.

        Args:
            changed: all objects that do not hold what main's hold.
        """
        kinds = (Agent, Order)
        new = [
            number
            for number in changed
            if number not in self._reported and isinstance(self._replica.objects[number], kinds)
        ]
        # an order that only an agent holds is the agent's affair
        return self._changes_of(n for n in new if n in self._public.numbers) if new else []

    def _changes_of(self, numbers: Iterable[int]) -> list[LostChanges]:
        return [
            LostChanges(number, names)
            for number in sorted(numbers)
            if (names := self._changed_since(number))
        ]

    def _changed_since(self, number: int) -> tuple[str, ...]:
        """Return what was assigned on an object after it was asked, if it was."""
        obj = self._replica.objects[number]
        if isinstance(obj, (list, dict, set)):
            return ()
        # Asked for a later price, the fundamentals generate it and remember how far they are. Main
        # repeats that (AgentReport.fundamentals_until).
        quiet = ("_generated_until",) if obj is self._simulator.fundamentals else ()
        before = self._accepted.get(number)
        if before is None:
            before = self._as_sent(number)
        return changed_names(before, _attributes(obj), quiet)

    def _encode(self, state: _State) -> ChunkReport:
        """Turn the values to bytes; an agent whose values cannot be is the one that failed."""
        asked = state.asked
        values = [value for one in asked for value in one.values]
        try:
            data = self._codec.encode(values, self._public, self._foreign, self._replica.numbers)
        except PayloadError as failed:
            owners = [position for position, one in enumerate(asked) for _ in one.values]
            position = owners[max(failed.position, 0)]
            first = owners.index(position)
            error = self._explain(asked[position], max(failed.position, 0) - first, failed)
            cause = self._codec.encode_exception(error.__cause__ or failed, self._public)
            failure = Failure(FailureKind.ENCODE, position, cause, error)
            return self._encode(_State(asked[:position], failure))
        return ChunkReport(
            agents=tuple(one.report for one in asked), values=data, failure=state.failure
        )

    def _explain(self, one: _Asked, number: int, failed: PayloadError) -> PamsParallelError:
        return self._codec.explain(
            one.values[number],
            describe(one.agent),
            one.report.nouns()[number],
            self._public,
            self._foreign,
            failed.__cause__,
        )


def _attributes(obj: object) -> dict[str, object]:
    return dict(getattr(obj, "__dict__", {}))


def _read_listed(agent: object, name: str) -> object:
    """Return the value of a listed attribute, or ``_MISSING`` when the agent itself has none."""
    own = getattr(agent, "__dict__", {})
    if name in own:
        return own[name]
    of_class = next((vars(cls)[name] for cls in type(agent).__mro__ if name in vars(cls)), _MISSING)
    if of_class is not _MISSING and not hasattr(type(of_class), "__set__"):
        return _MISSING  # only the class has it: nothing of the agent's to bring back
    # a property, a slot, or something that the class's __getattr__ makes up
    return getattr(agent, name, _MISSING)
