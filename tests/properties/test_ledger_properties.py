"""Does every second of every instance end up in exactly one ledger, whatever happens in whatever order?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.lifecycle.apply import pass_time
from argosy.lifecycle.begin import begin
from argosy.lifecycle.charges import count_on
from argosy.model.actions import Launch, StopAttempt, YieldInstance
from argosy.model.attempts import AttemptKey, AttemptStatus, StopCause
from argosy.model.costs import NO_RUN, Costs, costs_of, market_of, split, summed
from argosy.model.events import HostStateChanged, InterruptionWarned, LaunchAccepted, RunCancelled, RunClosed
from argosy.model.inbox import CancelRequest
from argosy.model.instances import Instance
from argosy.model.money.ledger import not_charged, running_on, usd_not_charged
from argosy.model.money.reserve import LEAST_LEFT, Reserves, new_holding
from argosy.model.policy import Policy
from argosy.model.resources import Resources
from argosy.model.runs import Run
from argosy.model.stored import documents
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    container_instance,
    fleet,
    host,
    prepared,
    state_with,
    submitted,
    task,
    task_arn,
    told,
    whole,
)

RUN_IDS = [f"digits-261121-06273{number}-k3f{number}" for number in range(3)]
LATE_S = 5.0  # an attempt's end is heard of so late at most
FEW = replace(POLICY, max_settling_documents=5)  # a commit holds the end of an attempt or two
PRICES = {"c5.xlarge": 0.06, "c5.2xlarge": 0.11}
SHAPES = ({"vcpus": 1, "memory": 1024, "gpus": 0}, {"vcpus": 2, "memory": 6000, "gpus": 0})
STEPS = (
    "buy", "register", "submit", "launch", "start", "succeed", "fail", "lose", "warn", "go", "go-late", "cancel",
    "stop", "close", "claim", "preempt",
)  # fmt: skip


class Books:
    """A deployment to which anything may happen, and the ledgers of all its runs."""

    def __init__(self, policy: Policy = POLICY) -> None:
        self.policy = policy
        self.state, self.now = state_with(), NOW
        self.closed: dict[str, Run] = {}
        self.displaced = set[int]()
        self.tasks = 0
        for kind, price in PRICES.items():
            told(self.state, fleet(kind, spot_target=9, spot_usd_per_hour=price))

    def tell(self, *events: Any) -> None:
        told(self.state, *events, now=self.now, policy=self.policy)

    def step(self, what: str, pick: int, seconds: float) -> None:
        self.now += seconds
        getattr(self, f"do_{what.replace('-', '_')}")(pick)

    def do_commit(self, pick: int) -> None:
        """The next tick begins: there is room again."""
        documents.committed(self.state)
        pass_time(self.state, self.now, self.policy)

    def alive(self, pick: int) -> Instance | None:
        found = [instance for instance in self.state.instances.values() if instance.alive]
        return found[pick % len(found)] if found else None

    def open_run(self, pick: int) -> Run | None:
        found = [run for run in self.state.runs.values() if not run.done]
        return found[pick % len(found)] if found else None

    def row(self, pick: int, *statuses: AttemptStatus) -> int | None:
        rows = self.state.attempts.with_status(*statuses).tolist()
        return rows[pick % len(rows)] if rows else None

    def do_buy(self, pick: int) -> None:
        number = len(self.state.instances) + 1
        kind = list(PRICES)[pick % len(PRICES)]
        self.tell(host(number, kind, launched_at=self.now - pick % 7))

    def do_register(self, pick: int) -> None:
        if (instance := self.alive(pick)) is not None:
            number = int(instance.id[2:], 16)
            cpu_units = 4096 if instance.instance_type == "c5.xlarge" else 8192
            self.tell(container_instance(number, cpu_units, cpu_units * 2 - 700, registered_at=self.now - pick % 3))

    def do_submit(self, pick: int) -> None:
        left = [run_id for run_id in RUN_IDS if run_id not in self.state.runs and run_id not in self.closed]
        if left:
            shape = SHAPES[pick % len(SHAPES)]
            self.tell(submitted(left[0], tasks=4, resources=shape), prepared(left[0], resources=shape))
            self.state.runs[left[0]].submitted_at = self.now

    def do_launch(self, pick: int) -> None:
        run, instance = self.open_run(pick), self.alive(pick // 3)
        if run is None or instance is None or not instance.arn or run.halted:
            return
        startable = run.tasks.startable(self.now + 1e6, 1).tolist()
        if startable:
            index = startable[0]
            key = AttemptKey(run.id, index, int(run.tasks["attempts"][index]) + 1, int(run.tasks["launch"][index]))
            begin(self.state, Launch(key, 1, "argosy-testtest-1", instance.id, CELL), self.now, POLICY)
            self.tasks += 1
            self.tell(LaunchAccepted(key, task_arn(self.tasks)))

    def do_start(self, pick: int) -> None:
        self.see(self.row(pick, AttemptStatus.LAUNCHED), "RUNNING", started_at=self.now)

    def do_succeed(self, pick: int) -> None:
        self.see(self.row(pick, AttemptStatus.RUNNING), "STOPPED", exit_code=0, stopped_at=self.now - pick % 5)

    def do_fail(self, pick: int) -> None:
        self.see(self.row(pick, AttemptStatus.RUNNING), "STOPPED", exit_code=pick % 3 + 1, stopped_at=self.now)

    def do_lose(self, pick: int) -> None:
        row = self.row(pick, AttemptStatus.RUNNING, AttemptStatus.LAUNCHED)
        self.see(row, "STOPPED", stop_code="SpotInterruption", stopped_at=self.now)

    def see(self, row: int | None, status: str, **values: Any) -> None:
        if row is not None:
            number = int(bytes(self.state.attempts["task_id"][row]), 16)
            version = int(self.state.attempts["version"][row]) + 1
            self.tell(task(number, status, version, **{"started_at": 0.0, **values}))

    def do_warn(self, pick: int) -> None:
        if (instance := self.alive(pick)) is not None:
            self.tell(InterruptionWarned(instance.id, self.now))

    def do_go(self, pick: int, late_s: float = 0.0) -> None:
        if (instance := self.alive(pick)) is not None:
            self.tell(HostStateChanged(instance.id, "terminated", self.now - late_s))

    def do_go_late(self, pick: int) -> None:
        """Reported long after it happened: by then more may have been charged than was billed."""
        self.do_go(pick, late_s=200.0)

    def do_cancel(self, pick: int) -> None:
        if (run := self.open_run(pick)) is not None:
            self.tell(RunCancelled(CancelRequest(run.id, self.now, "")))

    def do_stop(self, pick: int) -> None:
        """Live tasks of a cancelled run are stopped."""
        for row in self.state.attempts.with_status(AttemptStatus.LAUNCHED, AttemptStatus.RUNNING).tolist():
            key = self.state.key_of(row)
            if key is not None and self.state.runs[key.run_id].cancelled:
                begin(self.state, StopAttempt("", CELL, key, StopCause.CANCELLED, ""), self.now, POLICY)
                self.see(row, "STOPPED", exit_code=143, stopped_at=self.now)

    def do_preempt(self, pick: int) -> None:
        """An attempt is stopped for another run, which may be over by then, and pays if it is not."""
        rows = self.state.attempts.with_status(AttemptStatus.RUNNING).tolist()
        payer = self.open_run(pick)
        if rows and payer is not None:
            row = rows[pick % len(rows)]
            key, instance = self.state.key_of(row), self.state.instance_of(row)
            if key is None or instance is None or key.run_id == payer.id:
                return
            self.displaced.add(payer.number)
            begin(self.state, YieldInstance(instance.id, payer.id, 1, self.now + 60), self.now, POLICY)
            begin(self.state, StopAttempt("", CELL, key, StopCause.PREEMPTED, "", payer.id), self.now, POLICY)
            self.now += pick % 50
            self.see(row, "STOPPED", exit_code=143, stopped_at=self.now)

    def do_close(self, pick: int) -> None:
        for run in list(self.state.runs.values()):
            if run.complete:
                self.tell(RunClosed(run.id))
                self.closed[run.id] = self.state.runs.pop(run.id)
                self.state.changed_runs.discard(run.id)
                self.state.new_runs.discard(run.id)

    def do_claim(self, pick: int) -> None:
        run, instance = self.open_run(pick), self.alive(pick // 2)
        if run is not None and instance is not None and not instance.bought_for:
            count_on(self.state, run, instance, self.now)

    def check_columns(self) -> None:
        """The computation for all instances at once equals that for each one alone."""
        needs = self.state.needs_by_number()
        expected: dict[tuple[int, str], Costs] = {}
        for each in self.state.instances.values():
            parts = split(each, self.now, running_on(self.state, each, self.now)) if each.owes else {}
            for number, spent in parts.items():
                payer = number if number in needs else NO_RUN
                expected.setdefault((payer, market_of(each)), Costs()).add(costs_of(spent, each))
        found = not_charged(self.state, needs, self.now)
        flat = {(number, market): costs for number, its in found.items() for market, costs in its.items()}
        for key in expected.keys() | flat.keys():
            both = (each.get(key, Costs()).to_list() for each in (expected, flat))
            assert next(both) == pytest.approx(next(both), abs=1e-9), key
        for number, usd in usd_not_charged(self.state, needs, self.now, {*needs, NO_RUN}).items():
            assert usd == pytest.approx(summed(found.get(number, {}).values()).total, abs=1e-9)
        for run in self.state.runs.values():
            alone = not_charged(self.state, needs, self.now, {run.number}).get(run.number, {})
            assert alone.keys() == found.get(run.number, {}).keys()
            for market, costs in alone.items():
                assert costs.to_list() == pytest.approx(found[run.number][market].to_list(), abs=1e-9)
            self.check_holdings(run, needs)

    def check_holdings(self, run: Run, needs: Mapping[int, Resources]) -> None:
        table, expected_s, reserves = self.state.attempts, 50.0, Reserves(self.state, needs, self.now)
        held = reserves.held(run.number, expected_s)
        here: dict[str, list[float]] = {}
        for row in table.here_of_run(run.number).tolist():
            instance, started_at = self.state.instance_of(row), float(table["started_at"][row])
            if instance is not None and instance.alive:
                here.setdefault(instance.id, []).append(self.now - started_at if started_at else 0.0)
        assert {*held} == here.keys()
        assert len(held) == len(here)
        for name, taken_s in here.items():
            plain, mine = new_holding(self.state, needs, self.state.instances[name], run.number), held.of(name)
            assert mine is not None
            assert (mine.share, mine.share_of_all) == pytest.approx((plain.share, plain.share_of_all))
            assert mine.longest_s == pytest.approx(max(expected_s - min(taken_s), LEAST_LEFT * expected_s))
        every = [mine for name in here if (mine := held.of(name)) is not None]
        sums = (sum(getattr(each, name) for each in every) for name in ("usd_per_hour", "reserved_usd"))
        assert held.sums()[1:] == pytest.approx(tuple(sums))
        assert held.sums()[0] == pytest.approx(sum(each.instance.price_usd_per_hour for each in every))
        assert reserves.longest_so_far(run.number) == max(
            (taken for all_ in here.values() for taken in all_), default=0
        )

    def seconds_since(self, submitted_at: float) -> float:
        """The time of all instances that has been paid for since then."""
        every = self.state.instances.values()
        ends = ((i.launched_at, i.launched_at + i.billed_s(self.now)) for i in every)
        return sum(max(0.0, end - max(submitted_at, start)) for start, end in ends)

    def check(self) -> None:
        state = self.state
        runs = [*state.runs.values(), *self.closed.values()]
        ledgers = [summed(run.costs.values()) for run in runs]
        needs = {run.number: run.needs for run in state.runs.values()}
        by_run = not_charged(state, needs, self.now)
        pending = [costs for each in by_run.values() for costs in each.values()]
        for costs in (*ledgers, *pending, state.unattributed):
            assert min(costs.to_list()) >= 0
        for run, ledger in zip(runs, ledgers, strict=True):
            assert run.cost_usd == pytest.approx(ledger.total)
            assert run.on_demand_cost_usd == pytest.approx(ledger.on_demand)
        charged = summed([*ledgers, state.unattributed])
        of_instances = [(i.charged_s, i.price_usd_per_hour / 3600) for i in state.instances.values()]
        assert charged.total == pytest.approx(sum(seconds * price for seconds, price in of_instances), abs=1e-9)
        for run, ledger in zip(runs, ledgers, strict=True):
            owed = summed(by_run.get(run.number, {}).values()).instance_seconds if run.id in state.runs else 0.0
            if run.number in self.displaced:
                continue  # it pays for work that others began before it came
            assert ledger.instance_seconds + owed <= self.seconds_since(run.submitted_at) + LATE_S * self.tasks + 1e-6
        paid = summed([charged, *pending])
        billed = [i.billed_s(self.now) for i in state.instances.values()]
        prices = [i.price_usd_per_hour / 3600 for i in state.instances.values()]
        assert paid.instance_seconds == pytest.approx(sum(billed), abs=1e-6)
        assert paid.total == pytest.approx(sum(s * p for s, p in zip(billed, prices, strict=True)), abs=1e-9)
        gone = [i for i in state.instances.values() if not i.alive]
        assert state.spent_usd == pytest.approx(sum(i.hours(self.now) * i.price_usd_per_hour for i in gone), abs=1e-9)
        assert all(i.is_settled or i.losing for i in gone)
        assert self.policy is FEW or not any(i.losing for i in gone)
        # Booting is charged once; some of it before the time of registration was known.
        assert all(i.charged_boot_s <= i.boot_s(self.now) + 2 for i in state.instances.values())


moves = st.lists(
    st.tuples(st.sampled_from(STEPS), st.integers(0, 30), st.floats(0, 120, allow_nan=False)), min_size=5, max_size=80
)


@settings(max_examples=50, deadline=None)
@given(moves)
def test_all_ledgers_and_unused_time_add_up_to_the_hours_of_all_instances(steps: list[Any]) -> None:
    books = Books()
    for step in ("buy", "register", "submit", "launch", "start"):
        books.step(step, 0, 20.0)
    for what, pick, seconds in steps:
        books.step(what, pick, seconds)
        books.check()


@settings(max_examples=50, deadline=None)
@given(moves)
def test_what_is_worked_out_for_all_instances_at_once_is_what_each_of_them_says(steps: list[Any]) -> None:
    books = Books()
    for step in ("buy", "register", "submit", "launch", "start", "launch", "start"):
        books.step(step, 0, 20.0)
    for what, pick, seconds in steps:
        books.step(what, pick, seconds)
    books.check_columns()


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from((*STEPS, "commit", "commit")), st.integers(0, 30), st.floats(0, 120)),
        min_size=5,
        max_size=80,
    )
)
def test_they_add_up_while_lost_instances_are_settled_run_by_run(steps: list[Any]) -> None:
    books = Books(FEW)
    for step in ("buy", "register", "submit", "submit", "launch", "launch", "start", "start", "commit", "go"):
        books.step(step, 0, 20.0)
    books.check()
    for what, pick, seconds in steps:
        books.step(what, pick, seconds)
        books.check()
    for _ in range(200):
        books.do_commit(0)
    books.check()
    assert all(each.is_settled for each in books.state.instances.values() if not each.alive)


def test_the_steps_of_the_property_reach_what_they_are_about() -> None:
    """A long mixed sequence charges every kind of cost, closes runs and leaves something to no run."""
    books = Books()
    chance = Random(4)
    rare = {"go": 0.3, "go-late": 0.1, "cancel": 0.02, "warn": 0.3, "launch": 5, "start": 5, "succeed": 2, "lose": 0.5}
    for what in chance.choices(STEPS, [rare.get(step, 1.0) for step in STEPS], k=1200):
        books.step(what, chance.randrange(30), chance.random() * 20)
        books.check()
    runs = [*books.closed.values(), *books.state.runs.values()]
    total = summed([costs for run in runs for costs in run.costs.values()])
    assert all(value > 0 for value in total.to_list()), total
    assert books.state.unattributed.total > 0
    assert len(books.closed) == len(RUN_IDS)


def test_dominant_shares_that_add_up_to_more_than_an_instance_are_scaled_to_it() -> None:
    books = Books()
    books.do_buy(0)
    books.now += 10
    books.do_register(0)
    told(books.state, submitted(tasks=4, resources=SHAPES[1]), prepared(resources=SHAPES[1]))
    for _ in range(3):  # each takes four fifths of the memory, as no scheduler would place them
        books.do_launch(0)
        books.do_start(0)
    books.now += 100
    for _ in range(3):
        books.do_succeed(0)
    books.do_go(0)
    books.check()
    costs = summed(books.open_run(0).costs.values())  # type: ignore[union-attr]
    assert costs.useful == pytest.approx(100 * whole(0.06) / 3600)
    assert costs.idle == 0
