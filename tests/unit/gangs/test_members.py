"""The tasks of a gang, and the variables that its members get."""

from __future__ import annotations

from argosy.gangs.members import members, next_attempt, startable, whole
from argosy.gangs.rendezvous import environment, port_of
from argosy.model.gangs import Gang
from argosy.model.run_terms import GangTerms
from argosy.model.tasks import TaskStatus
from tests.builders import NOW, prepared, state_with, submitted, the_run

GANG = {"gang": {"size": 3}, "array": {"size": 2}}
TERMS = GangTerms(3, 600.0, per_gpu=True)


def test_a_gang_starts_when_all_of_its_tasks_are_pending_and_none_of_an_earlier_attempt_lives() -> None:
    run = the_run(state_with(submitted(tasks=6, **GANG), prepared(**GANG)))
    assert startable(run, NOW).tolist() == [0, 1]
    run.tasks.set(4, not_before=NOW + 5)
    assert startable(run, NOW).tolist() == [0]
    assert startable(run, NOW + 5).tolist() == [0, 1]
    run.gangs[1] = Gang(NOW, 29_500, (), ())
    assert startable(run, NOW + 5).tolist() == [0]
    run.tasks.set(2, status=TaskStatus.FAILED)
    assert startable(run, NOW + 5).tolist() == []


def test_all_members_have_one_attempt_number_although_a_refused_launch_used_none() -> None:
    run = the_run(state_with(submitted(tasks=6, **GANG), prepared(**GANG)))
    run.tasks.set(3, attempts=2)
    assert [next_attempt(run, number) for number in (0, 1)] == [1, 3]
    assert list(members(run, 1)) == [3, 4, 5]


def test_single_tasks_stand_for_their_whole_gangs() -> None:
    run = the_run(state_with(submitted(tasks=6, **GANG), prepared(**GANG)))
    assert list(whole(run, [(4, 4), (1, 3)])) == [(3, 5), (0, 5)]


def test_torchrun_numbers_the_processes_of_members_with_several_gpus() -> None:
    gang = Gang(NOW, 29_507, ("i-1", "i-2", "i-3"), ("10.0.0.1", "10.0.0.2", "10.0.0.3"))
    told = environment(gang, (1, 2), TERMS, 4)
    assert (told["PET_NPROC_PER_NODE"], told["PET_NODE_RANK"], told["PET_MASTER_ADDR"]) == ("4", "2", "10.0.0.1")
    assert not {"RANK", "WORLD_SIZE"} & told.keys()


def test_two_gangs_whose_rank_0_share_an_instance_have_different_ports() -> None:
    first = port_of(1, 7, 1, set())
    assert port_of(2, 0, 1, set()) == first
    assert port_of(2, 0, 1, {first}) == first + 1
