"""What was found when strangers tried Argosy, by number, and the test that shows it mended.

P: reports from the public. U: as a new user. A test is `file::name`, below tests/; else it is a habit's
number.
"""

from __future__ import annotations

FINDINGS = {
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
        "unit/cli/runs/test_run.py::test_an_option_that_could_be_argosys_is_not_guessed_about"
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
}
