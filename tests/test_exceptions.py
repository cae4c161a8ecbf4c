"""The error tree: fields, texts, bases, and that all of it survives pickling.

All classes are found in the module, so that a new one is covered as soon as it is written.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
from typing import Any

import pytest

from pams_parallel import PamsParallelError, WorkerTraceback, exceptions

CLASSES: list[type[Exception]] = [
    value
    for value in vars(exceptions).values()
    if isinstance(value, type)
    and issubclass(value, Exception)
    and value.__module__ == exceptions.__name__
]

# For each type that a field has, values that an example may have there; the first also where
# another value makes another sentence.
VALUES: dict[str, list[Any]] = {
    "str": ["some 'text' with \u00fcml\u00e4uts", ""],
    "tuple[str, ...]": [tuple(f"agent {number} (MyAgent)" for number in range(25)), ()],
    "int": [0, -1],
    "int | None": [-9, None],
    "bool": [True, False],
}


def _examples(cls: type[Exception]) -> list[Exception]:
    """Return one error of a class for each row of ``VALUES``."""
    if not issubclass(cls, PamsParallelError):
        return [cls(*(name.upper() for name in inspect.signature(cls).parameters))]
    types = [str(field.type) for field in dataclasses.fields(cls)]
    return [cls(*(VALUES[name][row] for name in types)) for row in (0, 1)]


EXAMPLES = [error for cls in CLASSES for error in _examples(cls)]


def _id(value: object) -> str:
    cls = value if isinstance(value, type) else type(value)
    return cls.__name__


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("error", EXAMPLES, ids=_id)
def test_survives_pickling(error: Exception, protocol: int) -> None:
    """An error that has been pickled, twice, has the same class, fields, args and text."""
    once = pickle.loads(pickle.dumps(error, protocol))
    for loaded in (once, pickle.loads(pickle.dumps(once, protocol)), copy.copy(error)):
        assert type(loaded) is type(error)
        assert vars(loaded) == vars(error)
        assert loaded.args == error.args
        assert str(loaded) == str(error)


@pytest.mark.parametrize("error", EXAMPLES, ids=_id)
def test_keeps_a_note_and_an_attribute(error: Exception) -> None:
    """What is put on an error beside its fields survives pickling too."""
    marked = copy.copy(error)
    vars(marked)["mark"] = "kept"
    assert pickle.loads(pickle.dumps(marked)).mark == "kept"


@pytest.mark.parametrize("cls", CLASSES, ids=_id)
def test_sentence_is_made_from_the_fields(cls: type[Exception]) -> None:
    """Two errors of a class with other fields have other texts, and the text is no mere repr."""
    first, *others = _examples(cls)
    assert str(first) != repr(first)
    if issubclass(cls, PamsParallelError) and dataclasses.fields(cls):
        assert str(first) != str(others[0])


@pytest.mark.parametrize("cls", CLASSES, ids=_id)
def test_fields_are_documented(cls: type[Exception]) -> None:
    """The docstring of a class or of its base says what each field is."""
    if not issubclass(cls, PamsParallelError):
        return
    documentation = "\n".join(base.__doc__ or "" for base in cls.__mro__)
    for field in dataclasses.fields(cls):
        assert re.search(rf"^ +{field.name}: \S", documentation, re.MULTILINE), field.name


def _documented_tree() -> dict[str, tuple[str, set[str]]]:
    """Return class -> (the class above it, its builtin bases), as the module's drawing says."""
    drawing = (exceptions.__doc__ or "").split("```")[1]
    above: list[str] = []
    tree: dict[str, tuple[str, set[str]]] = {}
    for line in drawing.strip("\n").splitlines():
        found = re.match(r"([\u2500-\u257f ]*)(\w+)(?: \(([\w, ]+)\))?", line)
        assert found is not None, line
        depth = len(found[1]) // 4
        parent = above[depth - 1] if depth else "Exception"
        tree[found[2]] = (parent, set(re.findall(r"\w+", found[3] or "")))
        above[depth:] = [found[2]]
    return tree


@pytest.mark.parametrize("cls", CLASSES, ids=_id)
def test_bases_are_those_of_the_drawing(cls: type[Exception]) -> None:
    """A class stands in the module's drawing, under its base, with the builtin bases it has."""
    if cls is WorkerTraceback:  # never raised: it is a cause only
        assert cls.__bases__ == (Exception,)
        return
    parent, builtin = _documented_tree()[cls.__name__]
    assert {base.__name__ for base in cls.__bases__} == {parent, *builtin}


def test_drawing_has_no_class_that_is_not_there() -> None:
    """The module's drawing shows existing classes only."""
    names = {cls.__name__ for cls in CLASSES}
    assert set(_documented_tree()) == names - {WorkerTraceback.__name__}
