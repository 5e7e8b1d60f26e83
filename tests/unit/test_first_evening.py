"""Which tests hold what was found about a first evening on a real account: its items, and bad input, by name?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FOUND = {
    "N1 the form of ModifyFleet": """
        test_a_run_is_bought_for_and_ends_and_its_fleets_go_back_to_nothing
        test_they_are_bought_without_any_fleets_target_and_given_back""",
    "N2 a refusal is the reason": """
        test_a_refused_order_is_the_reason_at_once_and_counts_neither_as_ordered_nor_as_a_limit
        test_each_refusal_of_the_tables_is_named_at_once_and_the_run_goes_on_afterwards
        test_cells_that_all_lack_their_cluster_are_the_reason""",
    "N3 a withdrawn type": """
        test_the_work_goes_to_the_types_that_ec2_still_offers
        test_a_deployment_reads_the_list_keeps_it_and_leaves_out_what_is_withdrawn""",
    "N4 Docker in the boot": "test_docker_first_starts_with_the_runner_and_is_never_restarted",
    "N5 the filter of fleets": """
        test_an_instance_of_a_deleted_fleet_is_still_ours_however_its_state_is_spelt
        test_a_listing_that_breaks_off_is_the_reason_and_never_no_fleets_yet""",
    "N6 looking inside": """
        test_what_an_instance_that_never_joined_wrote_to_its_console_is_shown_redacted_and_bounded
        test_an_agent_that_cannot_join_has_its_errors_on_the_console""",
    "N7 long pulls": """
        test_a_pull_that_takes_longer_than_ten_minutes_succeeds_with_the_first_attempt
        test_a_volume_has_a_throughput_that_fits_its_type""",
    "N8 CloudWatch's costs": "test_a_small_stage_needs_neither_alarms_nor_a_dashboard",
    "N9 another home": "test_another_home_for_the_same_stage_is_refused_before_anything_is_built",
    "N10 a company's account": """
        test_it_is_deployed_through_the_companys_bootstrap
        test_every_role_has_the_boundary_those_of_the_cdks_own_constructs_included""",
    "N11 the agent's queue": """
        test_no_task_waits_on_an_instance_for_one_that_is_stopping_there
        test_a_task_that_an_agents_queue_forgets_is_started_again_and_uses_up_no_attempt""",
    "N12 a roll that rolls nothing": "test_it_counts_after_a_day_and_until_ec2_shows_the_newest_version",
    "N13 the agent under our init": "test_the_agents_own_container_ends_and_stops_as_under_any_init",
    "N14 the concurrency of Lambda": "test_a_lambda_concurrency_that_is_too_small_is_said",
    "N15 a Region that differs": "test_a_shell_with_another_region_is_told_what_to_export",
    "C ModifyFleet with three targets": "test_every_story_ends_well",
    "C the filter of DescribeFleets": """
        test_every_story_ends_well
        test_a_listing_that_breaks_off_is_the_reason_and_never_no_fleets_yet""",
    "C the room of a stopping task": "test_no_task_waits_on_an_instance_for_one_that_is_stopping_there",
    "C CreateFleet of a type that is not offered": "test_the_template_has_no_fleet_of_a_withdrawn_type",
    "C ModifyFleet of a fleet being modified": """
        test_an_order_to_a_fleet_that_is_being_modified_is_sent_again_and_nothing_needs_mending""",
    "C fleets that exceed limits, stops during a pull, slow boots": "test_every_story_ends_well",
    "C instances without the runner": """
        test_where_instances_join_without_the_runner_no_more_are_bought_for_a_run_that_needs_it""",
    "C RunTask's token": "test_an_intent_whose_reply_was_lost_is_never_sent_again_after_ten_minutes",
    "A-A a run that never fits": """
        test_it_closes_its_limit_to_no_other_run_and_ends_after_its_patience
        test_every_run_of_a_crowd_ends_and_the_controller_rests""",
    "A-B a deployment without a task": """
        test_the_commit_that_completes_a_deployment_stops_none_of_the_tasks_that_it_counts""",
    "A3, A5 bounds before anything is stored": """
        test_what_could_never_be_kept_is_refused_and_nothing_is_changed
        test_any_request_is_answered_or_refused_and_after_an_accepted_one_every_read_answers""",
    "A4 a firing that waits": "test_a_queued_firing_starts_at_the_resumption_if_its_run_has_ended_during_the_pause",
    "A6 connections of local mode": "test_connections_of_users_leave_functions_and_tasks_theirs",
    "A7 dependents that are cancelled": """
        test_a_run_goes_with_the_one_that_it_depends_on_where_its_user_asked_for_that
        test_a_cancelled_run_takes_along_those_that_depend_on_it_where_that_is_asked""",
    "sick hosts (section A, 5)": """
        test_a_sick_host_is_drained_and_replaced_in_the_first_tick_that_knows_of_it
        test_a_sweep_reads_each_status_check_of_ec2""",
    "A8 controllers without a lease": "test_ended_tasks_are_seen_within_two_minutes_and_a_tick",
    "A9 any damage of local mode's state": """
        test_a_damaged_state_is_refused_and_left_as_it_is_and_can_be_forgotten
        test_without_its_root_nothing_is_touched""",
    "A10 times of schedules": "test_only_a_time_of_the_schedule_fires",
    "F1 plain cdk": """
        test_ls_and_synth_work_in_a_fresh_clone
        test_diff_and_destroy_need_nothing_that_is_built
        test_deploy_builds_the_runner_and_publishes_it_or_makes_nothing""",
    "F2 roles and logs of an own definition": """
        test_passrole_names_exact_roles_and_the_service_they_go_to
        test_the_way_to_a_secret_on_the_scope_page_is_the_role_that_tasks_have
        test_only_values_that_ask_for_something_are_named
        test_the_warning_names_the_definition_and_there_is_none_for_none""",
    "F3, F4, F8 what no field is there for": "test_a_bad_spec_gets_every_fault",
    "F5 a program that resumes": "test_every_example_does_what_it_says",
    "F6 calls that the embedded AWS does not have": """
        test_a_service_of_ecs_is_refused_with_a_sentence_that_the_guide_has_too""",
    "F7 documents that contradict each other": """
        test_every_test_that_is_named_exists
        test_what_is_here_names_a_test_and_what_is_missing_a_reason
        test_a_readme_says_that_its_image_is_built_where_a_make_target_builds_it""",
    "F9 a log group of one's own": "test_a_log_group_that_does_not_exist_is_the_reason_and_nothing_is_started",
    "F10 draining is seen": """
        test_tasks_on_a_draining_instance_may_end_by_themselves_and_nothing_new_is_placed_there
        test_an_instance_that_a_user_drains_gets_no_work_stays_and_takes_work_again_at_the_end""",
    "F11 a rule that nothing meets": """
        test_a_run_that_nothing_can_run_is_warned_of_with_the_reasons
        test_a_rule_that_no_instance_meets_is_named""",
    "input: a policy that denies one call": """
        test_a_refusal_of_each_class_is_named_at_once_and_the_run_goes_on_afterwards
        test_a_denied_call_for_which_no_run_waits_holds_none_up
        test_each_denied_call_is_shown_in_awss_words_and_nothing_that_costs_stays
        test_every_call_that_the_controller_makes_is_in_one_of_the_tables""",
    "input: a quota of 0": """
        test_a_quota_of_0_that_only_ec2_knows_is_the_reason_and_nothing_is_bought_until_it_is_raised
        test_where_the_going_of_an_instance_does_not_help_none_is_emptied""",
    "input: an image that never comes": """
        test_an_image_that_never_comes_ends_the_run_after_three_tries_of_thirty_minutes""",
    "input: a Region without any named type": "test_a_region_without_a_usable_type_is_refused_and_can_be_corrected",
    "input: a role that exists already": """
        test_a_role_that_exists_already_is_refused_unless_the_deployment_there_is_of_before_the_tag""",
    "input: a bucket name taken": "test_a_bucket_whose_name_is_taken_or_gone_is_said",
    "input: a half-deleted fleet": """
        test_instances_of_a_deleted_fleet_are_let_go_and_its_pool_is_left_alone_until_there_is_one_again""",
    "input: last month's template": "test_the_controller_under_a_template_of_another_version_fails_with_the_sentence",
    "input: a clock that is off": """
        test_every_command_says_so_in_one_line_with_the_next_step
        test_the_doctor_finds_it_first_and_checks_nothing_else
        test_a_launch_that_is_refused_or_unanswered_is_the_reason_until_a_task_starts
        test_a_clock_that_jumps_loses_nothing_and_starts_nothing_twice""",
}
ITEMS = (
    *(f"N{number}" for number in range(1, 16)),
    *("A-A", "A-B"),
    *(f"A{number}" for number in range(3, 11)),
    *(f"F{number}" for number in range(1, 12)),
)


@pytest.fixture(scope="module")
def defined() -> set[str]:
    sources = (path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    return {name for source in sources for name in re.findall(r"^def (test_\w+)\(", source, re.MULTILINE)}


@pytest.mark.parametrize("item", FOUND)
def test_every_test_that_an_item_names_exists(item: str, defined: set[str]) -> None:
    assert set(FOUND[item].split()) - defined == set()


def test_every_item_has_a_line() -> None:
    named = {word.strip(",") for item in FOUND for word in item.split() if word.strip(",") in ITEMS}
    assert named == {*ITEMS}
