"""What the figures were measured with."""

from __future__ import annotations

import multiprocessing
import os
import platform
from importlib.metadata import version


def describe_machine() -> list[tuple[str, str]]:
    """Return labels and values, none of which names a computer."""
    implementation = platform.python_implementation()
    # asking for the default would fix it for the rest of the process
    start_method = multiprocessing.get_start_method(allow_none=True)
    return [
        ("cores", str(os.cpu_count())),
        ("processor", platform.machine()),
        ("system", platform.system()),
        ("Python", f"{implementation} {platform.python_version()}"),
        *((name, version(name)) for name in ("pams-parallel", "pams", "numpy")),
        ("start method", start_method or multiprocessing.get_all_start_methods()[0]),
    ]
