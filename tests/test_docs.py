"""The documentation: its examples run, and its lists of names are whole.

Agreed in the pages:

- A block of Python runs as a script of its own. ``<!-- not run: REASON -->`` on the line before it
  leaves it out; it must be Python all the same.
- A block with ``title="NAME"`` is the file NAME for all scripts of its page. Pages share the files
  of the quickstart, and may replace them.
- A block with ``title="Output"`` is what the script before it prints, PAMS's own lines (``# ...``)
  left out.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib.metadata
import json
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import pams_parallel
from pams_parallel import MultiProcessAgentParallelRunner, PamsParallelError, exceptions
from pams_parallel.cli import _options, _tables

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
QUICKSTART = DOCS / "quickstart.md"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(DOCS.rglob("*.md")),
]

_FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?"
    r"```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; ``output`` is what the page says that it prints."""

    page: Path
    line: int
    language: str
    title: str | None
    code: str
    reason: str | None
    output: str | None = None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def _read(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    blocks: list[Block] = []
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start("language")) + 1
        block = Block(page, line, found["language"], found["title"], found["code"], found["reason"])
        if block.title == "Output":
            blocks[-1] = dataclasses.replace(blocks[-1], output=block.code)
        else:
            blocks.append(block)
    return blocks


BLOCKS = [block for page in PAGES for block in _read(page)]


def _files_for(page: Path) -> dict[str, str]:
    """The files that the scripts of a page find beside them."""
    return {
        block.title: block.code
        for source in (QUICKSTART, page)
        for block in BLOCKS
        if block.page == source and block.title is not None
    }


def _python(*, runs: bool) -> list[Block]:
    return [one for one in BLOCKS if one.language == "python" and (one.reason is None) is runs]


def test_every_fence_is_understood() -> None:
    """No fenced block of a page escapes these tests by the way in which it is written."""
    for page in PAGES:
        fences = re.findall(r"^ *```", page.read_text(encoding="utf-8"), re.MULTILINE)
        shown = sum(2 if block.output is None else 4 for block in BLOCKS if block.page == page)
        assert len(fences) == shown, page
    languages = {block.language for block in BLOCKS}
    assert languages == {"python", "json", "console", "text"}


@pytest.mark.parametrize("block", _python(runs=True), ids=str)
def test_python_runs(block: Block, tmp_path: Path) -> None:
    """A Python block runs as a script, warns of nothing that counts, and prints what it says."""
    files = _files_for(block.page)
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    script = tmp_path / (block.title or f"example_{block.line}.py")
    script.write_text(block.code, encoding="utf-8")

    runners = re.findall(r"^class (\w+Runner)\(", block.code, re.MULTILINE)
    ignored = [
        *(
            f"{name} is experimental"
            for name in (MultiProcessAgentParallelRunner.__name__, *runners)
        ),
        "order price does not accord to the tick size",
    ]
    options = ["-Werror", *(f"-Wignore:{message}:UserWarning" for message in ignored)]
    result = subprocess.run(
        [sys.executable, *options, script.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    if block.output is not None:
        lines = [line for line in result.stdout.splitlines() if not line.startswith("# ")]
        assert lines == block.output.splitlines()


@pytest.mark.parametrize("block", _python(runs=False), ids=str)
def test_python_that_is_not_run_parses(block: Block) -> None:
    """A Python block that is left out of the run is Python."""
    ast.parse(block.code)


@pytest.mark.parametrize("block", [one for one in BLOCKS if one.language == "json"], ids=str)
def test_json_parses(block: Block) -> None:
    """A block of JSON is JSON, and one that is a file is a config."""
    content = json.loads(block.code)
    assert block.title is None or "simulation" in content


@pytest.mark.parametrize("block", [one for one in BLOCKS if one.language == "console"], ids=str)
def test_console_parses(block: Block) -> None:
    """A command shown in the pages is one that exists, with arguments that it takes."""
    for line in block.code.splitlines():
        prompt, _, command = line.partition(" ")
        assert prompt == "$"
        program, *arguments = shlex.split(command)
        if program == "pams-parallel":
            assert _options.parse(arguments).command == arguments[0]
        elif program == "make":
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in arguments)
        elif program == "pip":
            action, requirement = arguments
            name, _, extra = requirement.rstrip("]").partition("[")
            extras = importlib.metadata.metadata(name).get_all("Provides-Extra") or []
            assert action == "install"
            assert not extra or extra in extras
        else:
            noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8")
            assert program == ".venv/bin/nox"
            assert f"def {arguments[arguments.index('-s') + 1]}(" in noxfile


def test_reference_names_all_and_nothing_else() -> None:
    """The API reference has every public name, and every hook that it names exists."""
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\bpams_parallel\.(\w+)", text))
    assert named == set(pams_parallel.__all__)
    hooks = re.findall(r"^::: pams_parallel\.MultiProcessAgentParallelRunner\.(\w+)", text, re.M)
    assert hooks
    assert [name for name in hooks if name not in vars(MultiProcessAgentParallelRunner)] == []


def _exception_classes() -> list[type[BaseException]]:
    return [
        value
        for value in vars(exceptions).values()
        if isinstance(value, type)
        and issubclass(value, BaseException)
        and value.__module__ == exceptions.__name__
    ]


def _errors_page() -> str:
    return (DOCS / "errors.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("cls", _exception_classes(), ids=lambda cls: str(cls.__name__))
def test_errors_page_has_every_class(cls: type[BaseException]) -> None:
    """The page on errors speaks of every exception class."""
    assert re.search(rf"\b{cls.__name__}\b", _errors_page())


@pytest.mark.parametrize(
    "cls",
    [
        cls
        for cls in _exception_classes()
        if issubclass(cls, PamsParallelError) and dataclasses.fields(cls)
    ],
    ids=lambda cls: str(cls.__name__),
)
def test_errors_page_quotes_the_message(cls: type[PamsParallelError]) -> None:
    """The message that the page quotes for a class has the first words of its sentence."""
    section = re.search(rf"^### {cls.__name__}\n(.*?)^##", _errors_page(), re.M | re.S)
    assert section is not None
    quoted = section[1].replace("\\", "")
    gap = "\u00a7"  # printable, so that repr leaves it alone
    gaps = {"tuple[str, ...]": (gap,), "int | None": None, "bool": True}
    values = [gaps.get(str(field.type), gap) for field in dataclasses.fields(cls)]
    sentence = str(cls(*values)).replace("an unknown exit code", f"exit code {gap}")
    words = [piece.strip(" '=:.") for piece in sentence.split(gap)]
    assert next(piece for piece in words if len(piece) > 3) in quoted


def test_errors_page_shows_the_tree_of_the_module() -> None:
    """The tree on the page is that of the module's docstring."""
    tree = re.compile(r"^[\u2500-\u257f\s]*\w+Error(?: \([\w, ]+\))?", re.MULTILINE)
    in_module = tree.findall((exceptions.__doc__ or "").split("```")[1])
    in_page = tree.findall(_errors_page().split("```text\n")[1].split("```")[0])
    assert in_page
    assert [line.strip() for line in in_page] == [line.strip() for line in in_module]


def test_readme_has_the_drawing_of_the_package() -> None:
    """The drawing in the README is that of the package docstring."""
    drawing = (pams_parallel.__doc__ or "").split("```")[1].strip("\n")
    assert drawing in (ROOT / "README.md").read_text(encoding="utf-8")


def test_cli_page_has_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    """The page on the command line has the options that ``--help`` shows, and no others."""
    with pytest.raises(SystemExit):
        _options.parse(["run", "--help"])
    option = re.compile(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*")
    shown = set(option.findall(capsys.readouterr().out))
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert set(option.findall(page)) == (shown - {"--help"}) | {"--version"}


def test_cli_page_has_every_file_and_column() -> None:
    """The page on the command line names the files of ``--out`` and their columns in order."""
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    for name, (_, columns) in _tables.FILES.items():
        row = re.search(rf"^\| `{name}` \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE)
        assert row is not None, name
        assert ", ".join(f"`{column}`" for column in columns) in row[1]


def test_site_reads_offline(tmp_path: Path) -> None:
    """No page of the built site loads anything from elsewhere."""
    pytest.importorskip("mkdocs")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", tmp_path / "site"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > len(list(DOCS.rglob("*.md")))
    loads = re.compile(r"<(?:script|img|link|iframe)\b[^>]*(?:src|href)=\"?(?:https?:)?//[^>]*>")
    for page in pages:
        assert loads.findall(page.read_text(encoding="utf-8")) == [], page
