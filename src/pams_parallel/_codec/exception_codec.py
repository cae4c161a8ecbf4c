"""Exceptions of agents: they arrive with type, text, attributes and the worker's traceback.

Pickle rebuilds an exception by calling its class with ``args``, which fails for every constructor
with other parameters. Here the constructor is only called when it gives the same ``args`` again.
"""

from __future__ import annotations

import contextlib
import re
import traceback
import types
from typing import Any, cast

from .._messages import ExceptionImage
from ..exceptions import RemoteAgentError, WorkerTraceback
from .protocol import CodecBackend, References


def encode_exception(
    backend: CodecBackend, error: BaseException, references: References
) -> ExceptionImage:
    """Describe an exception, with the exception itself where all of it can be encoded."""
    data, problem = None, ""
    try:
        data = backend.dumps(_reduced(error), references)
    except Exception as failure:  # any error of a user's reducer
        problem = f"{type(failure).__name__}: {failure}"
    return ExceptionImage(
        type_name=qualified_name(type(error)),
        text=safe_text(error),
        traceback=format_traceback(error),
        data=data,
        problem=problem,
    )


def decode_exception(
    backend: CodecBackend, image: ExceptionImage, agent: str, references: References
) -> BaseException:
    """Return the exception, or a ``RemoteAgentError`` when it cannot be rebuilt as it was."""
    cause = WorkerTraceback(image.traceback, agent)
    problem = image.problem
    if image.data is not None:
        try:
            error = _rebuilt(backend.loads(image.data, references))
            name, text = qualified_name(type(error)), safe_text(error)
            if name == image.type_name and _bare(text) == _bare(image.text):
                error.__cause__ = cause
                return error
            problem = f"it came out as {name}: {text}"
        except Exception as failure:
            problem = f"{type(failure).__name__}: {failure}"
    remote = RemoteAgentError(agent, image.type_name, image.text, image.traceback, problem)
    remote.__cause__ = cause
    return remote


def _reduced(error: BaseException) -> tuple[object, ...]:
    """Return what an exception is rebuilt from."""
    cls = type(error)
    by_args = (
        cls.__reduce__ is BaseException.__reduce__ and cls.__reduce_ex__ is object.__reduce_ex__
    )
    if not by_args:
        return ("whole", error)  # the class says itself how it is to be rebuilt
    return ("parts", cls, error.args, vars(error), _builtin_fields(error))


def _rebuilt(data: object) -> BaseException:
    how, *parts = cast("tuple[Any, ...]", data)
    if how == "whole":
        return cast("BaseException", parts[0])
    cls, args, state, fields = parts
    try:
        error = cls(*args)
        same = error.args == args
    except Exception:  # a constructor with other parameters
        same = False
    if not same:
        error = cls.__new__(cls, *args)
        error.args = args
    error.__dict__.update(state)
    for name, value in fields.items():
        with contextlib.suppress(AttributeError, TypeError):  # some come from args and are fixed
            setattr(error, name, value)
    return cast("BaseException", error)


def _builtin_fields(error: BaseException) -> dict[str, object]:
    """Return what builtin exceptions keep beside args and dict: a code, a value, a name.

    Without ``obj`` of an AttributeError: it may be anything, and Python does not pickle it either.
    """
    return {
        name: getattr(error, name)
        for cls in type(error).__mro__
        if cls.__module__ == "builtins"
        for name, kind in vars(cls).items()
        if isinstance(kind, types.MemberDescriptorType)
        and not name.startswith("__")
        and name != "obj"
        and getattr(error, name, None) is not None
    }


def qualified_name(cls: type) -> str:
    """Return module and name of a class; a script's module has two names under spawn."""
    module = "__main__" if cls.__module__ == "__mp_main__" else cls.__module__
    return cls.__qualname__ if module == "builtins" else f"{module}.{cls.__qualname__}"


def _bare(text: str) -> str:
    """Return a text without the addresses of objects: they differ from process to process."""
    return re.sub(r"\b0x[0-9a-fA-F]+", "0x", text)


def safe_text(error: BaseException) -> str:
    """Return ``str(error)``, also when the class's own ``__str__`` fails."""
    try:
        return str(error)
    except Exception as failure:
        return f"<its __str__ raised {type(failure).__name__}>"


def format_traceback(error: BaseException) -> str:
    """Return the traceback with causes as text; never fails."""
    try:
        return "".join(traceback.format_exception(error))
    except Exception as failure:
        return f"{type(error).__name__} (its traceback cannot be formatted: {failure!r})\n"
