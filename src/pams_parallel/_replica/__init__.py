"""Replicas: workers keep a copy of the simulation, and are told what changes.

```
main: Tracker ──── update: what differs from the last ────▶ worker: Replica
```

Both sides keep the row of every object, what its attributes or items are, as main had it last. In
main, an object whose row is another now has changed and is sent; in a worker, it was changed by an
agent and is put back.
"""

from .loggers import Wanted
from .opaques import CannotSendError
from .public import PublicObjects
from .replica import Replica
from .tracker import Tracker

__all__ = ["CannotSendError", "PublicObjects", "Replica", "Tracker", "Wanted"]
