"""The checks, one word each. CI runs the same words.

nox                         lint, types, layers, tests and docs
nox -s tests -- -k planner  some tests; what follows -- goes to the tool
nox -s bench                the benchmarks against their targets, some five minutes
nox -s tests_on             the tests on every Python of 3.10 to 3.14 that is installed
"""

from __future__ import annotations

import sys

import nox

nox.needs_version = ">=2024.10"
# The .venv that nox itself is in has all tools: a venv for each word would be five times the
# download and some minutes of every CI run.
nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "types", "layers", "tests", "docs"]
# also in CI, where nox would fail: no machine has all five
nox.options.error_on_missing_interpreters = False

PYTHON = sys.executable


@nox.session
def lint(session: nox.Session) -> None:
    """Style and common mistakes."""
    session.run(PYTHON, "-m", "ruff", "check")
    session.run(PYTHON, "-m", "ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Our types, and the stubs of PAMS against PAMS."""
    session.run(PYTHON, "-m", "mypy")
    # as sources on the path: mypy_path finds no submodule of a *-stubs folder
    session.run(PYTHON, "-m", "mypy.stubtest", "pams", env={"PYTHONPATH": "typings"})


@nox.session
def layers(session: nox.Session) -> None:
    """Which module may import which."""
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    session.run(PYTHON, "-c", command)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests."""
    session.run(PYTHON, "-m", "pytest", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The site, with every broken link an error."""
    session.run(PYTHON, "-m", "mkdocs", "build", "--strict")


@nox.session
def bench(session: nox.Session) -> None:
    """The benchmarks; what follows -- goes to them: --quick is rougher, --out writes a page."""
    session.run(PYTHON, "-m", "benchmarks", *session.posargs)


@nox.session(venv_backend="virtualenv", python=["3.10", "3.11", "3.12", "3.13", "3.14"])
def tests_on(session: nox.Session) -> None:
    """All tests on another Python, in a venv of its own."""
    session.install("--upgrade", "pip>=25.1")  # dependency groups
    session.install("--editable", ".[dill]", "--group", "tests", "--group", "types")
    session.run("python", "-m", "pytest", *session.posargs)
