"""The public names, both ways, and what importing them does not do."""

from __future__ import annotations

import importlib.metadata
import inspect
import subprocess
import sys
import types
from pathlib import Path

import pytest
from pams.runners import SequentialRunner

import pams_parallel
from pams_parallel import exceptions


@pytest.mark.parametrize("module", [pams_parallel, exceptions], ids=lambda one: str(one.__name__))
def test_every_name_in_all_exists(module: types.ModuleType) -> None:
    """Every name in ``__all__`` is there, once."""
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert len(set(module.__all__)) == len(module.__all__)


def test_every_public_name_is_in_all() -> None:
    """What the package shows without an underscore is in ``__all__``, or is a module."""
    public = {
        name
        for name, value in vars(pams_parallel).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert public == set(pams_parallel.__all__) - {"__version__"}


def test_every_exception_is_public() -> None:
    """All exception classes of the package can be imported from it."""
    defined = {
        name
        for name, value in vars(exceptions).items()
        if isinstance(value, type) and value.__module__ == exceptions.__name__
    }
    assert set(exceptions.__all__) == defined
    assert defined <= set(pams_parallel.__all__)


def test_public_classes_say_what_they_are() -> None:
    """Every public class has a docstring of its own."""
    classes = [getattr(pams_parallel, name) for name in pams_parallel.__all__]
    assert [cls for cls in classes if isinstance(cls, type) and not vars(cls).get("__doc__")] == []


def test_version_is_that_of_the_distribution() -> None:
    """``__version__`` is what pip shows."""
    assert pams_parallel.__version__ == importlib.metadata.version("pams-parallel")


def test_package_is_typed() -> None:
    """Type checkers look into the package, since it has ``py.typed``."""
    assert Path(pams_parallel.__file__).with_name("py.typed").is_file()


def test_constructor_is_that_of_the_other_runners() -> None:
    """The runner takes what ``SequentialRunner`` takes, by position too, and ``codec`` by name."""
    ours = list(
        inspect.signature(pams_parallel.MultiProcessAgentParallelRunner).parameters.values()
    )
    theirs = list(inspect.signature(SequentialRunner).parameters.values())
    assert [(one.name, one.kind, one.default) for one in ours[:-1]] == [
        (one.name, one.kind, one.default) for one in theirs
    ]
    assert ours[-1].name == "codec"
    assert ours[-1].kind is inspect.Parameter.KEYWORD_ONLY
    assert ours[-1].default is None


@pytest.mark.parametrize(
    "statement",
    [
        "assert 'dill' not in sys.modules",
        "assert multiprocessing.get_start_method(allow_none=True) is None",
        "assert threading.active_count() == 1 and not multiprocessing.active_children()",
    ],
)
def test_importing_does_nothing_else(statement: str) -> None:
    """Importing the package loads no dill, settles no start method, and starts nothing."""
    code = f"import multiprocessing, sys, threading, pams_parallel; {statement}"
    subprocess.run([sys.executable, "-c", code], check=True)
