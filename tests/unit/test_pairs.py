"""Every pair of features names the test in which they meet, or says why they do not."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

TESTS = Path(__file__).parents[1]
FEATURES = (
    "gpuShare", "checkpoint", "program versions", "inputs", "headroom", "services", "schedules", "N_TO_N", "map",
    "retry", "interrupt", "two controllers", "gang",
)  # fmt: skip
PAIRS = "scenarios/test_pairs.py"
FIRING = "unit/api/test_firing.py"
MAP = "unit/sdk/mapping/test_map.py"
RETRY = "scenarios/test_retry.py"
PROGRAM = "unit/client/packing/test_program.py"
DATA = "unit/cli/runs/test_data.py"
DEPENDENCIES = "unit/api/test_dependencies.py"
HEADROOM = "scenarios/test_headroom.py"
DEPENDENT = "scenarios/test_dependencies.py"
SAVES = "simulation/test_checkpoints.py"
SERVICES = "unit/api/test_environments.py"
RESUMES = "e2e/test_checkpoints.py"
UPLOADED = "contract/runner/test_uploaded_inputs.py"
# Tests in which several pairs meet.
FIXED = f"{PAIRS}::test_a_fixed_program_keeps_all_that_it_had_when_its_instance_is_interrupted"
ROOM = f"{PAIRS}::test_room_is_kept_for_a_service_through_updates_interruptions_and_two_controllers"
IN_TURN = f"{PAIRS}::test_tasks_that_wait_for_tasks_of_another_run_begin_in_the_room_that_is_kept"
SAVING = f"{SAVES}::test_interrupted_programs_resume_and_repeat_an_interval_and_an_upload_at_most"
TRIALS = "simulation/test_trials.py::test_whatever_goes_wrong_no_invariant_is_violated_and_everything_ends"
ALLOWED = "unit/spec/test_allowed.py::test_a_field_has_an_effect_or_is_refused"
ENDLESS = f"{SERVICES}::test_a_service_cannot_be_submitted_and_its_run_neither_cancelled_nor_retried"
MAPPED = f"{MAP}::test_results_come_in_the_order_of_the_items"
BOTH_AGAIN = f"{DEPENDENT}::test_tasks_that_were_cancelled_for_their_own_ones_run_once_both_runs_are_tried_again"
RESUMED = f"{RESUMES}::test_an_interrupted_task_resumes_from_its_checkpoint_on_another_instance"
ITS_OWN = f"{RETRY}::test_two_retries_with_other_programs_run_each_task_with_its_own_and_the_manifest_says_which"
# Sentences about several pairs.
SUBMITS = "A schedule submits its spec through the same admission as a user, and the run is like any other"
IN_THE_TASK = "The runner reads them within the task. The controller and the placement see none of it"
ROOM_IS_LAST = "Headroom is placed after every task, by size alone, and knows nothing of the runs that come"
ENDED_FIRST = "A task that others wait for has succeeded when they start. What it ran does not matter to them"
REFUSED_WITH_GANGS = "unit/spec/test_gangs.py::test_what_cannot_stand_with_a_gang_is_refused_with_its_reason"
GANGS_RESUME = "e2e/test_gangs.py::test_a_gang_of_two_restarts_as_one_from_its_checkpoint"
GANG_TRIALS = "simulation/test_gangs.py::test_gangs_start_and_restart_as_one_under_several_controllers"
WHOLE = "unit/gangs/test_members.py::test_single_tasks_stand_for_their_whole_gangs"
ONE_FOR_ALL = "A retry brings all tasks of a gang to the latest version of the program, because they fail together"

TABLE = {
    "gpuShare x checkpoint": FIXED,
    "gpuShare x program versions": FIXED,
    "gpuShare x inputs": FIXED,
    "gpuShare x headroom": "unit/scheduler/placing/test_headroom.py::test_the_setting_names_a_size_by_a_runs_words",
    "gpuShare x services": f"{PAIRS}::test_shares_of_gpus_are_handed_over_to_the_next_revision_of_a_service",
    "gpuShare x schedules": SUBMITS,
    "gpuShare x N_TO_N": ENDED_FIRST,
    "gpuShare x map": f"{MAP}::test_a_run_asks_for_the_share_of_a_gpu_that_each_task_gets",
    "gpuShare x retry": FIXED,
    "gpuShare x interrupt": FIXED,
    "gpuShare x two controllers": FIXED,
    "gpuShare x gang": REFUSED_WITH_GANGS,
    "checkpoint x program versions": FIXED,
    "checkpoint x inputs": FIXED,
    "checkpoint x headroom": ROOM_IS_LAST,
    "checkpoint x services": ALLOWED,
    "checkpoint x schedules": SUBMITS,
    "checkpoint x N_TO_N": ENDED_FIRST,
    "checkpoint x map": "A mapped function saves nothing: its options name no checkpoint, and it is called again",
    "checkpoint x retry": FIXED,
    "checkpoint x interrupt": RESUMED,
    "checkpoint x two controllers": SAVING,
    "checkpoint x gang": GANGS_RESUME,
    "program versions x inputs": FIXED,
    "program versions x headroom": ROOM_IS_LAST,
    "program versions x services": ENDLESS,
    "program versions x schedules": "A retry changes its run alone. Later runs of the schedule start from its spec",
    "program versions x N_TO_N": ENDED_FIRST,
    "program versions x map": f"{PROGRAM}::test_a_run_without_a_folder_of_its_own_has_no_other_version",
    "program versions x retry": ITS_OWN,
    "program versions x interrupt": FIXED,
    "program versions x two controllers": FIXED,
    "program versions x gang": ONE_FOR_ALL,
    "inputs x headroom": ROOM_IS_LAST,
    "inputs x services": ALLOWED,
    "inputs x schedules": f"{DATA}::test_what_a_schedule_reads_by_name_is_copied_to_where_nothing_expires",
    "inputs x N_TO_N": f"{DEPENDENCIES}::test_the_place_of_the_other_runs_results_is_filled_in_when_the_run_is_stored",
    "inputs x map": MAPPED,
    "inputs x retry": f"{UPLOADED}::test_a_chunk_that_is_gone_ends_the_task_for_good_with_what_to_do",
    "inputs x interrupt": "contract/runner/test_stopping.py::test_while_it_fetches",
    "inputs x two controllers": IN_THE_TASK,
    "inputs x gang": IN_THE_TASK,
    "headroom x services": ROOM,
    "headroom x schedules": f"{HEADROOM}::test_further_tasks_start_at_once_and_nothing_is_kept_after_the_last_run",
    "headroom x N_TO_N": IN_TURN,
    "headroom x map": ROOM_IS_LAST,
    "headroom x retry": ROOM_IS_LAST,
    "headroom x interrupt": ROOM,
    "headroom x two controllers": ROOM,
    "headroom x gang": ROOM_IS_LAST,
    "services x schedules": "unit/api/test_schedules.py::test_what_has_no_end_is_not_started_by_a_schedule",
    "services x N_TO_N": f"{DEPENDENCIES}::test_a_run_of_a_service_cannot_be_waited_for",
    "services x map": "A map submits a batch: its options name no other kind",
    "services x retry": ENDLESS,
    "services x interrupt": ROOM,
    "services x two controllers": ROOM,
    "services x gang": ALLOWED,
    "schedules x N_TO_N": SUBMITS,
    "schedules x map": "A schedule submits a spec, and a map is the loop of a program that waits for its results",
    "schedules x retry": f"{FIRING}::test_a_run_that_is_retried_is_open_again_even_if_another_one_has_run_since",
    "schedules x interrupt": "A schedule sees whether a run is open. An interrupted run is",
    "schedules x two controllers": "simulation/test_schedules.py::test_each_time_has_one_verdict_and_at_most_one_run",
    "schedules x gang": SUBMITS,
    "N_TO_N x map": "A map returns results here. Its run has no option that waits for another run",
    "N_TO_N x retry": BOTH_AGAIN,
    "N_TO_N x interrupt": TRIALS,
    "N_TO_N x two controllers": TRIALS,
    "N_TO_N x gang": REFUSED_WITH_GANGS,
    "map x retry": f"{MAP}::test_a_crash_is_tried_again",
    "map x interrupt": "An interrupted task of a map has another attempt, as any other, and gives its results once",
    "map x two controllers": "A map reads the record of its run and results, which controllers commit in turn",
    "map x gang": "A map submits single tasks: its options name no gang",
    "retry x interrupt": FIXED,
    "retry x two controllers": f"{RETRY}::test_two_controllers_reopen_a_run_once",
    "retry x gang": WHOLE,
    "interrupt x two controllers": FIXED,
    "interrupt x gang": GANGS_RESUME,
    "two controllers x gang": GANG_TRIALS,
}  # fmt: skip


def test_every_pair_of_features_is_in_the_table() -> None:
    assert [*TABLE] == [f"{one} x {other}" for one, other in combinations(FEATURES, 2)]


def test_each_pair_names_a_test_that_there_is_or_a_sentence() -> None:
    for pair, where in TABLE.items():
        name, _, test = where.partition("::")
        if not test:
            assert re.fullmatch(r"[A-Z][^\n]{30,}", where), pair
            continue
        assert re.search(rf"^def {test}\(", (TESTS / name).read_text(), re.MULTILINE), f"{pair}: {where}"
