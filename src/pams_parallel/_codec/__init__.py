"""Bytes and back: the serialization layer."""

from .dill_backend import DillBackend
from .pickle_backend import PickleBackend
from .protocol import CodecBackend, References
from .references import ReferenceTable
from .registry import CODEC_NAMES, resolve_codec
from .task_codec import TaskCodec

__all__ = [
    "CODEC_NAMES",
    "CodecBackend",
    "DillBackend",
    "PickleBackend",
    "ReferenceTable",
    "References",
    "TaskCodec",
    "resolve_codec",
]
