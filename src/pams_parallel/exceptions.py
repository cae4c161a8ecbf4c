"""Every error of this package, with its fields first and its sentence made from them.

```
PamsParallelError
├── SettingsError (ValueError)            a key of the config or an argument
│   └── CodecNotInstalledError (ImportError)
├── SyncedAttributesError (ValueError)    names listed by an agent class
├── ChunkingError (ValueError)            an overridden _split_agents_into_chunks
├── EncodeError (RuntimeError)            a value that cannot be turned to bytes
├── DecodeError (RuntimeError)            bytes that cannot be turned back
├── PayloadError (RuntimeError)           a part of a payload, inside the codec
├── UnknownReferenceError (RuntimeError)  a simulation object that main lacks
├── LoggerStateError (RuntimeError)       a part of the logger that cannot be read in a worker
├── RemoteAgentError (RuntimeError)       an agent's exception that cannot travel itself
└── WorkerError (RuntimeError)
    ├── WorkerInitializerError
    ├── WorkerStartError
    ├── WorkerDiedError
    └── WorkerTaskError
```

All of them survive pickling with their fields and their text.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = [
    "ChunkingError",
    "CodecNotInstalledError",
    "DecodeError",
    "EncodeError",
    "LoggerStateError",
    "PamsParallelError",
    "PayloadError",
    "RemoteAgentError",
    "SettingsError",
    "SyncedAttributesError",
    "UnknownReferenceError",
    "WorkerDiedError",
    "WorkerError",
    "WorkerInitializerError",
    "WorkerStartError",
    "WorkerTaskError",
    "WorkerTraceback",
]


@dataclass(eq=False)
class PamsParallelError(Exception):
    """Root of the errors that this package raises itself."""

    def __post_init__(self) -> None:
        """Keep the fields as ``args``: that is what BaseException pickles and calls us with."""
        self.args = tuple(getattr(self, field.name) for field in fields(self))

    def __str__(self) -> str:
        return self.sentence()

    def sentence(self) -> str:
        """Return the message: what happened, to which object, and what to do now."""
        return type(self).__name__


@dataclass(eq=False)
class SettingsError(PamsParallelError, ValueError):
    """A setting has a value that it cannot have.

    Attributes:
        key: where the value stands: a path in the config such as ``simulation.numParallel``, or
            the name of an argument or class attribute.
        value: ``repr`` of the value.
        expected: what may stand there.
    """

    key: str
    value: str
    expected: str

    def sentence(self) -> str:
        """Return the message."""
        return f"{self.key} must be {self.expected}, but {self.value} is given"


@dataclass(eq=False)
class CodecNotInstalledError(SettingsError, ImportError):
    """A codec backend is known, but the library that it stands on is not installed.

    Attributes:
        package: the distribution with the extra that brings the library.
    """

    package: str

    def sentence(self) -> str:
        """Return the message."""
        return (
            f"{self.key}={self.value} needs a library that is not installed. "
            f'Install it with: pip install "{self.package}"'
        )


@dataclass(eq=False)
class SyncedAttributesError(PamsParallelError, ValueError):
    """``synced_attributes`` of an agent is not a tuple or list of allowed names.

    Attributes:
        agent_class: name of the agent's class.
        problem: what is wrong with the names.
    """

    agent_class: str
    problem: str

    def sentence(self) -> str:
        """Return the message."""
        return f"synced_attributes of {self.agent_class} {self.problem}"


@dataclass(eq=False)
class ChunkingError(PamsParallelError, ValueError):
    """An overridden ``_split_agents_into_chunks`` returned something else than a partition.

    Attributes:
        problem: what is wrong with the chunks.
    """

    problem: str

    def sentence(self) -> str:
        """Return the message."""
        return (
            f"_split_agents_into_chunks {self.problem}. "
            "The chunks must hold the given agents themselves, each once and in the given order"
        )


@dataclass(eq=False)
class EncodeError(PamsParallelError, RuntimeError):
    """A value cannot be turned to bytes; its cause is the serializer's own error.

    Attributes:
        owner: the object that holds the value, such as ``agent 12 (MyAgent)``.
        path: where in the owner, such as ``attribute 'policy.rule'``.
        value: class name of the value.
        backend: name of the codec backend.
        reason: the serializer's own words.
    """

    owner: str
    path: str
    value: str
    backend: str
    reason: str

    def sentence(self) -> str:
        """Return the message."""
        advice = (
            "Leave it out of what an agent holds while it is asked (drop it in __getstate__)"
            if self.backend == "dill"
            else "Define classes and functions at module level, use codec='dill' "
            "(pip install pams-parallel[dill]), or drop the value in __getstate__"
        )
        return (
            f"Could not encode {self.owner} with the {self.backend!r} backend: {self.path} "
            f"is a {self.value}: {self.reason}. {advice}."
        )


@dataclass(eq=False)
class DecodeError(PamsParallelError, RuntimeError):
    """Bytes cannot be turned back into objects; its cause is the original error.

    Attributes:
        owner: the object whose value was being loaded, such as ``agent 12 (MyAgent)``.
        path: what was being loaded, such as ``attribute 'policy'``.
        where: ``"a worker"`` or ``"the main process"``.
        backend: name of the codec backend.
        reason: the original error's own words.
    """

    owner: str
    path: str
    where: str
    backend: str
    reason: str

    def sentence(self) -> str:
        """Return the message."""
        return (
            f"Could not decode {self.owner} in {self.where} with the {self.backend!r} backend: "
            f"{self.path}: {self.reason}. Its class must be importable there and rebuild "
            "without error; for classes of a notebook or of __main__ use codec='dill'."
        )


@dataclass(eq=False)
class PayloadError(PamsParallelError, RuntimeError):
    """A part of a payload could not be encoded or decoded; its cause says why.

    ``TaskCodec`` raises it to code that knows what the part was; the runner turns it into one of
    the errors that name the agent.

    Attributes:
        position: number of the part; -1 when none had begun.
    """

    position: int

    def sentence(self) -> str:
        """Return the message."""
        return f"Part {self.position} of a payload could not be encoded or decoded"


@dataclass(eq=False)
class UnknownReferenceError(PamsParallelError, RuntimeError):
    """A value refers to a simulation object that the other side does not have.

    Attributes:
        owner: the object that holds the reference, or ``""`` when bytes themselves are at fault.
        path: where in the owner.
        target: what it refers to.
    """

    owner: str
    path: str
    target: str

    def sentence(self) -> str:
        """Return the message."""
        holder = f"{self.owner}: {self.path} refers" if self.owner else "The bytes refer"
        return (
            f"{holder} to {self.target}, which the main process lacks. An agent's "
            "submit_orders must not change the simulation: in a worker it has only a copy of it."
        )


@dataclass(eq=False)
class LoggerStateError(PamsParallelError, RuntimeError):
    """A part of the logger that an agent read in a worker cannot be sent there.

    Attributes:
        logger_class: name of the logger's class.
        name: the attribute or method.
        reason: why it cannot be sent.
    """

    logger_class: str
    name: str
    reason: str

    def sentence(self) -> str:
        """Return the message."""
        return (
            f"{self.name!r} of the logger {self.logger_class} cannot be read in a worker: "
            f"{self.reason}. Writing to the logger works; what agents read must be picklable."
        )


@dataclass(eq=False)
class RemoteAgentError(PamsParallelError, RuntimeError):
    """An agent's exception that could not travel itself.

    Attributes:
        agent: the agent, such as ``agent 12 (MyAgent)``.
        type_name: qualified name of the exception's class.
        text: the exception's text.
        remote_traceback: the traceback in the worker.
        reason: why the exception itself could not be brought to main.
    """

    agent: str
    type_name: str
    text: str
    remote_traceback: str
    reason: str

    def sentence(self) -> str:
        """Return the message."""
        return (
            f"{self.agent} raised {self.type_name}: {self.text}\n"
            f"(the exception itself could not be brought from the worker: {self.reason})\n"
            f"{self.remote_traceback}"
        )


@dataclass(eq=False)
class WorkerError(PamsParallelError, RuntimeError):
    """A worker failed, not an agent in it."""


@dataclass(eq=False)
class WorkerInitializerError(WorkerError):
    """The worker initializer raised; the worker's traceback is the cause.

    Attributes:
        initializer: name of the initializer.
        reason: type and text of what it raised.
    """

    initializer: str
    reason: str

    def sentence(self) -> str:
        """Return the message."""
        return f"the worker initializer failed on this worker: {self.initializer}: {self.reason}"


@dataclass(eq=False)
class WorkerStartError(WorkerError):
    """A worker process ended, or could not be made, before its first task.

    Attributes:
        start_method: the start method of the process.
        reason: what is known about it.
        missing_guard: whether the script was seen to start workers while being imported by one.
        unpicklable: whether what the process takes along could not be pickled.
    """

    start_method: str
    reason: str
    missing_guard: bool = False
    unpicklable: bool = False

    def sentence(self) -> str:
        """Return the message."""
        hint = ""
        if self.missing_guard:
            hint = (
                " The script starts the simulation while it is imported: put the code that runs "
                'it under if __name__ == "__main__":'
            )
        elif self.unpicklable:
            hint = (
                " What the hooks _get_worker_initializer and _get_worker_initargs return goes to "
                "each process and must be picklable: define functions and classes at module level."
            )
        return f"A worker process ({self.start_method!r}) did not come up: {self.reason}.{hint}"


@dataclass(eq=False)
class WorkerDiedError(WorkerError):
    """A worker process ended while its task had not returned.

    Attributes:
        agents: the agents of the tasks that had not returned.
        exit_code: of the process, negative for the number of a signal; None where unknown.
        reason: what the executor said, or ``""``.
    """

    agents: tuple[str, ...]
    exit_code: int | None
    reason: str = ""

    def sentence(self) -> str:
        """Return the message."""
        shown = ", ".join(self.agents[:20])
        more = f" and {len(self.agents) - 20} more" if len(self.agents) > 20 else ""
        code = "an unknown exit code" if self.exit_code is None else f"exit code {self.exit_code}"
        reason = f" ({self.reason})" if self.reason else ""
        return (
            f"A worker process died with {code}{reason} while these agents were not done: "
            f"{shown}{more}. A negative code is a signal (-9: killed, often for want of memory)."
        )


@dataclass(eq=False)
class WorkerTaskError(WorkerError):
    """A worker, or the executor around it, could not run a task at all.

    Attributes:
        agents: the agents of the task.
        reason: type and text of the error.
    """

    agents: tuple[str, ...]
    reason: str

    def sentence(self) -> str:
        """Return the message."""
        return f"A task could not be run: {self.reason}. Its agents: {', '.join(self.agents[:20])}"


class WorkerTraceback(Exception):  # noqa: N818 - it is shown as a cause, never raised
    """The traceback of a worker as text, attached as the cause of an error that came from there.

    Attributes:
        text: the formatted traceback.
        agent: the agent that was asked, such as ``agent 12 (MyAgent)``; ``""`` when none was.
    """

    def __init__(self, text: str, agent: str = "") -> None:
        super().__init__(text, agent)
        self.text = text
        self.agent = agent

    def __str__(self) -> str:
        while_asking = f"while {self.agent} was asked " if self.agent else ""
        return f'{while_asking}in a worker\n"""\n{self.text}"""'
