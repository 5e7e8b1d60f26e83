"""Recording never holds a tick up: it stores segments when they are due, and ends a chain where it cannot go on."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import pytest

from argosy.engine.loop import Loop
from argosy.engine.tick import Engine
from argosy.model.events import FleetSeen, Observed, RunClosed
from argosy.model.policy import Policy
from argosy.recording.recorder import SEGMENT_BYTES, SEGMENT_S, Recorder, Start, TickRecord
from argosy.replay.chains import chains_of
from tests.builders import NOW, MemoryStore
from tests.fakes.engine import EmptyQueue, IdleExecutor, RecordingWake, TickingClock
from tests.fakes.stored import NOTHING_STORED
from tests.harness.simulation.controllers.recorded import RecordedTrial

START = Start(NOW, "abcd", is_new=True)


@dataclass
class BrokenArchive:
    tries: int = 0

    def put(self, name: str, body: bytes) -> None:
        self.tries += 1
        raise OSError("no space left")


@dataclass
class Recording:
    """A recorder that has loaded, and its stored segments."""

    trial: RecordedTrial = field(default_factory=RecordedTrial)

    def __post_init__(self) -> None:
        self.recorder = self.trial.recorder(Policy())
        self.recorder.loaded(NOTHING_STORED, START)

    def tick(self, at: float, *facts: object, fault: str = "") -> None:
        taken = [(fact, at) for fact in facts]
        self.recorder.tick(TickRecord(taken, at, at, version=int(at - NOW), fault=fault))  # type: ignore[arg-type]

    def lines(self) -> list[list[object]]:
        self.recorder.flush()
        return [line for chain in chains_of(self.trial.files) for _, line in chain.lines(self.trial)]


def test_a_segment_is_stored_once_it_is_old_enough_and_the_next_one_continues() -> None:
    recording = Recording()
    for seconds in (1.0, SEGMENT_S + 1, SEGMENT_S + 2):
        recording.tick(NOW + seconds)
    assert len(recording.trial.files) == 1
    assert [line[0] for line in recording.lines()] == ["load", "tick", "tick", "tick"]
    assert len(recording.trial.files) == 2


def test_a_segment_is_stored_once_it_is_large() -> None:
    recording = Recording()
    recording.recorder.size = SEGMENT_BYTES + 1
    recording.tick(NOW + 1)
    assert len(recording.trial.files) == 1


def test_a_segment_is_stored_when_a_run_ends() -> None:
    recording = Recording()
    recording.tick(NOW + 1, RunClosed("a"))
    assert len(recording.trial.files) == 1


def test_a_sweep_is_stored_once_however_many_ticks_it_takes_to_apply_it() -> None:
    recording = Recording()
    fleets = tuple(FleetSeen("us-east-1", "c5.large", zone, f"fleet-{zone}", 0) for zone in "abc")
    sweep = Observed(NOW, fleets=fleets)
    recording.recorder.observed(sweep)
    recording.tick(NOW + 1, fleets[0], fleets[1])
    recording.tick(NOW + 2, fleets[2], sweep)
    lines = recording.lines()
    assert [line[2] for line in lines if line[0] == "tick"] == [
        [[NOW + 1, 0], [NOW + 1, 1]],
        [[NOW + 2, 2], [NOW + 2, -1]],
    ]


def test_an_equal_fact_that_is_no_part_of_the_sweep_is_recorded_as_itself() -> None:
    recording = Recording()
    sweep = Observed(NOW, fleets=(FleetSeen("us-east-1", "c5.large", "a", "fleet-a", 0),))
    recording.recorder.observed(sweep)
    recording.tick(NOW + 1, FleetSeen("us-east-1", "c5.large", "a", "fleet-a", 0))
    assert recording.lines()[-1][2][0][1][0] == "FleetSeen"  # type: ignore[index]


def test_a_sweep_after_a_stored_segment_begins_the_next_one() -> None:
    recording = Recording()
    recording.tick(NOW + 1, RunClosed("a"))
    recording.recorder.observed(Observed(NOW + 2))
    assert [line[0] for line in recording.lines()] == ["load", "tick", "sweep"]


def test_after_a_fault_of_our_own_nothing_is_recorded_until_the_next_load() -> None:
    recording = Recording()
    recording.tick(NOW + 1, fault="its own code failed at something")
    recording.tick(NOW + 2)
    recording.recorder.observed(Observed(NOW + 2))
    assert len(recording.lines()) == 2
    recording.recorder.loaded(None, START)
    recording.tick(NOW + 3)
    assert len(recording.lines()) == 2
    recording.recorder.loaded(NOTHING_STORED, Start(NOW + 4, "abcd", is_new=False))
    recording.tick(NOW + 5)
    assert len(recording.lines()) == 4


def test_an_archive_that_fails_ends_the_chain_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    archive = BrokenArchive()
    recorder = Recorder(archive)
    recorder.loaded(NOTHING_STORED, START)
    with caplog.at_level(logging.ERROR):
        recorder.tick(TickRecord([(RunClosed("a"), NOW)], NOW, NOW))
    assert "could not be recorded" in caplog.text
    recorder.tick(TickRecord([(RunClosed("b"), NOW)], NOW, NOW))
    assert (archive.tries, recorder.chain) == (1, "")


def test_an_invocation_that_ends_stores_what_it_has_recorded() -> None:
    trial = RecordedTrial()
    store, clock = MemoryStore(), TickingClock()
    engine = Engine(store, EmptyQueue(), IdleExecutor(), {}, Policy(), clock, recorder=trial.recorder(Policy()))
    assert Loop(engine, store, RecordingWake(), "me", clock).run(lambda: 600.0).reason == "rest"
    assert trial.files
    assert not trial.faults()


def test_an_invocation_that_fails_stores_what_it_has_recorded() -> None:
    trial = RecordedTrial()
    store, clock = MemoryStore(), TickingClock()

    def fails(report: object) -> None:
        raise KeyboardInterrupt

    engine = Engine(store, EmptyQueue(), IdleExecutor(), {}, Policy(), clock, recorder=trial.recorder(Policy()))
    with pytest.raises(KeyboardInterrupt):
        Loop(engine, store, RecordingWake(), "me", clock, fails).run(lambda: 600.0)
    assert trial.files
