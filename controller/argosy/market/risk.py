"""What does the risk of being interrupted add to the price of an instance?

    effective price = (price x (1 + redo + boot) + start x starts an hour) x caution

    redo = (e^x - 1) / x - 1, x = rate x attempt seconds    work that is lost with an instance and repeated
    boot = boot seconds x (rate + 1 / planned life)         paid for, and used by no task
    start = the cost of pulling its images from another Region, at each of its starts: rate + 1 / planned life
    rate = (prior hours x prior + our interruptions) / (prior hours + our instance-hours)
    prior = (prior hours x band's rate + the account's interruptions) / (prior hours + the account's instance-hours)

`redo` is the share of paid time that attempts of equal length lose when interruptions come as a Poisson process and
nothing is saved before one: an attempt of length m that starts over until no interruption hits it takes
(e^(rate m) - 1) / rate on average. For rare interruptions the share is rate x half an attempt. `boot` is boot seconds
over the expected life of an instance. `rate` is the mean of a Gamma distribution: its prior is the Spot Instance
Advisor's band, or what EC2 Capacity Manager counted for the whole account (0 hours where it is not asked), and it is
updated with our own decayed counts. `caution` holds two small factors: a recent interruption,
and EC2's placement score.

Every function takes numbers or numpy arrays. Rates are interruptions per instance-hour, times are seconds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# The band says which share of instances was interrupted in a month of 730 h: -ln(1 - share) / 730 for each middle.
# ">20%" is open above: the traces of such pools (decision 8) saw 0.06 to 0.57 an hour in 2023, the band's lower end is
# 0.0003; 0.01 is the geometric middle.
RATE_OF_BAND = (0.000035, 0.00011, 0.00018, 0.00026, 0.01)
UNKNOWN_RATE = 0.01
PRIOR_HOURS = 4.0  # weight of the band relative to our own counts (decision 8)
UNSETTLED = 1.15  # a pool that was interrupted lately: a little more than offers.SIMILAR_PRICE
SCORE_WEIGHT = 0.1  # the worst placement score makes a pool 10 % more expensive
_LONGEST = 20.0  # mean lives: attempts of that length almost never end, so larger numbers add nothing


def rate_of_band(band: int | None) -> float:
    """Interruptions per instance-hour. `band`: index into the Advisor's bands, None = not listed."""
    return UNKNOWN_RATE if band is None else RATE_OF_BAND[band]


def interruption_rate(prior: Any, interruptions: Any, instance_hours: Any) -> Any:
    """Expected interruptions per instance-hour, from an expected rate and a count."""
    return (PRIOR_HOURS * prior + interruptions) / (PRIOR_HOURS + instance_hours)


def redo_share(rate: Any, attempt_s: Any) -> Any:
    """Expected repeated work, as a share of the work."""
    x = np.minimum(np.maximum(np.multiply(rate, attempt_s) / 3600, 1e-12), _LONGEST)
    return np.maximum(0.0, np.expm1(x) / x - 1)


def boot_share(rate: Any, boot_s: float, planned_life_s: float) -> Any:
    """Boot seconds over the expected life of an instance, which ends by an interruption or when it is not needed."""
    return boot_s / 3600 * starts_per_hour(rate, planned_life_s)


def starts_per_hour(rate: Any, planned_life_s: float) -> Any:
    """How often an instance is started for an hour of use: it ends by an interruption or when it is not needed."""
    return np.add(rate, 3600 / planned_life_s)


def score_factor(score: int) -> float:
    """1 for the best placement score (10) and for an unknown one (0)."""
    return 1 + SCORE_WEIGHT * (10 - score) / 9 if score else 1.0


def effective_price(price: Any, lost_share: Any, caution: Any = 1.0, starts_usd: Any = 0.0) -> Any:
    """USD per useful hour; never below the price. lost_share: the sum of `redo_share` and `boot_share`. starts_usd:
    the cost of starts, per hour of use."""
    return (price * (1 + lost_share) + starts_usd) * caution


def is_price(usd_per_hour: float) -> bool:
    """Whether the price is valid: EC2 has answered with 0, and without a number."""
    return math.isfinite(usd_per_hour) and usd_per_hour > 0
