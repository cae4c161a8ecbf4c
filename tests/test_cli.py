"""The command line: what it prints, what it writes, and how it fails."""

from __future__ import annotations

import copy
import csv
import fcntl
import json
import os
import pty
import random
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points, version
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from configs import Settings, make_settings
from pams import SequentialRunner
from pams.logs import CancelLog, ExecutionLog, Log, MarketStepSaver, OrderLog

from pams_parallel import MultiProcessAgentParallelRunner
from pams_parallel._state import capture_state, digest
from pams_parallel.cli import _verify, main
from pams_parallel.cli._config import load_job
from pams_parallel.cli._options import parse
from pams_parallel.cli._recorder import Recorder
from pams_parallel.cli._tables import FILES, MARKET_STEP_COLUMNS, Tables

# in this process a warning is an error; whole commands are run to look at warnings
COMMAND = [sys.executable, "-m", "pams_parallel.cli"]

AGENTS = '''
"""Agents of a user, beside the config."""
import os, sys, time
from pams import Cancel
from pams.agents import FCNAgent
from pams.logs import Log

class Counter(FCNAgent):
    """Places orders and cancels the one before."""
    synced_attributes = ("last",)
    last = None
    def submit_orders(self, markets):
        cancels = [] if self.last is None or self.last.is_canceled else [Cancel(self.last)]
        orders = super().submit_orders(markets)
        if orders:
            self.last = orders[0]
            return [*cancels, *orders]
        return []

class Forgetful(FCNAgent):
    """Keeps a count, and does not list it."""
    count = 0
    def submit_orders(self, markets):
        self.count += 1
        return super().submit_orders(markets)

class Raising(FCNAgent):
    def submit_orders(self, markets):
        raise ValueError("the agent broke\\nin two lines")

class Leaving(FCNAgent):
    def submit_orders(self, markets):
        sys.exit(7)

class Odd(Exception):
    def __init__(self):
        super().__init__("cannot be rebuilt")
    def __reduce__(self):
        raise TypeError("no")

class Unreportable(FCNAgent):
    def submit_orders(self, markets):
        raise Odd

class Complaining(FCNAgent):
    def submitted_order(self, log):
        raise RuntimeError("callback broke")

class Dying(FCNAgent):
    def submit_orders(self, markets):
        os._exit(3)

class Slow(FCNAgent):
    def submit_orders(self, markets):
        time.sleep(0.5)
        return super().submit_orders(markets)

class Consuming(FCNAgent):
    """Takes its options out of the config."""
    def setup(self, settings, accessible_markets_ids, *args, **kwargs):
        super().setup(settings, accessible_markets_ids)
        self.share = settings["shares"].pop()

class Remark(Log):
    pass

class Talking(FCNAgent):
    """Writes a kind of log that PAMS does not know, and reads the logger."""
    synced_attributes = ("seen",)
    def submit_orders(self, markets):
        Remark().read_and_write(self.logger)
        self.seen = self.logger.records[0]
        return super().submit_orders(markets)

NotAClass = 5
'''


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the current folder: it holds ``cfg.json`` and the user's module ``my_agents``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    write_config(tmp_path / "cfg.json")
    (tmp_path / "my_agents.py").write_text(AGENTS)
    yield tmp_path
    sys.modules.pop("my_agents", None)


def config(agent_class: str = "FCNAgent", **group: Any) -> Settings:
    """Return a small config with one group of agents."""
    settings = make_settings({agent_class: 6}, markets=2, steps=8, max_normal_orders=3)
    settings[f"{agent_class}s"].update(group)
    return settings


def write_config(path: Path, settings: Settings | None = None) -> str:
    """Write a config; return its path."""
    path.write_text(json.dumps(config() if settings is None else settings))
    return str(path)


def command(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, **options)


def value(output: str, label: str) -> str:
    """Return the value of a row of the table."""
    found = re.search(rf"^{re.escape(label)} +(.+)$", output, re.MULTILINE)
    assert found, f"no {label} in:\n{output}"
    return found.group(1)


def read_csv(path: Path) -> list[list[str]]:
    """Return the rows of a CSV file."""
    with path.open(newline="") as file:
        return [*csv.reader(file)]


# ------------------------------------------------------------------------------------ run


def test_run_prints_a_table(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``run`` ends with a table of at most 80 columns, and writes no files unless told to."""
    assert main(["run", "cfg.json", "-s", "5"]) == 0
    output = capsys.readouterr().out
    assert value(output, "config") == "cfg.json"
    assert value(output, "seed") == "5"
    assert value(output, "steps") == "8"
    assert value(output, "orders") == "48"
    assert value(output, "cancels") == "0"
    assert int(value(output, "executions")) > 0
    assert value(output, "last prices").startswith("Market0  ")
    assert re.search(r"^ {14}Market1  [\d.]+$", output, re.MULTILINE)
    assert value(output, "workers").startswith("2 (")
    assert re.fullmatch(r"[\d.]+ s \(setup [\d.]+ s, run [\d.]+ s\)", value(output, "time"))
    assert re.fullmatch("[0-9a-f]{64}", value(output, "digest"))
    assert value(output, "files") == "none (--out DIR writes them)"
    assert max(map(len, output.splitlines())) <= 80
    assert sorted(path.name for path in workplace.iterdir() if path.is_file()) == [
        "cfg.json",
        "my_agents.py",
    ]


def test_run_shows_few_of_many_markets(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a hundred markets the table shows the first."""
    write_config(workplace / "many.json", make_settings({"FCNAgent": 2}, markets=30, steps=1))
    assert main(["run", "many.json"]) == 0
    output = capsys.readouterr().out
    assert "and 22 more" in output
    assert len(output.splitlines()) < 25


class Collector(MarketStepSaver):
    """Collects logs as PAMS's users do."""

    def __init__(self) -> None:
        super().__init__()
        self.logs: list[Log] = []

    def process(self, logs: list[Log]) -> None:
        """Keep the logs."""
        super().process(logs)
        self.logs.extend(logs)


def test_run_writes_the_records_of_pams(workplace: Path) -> None:
    """The CSV files hold what PAMS's own loggers get in a sequential run with the same seed."""
    settings = config("Counter")
    write_config(workplace / "counter.json", settings)
    arguments = ["--classes", "my_agents:Counter", "--out", "results/of/it"]
    assert main(["run", "counter.json", "-s", "5", *arguments]) == 0
    logger = Collector()
    runner = SequentialRunner(settings, random.Random(5), logger)
    runner.class_register(sys.modules["my_agents"].Counter)
    runner.main()
    out = workplace / "results/of/it"
    header, *rows = read_csv(out / "market_steps.csv")
    assert header == [*MARKET_STEP_COLUMNS] == [*logger.market_step_logs[0]]
    assert rows == [[str(cell) for cell in step.values()] for step in logger.market_step_logs]
    kinds: dict[str, type[Log]] = {
        "orders.csv": OrderLog,
        "cancels.csv": CancelLog,
        "executions.csv": ExecutionLog,
    }
    for name, kind in kinds.items():
        header, *rows = read_csv(out / name)
        logs = [log for log in logger.logs if type(log) is kind]
        assert logs
        expected = [["" if v is None else str(v) for v in vars(log).values()] for log in logs]
        assert header == [*vars(logs[0])]
        assert rows == expected
    assert sorted(path.name for path in out.iterdir()) == sorted([*FILES, "run.json"])


def test_run_json_says_all(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``run.json`` holds config, seed, versions, workers, start method, codec, times, digest."""
    write_config(workplace / "counter.json", config("Counter"))
    arguments = ["counter.json", "--classes", "my_agents:Counter", "--out", "out"]
    assert main(["run", *arguments, "-n", "1", "--start-method", "spawn", "--codec", "dill"]) == 0
    output = capsys.readouterr().out
    content = json.loads((workplace / "out/run.json").read_text())
    assert content["config"]["Counters"] == config("Counter")["Counters"]
    assert content["config"]["simulation"]["numParallel"] == 1
    assert content["config_file"] == "counter.json"
    assert content["classes"] == ["my_agents:Counter"]
    assert content["workers"] == 1
    assert content["start_method"] == "spawn"
    assert content["codec"] == "dill"
    assert str(content["seed"]) == value(output, "seed")
    assert content["digest"] == value(output, "digest")
    assert content["versions"]["pams"] == version("pams")
    assert set(content["versions"]) == {"python", "pams", "pams-parallel", "numpy"}
    assert content["timings"]["run_seconds"] > 0
    assert content["steps"] == 8
    assert value(output, "workers") == "1 (spawn, dill)"


def test_run_json_repeats_the_run(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run whose seed was drawn is repeated from its ``run.json``; options still override."""
    write_config(workplace / "counter.json", config("Counter"))
    assert main(["run", "counter.json", "--classes", "my_agents:Counter", "--out", "out"]) == 0
    first = capsys.readouterr().out
    assert main(["run", "out/run.json", "-n", "1"]) == 0
    second = capsys.readouterr().out
    assert value(second, "seed") == value(first, "seed")
    assert value(second, "digest") == value(first, "digest")
    assert value(second, "workers").startswith("1 (")
    assert main(["run", "out/run.json", "-s", "5"]) == 0
    assert value(capsys.readouterr().out, "seed") == "5"


def test_drawn_seeds_differ(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without ``-s`` every run has a seed of its own."""
    seeds = set()
    for _ in range(3):
        assert main(["run", "cfg.json"]) == 0
        seeds.add(value(capsys.readouterr().out, "seed"))
    assert len(seeds) > 1


def test_failed_run_leaves_no_run_json(workplace: Path) -> None:
    """A run that fails leaves no ``run.json``, not even that of an earlier run."""
    assert main(["run", "cfg.json", "--out", "out"]) == 0
    write_config(workplace / "bad.json", config("Raising"))
    assert main(["run", "bad.json", "--classes", "my_agents:Raising", "--out", "out"]) == 1
    assert not (workplace / "out/run.json").exists()


def test_full_disk_is_one_line(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows that cannot be written are an error of one line, status 1, and no run.json."""
    (workplace / "out").mkdir()
    (workplace / "out/orders.csv").symlink_to("/dev/full")
    assert main(["run", "cfg.json", "--out", "out"]) == 1
    assert_one_error(capsys, "--out out: No space left on device")
    assert not (workplace / "out/run.json").exists()


def test_logger_can_be_copied(tmp_path: Path) -> None:
    """A copy of the logger, as a copied simulation has one, has the records and writes no files."""
    tables = Tables(tmp_path)
    recorder = Recorder(tables)
    recorder.record("write", Log())
    copied = copy.deepcopy(recorder)
    tables.close()
    assert copied.records == recorder.records
    assert copied.tables is None


def test_run_shows_where_the_time_went(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--timing` adds the parts of a batch, which add up to the run, and the bytes."""
    assert main(["run", "cfg.json", "--timing", "--quiet"]) == 0
    output = capsys.readouterr().out
    _, timing = output.split("\n\n")
    shares = {
        line.split()[0]: float(line.split()[3].rstrip("%"))
        for line in timing.splitlines()
        if "%" in line
    }
    assert list(shares) == ["encode", "send", "decode", "ask", "return", "apply", "other"]
    assert sum(shares.values()) == pytest.approx(100.0, abs=1.0)
    assert re.search(r"^batches +\d+ \(\d+ agents asked, \d+ tasks\)$", timing, re.MULTILINE)
    assert re.search(r"^sent +[\d,.]+ kB per batch$", timing, re.MULTILINE)
    assert max(map(len, output.splitlines())) <= 80


def test_bench_compares_numbers_of_workers(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`bench` prints a line for the sequential runner and each number of workers, and a verdict."""
    assert main(["bench", "cfg.json", "-n", "2", "-s", "1", "--quiet"]) == 0
    _, lines, verdict = capsys.readouterr().out.split("\n\n")
    found = re.findall(r"^(sequential|\d workers?) +[\d.]+ s", lines, re.MULTILINE)
    assert found == ["sequential", "1 worker", "2 workers"]
    assert re.search(r"^2 workers .* [\d.]+x +\d+%$", lines, re.MULTILINE)
    assert re.match(r"It (pays|does not pay) off: ", verdict)
    assert "An agent takes " in verdict


def test_bench_finds_a_wrong_runner(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times of runs with other results are worth nothing: `bench` says so, with status 1."""
    monkeypatch.setattr("pams_parallel._applier.set_prng_state", lambda agent, state: None)
    assert main(["bench", "cfg.json", "-n", "1", "-s", "1", "--quiet"]) == 1
    assert "The results differ from the sequential ones: 1 worker." in capsys.readouterr().out


def test_config_with_a_byte_order_mark(workplace: Path) -> None:
    """A config that an editor began with a byte order mark is read."""
    text = json.dumps(config())
    (workplace / "marked.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert main(["run", "marked.json", "--quiet"]) == 0


def test_run_takes_logs_of_the_user(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Logs of a user's own class do not stop a run, and agents may read the logger."""
    write_config(workplace / "talk.json", config("Talking"))
    assert main(["verify", "talk.json", "--classes", "my_agents:Talking", "--out", "out"]) == 0
    assert capsys.readouterr().out.startswith("identical\n")


# --------------------------------------------------------------------------------- verify


def test_verify_says_identical(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``verify`` says identical, with both times and the digest of the sequential state."""
    settings = config("Counter")
    write_config(workplace / "counter.json", settings)
    assert main(["verify", "counter.json", "-s", "5", "--classes", "my_agents:Counter"]) == 0
    output = capsys.readouterr().out
    assert output.splitlines()[0] == "identical"
    assert value(output, "sequential").startswith("0.")
    assert " s (setup " in value(output, "parallel")
    assert "sequential time / parallel time" in value(output, "speed ratio")
    assert int(value(output, "cancels")) > 0
    runner = SequentialRunner(settings, random.Random(5), Recorder())
    runner.class_register(sys.modules["my_agents"].Counter)
    runner.main()
    assert value(output, "digest") == digest(capture_state(runner))
    assert max(map(len, output.splitlines())) <= 80


@pytest.mark.filterwarnings("ignore:Changes to attributes not listed")
def test_verify_tells_the_first_difference(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """When the results differ, ``verify`` says what, where and both values, with status 1."""
    write_config(workplace / "forget.json", config("Forgetful"))
    assert main(["verify", "forget.json", "-s", "5", "--classes", "my_agents:Forgetful"]) == 1
    output = capsys.readouterr().out
    first, second = output.splitlines()[:2]
    assert first == "different"
    assert re.fullmatch(
        r"agent \d \(Forgetfuls-\d\): count: \d \(sequential\) against nothing \(parallel\)", second
    )
    assert "identical" not in output
    assert value(output, "seq. digest") != value(output, "par. digest")
    assert max(map(len, output.splitlines()[2:])) <= 80


class Forging(MultiProcessAgentParallelRunner):
    """Gives an agent's generator a draw more than it had."""

    def _receive_orders_from_worker(self, agent: Any, orders: Any, prng_state: Any) -> Any:
        received = super()._receive_orders_from_worker(agent, orders, prng_state)
        agent.prng.random()
        return received


def test_verify_finds_a_wrong_runner(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runner that is off by one draw of a generator is found out."""
    monkeypatch.setattr(_verify, "MultiProcessAgentParallelRunner", Forging)
    assert main(["verify", "cfg.json", "-s", "5"]) == 1
    assert capsys.readouterr().out.startswith("different\n")


def test_runs_do_not_share_the_config(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Agents that take things out of the config find them there in the second run too."""
    write_config(workplace / "consume.json", config("Consuming", shares=[1, 2, 3, 4, 5, 6]))
    arguments = ["consume.json", "--classes", "my_agents:Consuming", "--out", "out"]
    assert main(["verify", *arguments]) == 0
    written = json.loads((workplace / "out/run.json").read_text())
    assert written["config"]["Consumings"]["shares"] == [1, 2, 3, 4, 5, 6]


def test_example_is_shipped() -> None:
    """The example has two spot markets, an index, a shock, and all kinds of agents."""
    text = (files("pams_parallel.cli") / "example" / "config.json").read_text()
    settings = json.loads(text)
    classes = [part["class"] for part in settings.values() if "class" in part]
    assert sorted(classes) == [
        "ArbitrageAgent",
        "FCNAgent",
        "FundamentalPriceShock",
        "IndexMarket",
        "Market",
        "MarketMakerAgent",
        "TrendLearner",
    ]


def test_example_is_verified_by_the_command(tmp_path: Path) -> None:
    """``verify`` without a config verifies the example; its run.json can be repeated too."""
    done = command("verify", "-s", "1", "--out", str(tmp_path), timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("identical\n")
    assert value(done.stdout, "config") == "the example"
    assert int(value(done.stdout, "executions")) > 100
    assert "experimental" not in done.stderr
    example, repeated = (
        load_job(parse(["run", *arguments])) for arguments in ([], [str(tmp_path / "run.json")])
    )
    assert repeated.settings == example.settings
    assert repeated.classes == example.classes
    assert repeated.seed == 1


# --------------------------------------------------------------------------- real commands


@pytest.mark.parametrize("start_method", ["fork", "spawn", "forkserver"])
def test_workers_import_from_the_current_folder(workplace: Path, start_method: str) -> None:
    """Classes of the current folder reach workers of every start method."""
    write_config(workplace / "counter.json", config("Counter"))
    arguments = ["counter.json", "--classes", "my_agents:Counter", "--start-method", start_method]
    done = command("verify", *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("identical\n")
    assert value(done.stdout, "workers") == f"2 ({start_method}, pickle)"


def test_installed_command(workplace: Path) -> None:
    """The package installs the command ``pams-parallel``, and the command works."""
    (entry,) = entry_points(group="console_scripts", name="pams-parallel")
    assert entry.load() is main
    script = Path(sys.executable).with_name("pams-parallel")
    done = subprocess.run([script, "run", "cfg.json"], capture_output=True, text=True, check=True)
    assert value(done.stdout, "steps") == "8"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """``--version`` tells the versions that matter, ``--help`` the commands; both with status 0."""
    assert main(["--version"]) == 0
    assert f"pams-parallel {version('pams-parallel')} (pams {version('pams')}," in (
        capsys.readouterr().out
    )
    assert main(["--help"]) == 0
    assert "verify" in capsys.readouterr().out


def test_warnings_are_lines(workplace: Path) -> None:
    """Warnings are one line each on stderr; that the runner is experimental is not among them."""
    write_config(workplace / "forget.json", config("Forgetful"))
    done = command("run", "forget.json", "--classes", "my_agents:Forgetful", "-n", "50")
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert all(line.startswith("pams-parallel: warning: ") for line in lines)
    assert any("Changes to attributes not listed" in line for line in lines)
    assert any("is set to a larger value" in line for line in lines)
    assert not any("experimental" in line for line in lines)


def test_interrupt_ends_quietly(workplace: Path) -> None:
    """Ctrl-C ends the command with status 130 and one line, without a traceback."""
    write_config(workplace / "slow.json", config("Slow"))
    arguments = ["run", "slow.json", "--classes", "my_agents:Slow", "--out", "out"]
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: Path("out/orders.csv").exists())
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert output == ""
    assert errors.splitlines()[-1] == "pams-parallel: interrupted"
    assert "Traceback" not in errors


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize(("quiet", "shown"), [(False, True), (True, False)])
def test_progress_is_shown_on_a_terminal(workplace: Path, quiet: bool, shown: bool) -> None:
    """A bar over the steps is shown where stderr is a terminal, unless ``--quiet``."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    arguments = ["run", "cfg.json", *(["--quiet"] if quiet else [])]
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        text = read_terminal(ours)
        process.communicate(timeout=30)
    os.close(ours)
    assert process.returncode == 0
    assert ("/8 [" in text) == shown


def read_terminal(descriptor: int) -> str:
    """Return what is written to a terminal until all have closed it."""
    pieces = []
    while True:
        try:
            piece = os.read(descriptor, 4096)
        except OSError:
            break
        if not piece:
            break
        pieces.append(piece)
    return b"".join(pieces).decode()


_DEFAULT_SCRIPT = """
import multiprocessing, sys
from pams_parallel.cli import main
sys.stderr.isatty = lambda: True
assert main(["run", "cfg.json"]) == 0
assert multiprocessing.get_start_method(allow_none=True) is None
"""


def test_start_method_stays_open(workplace: Path) -> None:
    """Neither the command nor its progress bar fixes multiprocessing's default start method."""
    done = subprocess.run([sys.executable, "-c", _DEFAULT_SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ------------------------------------------------------------------------------- bad input


def changed(change: Callable[[Settings], object]) -> str:
    """Return the text of a config with a change."""
    settings = config()
    change(settings)
    return json.dumps(settings)


def event(**settings: Any) -> str:
    """Return the text of a config with an event."""
    return changed(
        lambda s: (
            s["simulation"]["sessions"][0].update(events=["Shock"]),
            s.update(Shock=settings),
        )
    )


AN_AGENT = "bad.json: agent 'FCNAgents-0' (FCNAgent): "
BAD_CONFIGS: dict[str, tuple[str, str]] = {
    "not JSON": (
        '{\n "simulation": {},\n "x"}',
        "bad.json: line 3 column 5: not JSON: ",
    ),
    "nested too deep": (
        '{"simulation": ' + "[" * 200_000,
        "bad.json: lists or objects in it are nested too deep",
    ),
    "empty": ("", "bad.json: line 1 column 1: not JSON: "),
    "a list": ("[]", "bad.json: the config must be an object, not a list"),
    "no simulation": ("{}", "bad.json: the key 'simulation' is missing"),
    "no object": (
        '{"simulation": 5}',
        "bad.json: 'simulation' must be an object, not 5",
    ),
    "no markets": (
        changed(lambda s: s["simulation"].pop("markets")),
        "bad.json: simulation.markets is required",
    ),
    "unknown group": (
        changed(lambda s: s["simulation"]["agents"].append("Nobody")),
        "bad.json: Nobody setting is missing in config",
    ),
    "unknown class": (
        changed(lambda s: s["FCNAgents"].update({"class": "Foo"})),
        "bad.json: 'FCNAgents': unknown class 'Foo'; give own classes as --classes MODULE:Foo",
    ),
    "unknown market class": (
        changed(lambda s: s["Market1"].update({"class": "Foo"})),
        "bad.json: 'Market1': unknown class 'Foo'",
    ),
    "unknown market": (
        changed(lambda s: s["FCNAgents"].update(markets=["Nowhere"])),
        "bad.json: 'FCNAgents': names 'Nowhere', which does not exist",
    ),
    "missing key": (
        changed(lambda s: s["FCNAgents"].pop("chartWeight")),
        AN_AGENT + "the key 'chartWeight' is missing",
    ),
    "missing required key": (
        changed(lambda s: s["FCNAgents"].pop("cashAmount")),
        AN_AGENT + "cashAmount is a required property of agent settings",
    ),
    "bad value": (
        changed(lambda s: s["FCNAgents"].update(cashAmount="lots")),
        AN_AGENT + "could not convert string to float: 'lots'",
    ),
    "bad number of agents": (
        changed(lambda s: s["FCNAgents"].update(numAgents=[])),
        "bad.json: 'FCNAgents': TypeError: int() argument must be",
    ),
    "missing key of a market": (
        changed(lambda s: s["Market0"].pop("tickSize")),
        "bad.json: market 'Market0' (Market): tickSize is required",
    ),
    "missing key of a session": (
        changed(lambda s: s["simulation"]["sessions"][0].pop("withPrint")),
        "bad.json: session 'day' (Session): for each element in simulation.sessions must have",
    ),
    "unknown event": (
        changed(lambda s: s["simulation"]["sessions"][0].update(events=["Shock"])),
        "bad.json: simulation.sessions[0].events[0]: names 'Shock', which does not exist",
    ),
    "unknown event class": (
        event(**{"class": "Foo"}),
        "bad.json: 'Shock': unknown class 'Foo'",
    ),
    "missing key of an event": (
        event(**{"class": "FundamentalPriceShock"}),
        "bad.json: event 'Shock' (FundamentalPriceShock): target is required",
    ),
    "bad numParallel": (
        changed(lambda s: s["simulation"].update(numParallel=0)),
        "bad.json: simulation.numParallel must be an integer of at least 1, but 0 is given",
    ),
    "bad startMethod": (
        changed(lambda s: s["simulation"].update(startMethod="run")),
        "bad.json: simulation.startMethod must be one of ",
    ),
    "bad codec": (
        changed(lambda s: s["simulation"].update(codec="json")),
        "bad.json: simulation.codec must be one of 'pickle', 'dill', but 'json' is given",
    ),
    "bad run.json": (
        '{"config": 1, "seed": 2, "classes": []}',
        "bad.json: 'config' must be an object, not 1",
    ),
    "bad seed in run.json": (
        '{"config": {}, "seed": "x", "classes": []}',
        "bad.json: 'seed' must be an integer, not 'x'",
    ),
    "bad classes in run.json": (
        '{"config": {}, "seed": 1, "classes": [5]}',
        "bad.json: 'classes' must be a list of MODULE:CLASS, not [5]",
    ),
}
"""What is wrong with a config -> its text, and the beginning of what is said about it."""


@pytest.mark.parametrize("name", BAD_CONFIGS)
@pytest.mark.parametrize("command_name", ["run", "verify", "bench"])
def test_bad_configs_are_one_line(
    name: str, command_name: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bad config is one line on stderr that says what and where, and status 2."""
    text, message = BAD_CONFIGS[name]
    (workplace / "bad.json").write_text(text)
    assert main([command_name, "bad.json"]) == 2
    assert_one_error(capsys, message)


BAD_ARGUMENTS: dict[str, tuple[list[str], str]] = {
    "no command": ([], "the following arguments are required: run | verify | bench"),
    "unknown command": (["walk"], "argument run | verify | bench: invalid choice: 'walk'"),
    "unknown option": (["run", "--walk"], "unrecognized arguments: --walk"),
    "no file": (["run", "none.json"], "none.json: No such file or directory"),
    "a folder": (["run", "."], ".: Is a directory"),
    "not text": (["run", "latin.json"], "latin.json: not UTF-8 text: "),
    "seed": (["run", "cfg.json", "-s", "x"], "argument -s/--seed: invalid int value: 'x'"),
    "workers": (["run", "cfg.json", "-n", "0"], "cfg.json: simulation.numParallel must be"),
    "workers of bench": (["bench", "cfg.json", "-n", "0"], "cfg.json: simulation.numParallel must"),
    "negative workers of bench": (
        ["bench", "cfg.json", "-n", "-1"],
        "cfg.json: simulation.numParallel must be an integer of at least 1, but -1 is given",
    ),
    "out of bench": (["bench", "cfg.json", "--out", "x"], "unrecognized arguments: --out x"),
    "timing of verify": (["verify", "cfg.json", "--timing"], "unrecognized arguments: --timing"),
    "start method": (
        ["run", "cfg.json", "--start-method", "x"],
        "cfg.json: simulation.startMethod must be one of",
    ),
    "codec": (["run", "cfg.json", "--codec", "x"], "cfg.json: simulation.codec must be one of"),
    "out": (["run", "cfg.json", "--out", "cfg.json"], "--out cfg.json: File exists"),
    "class without module": (
        ["run", "cfg.json", "--classes", "Foo"],
        "--classes Foo: must be MODULE:CLASS",
    ),
    "config after classes": (
        ["run", "--classes", "my_agents:Counter", "cfg.json"],
        "--classes cfg.json: must be MODULE:CLASS (and CONFIG stands before it)",
    ),
    "no module": (
        ["run", "cfg.json", "--classes", "nowhere:Foo"],
        "--classes nowhere:Foo: no module 'nowhere' in ",
    ),
    "no class": (
        ["run", "cfg.json", "--classes", "my_agents:Foo"],
        "--classes my_agents:Foo: module 'my_agents' has no class 'Foo'",
    ),
    "not a class": (
        ["run", "cfg.json", "--classes", "my_agents:NotAClass"],
        "--classes my_agents:NotAClass: module 'my_agents' has no class 'NotAClass'",
    ),
    "broken module": (
        ["run", "cfg.json", "--classes", "broken:Foo"],
        "--classes broken:Foo: cannot import 'broken': SyntaxError: ",
    ),
    "module that ends itself": (
        ["run", "cfg.json", "--classes", "script:Foo"],
        "--classes script:Foo: cannot import 'script': SystemExit: 3",
    ),
    "module that needs another": (
        ["run", "cfg.json", "--classes", "needy:Foo"],
        "--classes needy:Foo: cannot import 'needy': ModuleNotFoundError: No module named ",
    ),
    "ambiguous class": (
        ["run", "cfg.json", "--classes", "twin:FCNAgent"],
        "cfg.json: 'FCNAgents': class 'FCNAgent' is ambiguous: there are 2 of that name",
    ),
}
"""What is wrong with the arguments -> the arguments, and the beginning of what is said."""


@pytest.mark.parametrize("name", BAD_ARGUMENTS)
def test_bad_arguments_are_one_line(
    name: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bad argument is one line on stderr that says what and where, and status 2."""
    (workplace / "latin.json").write_bytes('{"é": 1}'.encode("latin-1"))
    (workplace / "broken.py").write_text("x = (")
    (workplace / "needy.py").write_text("import nowhere")
    (workplace / "script.py").write_text("raise SystemExit(3)")
    (workplace / "twin.py").write_text("class FCNAgent: pass")
    arguments, message = BAD_ARGUMENTS[name]
    assert main(arguments) == 2
    assert_one_error(capsys, message)


def assert_one_error(capsys: pytest.CaptureFixture[str], message: str) -> None:
    """Fail unless all that was said is one line with the message."""
    output, errors = capsys.readouterr()
    assert output == ""
    (line,) = errors.splitlines()
    assert line.startswith(f"pams-parallel: error: {message}")


# -------------------------------------------------------------------- simulations that fail


FAILURES: dict[str, str] = {
    "Raising": r"agent \d+ \(Raising\): ValueError: the agent broke in two lines "
    r"\(my_agents.py line \d+, in submit_ord",
    "Leaving": r"agent \d+ \(Leaving\): SystemExit: 7 \(my_agents.py line \d+, in submit_orders\)",
    "Unreportable": r"agent \d+ \(Unreportable\): my_agents.Odd: cannot be rebuilt ",
    "Complaining": r"agent 'Complainings-\d' \(Complaining\): RuntimeError: callback broke "
    r"\(my_agents.py line \d+, in submitted_order\)",
    "Dying": r"A worker process died with exit code 3 while these agents were not done: agent ",
}
"""Agent class -> what is said about its error."""


@pytest.mark.parametrize("name", FAILURES)
def test_errors_of_agents_are_one_line(
    name: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error during the run is one line with its type, text and place, and status 1."""
    write_config(workplace / "bad.json", config(name))
    assert main(["run", "bad.json", "--classes", f"my_agents:{name}"]) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    (line,) = errors.splitlines()
    assert re.match(rf"pams-parallel: error: bad\.json: {FAILURES[name]}", line)
    assert line.endswith("(--traceback shows more)")


def test_traceback_shows_where(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With ``--traceback`` the worker's and main's tracebacks come before the line."""
    write_config(workplace / "bad.json", config("Raising"))
    assert main(["run", "bad.json", "--classes", "my_agents:Raising", "--traceback"]) == 1
    errors = capsys.readouterr().err
    assert "my_agents.py" in errors
    assert 'raise ValueError("the agent broke' in errors
    assert re.match(
        r"pams-parallel: error: bad\.json: agent \d+ \(Raising\): ValueError",
        errors.splitlines()[-1],
    )
