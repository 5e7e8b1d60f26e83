"""The variables of a task with the user's own program, and refused specs of such runs."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from argosy.model.attempts import AttemptKey
from argosy.spec import overrides, shards
from argosy.spec.parse import parse_spec, to_json
from argosy.spec.terms import terms_of_form
from tests.fakes.specs import faults, spec

OUTPUT = "s3://bucket/out/run-1/"
INJECTION = "a b; touch /tmp/x $(id) `id` '\" *"


def program(run: Any = ("python", "primes.py"), **fields: Any) -> dict[str, Any]:
    return spec(**{"container": None, "run": list(run) if isinstance(run, tuple) else run, **fields})


def told(data: dict[str, Any], index: int = 1) -> tuple[list[str], dict[str, str]]:
    """The words and the variables of one task."""
    given = shards.task_overrides(to_json(parse_spec(data)), OUTPUT, AttemptKey("run-1", index, 2, 1))
    assert given["command"] is not None
    return given["command"], {each["name"]: each["value"] for each in given["environment"]}


def test_a_program_is_stored_with_the_stock_image_and_a_folder_as_its_result() -> None:
    form = to_json(parse_spec(program()))
    assert form["container"] == {"image": "argosy/python"}
    assert form["result"] == "folder"
    form = to_json(parse_spec(program(container={"image": "debian:12", "environment": {"A": "1"}}, result="none")))
    assert form["container"] == {"image": "debian:12", "environment": {"A": "1"}}
    assert form["result"] == "none"


def test_a_spec_without_a_program_has_none_of_its_fields() -> None:
    form = to_json(parse_spec(spec()))
    assert not {"run", "workdir", "setup", "packages", "job", "inputs", "result"} & set(form)
    assert not terms_of_form(form).needs_runner


def test_words_are_substituted_one_by_one() -> None:
    words, variables = told(program(("python", "primes.py", "${start}", "to ${end}", "$${HOME}")))
    assert words == ["python", "primes.py", "10", "to 20", "${HOME}"]
    assert variables["ARGOSY_RUNNER"] == "1"
    assert variables["ARGOSY_RESULT"] == "folder"
    assert variables["ARGOSY_RANGE_START"] == "10"
    assert not {"ARGOSY_JOB", "ARGOSY_INPUTS"} & set(variables)


def test_the_runner_gets_the_job_and_the_inputs_of_this_task() -> None:
    data = program(job="s3://own/jobs/1.json", inputs=["s3://bucket/${index}/", "s3://bucket/all.csv"], result="stdout")
    _, variables = told(data)
    assert variables["ARGOSY_JOB"] == "s3://own/jobs/1.json"
    assert json.loads(variables["ARGOSY_INPUTS"]) == ["s3://bucket/1/", "s3://bucket/all.csv"]
    assert variables["ARGOSY_RESULT"] == "stdout"
    assert json.loads(told(program(inputs="s3://bucket/one"))[1]["ARGOSY_INPUTS"]) == ["s3://bucket/one"]


def test_a_run_without_a_program_gets_no_runner_variables() -> None:
    given = shards.task_overrides(to_json(parse_spec(spec())), OUTPUT, AttemptKey("run-1", 0, 1, 1))
    names = {each["name"] for each in given["environment"]}
    assert not {"ARGOSY_RUNNER", "ARGOSY_RESULT", "ARGOSY_JOB", "ARGOSY_INPUTS"} & names


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("printf '%s|' ${start} \"${range}\"", "0|0:1|"),
        ('printf "%s|" "${item}"', f"{INJECTION}|"),
        ('printf "%s|" "${item.k}" "${item.n}" "${item.k}"', "x; id|7|x; id|"),
        ('A=1; printf "%s|" "$${A}$A" \'${index}\'', "11|0|"),
        ("# don't mind\nprintf '%s' \"${item}\"", INJECTION),
        ("cat <<'E'\nit's\nE\nprintf '%s' \"${item}\"", f"it's\n{INJECTION}"),
        ('printf \'%s\' "it\\"s ${item}"', f'it"s {INJECTION}'),
    ],
)
def test_what_a_shell_gets_from_outside_is_never_a_part_of_its_text(text: str, printed: str) -> None:
    array: dict[str, Any] = {"items": [{"k": "x; id", "n": 7}]} if "item.k" in text else {"items": [INJECTION]}
    if "start" in text:
        array = {"range": "0:1"}
    words, _ = told(program(text, array=array), index=0)
    assert subprocess.run(words, check=True, capture_output=True, text=True).stdout == printed


def test_values_in_single_quotes_are_refused_because_no_shell_inserts_them() -> None:
    array = {"items": ["x"]}
    sentence = "run: ${item} is in single quotes, where the shell substitutes nothing: use double quotes, or a list"
    assert faults(program("echo '${item}'", array=array)) == [sentence]
    assert faults(program("echo \"it's\" '${item}", array=array)) == [sentence]
    parse_spec(program("python -c 'print(${index})'"))  # a number is the same there
    parse_spec(program("echo \"'${item}'\"", array=array))
    parse_spec(program("# '${item}'", array=array))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"result": None}, True),
        ({"result": "stdout"}, True),
        ({"result": "none"}, False),
        ({"result": "none", "run": ["x", "${part}"]}, True),
    ],
)
def test_a_program_has_to_leave_a_result_unless_it_says_none(fields: dict[str, Any], expected: bool) -> None:
    assert shards.expects_result(to_json(parse_spec(program(**fields)))) is expected


BAD: list[tuple[dict[str, Any], list[str]]] = [
    ({"run": []}, ["run: must not be empty"]),
    ({"run": [" "]}, ["run: must begin with the program to run"]),
    ({"run": " \n"}, ["run: must not be empty"]),
    ({"run": 3}, ["run: must be text (in quotes), not the number 3"]),
    ({"run": ["a\0"]}, ["run[0]: must not contain a NUL character: a program cannot receive one"]),
    (
        {"run": ["x", "${out}"]},
        ["run[1]: ${out} is not a substitution: a program finds the folder's name in $ARGOSY_OUT"],
    ),
    ({"run": "x ${nope}"}, ["run: unknown substitution ${nope}"]),
    ({"taskDefinition": "tf"}, ["run: cannot be combined with taskDefinition, which defines what runs"]),
    (
        {"container": {"image": "a", "command": ["x"]}},
        ["container.command: cannot be combined with run, which is the command"],
    ),
    (
        {"job": "s3://own/xy", "workdir": "."},
        ["workdir: cannot be combined with job, which is the packed form of it"],
    ),
    ({"inputs": "https://bucket/x"}, ["inputs: must be s3://BUCKET/KEY"]),
    ({"inputs": ["s3://${item}/x"]}, ["inputs[0]: must be s3://BUCKET/KEY"]),
    ({"inputs": []}, ["inputs: must not be empty"]),
    ({"inputs": "s3://bucket/${item}"}, ["inputs: ${item} is only possible with array.items or array.itemsFrom"]),
    ({"packages": ["-r x"]}, ["packages[0]: must be a requirement by name"]),
    ({"packages": ["./mine"]}, ["packages[0]: must be a requirement by name"]),
    ({"packages": ["a b"]}, ["packages[0]: must be a requirement by name"]),
    ({"setup": " "}, ["setup: must not be empty"]),
    ({"result": "file"}, ["result: must be 'folder', 'stdout' or 'none', not the text \"file\""]),
]


@pytest.mark.parametrize(("fields", "expected"), BAD, ids=lambda value: json.dumps(value)[:60])
def test_a_bad_program_is_refused_with_the_reason(fields: dict[str, Any], expected: list[str]) -> None:
    found = faults(program(**fields))
    assert len(found) == len(expected)
    assert all(one.startswith(begin) for one, begin in zip(found, expected, strict=True)), found


@pytest.mark.parametrize(
    "fields",
    [
        {"workdir": "."},
        {"setup": "x"},
        {"packages": ["a"]},
        {"job": "s3://own/xy"},
        {"inputs": "s3://own/xy"},
        {"result": "none"},
    ],
)
def test_what_is_about_a_program_needs_one(fields: dict[str, Any]) -> None:
    (name,) = fields
    assert faults(spec(**fields)) == [f"{name}: belongs to your own program: it is only possible with run"]


@pytest.mark.parametrize(
    "fields",
    [
        {"run": ["x", "${item}"]},
        {"run": 'x "${item}" "${item}" ${index}'},
        {"inputs": "s3://bucket/${item}"},
        {"inputs": ["s3://bucket/${item}/${item}", "s3://bucket/${index}"], "job": "s3://own/" + "j" * 90},
        {"packages": ["numpy"], "result": "stdout"},
    ],
    ids=json.dumps,
)
@pytest.mark.parametrize("item", ["y" * 400, '"' * 400, "\\é\n" * 100], ids=["plain", "quotes", "escapes"])
def test_the_bound_of_what_is_sent_holds_for_programs(fields: dict[str, Any], item: str) -> None:
    data = program(**fields, array={"items": [item]})
    packed = {"job": f"s3://own/argosy/programs/jobs/{'0' * 64}.json"} if "packages" in data else {}
    form = {**to_json(parse_spec(data)), **packed}
    sent = shards.task_overrides(form, OUTPUT, AttemptKey("run-1", 0, 1, 1))
    assert overrides.longest(data)[0] >= len(json.dumps({"containerOverrides": [{"name": "main", **sent}]}))


@pytest.mark.parametrize("item", ["y" * 9000, '"' * 60_000, "\\é\n" * 10_000], ids=["plain", "quotes", "escapes"])
def test_what_ecs_does_not_accept_travels_in_a_document_and_together_they_are_the_whole(item: str) -> None:
    output = f"s3://bucket/{'p' * 490}"
    data = program("x ${item}", inputs="s3://bucket/${index}", output=output, array={"items": [item]})
    data |= {"name": "n" * 63, "job": f"s3://own/{'é' * 1000}", "checkpoint": {"everySeconds": 86400}}
    data["container"] = {"image": "debian:12", "environment": {"OWN": "a" * 100}}
    run_id = f"{'n' * 63}-261121-062733-k3f9"
    key = AttemptKey(run_id, 0, 65_535, 1)
    told = shards.task_overrides(to_json(parse_spec(data)), f"{output}/{run_id}/", key)
    address = f"{output}/{run_id}/overrides/0000000/65535.json"
    kept, document = overrides.shortened({"name": "main", **told}, address)
    assert len(json.dumps({"containerOverrides": [kept]})) <= overrides.OVERRIDES_LIMIT
    assert document is not None
    assert document["command"] == told["command"]
    pairs = {(each["name"], each["value"]) for each in kept["environment"]} | set(document["environment"].items())
    assert pairs == {(each["name"], each["value"]) for each in told["environment"]} | {("ARGOSY_OVERRIDES", address)}
    assert overrides.shortened(kept, address) == (kept, None)


def test_a_program_whose_values_are_too_long_even_for_a_document_is_named() -> None:
    [fault] = faults(program("x ${item}", array={"items": ["y" * 131_000]}))
    assert [each for each in ("run: ", "131817", "131072") if each not in fault] == []
