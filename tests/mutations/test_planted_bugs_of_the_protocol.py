"""Does the simulation find bugs? Each planted one within some seeds; what the protocol forgives must not show."""

from __future__ import annotations

import pytest

from controller.lifecycle import apply as apply_module
from controller.simulation.campaign import run_trial
from controller.simulation.trial import Plan
from tests.mutations.planted import PLANTED

SEEDS = 60
QUICK = ("token_dropped", "draining_instance_placed", "tag_alone_proves_ownership")
HARMLESS = ("everything_twice", "targets_are_taken_for_done")  # effects are idempotent, sweeps see what is wrong


def found_by(name: str, monkeypatch: pytest.MonkeyPatch, seeds: int) -> str | None:
    plant, _, kinds = PLANTED[name]
    plant(monkeypatch)
    try:
        for seed in range(seeds):
            verdict = run_trial(Plan(seed, kinds, limit_s=7200.0))
            if not verdict.ok:
                return verdict.violations[0].invariant
    except Exception as crash:  # noqa: BLE001 - a controller that falls over is found as well
        return type(crash).__name__
    finally:
        undo = getattr(apply_module, "UNDO", None)
        if undo is not None:
            undo()
    return None


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found_by(name, monkeypatch, SEEDS)


@pytest.mark.deep
@pytest.mark.parametrize("name", sorted(set(PLANTED) - set(QUICK) - set(HARMLESS)))
def test_every_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found_by(name, monkeypatch, SEEDS)


@pytest.mark.deep
@pytest.mark.parametrize("name", HARMLESS)
def test_what_the_protocol_forgives_does_no_harm(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found_by(name, monkeypatch, 30) is None
