"""One batch, from agents to results: encode, submit, wait, decode.

Nothing of main is changed here. Whatever fails, fails before anything of the batch is applied.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

from pams import Simulator
from pams.agents import Agent
from pams.logs import Logger

from ._applier import AgentResult, ReceivedAttributes
from ._codec import TaskCodec
from ._messages import (
    AgentReport,
    Ask,
    ChunkReport,
    Failure,
    FailureKind,
    Refresh,
    WorkerSetup,
)
from ._pool import WorkerPool
from ._replica import CannotSendError, Tracker, Wanted
from ._simulation import describe, parts_of_simulation
from ._stats import BatchStats
from ._transport import run_tasks
from ._worker import LocalSetup
from .exceptions import (
    DecodeError,
    PayloadError,
    UnknownReferenceError,
    WorkerTaskError,
    WorkerTraceback,
)

Chunk = Sequence[tuple[Agent, tuple[str, ...]]]
"""Agents of one task with their listed names."""


@dataclass(slots=True)
class AgentFailure:
    """The error of an agent, to be raised if no agent asked before it has one."""

    error: BaseException


Outcome = AgentResult | AgentFailure

Lost = tuple[object, tuple[str, ...]]
"""An object and the names of its attributes whose changes are lost."""


def pickle_setup(token: str, local: LocalSetup) -> WorkerSetup:
    """Turn the backend and the initializer to bytes, for workers that do not share our memory."""
    problems: list[str] = []

    def dumps(obj: object, what: str) -> bytes | None:
        try:
            return pickle.dumps(obj, 5)
        except Exception as error:  # only a problem if a worker needs it
            problems.append(f"{what} cannot be pickled: {type(error).__name__}: {error}")
            return None

    backend = dumps(local.backend, f"the codec backend {local.backend!r}")
    initializer = None
    if local.initializer is not None:
        initializer = dumps(local.initializer, f"the worker initializer {local.initializer!r}")
    return WorkerSetup(
        token, backend, initializer, "; ".join(problems), local.initializer is not None
    )


@dataclass(slots=True)
class _Progress:
    """How far a chunk has come.

    Attributes:
        chunk: the agents that are still to be asked.
        outcomes: what came of them; None while unknown.
        tail: the failure of the agent after them.
        asks: what workers were told of these agents.
    """

    chunk: Chunk
    outcomes: list[Outcome] | None = None
    tail: AgentFailure | None = None
    asks: tuple[Ask, ...] = ()


class Dispatcher:
    """Sends batches to workers, and remembers from batch to batch what they need of loggers."""

    def __init__(self, codec: TaskCodec, setup: WorkerSetup) -> None:
        self._codec = codec
        self._setup = setup
        self._wanted = Wanted()
        self._tracker: Tracker | None = None
        self._told: WorkerPool | None = None
        self._lost: list[Lost] = []

    def ask(
        self,
        simulator: Simulator,
        logger: Logger | None,
        chunks: Sequence[Chunk],
        executor: Executor,
        stats: BatchStats,
    ) -> list[Outcome]:
        """Have the agents of all chunks asked.

        A chunk whose agents read a part of the logger that was not sent is asked again with it.
        Nothing in main has changed meanwhile, and a task has no memory: it gives the same.

        Args:
            simulator: the simulation that they see.
            logger: the runner's logger.
            chunks: the agents by task, in asked order.
            executor: runs the tasks.
            stats: is told what it took.

        Returns:
            The outcomes in asked order; those after the first failure of a chunk are left out.

        Raises:
            EncodeError: something of the simulation cannot be sent.
        """
        progress = [_Progress(chunk) for chunk in chunks]
        while pending := [one for one in progress if one.outcomes is None]:
            start = perf_counter()
            # What was not sent for certain, or to others, is forgotten: workers must miss nothing.
            tracker = self._tracker if self._told is executor else None
            self._tracker = self._told = None
            tracker, refresh = self._refresh(tracker, simulator, logger)
            for one in pending:
                one.asks = self._asks(tracker, one.chunk)
            tasks = [one.asks for one in pending]
            answers = run_tasks(
                executor, refresh, tasks, partial(_names_of_task, pending), stats, start
            )
            start = perf_counter()
            if isinstance(executor, WorkerPool):
                self._tracker, self._told = tracker, executor
            needs = [
                (type(tracker.objects[number]), name)
                for answer in answers
                if isinstance(answer, ChunkReport)
                for number, name in answer.logger_needs
            ]
            if needs and all(name in self._wanted.names.get(cls, ()) for cls, name in needs):
                raise RuntimeError(f"workers ask again for what they got: {needs}")
            for cls, name in needs:
                self._wanted.names.setdefault(cls, set()).add(name)
            self._note_earlier(tracker, answers)
            for one, answer in zip(pending, answers, strict=True):
                if isinstance(answer, BaseException):
                    one.outcomes = [AgentFailure(answer)]
                elif not answer.logger_needs:
                    self._take(one, tracker, answer)
            stats.return_seconds += perf_counter() - start
        return [outcome for one in progress for outcome in one.outcomes or ()]

    def _note_earlier(
        self, tracker: Tracker, answers: Iterable[ChunkReport | BaseException]
    ) -> None:
        for answer in answers:
            for change in answer.earlier if isinstance(answer, ChunkReport) else ():
                if change.number in tracker.objects:
                    self._lost.append((tracker.objects[change.number], change.names))

    def take_lost(self) -> list[Lost]:
        """Return changes, not told before, that agents made to others and that do not come back.

        They are found while main goes on, and come with the answer after that.
        """
        lost, self._lost = self._lost, []
        return lost

    def finish(self, executor: Executor) -> None:
        """Fetch what workers have found out after their last answer."""
        tracker = self._tracker
        if isinstance(executor, WorkerPool) and self._told is executor and tracker is not None:
            tasks: list[tuple[Ask, ...]] = [()] * executor.num_lanes  # which ask nobody
            stats = BatchStats()
            answers = run_tasks(executor, None, tasks, lambda number: (), stats, perf_counter())
            self._note_earlier(tracker, answers)

    def _refresh(
        self,
        tracker: Tracker | None,
        simulator: Simulator,
        logger: Logger | None,
    ) -> tuple[Tracker, Refresh]:
        """Return what workers are told before the tasks, and by whom."""
        while True:
            setup = None if tracker else self._setup
            tracker = tracker or Tracker(self._codec.backend, _is_logger, _is_agent, self._wanted)
            try:
                return tracker, Refresh(setup, tracker.update(simulator, (logger,)))
            except CannotSendError as failed:
                parts = parts_of_simulation(simulator)
                found = tracker.holder_path(failed.number, parts)
                if found is None and tracker.refuse_logger_part(failed.number, failed.__cause__):
                    tracker = None  # without that part, from the beginning
                    continue
                raise self._explain(tracker, failed, found or (simulator, "")) from failed.__cause__

    def _explain(
        self, tracker: Tracker, failed: CannotSendError, found: tuple[object, str]
    ) -> BaseException:
        """Return the error for an object that cannot be sent: whose it is, and where it is."""
        owner, path = found
        obj = tracker.objects[failed.number]
        if not path:
            noun = "its class" if isinstance(obj, type) else "its state"
        else:
            noun = f"attribute '{path.removeprefix('.')}'"
        return self._codec.explain(
            obj, describe(owner), noun, tracker.all_but(failed.number), None, failed.__cause__
        )

    @staticmethod
    def _asks(tracker: Tracker, chunk: Chunk) -> tuple[Ask, ...]:
        asks: list[Ask] = []
        for agent, names in chunk:
            number = tracker.index_of(agent)
            if number is None:
                raise LookupError(f"{describe(agent)} does not belong to the simulation")
            asks.append(Ask(number, names, tracker.generator_of(agent)))
        return tuple(asks)

    def _take(self, progress: _Progress, tracker: Tracker, report: ChunkReport) -> None:
        """Turn a report to outcomes: those of the agents that were asked, then the failure."""
        try:
            values = self._codec.decode(report.values, tracker) if report.agents else []
        except PayloadError as failed:
            # The values of the agents before it share the payload and are lost with it. They may
            # hold an error that comes first: those agents are asked again, without this one.
            position, error = self._undecodable(progress.chunk, report, failed)
            progress.tail = AgentFailure(error)
            progress.chunk = progress.chunk[:position]
            progress.outcomes = None if progress.chunk else [progress.tail]
            return
        remaining = iter(values)
        outcomes: list[Outcome] = [
            _result(agent, ask, one, remaining, tracker)
            for (agent, _), ask, one in zip(
                progress.chunk, progress.asks, report.agents, strict=False
            )
        ]
        if report.failure is not None:
            outcomes.append(AgentFailure(self._failure(tracker, progress.chunk, report.failure)))
        elif progress.tail is not None:
            outcomes.append(progress.tail)
        progress.outcomes = outcomes

    def _undecodable(
        self, chunk: Chunk, report: ChunkReport, failed: PayloadError
    ) -> tuple[int, BaseException]:
        """Return position and error of the agent whose values cannot be loaded."""
        nouns = [(number, noun) for number, one in enumerate(report.agents) for noun in one.nouns()]
        number, noun = nouns[max(failed.position, 0)]
        owner = describe(chunk[number][0])
        cause = failed.__cause__
        error: BaseException
        if isinstance(cause, UnknownReferenceError):
            error = UnknownReferenceError(owner, noun, cause.target)
        else:
            reason = f"{type(cause).__name__}: {cause}"
            name = self._codec.backend.name
            error = DecodeError(owner, noun, "the main process", name, reason)
        error.__cause__ = cause
        return number, error

    def _failure(self, tracker: Tracker, chunk: Chunk, failure: Failure) -> BaseException:
        """Return the exception to raise in main for a failure in a worker."""
        references, cause = tracker, failure.cause
        if failure.kind is FailureKind.AGENT:
            return self._codec.decode_exception(cause, _name(chunk, failure), references)
        reason = f"{cause.type_name}: {cause.text}"
        error: BaseException
        if failure.error is not None:
            error = failure.error
        elif failure.kind is FailureKind.DECODE:
            owner = self._owner(tracker, failure.position)
            name = self._codec.backend.name
            error = DecodeError(owner, "its class or state", "a worker", name, reason)
        else:
            error = WorkerTaskError(_names(chunk), reason)
        if failure.kind is FailureKind.ENCODE:
            error.__cause__ = self._codec.decode_exception(cause, _name(chunk, failure), references)
        else:
            error.__cause__ = WorkerTraceback(cause.traceback)
        return error

    def _owner(self, tracker: Tracker, number: int) -> str:
        """Return what to call the part of the simulation that holds an object."""
        simulator = tracker.roots[0]
        found = tracker.holder_path(number, parts_of_simulation(simulator))
        return "the simulation" if found is None else describe(found[0])


def _is_logger(cls: type) -> bool:
    return issubclass(cls, Logger)


def _is_agent(cls: type) -> bool:
    return issubclass(cls, Agent)


def _result(
    agent: Agent,
    ask: Ask,
    report: AgentReport,
    values: Iterator[Any],
    tracker: Tracker,
) -> AgentResult:
    orders, calls, state = next(values), next(values), next(values)
    attributes = {name: next(values) for name in report.present}
    return AgentResult(
        agent=agent,
        orders=orders,
        calls=calls,
        prng_state=state,
        packed_prng=report.prng,
        names=ask.names,
        prng_before=ask.prng,
        attributes=ReceivedAttributes(attributes, report.deleted),
        lost=tuple((tracker.objects[one.number], one.names) for one in report.lost),
        fundamentals_until=report.fundamentals_until,
    )


def _name(chunk: Chunk, failure: Failure) -> str:
    return describe(chunk[failure.position][0])


def _names_of_task(pending: Sequence[_Progress], number: int) -> tuple[str, ...]:
    return _names(pending[number].chunk)


def _names(chunk: Chunk) -> tuple[str, ...]:
    return tuple(describe(agent) for agent, _ in chunk)
