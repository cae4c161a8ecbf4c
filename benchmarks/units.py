"""Figures as text."""

from __future__ import annotations

from math import floor, log10


def milliseconds(seconds: float) -> str:
    """Return a time with two significant digits, or more where it is whole."""
    value = seconds * 1000
    digits = max(0, 1 - floor(log10(value)))
    text = f"{value:,.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if digits else text} ms"


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    return f"{seconds:,g} s" if seconds >= 1 else milliseconds(seconds)


def factor(value: float) -> str:
    """Return a speed-up: a slow-down as a fraction of one, which is easier to read than 0.0028."""
    return f"{value:.2f}" if value >= 0.1 else f"1/{1 / value:,.0f}"


def megabytes(count: float) -> str:
    """Return a number of bytes."""
    return f"{count / 1e6:.1f} MB"


def kilobytes(count: float) -> str:
    """Return a number of bytes of one batch."""
    return f"{count / 1e3:,.1f} kB"
