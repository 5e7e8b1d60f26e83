"""The values at the ticks of an axis: round ones, in the unit that a reader expects."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from argosy.figures.numbers import duration

_STEPS = (1.0, 2.0, 5.0, 10.0)
_HOUR, _DAY = 3600, 86_400
_SECONDS: tuple[float, ...] = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800)
_SECONDS += (_HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY, 2 * _DAY)
_SIZES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True)
class Axis:
    """From `low` to `high`, with a label at each tick."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]

    def place(self, value: float) -> float:
        """The position of the value: 0..1 from the low end."""
        return (value - self.low) / (self.high - self.low) if self.high > self.low else 0.0


def numbers(high: float, most: int = 5, text: Callable[[float, float], str] | None = None) -> Axis:
    """From 0 to a round number that is at least `high`. text: (value, step) -> label."""
    high = high if math.isfinite(high) and high > 0 else 1.0
    step = _round_step(high / most)
    count = math.ceil(high / step - 1e-9)
    write = text or (lambda value, step: number(value))
    ticks = [(step * place, write(step * place, step)) for place in range(count + 1)]
    return Axis(0.0, step * count, ticks)


def counts(high: float, most: int = 5) -> Axis:
    """For counts: no tick between whole numbers."""
    return numbers(max(high, 1.0), min(most, max(1, math.ceil(high))))


def rows(names: Sequence[str]) -> Axis:
    """A tick in the middle of each row, the first at the top."""
    return Axis(0.0, float(len(names)), [(row_of(place, len(names)), name) for place, name in enumerate(names)])


def row_of(place: int, count: int) -> float:
    """The position on the axis of row `place` of `count`, counted from the top."""
    return count - place - 0.5


def dollars(high: float, most: int = 5) -> Axis:
    """As many decimals as the step needs."""

    def text(value: float, step: float) -> str:
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        return f"${value:,.{decimals}f}" if value < 10_000 else f"${number(value)}"

    return numbers(high, most, text)


def seconds(low: float, high: float, most: int = 6) -> Axis:
    """Elapsed time, in seconds from an origin; the ends are those of the data."""
    high = high if high > low else low + 1.0
    wanted = (high - low) / most
    step = next((each for each in _SECONDS if each >= wanted), math.ceil(wanted / 86_400) * 86_400)
    first = math.ceil(low / step - 1e-9)
    ticks = [(step * place, passed(step * place)) for place in range(first, math.floor(high / step + 1e-9) + 1)]
    return Axis(low, high, ticks)


def number(value: float) -> str:
    """`0`, `0.25`, `1,500`, `20k`, `1.5M`."""
    for unit, sign in _SIZES:
        if abs(value) >= unit * (10 if sign == "k" else 1):
            return f"{value / unit:.3g}{sign}"
    return f"{value:,.0f}" if value == int(value) else f"{value:.3g}"


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in _STEPS if step * power >= least * (1 - 1e-9))


def passed(at: float) -> str:
    """`0`, `0.5 s`, `45 s`, `5 min`, `2 h`, `2h 30m`, `3 d`; `-2 d` before the origin."""
    if at <= 0:
        return "0" if at == 0 else f"-{passed(-at)}"
    for unit, sign in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if at >= unit and at % unit == 0:
            return f"{at / unit:.0f} {sign}"
    return duration(at)
