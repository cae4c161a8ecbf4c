"""One simulation, from its config to its state, with times."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Generic, TypeVar

from pams.runners import SequentialRunner

from .._state import State, capture_state, digest
from ._config import Job
from ._errors import config_error, run_error
from ._recorder import Recorder
from ._tables import Tables
from ._terminal import Progress

RunnerT = TypeVar("RunnerT", bound=SequentialRunner)


@dataclass(frozen=True)
class Outcome(Generic[RunnerT]):
    """What came out of a simulation.

    Attributes:
        runner: the runner after the run.
        recorder: its logger.
        state: the state at the end.
        digest: of the state.
        setup_seconds: wall time of building the simulation.
        run_seconds: wall time of all steps; starting and ending worker processes counts.
    """

    runner: RunnerT
    recorder: Recorder
    state: State
    digest: str
    setup_seconds: float
    run_seconds: float

    @property
    def seconds(self) -> float:
        """Wall time of setup and run."""
        return self.setup_seconds + self.run_seconds


def simulate(
    job: Job,
    runner_class: type[RunnerT],
    label: str,
    quiet: bool,
    out: Path | None = None,
) -> Outcome[RunnerT]:
    """Run a job to its end.

    Args:
        job: what to run.
        runner_class: with which runner.
        label: what to call this run on the progress bar.
        quiet: show no progress bar.
        out: folder for the records, if they are to be written.

    Raises:
        CliError: the config is bad, or the simulation failed.
    """
    with _tables(out) as tables:
        recorder = Recorder(tables)
        runner = runner_class(job.fresh_settings(), random.Random(job.seed), recorder)
        for cls in job.classes:
            runner.class_register(cls)
        with _closed_after(runner):
            start = perf_counter()
            _set_up(runner, job)
            ready = perf_counter()
            _run(runner, recorder, job, Progress(label, _total_steps(runner), quiet))
            end = perf_counter()
    state = capture_state(runner)
    return Outcome(runner, recorder, state, digest(state), ready - start, end - ready)


def _set_up(runner: SequentialRunner, job: Job) -> None:
    try:
        runner._setup()
    except Exception as error:
        raise config_error(job.source, job.settings, error) from error


def _run(runner: SequentialRunner, recorder: Recorder, job: Job, progress: Progress) -> None:
    recorder.progress = progress
    try:
        runner._run()
    # an agent's SystemExit is an error of the simulation, not the wish to end this command
    except (Exception, SystemExit) as error:
        raise run_error(job.source, job.settings, error) from error
    finally:
        progress.close()


def _total_steps(runner: SequentialRunner) -> int:
    return sum(session.iteration_steps for session in runner.simulator.sessions)


@contextmanager
def _tables(out: Path | None) -> Iterator[Tables | None]:
    if out is None:
        yield None
        return
    tables = Tables(out)
    try:
        yield tables
    finally:
        tables.close()


@contextmanager
def _closed_after(runner: SequentialRunner) -> Iterator[None]:
    """Leave no worker process behind, whatever happens between setup and run."""
    try:
        yield
    finally:
        close = getattr(runner, "close", None)
        if close is not None:
            close()
