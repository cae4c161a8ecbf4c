"""The whole state of a simulation as plain data that can be compared, digested and explained."""

from .capture import capture_state
from .difference import Difference, first_difference
from .recording import RecordingLogger
from .tree import State, digest

__all__ = [
    "Difference",
    "RecordingLogger",
    "State",
    "capture_state",
    "digest",
    "first_difference",
]
