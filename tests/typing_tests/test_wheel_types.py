"""What a user gets from the wheel: types for pams_parallel and for PAMS, with no configuration."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
USER_CODE = Path(__file__).with_name("user_code.py")

# the build and the fresh venv take minutes where the index is far
pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]


def _clean_environment() -> dict[str, str]:
    """The environment without what would let a subprocess see this checkout."""
    hidden = ("PYTHON", "MYPY", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)}


def _run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=_clean_environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )


@dataclass(frozen=True)
class Installed:
    """The wheel, and the python of a fresh venv that has it and mypy, and nothing else of ours."""

    wheel: Path
    python: Path

    def check_types(self, source: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run ``mypy --strict`` on a copy of a file, in a directory with nothing else in it."""
        cwd.mkdir()
        copy = cwd / source.name
        shutil.copyfile(source, copy)
        return _run(
            self.python,
            *("-m", "mypy", "--strict", "--config-file=", "--cache-dir", os.devnull),
            copy.name,
            cwd=cwd,
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """One wheel and one venv for all tests of the module."""
    directory = tmp_path_factory.mktemp("wheel")
    built = _run(sys.executable, "-m", "build", "--wheel", "-o", directory, ROOT, cwd=directory)
    assert built.returncode == 0, built.stdout
    (wheel,) = directory.glob("*.whl")

    environment = directory / "venv"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    pip = _run(
        *(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, "mypy"),
        cwd=directory,
    )
    assert pip.returncode == 0, pip.stdout
    return Installed(wheel, python)


def test_wheel_holds_every_stub_and_the_marker(installed: Installed) -> None:
    """The wheel holds py.typed and all of typings/pams-stubs, so that PEP 561 finds both."""
    stubs = ROOT / "typings" / "pams-stubs"
    expected = {f"pams-stubs/{stub.relative_to(stubs)}" for stub in stubs.rglob("*.pyi")}
    with zipfile.ZipFile(installed.wheel) as wheel:
        names = set(wheel.namelist())
    assert expected
    assert {name for name in names if name.startswith("pams-stubs/")} == expected
    assert "pams_parallel/py.typed" in names


def test_user_code_is_clean_under_strict(installed: Installed, tmp_path: Path) -> None:
    """A program that uses PAMS and pams_parallel passes ``mypy --strict`` unconfigured."""
    result = installed.check_types(USER_CODE, tmp_path / "empty")
    assert result.returncode == 0, result.stdout
    assert "Success: no issues found in 1 source file" in result.stdout


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("wrong: str = runner.num_parallel", "assignment"),
        ("wrong: str = runner.simulator", "assignment"),
        ("wrong: int = runner.simulator.markets[0].get_market_price()", "assignment"),
        ("runner.simulator.agents[0].submit_orders(1)", "arg-type"),
        ("MultiProcessAgentParallelRunner({}, codec=object())", "arg-type"),
        ("runner.no_such_attribute", "attr-defined"),
        ("Agent(0, random.Random(), runner.simulator, 'a')", "abstract"),
    ],
)
def test_an_error_of_the_user_is_refused(
    installed: Installed, tmp_path: Path, statement: str, code: str
) -> None:
    """One wrong line in a clean program is refused, at that line and for that reason."""
    head = textwrap.dedent(
        """\
        import random

        from pams.agents import Agent
        from pams_parallel import MultiProcessAgentParallelRunner

        runner = MultiProcessAgentParallelRunner({}, prng=random.Random(1))
        print(Agent.__name__)
        """
    )
    source = tmp_path / "wrong.py"
    source.write_text(head + statement + "\n", encoding="utf-8")
    result = installed.check_types(source, tmp_path / "empty")
    assert result.returncode == 1, result.stdout
    line = len(head.splitlines()) + 1
    errors = [text for text in result.stdout.splitlines() if ": error: " in text]
    assert len(errors) == 1, result.stdout
    assert errors[0].startswith(f"wrong.py:{line}: error: "), result.stdout
    assert errors[0].endswith(f"[{code}]"), result.stdout
