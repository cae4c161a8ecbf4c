"""A page of SVG, element by element."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

XY: TypeAlias = tuple[float, float]


class Canvas:
    """Collects elements.

    Args:
        width: in pixels.
        height: in pixels.
        title: what the picture shows, for those who do not see it.
        style: the style sheet.
    """

    def __init__(self, width: int, height: int, title: str, style: str) -> None:
        self._head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img">'
        )
        self._lines = [f"<title>{escape(title)}</title>", f"<style>{style}</style>"]

    def line(self, start: XY, end: XY, kind: str) -> None:
        """Draw a straight line."""
        self._add("line", kind, x1=start[0], y1=start[1], x2=end[0], y2=end[1])

    def path(self, points: Iterable[XY], kind: str) -> None:
        """Draw a line through points."""
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._lines.append(f'<polyline class="{kind}" points="{joined}"/>')

    def dot(self, centre: XY, radius: float, kind: str) -> None:
        """Draw a dot."""
        self._add("circle", kind, cx=centre[0], cy=centre[1], r=radius)

    def rectangle(self, corner: XY, width: float, height: float, kind: str) -> None:
        """Draw a rectangle from its upper left corner."""
        self._add("rect", kind, x=corner[0], y=corner[1], width=width, height=height)

    def text(self, at: XY, text: str, kind: str, turned: bool = False) -> None:
        """Write text, from the bottom up if turned."""
        x, y = at
        turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
        self._lines.append(
            f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{turn}>{escape(text)}</text>'
        )

    def render(self) -> str:
        """Return the page."""
        return "\n".join([self._head, *self._lines, "</svg>", ""])

    def _add(self, element: str, kind: str, **numbers: float) -> None:
        attributes = " ".join(f'{name}="{value:.1f}"' for name, value in numbers.items())
        self._lines.append(f'<{element} class="{kind}" {attributes}/>')
