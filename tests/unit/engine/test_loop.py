"""One leased invocation loops until rest or until its time is nearly up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, cast

import pytest

from argosy.aws.clients import READ_TIMEOUT_S
from argosy.aws.observer import SWEEP_LIMIT_S
from argosy.engine.loop import BEAT_S, LEASE_S, RESERVE_S, SOON_S, WAIT_S, Loop
from argosy.engine.report import TickReport
from argosy.engine.tick import SEARCH_S, Engine
from argosy.model.actions import Action
from argosy.model.events import Event, Observed
from argosy.model.inbox import INBOX
from argosy.model.state import State
from argosy.ports import Caller
from tests.builders import NOW, POLICY, MemoryStore
from tests.fakes.engine import EmptyQueue, IdleExecutor, RecordingWake, TickingClock, loop_with


def test_a_controller_without_work_looks_once_around_and_goes_to_rest() -> None:
    store, wake = MemoryStore(), RecordingWake()
    report = loop_with(store, wake).run(lambda: 600.0)
    assert (report.reason, wake.calls) == ("rest", ["stay", "rest"])
    assert report.ticks <= 3
    assert store.lease is None


def test_every_tick_is_reported_as_it_ends() -> None:
    reports: list[TickReport] = []
    loop = loop_with(MemoryStore(), RecordingWake())
    loop.on_tick = reports.append
    assert loop.run(lambda: 600.0).ticks == len(reports)
    assert [report.at_rest for report in reports] == [False] * (len(reports) - 1) + [True]


def test_an_invocation_without_the_lease_leaves_at_once_and_touches_nothing() -> None:
    store, wake = MemoryStore(), RecordingWake()
    store.take_lease("another", NOW, 90)
    report = loop_with(store, wake).run(lambda: 600.0)
    assert (report.reason, store.commits) == ("no lease", 0)
    assert (report.ticks, report.events, report.poison, report.launches, report.conflicts) == (0, 0, 0, 0, 0)
    assert store.lease is not None
    assert store.lease[0] == "another"


def test_an_expired_lease_is_taken_over() -> None:
    store = MemoryStore()
    store.take_lease("dead", NOW - 100, 90)
    assert loop_with(store, RecordingWake()).run(lambda: 600.0).reason == "rest"


def test_a_request_that_arrives_while_the_tick_is_being_disabled_wakes_the_controller_again() -> None:
    store, wake = MemoryStore(), RecordingWake()

    def arrives() -> None:
        if wake.calls == ["stay", "rest"]:
            store.create({(INBOX, "1"): b'{"kind":"cancel","run_id":"a-1-1-1","requested_at":1,"reason":""}'})

    wake.when_resting = arrives
    report = loop_with(store, wake).run(lambda: 600.0)
    assert wake.calls == ["stay", "rest", "stay", "rest"]
    assert report.reason == "rest"
    assert not store.read_partition(INBOX)


def test_no_tick_begins_when_the_time_is_nearly_up() -> None:
    report = loop_with(MemoryStore(), RecordingWake()).run(lambda: 20.0)
    assert (report.reason, report.ticks) == ("time", 0)


def test_an_unreadable_request_is_set_aside_and_blocks_no_other_request() -> None:
    store = MemoryStore()
    store.create({(INBOX, "1"): b'{"kind":"from the future"}', (INBOX, "2"): b"not json"})
    assert loop_with(store, RecordingWake()).run(lambda: 600.0).reason == "rest"
    assert not store.read_partition(INBOX)
    assert set(store.read_partition("INBOX-REFUSED")) == {"1", "2"}


def test_another_commit_in_between_makes_the_controller_reload() -> None:
    store = MemoryStore()
    loop = loop_with(store, RecordingWake())

    class Meddling(IdleExecutor):
        meddled = False

        def carry_out(self, actions: Sequence[Action], state: State, deadline: float) -> list[Event]:
            if not self.meddled:
                self.meddled = True
                store.stored_version += 1
            return []

    loop.engine.executor = Meddling()
    report = loop.run(lambda: 600.0)
    assert (report.reason, report.conflicts) == ("rest", 1)


def test_a_lost_lease_ends_the_loop() -> None:
    store = MemoryStore()
    loop = loop_with(store, RecordingWake(), lease_s=0.1)

    class Thief(IdleExecutor):
        def carry_out(self, actions: Sequence[Action], state: State, deadline: float) -> list[Event]:
            store.lease = ("thief", NOW + 1e6)
            return []

    loop.engine.executor = Thief()
    assert loop.run(lambda: 600.0).reason == "lease lost"


class Failing(IdleExecutor):
    def carry_out(self, actions: Sequence[Action], state: State, deadline: float) -> list[Event]:
        raise OSError("the network is gone")


def test_a_tick_that_fails_gives_the_lease_back_and_is_no_heartbeat() -> None:
    store = MemoryStore()
    loop = loop_with(store, RecordingWake())
    loop.engine.executor = Failing()
    with pytest.raises(OSError, match="network"):
        loop.run(lambda: 600.0)
    assert store.lease is None
    assert store.heartbeat is None


def test_the_fault_that_ended_the_loop_is_reported_rather_than_the_unreleased_lease() -> None:
    class Unreachable(MemoryStore):
        def release_lease(self, owner: str) -> None:
            raise ConnectionError("nor is the table there")

    loop = loop_with(Unreachable(), RecordingWake())
    loop.engine.executor = Failing()
    with pytest.raises(OSError, match="the network is gone"):
        loop.run(lambda: 600.0)


def test_ticks_that_are_carried_through_beat_now_and_then_and_the_heart_outlives_the_lease() -> None:
    class Beating(MemoryStore):
        beats: list[float] = []  # noqa: RUF012 - one store, one test

        def beat(self, now: float) -> None:
            super().beat(now)
            self.beats.append(now)

    store = Beating()
    loop = loop_with(store, RecordingWake())
    loop.engine.executor = Blind()
    left = iter([600.0] * 200 + [0.0])
    report = loop.run(lambda: next(left))
    assert (report.reason, report.ticks, store.lease) == ("time", 200, None)
    assert 2 <= len(store.beats) < 20
    assert all(later - earlier >= BEAT_S for earlier, later in pairwise(store.beats))


class Blind(IdleExecutor):
    """Never sees all instances, so that the controller does not rest."""

    def observe(self, now: float, state: State) -> Event:
        return Observed(now, hosts_complete=False)


class Pausing(IdleExecutor):
    """Its first sweep takes two ticks."""

    looked_at: tuple[float, ...] = ()

    def observe(self, now: float, state: State) -> Event | None:
        self.looked_at += (now,)
        return super().observe(now, state) if len(self.looked_at) > 1 else None


def test_a_sweep_that_pauses_continues_in_the_next_tick() -> None:
    loop = loop_with(MemoryStore(), RecordingWake())
    loop.engine.executor = executor = Pausing()
    loop.engine.tick()
    state = loop.engine.state
    assert state is not None
    assert state.observed_at == 0.0
    assert loop.run(lambda: 600.0).reason == "rest"
    assert executor.looked_at[1] - executor.looked_at[0] < POLICY.eager_sweep_s


def test_running_out_of_time_leaves_the_schedule_on_and_does_not_call_itself() -> None:
    wake = RecordingWake()
    loop = loop_with(MemoryStore(), wake)
    loop.engine.executor = Blind()
    left = iter([600.0] * 3 + [0.0])
    assert loop.run(lambda: next(left)).reason == "time"
    assert wake.calls == ["stay", "stay"]  # an update of the stack may have disabled it, before or since


def test_the_reserve_is_enough_for_everything_that_a_tick_does_in_turn() -> None:
    longest = WAIT_S + Engine.__dataclass_fields__["execute_s"].default + SWEEP_LIMIT_S + READ_TIMEOUT_S
    longest += SEARCH_S
    assert longest < RESERVE_S


def test_work_that_takes_longer_than_the_lease_keeps_it() -> None:
    store = MemoryStore()
    loop = loop_with(store, RecordingWake())
    clock = loop.now
    assert isinstance(clock, TickingClock)

    class Slow(IdleExecutor):
        stolen, pages = 0, 20  # of one close

        def carry_out(self, actions: Sequence[Action], state: State, deadline: float) -> list[Event]:
            while self.pages:
                self.pages -= 1
                clock.at += LEASE_S / 4
                self.stolen += store.take_lease("another", clock.at, LEASE_S)
                loop.renew()
            return []

    loop.engine.executor = executor = Slow()
    assert loop.run(lambda: 600.0).reason == "rest"
    assert (executor.stolen, executor.pages) == (0, 0)


def test_after_any_failure_what_was_sent_counts_as_in_doubt() -> None:
    store = MemoryStore()
    loop = loop_with(store, RecordingWake())

    loop.engine.executor = Failing()
    with pytest.raises(OSError, match="network"):
        loop.run(lambda: 600.0)
    assert loop.engine.state is None


class Quiet(MemoryStore):
    """For a deployment with a service in its desired state. when_laid_down: called just before the lease is
    released."""

    def __init__(self, when_laid_down: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.when_laid_down = when_laid_down

    def lay_down_lease(self, owner: str) -> bool:
        self.when_laid_down()
        return super().lay_down_lease(owner)


def quiet_loop(store: MemoryStore, wake: RecordingWake, due_in_s: float = math.inf, **overrides: Any) -> Loop:
    """Its ticks report that nothing is due for this long."""
    loop = loop_with(store, wake, **overrides)
    engine = loop.engine
    assert isinstance(engine, Engine)
    loop.engine = cast("Engine", NothingToDo(engine, due_in_s))
    return loop


@dataclass
class NothingToDo:
    """An engine that has something to do, and not now."""

    inner: Engine
    due_in_s: float
    waits: list[float] = field(default_factory=list)
    left_quiet: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def tick(self, wait_s: float) -> TickReport:
        self.waits.append(wait_s)
        report = self.inner.tick(wait_s)
        return replace(report, at_rest=False, due_at=self.inner.now() + self.due_in_s)


def waits_of(loop: Loop) -> list[float]:
    return cast("NothingToDo", loop.engine).waits


def test_a_controller_with_nothing_to_do_for_a_while_leaves_and_keeps_the_tick_enabled() -> None:
    store, wake = Quiet(), RecordingWake()
    loop = quiet_loop(store, wake)
    report = loop.run(lambda: 600.0)
    assert (report.reason, report.ticks, store.lease) == ("quiet", 1, None)
    assert wake.calls == ["stay", "stay"]  # an update of the stack may have disabled it, before or since
    assert (store.heartbeat is not None, store.at_rest) == (True, False)


@pytest.mark.parametrize(("due_in_s", "reason"), [(SOON_S + 5.0, "quiet"), (SOON_S - 5.0, "time")])
def test_what_is_due_before_the_next_tick_of_the_schedule_is_waited_for(due_in_s: float, reason: str) -> None:
    left = iter([600.0] * 20 + [0.0])
    assert quiet_loop(Quiet(), RecordingWake(), due_in_s).run(lambda: next(left)).reason == reason


def test_a_call_that_is_turned_away_at_the_last_moment_keeps_the_controller_which_then_waits_for_the_message() -> None:
    calls = iter([True])

    def call() -> None:
        if next(calls, False):
            assert not store.take_lease("called", NOW, LEASE_S)

    store = Quiet(call)
    loop = quiet_loop(store, RecordingWake(), caller=Caller.CLOCK)
    report = loop.run(lambda: 600.0)
    assert (report.reason, report.ticks, waits_of(loop)) == ("quiet", 2, [0.0, WAIT_S])


@pytest.mark.parametrize(("caller", "wait_s"), [(Caller.API, WAIT_S), (Caller.RULE, WAIT_S), (Caller.CLOCK, 0.0)])
def test_only_a_controller_that_was_called_waits_for_a_message(caller: Caller, wait_s: float) -> None:
    loop = quiet_loop(Quiet(), RecordingWake(), caller=caller)
    loop.run(lambda: 600.0)
    assert waits_of(loop) == [wait_s]


def test_a_quiet_controllers_memory_is_reused_unless_another_commit_came_in_between() -> None:
    store = MemoryStore()
    engine = Engine(store, EmptyQueue(), IdleExecutor(), {}, POLICY, TickingClock())
    engine.tick()
    engine.left_quiet, known = True, engine.state
    engine.resume()
    assert engine.state is known
    engine.resume()  # it has not left quiet since
    assert engine.state is None
    engine.tick()
    engine.left_quiet = True
    store.stored_version += 1
    engine.resume()
    assert engine.state is None


def test_a_controller_at_rest_says_so_before_it_disables_its_tick() -> None:
    store, said = MemoryStore(), list[bool]()
    wake = RecordingWake(when_resting=lambda: said.append(store.at_rest))
    assert loop_with(store, wake).run(lambda: 600.0).reason == "rest"
    assert said == [True]


@pytest.mark.parametrize(
    ("caller", "ticks"), [(Caller.RULE, range(1)), (Caller.API, range(1, 4)), (Caller.CLOCK, range(1, 4))]
)
def test_at_rest_a_foreign_message_costs_one_look(caller: Caller, ticks: range) -> None:
    store = MemoryStore()
    store.beat(NOW, at_rest=True)
    wake = RecordingWake()
    report = loop_with(store, wake, caller=caller).run(lambda: 600.0)
    assert (report.reason, store.lease) == ("rest", None)
    assert report.ticks in ticks
    assert bool(wake.calls) is bool(report.ticks)
