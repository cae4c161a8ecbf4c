"""The command line: ``pams-parallel run`` and ``pams-parallel verify``."""

from ._main import main

__all__ = ["main"]
