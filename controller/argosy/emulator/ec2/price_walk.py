"""What could a spot market's prices have been? A made-up history for local mode: each pool about its typical price.

Prices change every six hours, by a few per cent, and are the same whenever they are asked for: a function of type, zone
and time alone. Nothing is measured here. (In 2022, 58 % of AWS's pools did not change their price in 3.5 days.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from zlib import crc32

from argosy.emulator.ec2.records import MachineType

STEP_S = 6 * 3_600.0
WEEK_S = 7 * 86_400.0
_ZONE, _WAVE, _NOISE = 0.06, 0.08, 0.03  # shares of the typical price


def walking_prices(catalogue: Mapping[str, MachineType]) -> Callable[[str, str, float], float]:
    """(instance type, zone, epoch seconds) -> USD an hour, within 17 % of the type's typical price."""

    def price(instance_type: str, zone: str, at: float) -> float:
        step = int(at // STEP_S)
        pool = f"{instance_type}/{zone}"
        wave = math.sin(2 * math.pi * (step * STEP_S / WEEK_S + _share(pool)))
        change = _ZONE * _sway(f"{pool}/zone") + _WAVE * wave + _NOISE * _sway(f"{pool}/{step}")
        return catalogue[instance_type].typical_spot_usd_per_hour * (1 + change)

    return price


def _share(name: str) -> float:
    return crc32(name.encode()) / 2**32


def _sway(name: str) -> float:
    return 2 * _share(name) - 1
