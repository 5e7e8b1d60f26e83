"""Does the suite find bugs? Each planted one, by random trials or by a scenario; the table says which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.emulator.readings import READINGS
from tests import builders
from tests.mutations import planted as first
from tests.mutations import planted_buying as fourth
from tests.mutations import planted_cells as fifth
from tests.mutations import planted_changes as of_changes
from tests.mutations import planted_daemons as sixteenth
from tests.mutations import planted_dependencies as fourteenth
from tests.mutations import planted_entrances as of_entrances
from tests.mutations import planted_faults as seventh
from tests.mutations import planted_floors as thirteenth
from tests.mutations import planted_further as second
from tests.mutations import planted_gangs as of_gangs
from tests.mutations import planted_gpus as of_gpus
from tests.mutations import planted_health as of_health
from tests.mutations import planted_hosts as of_hosts
from tests.mutations import planted_journal as ninth
from tests.mutations import planted_once_missed as eighth
from tests.mutations import planted_outages as third
from tests.mutations import planted_pages as tenth
from tests.mutations import planted_preemption as of_preemption
from tests.mutations import planted_pulls as of_pulls
from tests.mutations import planted_quiet as seventeenth
from tests.mutations import planted_readings as of_readings
from tests.mutations import planted_refusals as of_refusals
from tests.mutations import planted_schedules as eleventh
from tests.mutations import planted_services as twelfth
from tests.mutations import planted_sharing as fifteenth
from tests.mutations import planted_targets as of_targets
from tests.mutations import planted_trials as sixth
from tests.mutations import planted_users as of_users
from tests.mutations.catalogue import BUGS, hunt, in_the_ground

DOCS = Path(__file__).parents[2] / "docs"
TABLE, READINGS_PAGE = DOCS / "reference" / "planted-bugs.md", DOCS / "maintainers" / "notes" / "readings.md"
QUICK = (
    "token_dropped", "draining_instance_placed", "version_compare_off", "retry_repeats_numbers",
    "newcomers_pay_for_waiting",
)  # fmt: skip
NAMED_BY_THE_ISSUE = {
    "token_dropped", "age_gate_off", "version_compare_off", "commit_after_launch", "gc_on_store_error",
    "retry_budget_shared", "draining_instance_placed",
}  # fmt: skip


def found(name: str, patch: pytest.MonkeyPatch, record: Callable[[str, object], None]) -> bool:
    by = hunt(name, patch)
    builders.BUILT.clear()  # states of broken code may contradict themselves
    if by is not None:
        record("planted", [name, BUGS[name].what, by.check, by.seeds])
    return by is not None


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_bug_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    assert found(name, monkeypatch, record_property)


def test_what_every_planted_bug_breaks_is_there() -> None:
    for name in sorted(BUGS):
        with pytest.MonkeyPatch.context() as patch, in_the_ground(name, patch):
            assert BUGS[name].what


def test_each_reading_of_aws_names_a_planted_bug() -> None:
    lines = READINGS_PAGE.read_text(encoding="utf-8").splitlines()
    bug_of = {line.split("`")[1]: line.split("|")[-2].strip(" `") for line in lines if line.startswith("| `")}
    assert bug_of.keys() == READINGS.keys()
    assert set(bug_of.values()) <= set(BUGS)


@pytest.mark.deep
@pytest.mark.parametrize("name", sorted(set(BUGS) - set(QUICK)))
def test_every_planted_bug_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    assert found(name, monkeypatch, record_property)


@pytest.mark.deep
@pytest.mark.parametrize("name", QUICK)
def test_the_quick_ones_are_in_the_table_of_the_deep_run_too(
    name: str, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    assert found(name, monkeypatch, record_property)


def test_there_are_thirty_bugs_and_the_documented_table_holds_them_all() -> None:
    parts = (
        first,
        second,
        third,
        fourth,
        fifth,
        sixth,
        seventh,
        eighth,
        ninth,
        tenth,
        eleventh,
        twelfth,
        thirteenth,
        fourteenth,
        fifteenth,
        sixteenth,
        seventeenth,
        of_health,
        of_targets,
        of_changes,
        of_preemption,
        of_entrances,
        of_pulls,
        of_refusals,
        of_readings,
        of_gangs,
        of_gpus,
        of_hosts,
        of_users,
    )  # all are imported
    assert all(part.Patch is first.Patch for part in parts)
    assert len(BUGS) >= 30
    assert set(BUGS) >= NAMED_BY_THE_ISSUE
    page, _, _ = TABLE.read_text(encoding="utf-8").partition("## Sampled mutants")
    rows = [line.split("|")[1].strip() for line in page.splitlines() if line[:2] == "| "]
    assert set(rows) - {"bug"} == {f"`{name}`" for name in BUGS}
