"""Values without parts, as texts that keep apart what is not the same bit for bit."""

from __future__ import annotations

import enum
import math
import pathlib
import struct
import types
from typing import Final

import numpy as np
from pams.order import OrderKind

_QUIET_NAN: Final = struct.pack(">d", math.nan)
# Python refuses to write out longer integers in decimal
_DECIMAL_BITS: Final = 10_000


def leaf_text(value: object) -> str | None:
    """Return the text of a value that has no parts, or None when it has.

    Args:
        value: any object. Subclasses of ``int``, ``str`` and the like are not leaves: they may
            hold attributes.
    """
    cls = type(value)
    if cls is float:
        return float_text(value)  # type: ignore[arg-type]
    if cls is int:
        return int_text(value)  # type: ignore[arg-type]
    if value is None or cls in (bool, str, bytes):
        return repr(value)
    return _rare_leaf_text(value)


def float_text(value: float) -> str:
    """Return the shortest text that is this float; a NaN with other bits than usual shows them."""
    if math.isnan(value):
        bits = struct.pack(">d", value)
        return "nan" if bits == _QUIET_NAN else f"nan({bits.hex()})"
    return repr(value)


def int_text(value: int) -> str:
    """Return an integer in decimal, a huge one in hexadecimal."""
    return repr(value) if value.bit_length() < _DECIMAL_BITS else hex(value)


def class_name(cls: type) -> str:
    """Return a class's name with its module, except for built-in ones."""
    if cls.__module__ == "builtins":
        return cls.__qualname__
    return f"{cls.__module__}.{cls.__qualname__}"


def _rare_leaf_text(value: object) -> str | None:
    if isinstance(value, enum.Enum):
        return f"{class_name(type(value))}.{value.name}"
    if isinstance(value, OrderKind):
        return f"<order kind {value.kind_id} {value.name}>"
    if type(value) is complex:
        return f"complex({float_text(value.real)}, {float_text(value.imag)})"
    if isinstance(value, np.generic):
        return _numpy_scalar_text(value)
    if isinstance(value, type):
        return f"<class {class_name(value)}>"
    if _is_plain_function(value):
        return f"<function {value.__module__}.{value.__qualname__}>"  # type: ignore[attr-defined]
    if isinstance(value, types.ModuleType):
        return f"<module {value.__name__}>"
    if value is Ellipsis or value is NotImplemented or isinstance(value, pathlib.PurePath):
        # a path also keeps its own hash, which is another in every process
        return repr(value)
    return None


def _is_plain_function(value: object) -> bool:
    """Tell whether a function is nothing but its name: it has no closure and no attributes."""
    if isinstance(value, types.FunctionType):
        return value.__closure__ is None and not vars(value)
    if isinstance(value, types.BuiltinFunctionType):
        return value.__self__ is None or isinstance(value.__self__, types.ModuleType)
    return False


def _numpy_scalar_text(value: np.generic) -> str:
    plain = value.item()
    # a long double or a date beyond Python's range is its own item
    text = repr(plain) if isinstance(plain, np.generic) else leaf_text(plain)
    return f"numpy.{value.dtype.name}({str(value) if text is None else text})"
