"""The stubs of PAMS against the PAMS that is installed."""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TYPINGS = Path(__file__).resolve().parents[2] / "typings"


def _stubtest(typings: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    # mypy_path finds no submodules of a *-stubs folder; sys.path does, and ahead of site-packages,
    # where an editable install leaves a copy of the stubs that soon is old.
    environment = {name: value for name, value in os.environ.items() if name != "MYPYPATH"}
    environment["PYTHONPATH"] = str(typings)
    return subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "pams"],
        cwd=cwd,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )


def _pams_directory() -> Path:
    spec = importlib.util.find_spec("pams")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _names_of_class(node: ast.ClassDef) -> set[str]:
    """Methods, attributes of the class body, and attributes that methods give to ``self``."""
    names: set[str] = set()
    for child in node.body:
        if isinstance(child, ast.FunctionDef):
            names.add(child.name)
        elif isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
            names.add(child.target.id)
        elif isinstance(child, ast.Assign):
            names.update(target.id for target in child.targets if isinstance(target, ast.Name))
    names.update(
        target.attr
        for target in ast.walk(node)
        if isinstance(target, ast.Attribute)
        and isinstance(target.ctx, ast.Store)
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    )
    return names


def _names_of_package(directory: Path, suffix: str) -> dict[str, set[str]]:
    """Where it is defined ("market.Market", or "market" for functions) -> the names there."""
    names: dict[str, set[str]] = {}
    for path in directory.rglob(f"*{suffix}"):
        module = ".".join(path.relative_to(directory).with_suffix("").parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names[module] = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                names[f"{module}.{node.name}"] = _names_of_class(node)
    return names


@pytest.mark.timeout(300)
def test_stubtest_is_clean(tmp_path: Path) -> None:
    """Stubtest finds no difference between the stubs and PAMS, in any module, with no allowlist."""
    result = _stubtest(TYPINGS, tmp_path)
    assert result.returncode == 0, result.stdout
    modules = len(list(_pams_directory().rglob("*.py")))
    assert f"Success: no issues found in {modules} modules" in result.stdout


@pytest.mark.timeout(300)
def test_stubtest_sees_a_broken_stub(tmp_path: Path) -> None:
    """Stubtest reads the folder that it is given: one parameter less is found."""
    broken = tmp_path / "typings"
    shutil.copytree(TYPINGS, broken)
    stub = broken / "pams-stubs" / "agents" / "base.pyi"
    text = stub.read_text(encoding="utf-8")
    wrong = text.replace("def get_asset_volume(self, market_id: int)", "def get_asset_volume(self)")
    assert wrong != text
    stub.write_text(wrong, encoding="utf-8")
    result = _stubtest(broken, tmp_path)
    assert result.returncode == 1, result.stdout
    assert "pams.agents.base.Agent.get_asset_volume is inconsistent" in result.stdout
    assert "Found 1 error" in result.stdout


def test_stubs_declare_what_stubtest_does_not_look_at() -> None:
    """Instance attributes and private names of PAMS are all in the stubs, and nothing else is."""
    pams = _names_of_package(_pams_directory(), ".py")
    stubs = _names_of_package(TYPINGS / "pams-stubs", ".pyi")
    # Python sets it to None by itself where a class has __eq__ only
    stubs["order.Order"].remove("__hash__")
    assert stubs == pams
