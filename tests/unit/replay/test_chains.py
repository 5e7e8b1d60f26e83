"""The segments of a given time; a gap, a damaged segment or another version's is reported, never guessed."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest

from argosy.layout import JOURNAL
from argosy.model.policy import Policy
from argosy.recording import recorder as recorder_module
from argosy.recording.recorder import Start, TickRecord
from argosy.replay.chains import LONGEST_S, NotRecorded, chains_before
from argosy.replay.steps import Replay
from tests.builders import NOW
from tests.fakes.stored import NOTHING_STORED
from tests.harness.simulation.controllers.recorded import RecordedTrial

Spoil = Callable[[RecordedTrial, list[str]], None]


def three_parts() -> RecordedTrial:
    trial = RecordedTrial()
    recorder = trial.recorder(Policy())
    recorder.loaded(NOTHING_STORED, Start(NOW, "abcd", is_new=True))
    for number in range(1, 4):
        recorder.tick(TickRecord([], NOW + number, NOW + number))
        recorder.flush()
    assert len(trial.files) == 3
    return trial


def test_the_chain_of_a_moment_is_the_latest_one_that_began_before_it() -> None:
    trial = RecordedTrial()
    for at in (NOW, NOW + 100, NOW + 200):
        recorder = trial.recorder(Policy())
        recorder.loaded(NOTHING_STORED, Start(at, "abcd", is_new=True))
        recorder.flush()
    assert [round(chain.loaded_at - NOW) for chain in chains_before(trial, NOW + 150)] == [100, 0]
    assert not chains_before(trial, NOW - 1)
    assert not chains_before(trial, NOW + LONGEST_S + 86_400)


def test_chains_of_the_evening_before_are_found_after_midnight() -> None:
    trial = RecordedTrial()
    midnight = NOW - NOW % 86_400
    recorder = trial.recorder(Policy())
    recorder.loaded(NOTHING_STORED, Start(midnight - 60, "abcd", is_new=True))
    recorder.flush()
    assert len(chains_before(trial, midnight + 60)) == 1


def test_a_chain_is_read_part_after_part() -> None:
    (chain,) = chains_before(trial := three_parts(), NOW + 1000)
    assert [line[0] for _, line in chain.lines(trial)] == ["load", "tick", "tick", "tick"]


def _lose_the_second(trial: RecordedTrial, names: list[str]) -> None:
    del trial.files[names[1]]


def _tear_the_last(trial: RecordedTrial, names: list[str]) -> None:
    trial.files[names[2]] = trial.files[names[2]][:-9]


def _garble(trial: RecordedTrial, names: list[str]) -> None:
    trial.files[names[0]] = b"no gzip at all"


def _write_no_json(trial: RecordedTrial, names: list[str]) -> None:
    pack = zlib.compressobj(wbits=31)
    trial.files[names[0]] = pack.compress(b"{not json\n") + pack.flush()


def _empty(trial: RecordedTrial, names: list[str]) -> None:
    pack = zlib.compressobj(wbits=31)
    trial.files[names[0]] = pack.compress(b"") + pack.flush()


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (_lose_the_second, "a segment is missing: part 1"),
        (_tear_the_last, "is incomplete"),
        (_garble, "cannot be read"),
        (_write_no_json, "cannot be read"),
        (_empty, "has the format None"),
    ],
)
def test_a_gap_or_a_damaged_segment_is_reported(spoil: Spoil, sentence: str) -> None:
    trial = three_parts()
    spoil(trial, sorted(trial.files))
    (chain,) = chains_before(trial, NOW + 1000)
    with pytest.raises(NotRecorded, match=sentence):
        list(chain.lines(trial))


def test_a_different_format_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_module, "FORMAT", 99)
    trial = three_parts()
    (chain,) = chains_before(trial, NOW + 1000)
    with pytest.raises(NotRecorded, match="format 99"):
        list(chain.lines(trial))


def test_files_of_other_names_are_no_segments() -> None:
    trial = three_parts()
    trial.files[f"{JOURNAL}2026-11-21/readme.txt"] = b"hello"
    assert len(chains_before(trial, NOW + 1000)) == 1


def test_a_record_that_begins_in_the_middle_or_knows_other_lines_is_refused() -> None:
    head = {"policy": {}, "code": "x", "platform": {}}
    with pytest.raises(NotRecorded, match="is incomplete"):
        list(Replay().ticks([(head, ["tick", {}, [], []])]))
    with pytest.raises(NotRecorded, match="'comet'"):
        list(Replay().ticks([(head, ["comet", {}])]))
