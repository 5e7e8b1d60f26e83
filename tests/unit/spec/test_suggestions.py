"""What may have been meant by a value that a field does not take."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.spec.faults import SpecError
from argosy.spec.file import check_text
from argosy.spec.parse import parse_spec
from argosy.spec.suggestions import near_field, suggestion

GOOD: dict[str, Any] = {"version": 1, "name": "x", "container": {"image": "a/b"}, "array": {"size": 3}}


def said(**changes: Any) -> list[str]:
    with pytest.raises(SpecError) as refusal:
        parse_spec({**GOOD, **changes})
    return [fault.text() for fault in refusal.value.faults]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("4GB", "write 4096 (MiB)"),
        ("4 GiB", "write 4096 (MiB)"),
        ("1.5g", "write 1536 (MiB)"),
        ("4Gi", "write 4096 (MiB)"),
        ("512M", "write 512 (MiB)"),
        ("1t", "write 1048576 (MiB)"),
        ("2048", "write 2048 without quotes"),
    ],
)
def test_a_size_with_its_unit_is_shown_in_the_fields_own(given: str, meant: str) -> None:
    [fault] = said(resources={"vcpus": 1, "memory": given})
    assert fault == f'resources.memory: must be a whole number, not the text "{given}"; {meant}'


def test_a_disk_is_in_gib() -> None:
    assert suggestion(["resources", "diskGiB"], "int_type", "2TB") == "; write 2048 (GiB)"


@pytest.mark.parametrize(
    ("given", "seconds"), [("30m", 1800), ("1h30m", 5400), ("2 days", 172_800), ("45s", 45), ("1.5h", 5400)]
)
def test_a_time_is_shown_in_seconds(given: str, seconds: int) -> None:
    [fault] = said(timeout={"attemptDurationSeconds": given})
    assert fault.endswith(f'not the text "{given}"; write {seconds} (seconds)')


@pytest.mark.parametrize("given", ["soon", "5 apples", "m30", "", "4XB", "\x1b[2J"])
def test_what_is_no_size_and_no_time_gets_no_suggestion(given: str) -> None:
    assert suggestion(["timeout", "attemptDurationSeconds"], "int_type", given) == ""
    assert suggestion(["resources", "memory"], "int_type", given) == ""


@pytest.mark.parametrize(("given", "meant"), [("ondemand", "on-demand"), ("On_Demand", "on-demand"), ("SPOT", "spot")])
def test_a_value_of_few_is_found_however_it_is_written(given: str, meant: str) -> None:
    [fault] = said(capacity={"purchase": given})
    assert fault.endswith(f"; did you mean {meant}?")


@pytest.mark.parametrize(("name", "meant"), [("env", "environment"), ("cmd", "command"), ("imge", "image")])
def test_names_that_other_tools_have_are_known(name: str, meant: str) -> None:
    [fault] = said(container={"image": "a/b", name: "x"})
    assert fault == f"container.{name}: unknown field; did you mean {meant}?"
    assert near_field("env", lambda _: ["image", "command"]) == ""


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("environment", "container.environment"),
        ("memory", "resources.memory"),
        ("cpus", "resources.vcpus"),
        ("use_spot", "capacity.purchase: spot"),
        ("file_mounts", "inputs"),
    ],
)
def test_a_field_of_a_part_or_of_another_tool_is_shown_with_its_place(name: str, meant: str) -> None:
    assert said(**{name: 1}) == [f"{name}: unknown field; did you mean {meant}?"]


def test_an_object_of_kubernetes_is_one_fault() -> None:
    [fault] = said(apiVersion="batch/v1", kind="Job", metadata={"name": "pi"}, spec={})
    assert fault.startswith("is an object of Kubernetes; a run spec has version: 1, name")


@pytest.mark.parametrize(("given", "meant"), [("My_Job", "my-job"), ("Größe 2", "gr-e-2"), ("7", "")])
def test_a_name_that_cannot_be_one_is_shown_as_it_could_be(given: str, meant: str) -> None:
    [fault] = said(name=given)
    assert fault.endswith(f"; write {meant}" if meant else "0,62}$")


def test_dollars_and_a_bare_time_are_shown_as_the_field_takes_them() -> None:
    [dollars] = said(capacity={"budgetUsd": "$20"})
    assert dollars.endswith("; write 20 (US dollars)")
    [time] = said(timeout="30m")
    assert time.endswith("; write {attemptDurationSeconds: 1800}")


def test_a_command_as_text_is_shown_as_a_list() -> None:
    [fault] = said(container={"image": "a/b", "command": "python x.py --name 'a b'"})
    assert fault.endswith('; write ["python", "x.py", "--name", "a b"]')
    [open_quote] = said(container={"image": "a/b", "command": "echo 'a"})
    assert open_quote.endswith("""not the text "echo 'a\"""")
    [cell] = said(capacity={"cells": "us-east-1"})
    assert cell.endswith('; write ["us-east-1"]')


@given(st.text(max_size=60), st.sampled_from(["int_type", "float_type", "list_type", "literal_error", "string_type"]))
def test_a_suggestion_is_short_and_made_for_any_text(given: str, kind: str) -> None:
    for path in (["resources", "memory"], ["container", "command"], ["timeout", "runDurationSeconds"], []):
        assert len(suggestion(path, kind, given, "'spot' or 'on-demand'")) <= 302


@given(st.text(max_size=80))
def test_no_text_of_the_user_becomes_a_control_character_of_a_message(text: str) -> None:
    faults = said(container={"image": "a/b", "command": text}, capacity={"purchase": f"{text}x"})
    assert all(each.isprintable() for each in faults)


@pytest.mark.parametrize("quote", ['"', "'"])
def test_a_quote_that_is_not_closed_is_reported_where_it_opens(quote: str) -> None:
    text = f"version: 1\nname: {quote}x\ncontainer: {{image: a/b}}\narray: {{size: 3}}\n"
    with pytest.raises(SpecError) as refusal:
        check_text(text)
    assert [each.text("f") for each in refusal.value.faults] == [
        "f:2:7: not YAML: the quote that opens here is not closed"
    ]


def test_a_tab_is_called_a_tab() -> None:
    with pytest.raises(SpecError) as refusal:
        check_text("version: 1\ncontainer:\n\timage: a/b\n")
    assert [each.text("f") for each in refusal.value.faults] == [
        "f:3:1: not YAML: the line begins with a tab: indent it with blanks"
    ]
