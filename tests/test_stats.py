"""What the runner says about its batches."""

from __future__ import annotations

from time import perf_counter

from configs import SAMPLE_CLASSES, main, make_parallel, make_settings, setup

from pams_parallel import BatchStats, RunnerStats
from pams_parallel._stats import MAX_BATCHES


def test_figures_of_a_run() -> None:
    """Every batch is told: its agents and tasks, its bytes, and times that fit into the run."""
    settings = make_settings({"FCNAgent": 6}, max_normal_orders=4, steps=5)
    runner = make_parallel(settings, SAMPLE_CLASSES, 1)
    assert runner.stats.num_batches == 0
    start = perf_counter()
    main(runner)
    elapsed = perf_counter() - start
    stats = runner.stats
    assert stats.num_batches == len(stats.batches) >= 5
    first, *others = stats.batches
    for batch in stats.batches:
        assert 0 < batch.agents <= 4
        assert 1 <= batch.tasks <= runner.num_parallel
        assert batch.encoded_bytes > 0
        assert batch.received_bytes > 0
        assert all(seconds >= 0 for seconds in batch.times().values())
    assert first.encoded_bytes > max(other.encoded_bytes for other in others)
    assert 0 < stats.total.seconds < elapsed
    assert stats.total.agents == sum(batch.agents for batch in stats.batches)
    assert list(stats.total.times()) == ["encode", "send", "decode", "ask", "return", "apply"]


def test_setup_begins_anew() -> None:
    """The figures are those since the setup."""
    settings = make_settings({"FCNAgent": 2}, max_normal_orders=2, steps=2)
    runner = make_parallel(settings, SAMPLE_CLASSES, 1)
    main(runner)
    before, count = runner.stats, runner.stats.num_batches
    runner._run()
    assert runner.stats is before  # a second run goes on
    assert before.num_batches > count
    fresh = make_parallel(settings, SAMPLE_CLASSES, 1)
    fresh.stats.record(BatchStats())
    with fresh:
        setup(fresh)
        assert fresh.stats.num_batches == 0


def test_only_the_last_are_kept() -> None:
    """Long runs do not fill the memory with figures: the total has all, the list the last."""
    stats = RunnerStats()
    for number in range(MAX_BATCHES + 3):
        stats.record(BatchStats(agents=1, encoded_bytes=number))
    assert stats.num_batches == stats.total.agents == MAX_BATCHES + 3
    assert len(stats.batches) == MAX_BATCHES
    assert stats.batches[-1].encoded_bytes == MAX_BATCHES + 2
