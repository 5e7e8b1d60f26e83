"""A minimum size of the cluster: how it is taken in, shown, stored and ended."""

from __future__ import annotations

from argosy.lifecycle.apply import pass_time
from argosy.model.actions import NoteFloor
from argosy.model.events import ClusterScaled
from argosy.model.inbox import ScaleRequest, from_bytes, to_bytes
from argosy.model.journal.commit import lines_of_commit
from argosy.model.pools import NO_FLOOR, Floor
from argosy.model.stored import documents
from tests.builders import NOW, POLICY, begun, state_with, stored, told

ASKED = ScaleRequest(NOW, 3, ("c5.xlarge",), NOW + 60)


def test_the_latest_wish_counts_whole() -> None:
    state = told(state_with(), ClusterScaled(ASKED))
    begun(state, [NoteFloor("held back by something")])
    assert state.floor == Floor(3, ("c5.xlarge",), NOW + 60, NOW, "held back by something")
    told(state, ClusterScaled(ScaleRequest(NOW + 1, 2)))
    assert state.floor == Floor(2, (), 0.0, NOW + 1)
    told(state, ClusterScaled(ScaleRequest(NOW + 2, 0, ("c5.xlarge",), NOW + 90)))
    assert state.floor == NO_FLOOR


def test_it_ends_after_its_time_limit() -> None:
    state = told(state_with(), ClusterScaled(ASKED))
    pass_time(state, NOW + 59, POLICY)
    assert state.floor.instances == 3
    pass_time(state, NOW + 60, POLICY)
    assert state.floor == NO_FLOOR


def test_it_is_stored_and_a_state_without_one_has_none() -> None:
    state = told(state_with(), ClusterScaled(ASKED))
    assert stored(state, {}).floor == Floor(3, ("c5.xlarge",), NOW + 60, NOW)
    assert Floor.from_json({}) == NO_FLOOR
    assert Floor.from_json({"instances": 2, "colour": "red"}) == Floor(2)


def test_a_request_comes_back_from_the_inbox() -> None:
    assert from_bytes(to_bytes(ASKED)) == ASKED
    assert ASKED.run_id == ""


def test_the_journal_tells_it_once() -> None:
    state = told(state_with(), ClusterScaled(ASKED))
    begun(state, [NoteFloor("no capacity")])
    assert lines_of_commit(state) == [
        {"type": "cluster.scaled", "instances": 3, "types": ["c5.xlarge"], "until": NOW + 60},
        {"type": "cluster.waiting", "reason": "no capacity"},
    ]
    documents.committed(state)
    assert lines_of_commit(state) == []
    told(state, ClusterScaled(ScaleRequest(NOW, 0)))
    assert lines_of_commit(state) == [{"type": "cluster.scaled", "instances": 0}, {"type": "cluster.waiting"}]
