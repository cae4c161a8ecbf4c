"""The picture: collect time against work per decision, with the break-even points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import ceil, floor, log10
from typing import Final

from .contenders import OURS, PAMS_PROCESSES, SEED_METHOD, SEQUENTIAL, Contender
from .svg import XY, Canvas
from .sweep import Sweep
from .units import duration, milliseconds

WIDTH: Final = 860
HEIGHT: Final = 480
LEFT, RIGHT, TOP, BOTTOM = 86, 612, 20, 420
LABEL_HEIGHT: Final = 17

KINDS: Final[Mapping[Contender, str]] = {
    SEQUENTIAL: "sequential",
    OURS: "ours",
    SEED_METHOD: "seed",
    PAMS_PROCESSES: "pams",
}

# colours that people who do not tell red from green can tell apart, on light and on dark paper
STYLE: Final = """
svg { --paper: #fff; --ink: #222; --grid: #e2e2e2; --ours: #0072b2; --seed: #c77700; --pams: #b5478a }
@media (prefers-color-scheme: dark) {
  svg { --paper: #1e2129; --ink: #ddd; --grid: #3a3f4b; --ours: #56b4e9; --seed: #e69f00; --pams: #e08bbd }
}
.paper { fill: var(--paper) }
text { fill: var(--ink); font: 13px sans-serif }
.middle { text-anchor: middle }
.end { text-anchor: end }
.frame { fill: none; stroke: var(--ink) }
.grid { stroke: var(--grid) }
polyline { fill: none; stroke-width: 2.2; stroke-linejoin: round }
polyline.sequential { stroke: var(--ink); stroke-dasharray: 7 4 }
circle.sequential { fill: var(--ink) }
polyline.ours { stroke: var(--ours) } .ours { fill: var(--ours) }
polyline.seed { stroke: var(--seed) } .seed { fill: var(--seed) }
polyline.pams { stroke: var(--pams) } .pams { fill: var(--pams) }
polyline.ours, polyline.seed, polyline.pams { fill: none }
text.label { font-weight: bold }
.drop { stroke-dasharray: 2 3; stroke-width: 1.3 }
.drop.ours { stroke: var(--ours) } .drop.seed { stroke: var(--seed) } .drop.pams { stroke: var(--pams) }
circle.ring { fill: var(--paper); stroke-width: 2.2 }
.ring.ours { stroke: var(--ours) } .ring.seed { stroke: var(--seed) } .ring.pams { stroke: var(--pams) }
"""  # noqa: E501 - a line for each thing that is drawn


class Scale:
    """From a logarithmic range to a range of pixels.

    Args:
        values: what the range must hold.
        start: pixel of its lower end.
        stop: pixel of its upper end.
    """

    def __init__(self, values: Iterable[float], start: float, stop: float) -> None:
        logs = [log10(value) for value in values]
        self._low, self._high = _down(min(logs)), -_down(-max(logs))
        self._start, self._stop = start, stop

    def __call__(self, value: float) -> float:
        share = (log10(value) - self._low) / (self._high - self._low)
        return self._start + share * (self._stop - self._start)

    def decades(self) -> list[float]:
        """Return the powers of ten within the range."""
        return [10.0**power for power in range(ceil(self._low), floor(self._high) + 1)]


def draw(sweep: Sweep) -> str:
    """Return the picture as SVG."""
    lines = {contender: sweep.line(contender) for contender in sweep.contenders}
    x = Scale((decision for line in lines.values() for decision, _ in line), LEFT, RIGHT)
    y = Scale((collect for line in lines.values() for _, collect in line), BOTTOM, TOP)
    canvas = Canvas(WIDTH, HEIGHT, "Collect time against work per decision", STYLE)
    canvas.rectangle((0, 0), WIDTH, HEIGHT, "paper")
    _axes(canvas, x, y, sweep)
    for contender, line in lines.items():
        kind = KINDS[contender]
        points = [(x(decision), y(collect)) for decision, collect in line]
        canvas.path(points, kind)
        for point in points:
            canvas.dot(point, 2.6, kind)
    _break_even_points(canvas, x, y, sweep)
    _labels(canvas, {one: (x(line[-1][0]), y(line[-1][1])) for one, line in lines.items()})
    return canvas.render()


def _axes(canvas: Canvas, x: Scale, y: Scale, sweep: Sweep) -> None:
    for value in x.decades():
        canvas.line((x(value), TOP), (x(value), BOTTOM), "grid")
        canvas.text((x(value), BOTTOM + 18), duration(value), "middle")
    for value in y.decades():
        canvas.line((LEFT, y(value)), (RIGHT, y(value)), "grid")
        canvas.text((LEFT - 8, y(value) + 4), duration(value), "end")
    canvas.rectangle((LEFT, TOP), RIGHT - LEFT, BOTTOM - TOP, "frame")
    middle = (LEFT + RIGHT) / 2
    canvas.text((middle, BOTTOM + 42), "work per decision", "middle")
    asked = f"collect, {sweep.asked} of {sweep.agents:,} agents asked"
    canvas.text((16, (TOP + BOTTOM) / 2), asked, "middle", turned=True)


def _break_even_points(canvas: Canvas, x: Scale, y: Scale, sweep: Sweep) -> None:
    """Mark from where on a runner beats the sequential one, down to the axis."""
    row = 0
    for contender in sweep.contenders:
        found = sweep.break_even(contender)
        if contender == SEQUENTIAL or found is None:
            continue
        kind = KINDS[contender]
        at = (x(found.decision), y(found.collect))
        canvas.line(at, (at[0], BOTTOM), f"drop {kind}")
        canvas.dot(at, 5.5, f"ring {kind}")
        said = f"pays off {'from' if found.exact else 'at'} {milliseconds(found.decision)}"
        # on the side of the line where there is room
        beyond = at[0] > (LEFT + RIGHT) / 2
        place = (at[0] + (-7 if beyond else 7), BOTTOM - 9 - LABEL_HEIGHT * row)
        canvas.text(place, said, f"label {kind}{' end' if beyond else ''}")
        row += 1


def _labels(canvas: Canvas, ends: Mapping[Contender, XY]) -> None:
    """Name the lines at their right ends, moved apart where they would overlap."""
    order = sorted(ends, key=lambda contender: ends[contender][1])
    places = spread([ends[contender][1] + 4 for contender in order], LABEL_HEIGHT)
    for contender, place in zip(order, places, strict=True):
        canvas.text((RIGHT + 10, place), contender.label, f"label {KINDS[contender]}")


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Return rising places, moved down until no two are nearer than ``gap``."""
    moved = list(places)
    for number, _ in enumerate(pairwise(places), start=1):
        moved[number] = max(moved[number], moved[number - 1] + gap)
    return moved


def _down(power: float) -> float:
    """Return the next lower half decade."""
    return floor(power * 2) / 2
