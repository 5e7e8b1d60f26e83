"""What was found when strangers tried Argosy, by number, and the test that shows it mended.

G: on a GPU. P: reports from the public. U: as a new user. C: against a checklist. A: adversarial. A test is
`file::name`, below tests/; else it is a habit's number.
"""

from __future__ import annotations

FINDINGS = {
    "G tasks share the only GPU of the machine by mistake": (
        "e2e/test_gpus_of_this_machine.py::test_tasks_that_want_the_only_gpu_run_one_after_the_other"
    ),
    "G functions do not find packages on PYTHONPATH": (
        "unit/local/test_forks.py::test_packages_of_this_process_on_pythonpath_are_found"
    ),
    "P1 a loop that is left leaves its run running": "R25, R27, R28",
    "P2 sys.exit of a call ends the caller": "R25, R27, R28",
    "P4 the first of several files starts before the last is judged": "R36",
    "P5 an ignored file is missing in the task, silently": "R8",
    "P7 a byte order mark becomes part of the first item": "R6",
    "P8 a map over endless items never returns": "R25, R27, R28",
    "P10 a proxy stands before local mode": "R35",
    "P11 an item of more than 8,192 characters": "R14",
    "P13 logs of many lines are slow": "R20",
    "P14 a dangling link drops every result": "R13",
    "P16 an expired sign-in names the wrong next step": (
        "unit/cli/runs/test_status.py::test_what_aws_refuses_exits_3_with_a_next_step"
    ),
    "P17 1-5 is Sunday to Thursday": "R30, R31",
    "P19 a definition for Fargate": (
        "unit/aws/test_local_definitions.py::test_only_values_that_ask_for_something_are_named"
    ),
    "U1 programs find Argosy's own packages": (
        "unit/local/containers/test_program_run.py::test_a_program_finds_none_of_our_packages"
    ),
    "U2 a fixed program cannot run for the failed tasks alone": "f",
    "U4 a folder of this machine is no input": "d",
    "U5 no place for checkpoints": "h",
    "U6 no command interrupts a task here": "h",
    "U7 a CSV file is read line by line": "c",
    "U8 guesses about options of the program": (
        "unit/cli/runs/test_run.py::test_an_option_that_is_no_misspelt_one_is_the_programs"
    ),
    "U10 seconds of other shards in a plan": (
        "unit/planning/test_plan.py::test_past_runs_say_best_how_long_a_task_takes"
    ),
    "U12 no log of a task on the page": (
        "browser/test_pages_in_chromium.py::test_a_log_follows_its_task_until_the_reader_scrolls_up"
    ),
    "U13 what waits for a core is called starting": (
        "unit/planning/test_plan.py::test_where_all_instances_are_one_machine_as_many_run_at_once_as_it_says"
    ),
    "U14 habits of Python": (
        "unit/sdk/mapping/test_map_habits.py::test_a_function_gets_an_item_of_each_iterable_until_the_shortest_ends"
    ),
    "U15 a changed byte sends everything again": "g",
    "U17 a line each 0.6 s in a pipe": "unit/cli/runs/test_watch.py::test_one_plain_line_per_change_when_piped",
    "U22 a range without quotes": "unit/spec/test_file.py::test_plain_scalars_follow_yaml_1_2",
    "U23 a script that is not there": "unit/cli/runs/test_run.py::test_an_impossible_option_is_one_sentence",
    "U3 a next step cannot be pasted": (
        "unit/cli/test_pasted_steps.py::test_without_argosy_on_path_a_step_names_the_program_as_it_was_called"
    ),
    "U3 an extra comes from where there is none": (
        "unit/cli/test_pasted_steps.py::test_an_extra_is_installed_from_where_argosy_came_from"
    ),
    "U9 a folder that cannot be made is a traceback": (
        "unit/cli/runs/test_results.py::test_a_folder_that_cannot_be_made_is_one_sentence"
    ),
    "U11 the history of the cluster contradicts the present": (
        "unit/figures/test_cluster_history.py::test_a_level_holds_until_the_next_sample_and_is_no_ramp"
    ),
    "U11 short runs leave zeros in it": (
        "unit/lifecycle/test_cluster_history.py::test_samples_are_frequent_at_first_then_every_five_minutes_also_after_a_restart_and_on_a_clock_that_went_back"
    ),
    "U16 results lie deep below the folder": (
        "unit/cli/runs/test_results.py::test_out_lays_the_files_out_task_by_task_and_loses_none"
    ),
    "U18 last is the run of a service": (
        "unit/client/test_run_names.py::test_the_last_run_is_no_services_unless_there_is_no_other"
    ),
    "U19 instances that have ended stand between the others": (
        "unit/cli/runs/test_lists.py::test_instances_that_have_ended_come_last"
    ),
    "U20 empty columns break a table at 80 columns": (
        "unit/cli/test_tables.py::test_an_empty_column_is_dropped_first_and_without_a_note"
    ),
    "U21 times of attempts in two forms": "unit/sdk/test_run.py::test_all_attempts_are_rows",
    "U24 a table of the page is beside a phone": (
        "browser/test_pages_in_chromium.py::test_a_page_draws_everything_violates_nothing_and_is_never_wider_than_its_window"
    ),
    "U25 a simulation at size does not end": (
        "unit/harness/simulation/test_scale.py::test_every_task_is_done_once_in_several_cells_in_spite_of_interruptions"
    ),
    "U bad specs: a bound that no one reads": "unit/spec/test_parse.py::test_a_bad_spec_gets_every_fault",
    "U bad specs: sizes with a unit": (
        "unit/spec/test_suggestions.py::test_a_size_with_its_unit_is_shown_in_the_fields_own"
    ),
    "U bad specs: times and dollars": (
        "unit/spec/test_suggestions.py::test_dollars_and_a_bare_time_are_shown_as_the_field_takes_them"
    ),
    "U bad specs: words of other tools": "unit/spec/test_suggestions.py::test_names_that_other_tools_have_are_known",
    "U bad specs: a Job of Kubernetes": "unit/spec/test_suggestions.py::test_an_object_of_kubernetes_is_one_fault",
    "C F1 plain cdk does not work": "stacks/test_plain_cdk.py::test_ls_and_synth_work_in_a_fresh_clone",
    "C F2 local mode hides what AWS ignores or refuses": (
        "unit/aws/test_local_definitions.py::test_every_field_that_ecs_has_is_honoured_or_named"
    ),
    "A-A one run closes its queue forever": (
        "scenarios/test_runs_that_never_fit.py::test_it_closes_its_limit_to_no_other_run_and_ends_after_its_patience"
    ),
    "A-B a deployment is complete without a task": (
        "scenarios/test_on_demand_base.py::test_the_commit_that_completes_a_deployment_stops_none_of_the_tasks_that_it_counts"
    ),
    "A1 a task changes the program of others": (
        "unit/local/containers/test_program_run.py::test_what_a_program_writes_into_its_folder_and_packages_no_other_sees"
    ),
    "A2 local mode runs what another user sends": (
        "unit/client/test_local_key.py::test_another_user_of_the_machine_neither_reads_the_key_nor_starts_anything"
    ),
    "A3 one stored time breaks every view": (
        "unit/api/test_scaling_the_cluster.py::test_a_time_beyond_the_calendar_that_an_earlier_version_stored_breaks_no_view"
    ),
    "A4 a firing is forgotten during a pause": (
        "unit/api/test_firing.py::test_a_queued_firing_starts_at_the_resumption_if_its_run_has_ended_during_the_pause"
    ),
    "A5 an action that is no text raises": (
        "unit/test_handlers.py::test_an_action_that_is_no_text_is_refused_and_not_raised"
    ),
    "A5 a time outside the calendar raises": (
        "unit/api/test_schedules.py::test_bad_input_is_one_sentence_and_changes_nothing"
    ),
    "A6 users take the connections of functions": (
        "e2e/test_local_life.py::test_connections_of_users_leave_functions_and_tasks_theirs"
    ),
    "A7 the auditor misreads cancelled dependents": (
        "unit/harness/simulation/audit/test_reasons.py::test_a_run_goes_with_the_one_that_it_depends_on_where_its_user_asked_for_that"
    ),
    "A8 two controllers see no end": (
        "scenarios/test_two_controllers.py::test_ended_tasks_are_seen_within_two_minutes_and_a_tick"
    ),
    "A9 a damaged root is found late": (
        "unit/local/keeping/test_kept.py::test_a_damaged_state_is_refused_and_left_as_it_is_and_can_be_forgotten"
    ),
    "A10 a schedule fires at any time": "unit/api/test_firing.py::test_only_a_time_of_the_schedule_fires",
    "A10 a taken port is found after seconds": (
        "unit/cli/here/test_local.py::test_a_taken_port_is_reported_before_anything_is_made"
    ),
    "A10 an existing state folder stays open": (
        "unit/local/keeping/test_kept.py::test_a_folder_that_its_user_made_is_closed_to_others"
    ),
    "A10 an archive fills the disk": (
        "contract/runner/test_archives.py::test_a_bomb_is_refused_before_anything_of_it_is_written"
    ),
    "A10 a pattern hangs the terminal": ("unit/cli/runs/test_logs.py::test_no_line_keeps_a_pattern_at_work_for_ever"),
}
