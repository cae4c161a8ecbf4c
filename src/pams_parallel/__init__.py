"""A process-parallel runner for PAMS with the results of the sequential one, bit for bit.

```
                     main                                  ║              worker
                                                           ║
settings ─▶ runner ─▶ planner ─▶ tracker ──── update ─────▶║──▶ replica ─────▶ submit_orders
               ▲                    ▲                      ║       ▲ put back        │
               │                simulation                 ║       └─────────────────┤
               └── applier ◀── codec: decode ◀── bytes ────║◀── codec: encode ◀──────┘
                     │                                     ║    orders, PRNG, listed values
                     ▼
              agents, orders
```
"""

from importlib.metadata import version as _version

from ._codec import CodecBackend, DillBackend, PickleBackend, References, ReferenceTable, TaskCodec
from ._runner import MultiProcessAgentParallelRunner
from ._stats import BatchStats, RunnerStats
from ._synced import SyncedAttributesMixin
from .exceptions import (
    ChunkingError,
    CodecNotInstalledError,
    DecodeError,
    EncodeError,
    LoggerStateError,
    PamsParallelError,
    PayloadError,
    RemoteAgentError,
    SettingsError,
    SyncedAttributesError,
    UnknownReferenceError,
    WorkerDiedError,
    WorkerError,
    WorkerInitializerError,
    WorkerStartError,
    WorkerTaskError,
    WorkerTraceback,
)

__version__ = _version("pams-parallel")

__all__ = [
    "BatchStats",
    "RunnerStats",
    "ChunkingError",
    "CodecBackend",
    "CodecNotInstalledError",
    "DecodeError",
    "DillBackend",
    "EncodeError",
    "LoggerStateError",
    "MultiProcessAgentParallelRunner",
    "PamsParallelError",
    "PayloadError",
    "PickleBackend",
    "ReferenceTable",
    "References",
    "RemoteAgentError",
    "SettingsError",
    "SyncedAttributesError",
    "SyncedAttributesMixin",
    "TaskCodec",
    "UnknownReferenceError",
    "WorkerDiedError",
    "WorkerError",
    "WorkerInitializerError",
    "WorkerStartError",
    "WorkerTaskError",
    "WorkerTraceback",
    "__version__",
]
