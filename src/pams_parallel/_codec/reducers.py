"""Reducers that users and libraries have registered, for multiprocessing or in ``copyreg``."""

from __future__ import annotations

import copyreg
from collections import ChainMap
from collections.abc import Callable, Mapping
from multiprocessing.reduction import ForkingPickler
from typing import Any, Final, TypeAlias, cast

Reducers: TypeAlias = Mapping[type, Callable[[Any], Any]]

# PyTorch's reducers hand over memory instead of values: an agent that trains in one worker would
# change the tensors of main and of the other workers, and the handle can be opened only once,
# while an update is read by every worker. Tensors also have an ordinary reducer, by value.
_SHARING_MODULES: Final = ("torch.multiprocessing.",)


def registered_reducers() -> Reducers:
    """Return the reducers by class, those for multiprocessing first, as of now."""
    for_multiprocessing = {
        cls: reduce
        for cls, reduce in cast("Any", ForkingPickler)._extra_reducers.items()
        if not getattr(reduce, "__module__", "").startswith(_SHARING_MODULES)
    }
    return ChainMap(for_multiprocessing, copyreg.dispatch_table)
