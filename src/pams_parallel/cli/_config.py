"""From the command line to what is to be run: config, seed and classes."""

from __future__ import annotations

import copy
import importlib
import json
import os
import secrets
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from ._errors import CliError
from ._options import Options

_EXAMPLE_CLASSES = ("pams_parallel.cli.example.agents:TrendLearner",)


@dataclass(frozen=True, slots=True)
class Job:
    """One simulation to run.

    Attributes:
        source: what to call the config in messages.
        settings: the config with the options applied.
        seed: seed of the runner's generator.
        class_names: own classes, as ``MODULE:CLASS``.
        classes: these classes.
    """

    source: str
    settings: dict[str, Any]
    seed: int
    class_names: tuple[str, ...]
    classes: tuple[type, ...]

    def fresh_settings(self) -> dict[str, Any]:
        """Return a copy of the config: a run may change what it is given."""
        return copy.deepcopy(self.settings)


def load_job(options: Options) -> Job:
    """Read the config and import the classes.

    A ``run.json`` is a config too: it brings its seed and its classes, which options override.

    Raises:
        CliError: something cannot be read or imported.
    """
    seed: int | None = None
    class_names: tuple[str, ...] = _EXAMPLE_CLASSES
    if options.config is None:
        source = "the example"
        example = files("pams_parallel.cli.example") / "config.json"
        content = _parse(source, example.read_text("utf-8"))
    else:
        source = str(options.config)
        content = _parse(source, _read(options.config))
        content, seed, class_names = _unpack_run(source, content)
    names = tuple(dict.fromkeys((*class_names, *options.classes)))
    if options.seed is not None:
        seed = options.seed
    return Job(
        source=source,
        settings=_apply_options(source, content, options),
        seed=secrets.randbelow(2**31) if seed is None else seed,
        class_names=names,
        classes=tuple(_import_class(name) for name in names),
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # editors of Windows write a mark
    except OSError as error:
        raise CliError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise CliError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from error


def _parse(source: str, text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise CliError(f"{source}: {place}: not JSON: {error.msg}") from error
    except RecursionError as error:
        raise CliError(f"{source}: lists or objects in it are nested too deep") from error
    if not isinstance(content, dict):
        raise CliError(f"{source}: the config must be an object, not a {type(content).__name__}")
    return content


def _unpack_run(
    source: str, content: dict[str, Any]
) -> tuple[dict[str, Any], int | None, tuple[str, ...]]:
    """Return config, seed and classes of a run.json; of a plain config, only itself."""
    if "simulation" in content or not {"config", "seed", "classes"} <= content.keys():
        return content, None, ()
    config, seed, classes = content["config"], content["seed"], content["classes"]
    if not isinstance(config, dict):
        raise CliError(f"{source}: 'config' must be an object, not {config!r}")
    if not isinstance(seed, int):
        raise CliError(f"{source}: 'seed' must be an integer, not {seed!r}")
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
        raise CliError(f"{source}: 'classes' must be a list of MODULE:CLASS, not {classes!r}")
    return config, seed, tuple(classes)


def _apply_options(source: str, content: dict[str, Any], options: Options) -> dict[str, Any]:
    given = {
        "numParallel": options.workers,
        "startMethod": options.start_method,
        "codec": options.codec,
    }
    if "simulation" not in content:
        raise CliError(f"{source}: the key 'simulation' is missing")
    if not isinstance(content["simulation"], dict):
        raise CliError(f"{source}: 'simulation' must be an object, not {content['simulation']!r}")
    chosen = {key: value for key, value in given.items() if value is not None}
    return {**content, "simulation": {**content["simulation"], **chosen}}


def _import_class(name: str) -> type:
    module_name, colon, class_name = name.partition(":")
    if not (module_name and colon and class_name):
        raise CliError(f"--classes {name}: must be MODULE:CLASS (and CONFIG stands before it)")
    folder = os.getcwd()
    if folder not in sys.path:
        # multiprocessing hands sys.path to the workers that it spawns: they find the module too
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a script that ends itself when imported
        if isinstance(error, ModuleNotFoundError) and error.name == module_name:
            raise CliError(f"--classes {name}: no module {module_name!r} in {folder}") from error
        reason = f"{type(error).__name__}: {error}"
        raise CliError(f"--classes {name}: cannot import {module_name!r}: {reason}") from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        raise CliError(f"--classes {name}: module {module_name!r} has no class {class_name!r}")
    return found
