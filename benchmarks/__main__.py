"""The command: ``python -m benchmarks [--quick] [--out DIR]``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from .plot import draw
from .report import PICTURE, page, target_lines
from .suite import FULL, QUICK, measure_all
from .targets import judge


def main() -> int:
    """Measure, print the targets, and write the page if asked to; return 1 if one is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer steps, rougher figures")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help=f"write benchmarks.md and {PICTURE} into this folder",
    )
    options = parser.parse_args()
    if options.out is not None and not options.out.is_dir():
        parser.error(f"--out: {options.out} is no folder")

    start = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - start:4.0f} s  {text}", file=sys.stderr, flush=True)

    results = measure_all(QUICK if options.quick else FULL, say)
    say("done")
    targets = judge(results)
    print(target_lines(targets))
    if options.out is not None:
        (options.out / "benchmarks.md").write_text(page(results), encoding="utf-8")
        (options.out / PICTURE).write_text(draw(results.sweep), encoding="utf-8")
    return 1 if not all(one.passed for one in targets) else 0


if __name__ == "__main__":
    sys.exit(main())
