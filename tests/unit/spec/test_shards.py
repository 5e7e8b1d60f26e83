"""The variables of each task of a run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from argosy import layout
from argosy.model.attempts import AttemptKey
from argosy.spec import shards
from tests import builders

OUTPUT = "s3://bucket/prefix/digits-261121-062733-k3f9/"
RUN_ID = "digits-261121-062733-k3f9"


def overrides(index: int = 0, attempt: int = 1, item: Any = None, count: int | None = None, **fields: Any) -> Any:
    return shards.task_overrides(builders.spec(**fields), OUTPUT, AttemptKey(RUN_ID, index, attempt, 1), item, count)


def environment_of(result: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in result["environment"]}


def container(*command: str, **environment: str) -> dict[str, Any]:
    return {"image": "a", "command": list(command), "environment": environment}


def test_a_task_of_a_range_gets_all_its_variables() -> None:
    result = overrides(index=17, attempt=2, array={"range": "900:1797", "shardSize": 50})
    assert result["command"] == ["--range", "1750:1797", "--output", f"{OUTPUT}parts/part-0000017.jsonl"]
    assert environment_of(result) == {
        "ARGOSY_RUN_ID": RUN_ID,
        "ARGOSY_RUN_NAME": "digits",
        "ARGOSY_TASK_INDEX": "17",
        "ARGOSY_TASK_COUNT": "18",
        "ARGOSY_TASK_ATTEMPT": "2",
        "ARGOSY_RANGE": "1750:1797",
        "ARGOSY_RANGE_START": "1750",
        "ARGOSY_RANGE_END": "1797",
        "ARGOSY_OUTPUT_URI": f"{OUTPUT}attempts/0000017/2/",
        "ARGOSY_PART_URI": f"{OUTPUT}parts/part-0000017.jsonl",
    }


def test_without_a_range_there_are_no_range_variables() -> None:
    names = environment_of(overrides(array={"size": 3}, container=container("x")))
    assert not [name for name in names if name.startswith("ARGOSY_RANGE")]


def test_aws_batch_images_find_their_own_variables() -> None:
    environment = environment_of(
        overrides(index=2, attempt=3, array={"size": 5}, container=container("x"), compat="aws-batch")
    )
    assert environment["AWS_BATCH_JOB_ARRAY_INDEX"] == "2"
    assert environment["AWS_BATCH_JOB_ARRAY_SIZE"] == "5"
    assert environment["AWS_BATCH_JOB_ATTEMPT"] == "3"
    assert not [name for name in environment_of(overrides()) if name.startswith("AWS_")]


def test_every_name_of_the_closed_list_is_replaced() -> None:
    names = ["range", "start", "end", "index", "count", "output", "part", "runId", "attempt"]
    command = [f"{name}=${{{name}}}" for name in names]
    result = overrides(
        index=1, array={"range": "0:25", "shardSize": 10, "partSuffix": ".csv"}, container=container(*command)
    )
    assert result["command"] == [
        "range=10:20",
        "start=10",
        "end=20",
        "index=1",
        "count=3",
        f"output={OUTPUT}attempts/0000001/1/",
        f"part={OUTPUT}parts/part-0000001.csv",
        f"runId={RUN_ID}",
        "attempt=1",
    ]


def test_environment_values_are_substituted_and_names_are_not() -> None:
    result = overrides(container=container("x", SHARD="${start}-${end}"))
    assert environment_of(result)["SHARD"] == "0-10"


def test_items_are_handed_out_as_text_and_by_key() -> None:
    items = [{"alpha": 0.5, "name": "a b", "deep": {"x": [1, None]}}, {"alpha": True, "name": "", "deep": 1}]
    command = ("${item.alpha}", "${item.name}", "${item.deep}", "${item}")
    result = overrides(index=0, array={"items": items}, container=container(*command))
    assert result["command"] == [
        "0.5",
        "a b",
        '{"x":[1,null]}',
        '{"alpha":0.5,"name":"a b","deep":{"x":[1,null]}}',
    ]
    assert overrides(index=1, array={"items": items}, container=container("${item.alpha}"))["command"] == ["true"]


def test_an_input_with_an_item_that_is_a_list_is_an_address_for_each_member() -> None:
    def told(item: Any) -> Any:
        inputs = ["s3://b/${item}/${item}", "s3://b/w"]
        return json.loads(environment_of(overrides(item=item, run=["x"], inputs=inputs, **array))["ARGOSY_INPUTS"])

    array: dict[str, Any] = {"array": {"items": ["-"]}, "container": {}}
    assert told(["ä b", 2]) == ["s3://b/ä b/ä b", "s3://b/2/2", "s3://b/w"]
    assert told([]) == ["s3://b/w"]
    assert told('["x"]') == ['s3://b/["x"]/["x"]', "s3://b/w"]


def test_what_an_item_contains_is_never_substituted_again() -> None:
    result = overrides(array={"items": ["${runId} $(rm -rf /) `id` ; $HOME"]}, container=container("${item}"))
    assert result["command"] == ["${runId} $(rm -rf /) `id` ; $HOME"]


def test_an_item_handed_in_goes_before_those_of_the_spec() -> None:
    fields: dict[str, Any] = {"array": {"itemsFrom": "s3://b/items"}, "container": container("${item}", N="${count}")}
    result = overrides(index=4, item="fifth", count=9, **fields)
    assert result["command"] == ["fifth"]
    assert environment_of(result)["ARGOSY_TASK_COUNT"] == "9"
    with pytest.raises(ValueError, match="pass the number of items read"):
        overrides(index=4, item="fifth", **fields)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("$${index}", "${index}"),
        ("$$${index}", "$${index}"),
        ("$${", "${"),
        ("$HOME $$ $", "$HOME $$ $"),
        ("${index}${index}", "00"),
        ("{index}", "{index}"),
    ],
)
def test_a_doubled_dollar_keeps_braces_and_any_other_dollar_is_itself(text: str, result: str) -> None:
    assert overrides(container=container(text))["command"] == [result]


def test_without_a_command_the_images_own_is_used() -> None:
    assert overrides(container={"image": "a"})["command"] is None


def test_the_same_attempt_always_gets_the_same_values() -> None:
    first, second = (overrides(container=container("x", B="1", A="2")) for _ in range(2))
    assert repr(first) == repr(second)
    names = [entry["name"] for entry in first["environment"]]
    assert names == sorted(names)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (container("--to", "${part}"), True),
        (container("--to", "${output}x"), True),
        (container("x", TO="${output}"), True),
        (container("${range}", "$${part}"), False),
        ({"image": "a"}, False),
    ],
)
def test_a_result_is_expected_when_the_spec_says_where_it_goes(fields: dict[str, Any], expected: bool) -> None:
    assert shards.expects_result(builders.spec(container=fields)) is expected


@pytest.mark.parametrize(
    ("array", "count"),
    [
        ({"range": "0:10", "shardSize": 3}, 4),
        ({"range": "0:10", "shardSize": 10}, 1),
        ({"range": "5:6"}, 1),
        ({"size": 7}, 7),
        ({"items": [1, 2]}, 2),
    ],
)
def test_tasks_are_counted_for_every_kind_of_array(array: dict[str, Any], count: int) -> None:
    assert shards.task_count({"array": array}) == count


@pytest.mark.parametrize("index", [-1, 4])
def test_a_task_outside_of_the_run_has_no_range(index: int) -> None:
    with pytest.raises(IndexError):
        shards.task_range({"array": {"range": "0:10", "shardSize": 3}}, index)


@pytest.mark.parametrize(
    "text", ["", "5", "a:b", "-1:5", "1:2:3", "1 :2", "\u0661:\u0665", "5:5", "6:5", "0:1e9", "0:" + "9" * 17]
)
def test_ranges_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        shards.parse_range(text)


def test_results_lie_where_the_layout_says() -> None:
    output = layout.run_output("s3://b/p", "r-1")
    assert output == layout.run_output("s3://b/p/", "r-1") == "s3://b/p/r-1/"
    assert layout.spec_uri(output) == "s3://b/p/r-1/spec.json"
    assert layout.manifest_uri(output) == "s3://b/p/r-1/manifest.json"
    assert layout.marker_uri(output, True) == "s3://b/p/r-1/_SUCCESS"
    assert layout.marker_uri(output, False) == "s3://b/p/r-1/_FAILED"
    assert layout.split_s3(output) == ("b", "p/r-1/")


@pytest.mark.parametrize("uri", ["", "http://b/k", "s3://", "s3:///k", "b/k"])
def test_what_is_no_s3_address_is_not_split(uri: str) -> None:
    with pytest.raises(ValueError, match="not an s3://"):
        layout.split_s3(uri)
