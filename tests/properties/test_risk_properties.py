"""Laws of the effective price and of cool-offs, on any input."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from argosy.lifecycle.pools import cool_off
from argosy.market import risk
from argosy.model.instances import Purchase
from argosy.model.policy import Policy
from argosy.model.pools import Pool
from tests.builders import NOW

PRICES = st.floats(1e-4, 100.0)
RATES = st.floats(0.0, 1e3)
SECONDS = st.floats(1.0, 1e6)
POLICY = Policy()


def effective(price: float, rate: float, attempt_s: float) -> float:
    lost = risk.redo_share(rate, attempt_s) + risk.boot_share(rate, 180.0, 3600.0)
    return float(risk.effective_price(price, lost))


@given(PRICES, RATES, SECONDS)
def test_risk_never_makes_anything_cheaper_and_never_infinite(price: float, rate: float, attempt_s: float) -> None:
    assert price <= effective(price, rate, attempt_s) < float("inf")


@given(PRICES, RATES, RATES, SECONDS, SECONDS)
def test_more_risk_and_longer_attempts_cost_more(price: float, a: float, b: float, c: float, d: float) -> None:
    assert effective(price, min(a, b), min(c, d)) <= effective(price, max(a, b), max(c, d)) * (1 + 1e-9)


@given(st.sampled_from([None, 0, 1, 2, 3, 4]), st.floats(0, 1e4), st.floats(0, 1e6))
def test_the_rate_lies_between_the_bands_and_our_own(band: int | None, interruptions: float, hours: float) -> None:
    prior = risk.UNKNOWN_RATE if band is None else risk.RATE_OF_BAND[band]
    rate = risk.interruption_rate(risk.rate_of_band(band), interruptions, hours)
    own = interruptions / hours if hours else float("inf") if interruptions else prior
    assert min(prior, own) * (1 - 1e-9) <= rate <= max(prior, own) * (1 + 1e-9)


@given(st.lists(st.floats(0.0, 20_000.0), min_size=1, max_size=30), st.sampled_from(list(Purchase)))
def test_a_cool_off_is_never_shorter_than_the_first_nor_longer_than_the_longest(
    pauses: list[float], purchase: Purchase
) -> None:
    pool, now = Pool("us-east-1", "c5.xlarge", "us-east-1a", "fleet-1"), NOW
    for pause in pauses:
        now += pause
        cool_off(pool, purchase, "none left", now, POLICY)
        until = pool.short_until if purchase is Purchase.SPOT else pool.on_demand_short_until
        assert now < until <= now + POLICY.cool_off_max_s
        assert pool.shortages >= 1
