"""Laws of ranges, substitution and the parser, whatever they are given."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from argosy import layout
from argosy.model.attempts import LAUNCH_VARIABLE, AttemptKey
from argosy.spec import overrides, shards
from argosy.spec.faults import FAULT_LIMIT, Fault, SpecError, path_text
from argosy.spec.file import check_text, read
from argosy.spec.models import RunSpec
from argosy.spec.parse import parse_spec, schema, to_json
from argosy.spec.templates import substitute

RUN_ID = "n" * 63 + "-261121-062733-k3f9"
plain = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=40)
keys = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,8}", fullmatch=True)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | plain,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(plain, inner, max_size=4),
    max_leaves=12,
)
items = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)


@given(start=st.integers(0, 10**12), length=st.integers(1, 3000), size=st.integers(1, 400))
def test_the_tasks_of_a_range_partition_it_exactly(start: int, length: int, size: int) -> None:
    """No index is left out, none is done twice, and only the last shard may be short."""
    form = {"array": {"range": f"{start}:{start + length}", "shardSize": size}}
    spans = [shards.task_range(form, index) for index in range(shards.task_count(form))]
    position = start
    for number, span in enumerate(spans):
        assert span is not None
        assert span[0] == position
        assert span[1] - span[0] == size or number == len(spans) - 1
        position = span[1]
    assert position == start + length


@given(text=plain)
def test_text_without_substitutions_stays_as_it_is(text: str) -> None:
    if "${" not in text:
        assert substitute(text, {}) == text


@given(item=items, around=st.tuples(plain, plain))
def test_an_item_arrives_as_it_was_written(item: Any, around: tuple[str, str]) -> None:
    before, after = (part.replace("$", "") for part in around)
    arrived = substitute(f"{before}${{item}}{after}", {"item": shards.item_text(item)})
    text = arrived[len(before) : len(arrived) - len(after)]
    assert text == item if isinstance(item, str) else json.loads(text) == item


templates = st.lists(
    st.sampled_from(
        ["${range}", "${start}", "${end}", "${index}", "${count}", "${part}", "${output}", "${runId}", 'é\n"x', "$${a}"]
    )
    | plain.map(lambda text: text.replace("$", "")),
    max_size=6,
).map("".join)


@given(
    command=st.lists(templates, min_size=1, max_size=4),
    environment=st.dictionaries(keys.map(lambda key: "E" + key.replace("-", "_")), templates, max_size=3),
    length=st.integers(1, 10**6),
    start=st.integers(0, 10**10),
    size=st.integers(1, 1000),
    index=st.integers(0, 10**6),
    attempt=st.integers(1, 65_535),
    batch=st.booleans(),
)
def test_no_task_of_a_range_is_longer_than_the_bound(
    command: list[str],
    environment: dict[str, str],
    length: int,
    start: int,
    size: int,
    index: int,
    attempt: int,
    batch: bool,
) -> None:
    data = {
        "name": "n" * 63,
        "container": {"image": "a", "command": command, "environment": environment},
        "array": {"range": f"{start}:{start + length}", "shardSize": size},
        "output": "s3://bucket/prefix",
        **({"compat": "aws-batch"} if batch else {}),
    }
    output = layout.run_output("s3://bucket/prefix", RUN_ID)
    index %= shards.task_count(data)
    assert _sent(data, output, index, attempt, None) <= overrides.longest(data)[0]


@given(
    listed=st.lists(st.dictionaries(st.sampled_from(["a", "b"]), items, min_size=2), min_size=1, max_size=5),
    command=st.lists(
        st.sampled_from(["${item}", "${item.a}", "-${item.b}-${item.a}", "${index}"]), min_size=1, max_size=5
    ),
)
def test_no_item_is_longer_than_the_bound_and_the_longest_is_close_to_it(
    listed: list[dict[str, Any]], command: list[str]
) -> None:
    data = {"name": "n" * 63, "container": {"command": command}, "array": {"items": listed}, "output": "s3://bucket/p"}
    output = layout.run_output("s3://bucket/p", RUN_ID)
    sent = [_sent(data, output, index, 65_535, None) for index in range(len(listed))]
    bound = overrides.longest(data)[0]
    assert max(sent) <= bound <= max(sent) + 4  # the launch number may have five digits


@settings(max_examples=25)
@given(
    listed=st.lists(st.lists(items, max_size=4), min_size=1, max_size=4),
    inputs=st.lists(
        st.sampled_from(["s3://b/${item}", "s3://b/${item}/é${item}", "s3://b/${index}/x"]), min_size=1, max_size=3
    ),
)
def test_no_list_of_inputs_is_longer_than_the_bound(listed: list[list[Any]], inputs: list[str]) -> None:
    data = {"name": "n" * 63, "run": ["${item}"], "container": {}, "inputs": inputs, "array": {"items": listed}}
    output = layout.run_output(f"s3://{'b' * 63}/", RUN_ID)
    sent = [_sent(data, output, index, 65_535, None) for index in range(len(listed))]
    assert max(sent) <= overrides.longest(data)[0]


def _sent(data: dict[str, Any], output: str, index: int, attempt: int, item: Any) -> int:
    """The characters of RunTask's `overrides` as botocore writes them."""
    told = shards.task_overrides(data, output, AttemptKey(RUN_ID, index, attempt, 1), item)
    told["environment"].append({"name": LAUNCH_VARIABLE, "value": "1"})
    return len(json.dumps({"containerOverrides": [{"name": "main", **told}]}))


FIELDS = [
    *schema()["properties"],
    "range",
    "size",
    "items",
    "shardSize",
    "image",
    "command",
    "environment",
    "vcpus",
    "ARGOSY_X",
]
guesses = st.sampled_from(
    [
        "0:10",
        "${range}",
        "${",
        "$${",
        "${item.a}",
        "s3://bucket/x/",
        "argosy/digits",
        "name",
        -1,
        0,
        1,
        10**30,
        1.5,
        None,
        True,
    ]
)
documents = st.recursive(
    guesses | values,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS) | plain, inner, max_size=6),
    max_leaves=20,
)


@settings(max_examples=50)
@given(data=documents)
def test_the_parser_answers_anything_with_a_spec_or_with_faults(data: Any) -> None:
    """Never another exception, never an empty list of faults, every message on one line and short."""
    spec, faults = parsed(data)
    if spec is not None:
        assert to_json(parse_spec(to_json(spec))) == to_json(spec)
        return
    assert 1 <= len(faults) <= FAULT_LIMIT + 1
    assert all(fault.text().isprintable() and len(fault.message) < 400 for fault in faults)


def parsed(data: Any) -> tuple[RunSpec | None, list[Fault]]:
    try:
        return parse_spec(data), []
    except SpecError as refusal:
        return None, refusal.faults


@settings(max_examples=50)
@given(changes=st.dictionaries(st.sampled_from(FIELDS), documents, max_size=3))
def test_a_good_spec_with_anything_put_into_it_is_a_spec_or_has_faults(changes: dict[str, Any]) -> None:
    data: Any = {"version": 1, "name": "n", "container": {"image": "a"}, "array": {"size": 2}, **changes}
    spec = parsed(data)[0]
    if spec is not None:
        form = to_json(spec)
        assert to_json(parse_spec(form)) == form
        assert shards.task_count(form, 1) >= 1


@settings(max_examples=50)
@given(
    text=st.text(
        st.sampled_from("ab:{}[],&*!|>'\"#-? \n\t%@`1.e~\\\u00e9\ufeff\x85\U0001f600") | st.characters(), max_size=60
    )
)
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    for is_json in (False, True):
        faults: list[Fault] = []
        try:
            check_text(text, is_json=is_json)
        except SpecError as refusal:
            faults = refusal.faults
        assert all(fault.line and fault.column for fault in faults)


@given(data=st.dictionaries(plain, values.filter(lambda value: not isinstance(value, float)), max_size=4))
def test_json_text_is_the_data_it_was_made_of(data: dict[str, Any]) -> None:
    text = json.dumps(data)
    assert json.dumps(read(text, is_json=True).data) == text


@given(parts=st.lists(st.integers(0, 99) | keys | plain, min_size=1, max_size=6))
def test_paths_are_printable(parts: list[str | int]) -> None:
    assert path_text(parts).isprintable()
