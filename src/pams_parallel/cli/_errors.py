"""Errors of PAMS, of configs and of agents, each as one line that says what and where."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from pams import Market, Session
from pams.agents import Agent
from pams.events import EventABC
from pams.runners import Runner

from ..exceptions import PamsParallelError, RemoteAgentError, WorkerTraceback


class CliError(Exception):
    """Ends the command with a line on stderr.

    Attributes:
        text: the line, without the program's name.
        status: exit status: 2 for bad input, 1 for a simulation that failed.
    """

    def __init__(self, text: str, status: int = 2) -> None:
        super().__init__(text, status)
        self.text = text
        self.status = status


def config_error(source: str, settings: dict[str, Any], error: Exception) -> CliError:
    """Return what to say about a config that PAMS or we refused while setting up.

    Args:
        source: what to call the config.
        settings: its content.
        error: what the setup raised.
    """
    place = "" if isinstance(error, PamsParallelError) else _place(error, settings)
    if not place and isinstance(error, KeyError) and error.args:
        path = _path_of_value(error.args[0], settings)
        place = f"{path}: " if path else ""
    return CliError(f"{source}: {place}{_explain(error, settings)}")


def run_error(source: str, settings: dict[str, Any], error: BaseException) -> CliError:
    """Return what to say about an error that left a running simulation.

    Args:
        source: what to call the config.
        settings: its content.
        error: what the run raised, ``SystemExit`` of an agent included.
    """
    if isinstance(error, RemoteAgentError):
        text = f"{error.agent}: {error.type_name}: {error.text}"
    elif isinstance(error, PamsParallelError):
        text = str(error)
    else:
        cause = error.__cause__
        agent = cause.agent if isinstance(cause, WorkerTraceback) else ""
        place = f"{agent}: " if agent else _place(error, settings)
        text = f"{place}{type(error).__name__}: {error}{_line(error)}"
    return CliError(f"{source}: {text} (--traceback shows more)", status=1)


def _explain(error: Exception, settings: dict[str, Any]) -> str:
    """Return the error's text, completed where PAMS's own says too little."""
    text = str(error)
    if isinstance(error, KeyError) and error.args:
        key = error.args[0]
        if _path_of_value(key, settings):
            return f"names {key!r}, which does not exist"
        return f"the key {key!r} is missing"
    if isinstance(error, AttributeError):
        found = re.fullmatch(r"class for (.+) is found (\d+) times", text)
        if found:
            name, times = found.groups()
            if times == "0":
                return f"unknown class {name!r}; give own classes as --classes MODULE:{name}"
            return f"class {name!r} is ambiguous: there are {times} of that name"
    if isinstance(error, (ValueError, NotImplementedError)) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _path_of_value(wanted: object, part: object, path: str = "") -> str:
    """Return where a config holds a text as a value, and thus refers to something by it."""
    if isinstance(part, dict):
        parts = ((f"{path}.{key}" if path else str(key), value) for key, value in part.items())
    elif isinstance(part, list):
        parts = ((f"{path}[{i}]", value) for i, value in enumerate(part))
    else:
        return path if isinstance(part, str) and part == wanted else ""
    return next(filter(None, (_path_of_value(wanted, value, step) for step, value in parts)), "")


def _place(error: BaseException, settings: dict[str, Any]) -> str:
    """Return which agent, market, session, event or part of the config an error came from.

    PAMS's errors do not say; the frames that they passed know. Where they do not, the message is
    only shorter.
    """
    place = ""
    for frame in _frames(error):
        owner = frame.f_locals.get("self")
        for base, word in (
            (Agent, "agent"),
            (Market, "market"),
            (Session, "session"),
            (EventABC, "event"),
        ):
            if isinstance(owner, base):
                name = getattr(owner, "name", "?")
                place = f"{word} {name!r} ({type(owner).__name__}): "
        # in the frames of the runner's own setup, the part of the config that it is reading
        if isinstance(owner, Runner) and isinstance(error, (KeyError, AttributeError, TypeError)):
            part = frame.f_locals.get("event_name", frame.f_locals.get("name"))
            if isinstance(part, str) and part in settings:
                place = f"{part!r}: "
    return place


def _frames(error: BaseException) -> Iterator[FrameType]:
    entry = error.__traceback__
    while entry is not None:
        yield entry.tb_frame
        entry = entry.tb_next


def _line(error: BaseException) -> str:
    """Return the line of code that raised an error, here or in a worker."""
    cause = error.__cause__
    if isinstance(cause, WorkerTraceback):
        found = re.findall(r'^  File "(.+)", line (\d+), in (.+)$', cause.text, re.MULTILINE)
        file, number, function = found[-1] if found else ("", "", "")
    else:
        frames = traceback.extract_tb(error.__traceback__)
        last = frames[-1] if frames else None
        file, number, function = (last.filename, last.lineno, last.name) if last else ("", "", "")
    return f" ({Path(file).name} line {number}, in {function})" if file else ""
