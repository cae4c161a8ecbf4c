"""The table at the end, and run.json."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, TypeAlias

from .._runner import MultiProcessAgentParallelRunner
from ._config import Job
from ._errors import CliError
from ._options import Options
from ._simulate import Outcome
from ._tables import FILES, RUN_FILE

_MAX_MARKETS: Final = 8
_LABEL_WIDTH: Final = 13

_PHASES: Final = {
    "encode": "finding out what has changed, and writing it",
    "send": "bytes on their way, workers waking up",
    "decode": "a worker bringing its replica up to date",
    "ask": "a worker asking its agents",
    "return": "reading the answers, checking orders",
    "apply": "bringing them to the agents",
    "other": "orders, events, logs, starting workers",
}

Row: TypeAlias = tuple[str, str]
ParallelOutcome: TypeAlias = Outcome[MultiProcessAgentParallelRunner]


def table(rows: Iterable[Row]) -> str:
    """Return labels and values, aligned; a row without label goes on with the one before."""
    return "\n".join(f"{label:<{_LABEL_WIDTH}} {value}".rstrip() for label, value in rows)


def result_rows(job: Job, outcome: ParallelOutcome) -> list[Row]:
    """Return what was run and what came out."""
    runner, recorder = outcome.runner, outcome.recorder
    return [
        ("config", job.source),
        ("seed", str(job.seed)),
        ("steps", str(recorder.steps)),
        ("orders", str(recorder.orders)),
        ("cancels", str(recorder.cancels)),
        ("executions", str(recorder.executions)),
        *_price_rows(outcome),
        ("workers", f"{runner.num_parallel} ({_start_method(runner)}, {_codec(runner)})"),
    ]


def time_text(outcome: Outcome[Any]) -> str:
    """Return the wall times."""
    return (
        f"{outcome.seconds:.2f} s "
        f"(setup {outcome.setup_seconds:.2f} s, run {outcome.run_seconds:.2f} s)"
    )


def timing_rows(outcome: ParallelOutcome) -> list[Row]:
    """Return where the time of the steps went, and how many bytes were moved."""
    stats = outcome.runner.stats
    total, batches = stats.total, max(stats.num_batches, 1)
    times = {**total.times(), "other": max(outcome.run_seconds - total.seconds, 0.0)}
    return [
        ("batches", f"{stats.num_batches} ({total.agents} agents asked, {total.tasks} tasks)"),
        *(
            (name, f"{seconds:8.3f} s {seconds / outcome.run_seconds:6.1%}  {_PHASES[name]}")
            for name, seconds in times.items()
        ),
        ("sent", f"{total.encoded_bytes / batches / 1e3:,.1f} kB per batch"),
        ("received", f"{total.received_bytes / batches / 1e3:,.1f} kB per batch"),
    ]


def file_rows(out: Path | None) -> list[Row]:
    """Return what was written where."""
    if out is None:
        return [("files", "none (--out DIR writes them)")]
    return [("files", f"{out}: {', '.join(FILES)},"), ("", RUN_FILE)]


def write_run_file(job: Job, outcome: ParallelOutcome, options: Options, out: Path) -> None:
    """Write all that is needed to repeat the run, and what came out, to ``run.json``.

    Raises:
        CliError: it cannot be written.
    """
    content: dict[str, Any] = {
        "command": options.command,
        "config_file": None if options.config is None else str(options.config),
        "config": job.settings,
        "seed": job.seed,
        "classes": list(job.class_names),
        "workers": outcome.runner.num_parallel,
        "start_method": _start_method(outcome.runner),
        "codec": _codec(outcome.runner),
        "versions": {
            "python": platform.python_version(),
            "pams": version("pams"),
            "pams-parallel": version("pams-parallel"),
            "numpy": version("numpy"),
        },
        "timings": {
            "setup_seconds": outcome.setup_seconds,
            "run_seconds": outcome.run_seconds,
        },
        "steps": outcome.recorder.steps,
        "orders": outcome.recorder.orders,
        "cancels": outcome.recorder.cancels,
        "executions": outcome.recorder.executions,
        "digest": outcome.digest,
    }
    path = out / RUN_FILE
    try:
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise CliError(f"{path}: {error.strerror or error}") from error


def _price_rows(outcome: ParallelOutcome) -> list[Row]:
    markets = outcome.runner.simulator.markets
    shown = markets[:_MAX_MARKETS]
    width = max((len(market.name) for market in shown), default=0)
    texts = [f"{market.name:<{width}}  {market.get_market_price():.10g}" for market in shown]
    if len(markets) > len(shown):
        texts.append(f"and {len(markets) - len(shown)} more")
    return [("" if i else "last prices", text) for i, text in enumerate(texts)]


def _start_method(runner: MultiProcessAgentParallelRunner) -> str:
    """Return how the workers were started, where nothing was set too."""
    method = runner._get_mp_context().get_start_method()
    return "unknown" if method is None else method


def _codec(runner: MultiProcessAgentParallelRunner) -> str:
    return str(runner.settings["simulation"].get("codec", "pickle"))
