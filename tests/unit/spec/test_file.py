"""The text of a run spec: reading it, refusals, and the places of faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argosy.spec.faults import Fault, SpecError
from argosy.spec.file import check_text, is_json_name, read

DATA = Path(__file__).parents[2] / "data"

GOOD = """\
version: 1
name: digits
container: {image: argosy/digits, command: ["--range", "${range}"]}
array: {range: "0:100", shardSize: 10}
"""


def lines(text: str | bytes, *, is_json: bool = False) -> list[str]:
    with pytest.raises(SpecError) as refusal:
        check_text(text, is_json=is_json)
    return [fault.text("run.yaml") for fault in refusal.value.faults]


def test_five_faults_of_different_kinds_come_as_five_located_lines() -> None:
    """The golden file: one YAML fault, two of single fields, two of field values."""
    expected = (DATA / "five-faults.txt").read_text().splitlines()
    assert lines((DATA / "five-faults.yaml").read_bytes()) == expected


def test_a_good_file_gives_its_spec_and_the_places_of_its_values() -> None:
    spec, document = check_text(GOOD)
    assert spec.name == "digits"
    assert document.places["array.shardSize"] == (4, 25)
    assert document.places["container.command[1]"] == (3, 56)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "run.yaml:1:1: the file is empty"),
        ("# nothing\n", "run.yaml:1:1: the file is empty"),
        ("a: [1\nb: 2\n", "run.yaml:2:2: not YAML: expected ',' or ']', but got ':'"),
        ("a: &x 1\n", "run.yaml:1:4: anchors and aliases (& and *) are not allowed"),
        ("a: *x\n", "run.yaml:1:4: anchors and aliases (& and *) are not allowed"),
        (
            "a: !!python/object:os.system 1\n",
            "run.yaml:1:4: tags are not allowed: tag:yaml.org,2002:python/object:os.system",
        ),
        ("--- {}\n--- {}\n", "run.yaml:2:1: a second document begins here; a file holds one run"),
        ("%YAML 1.1\n---\na: yes\n", "run.yaml:2:1: only YAML 1.2 is read: remove the %YAML line"),
        ('a: "\\UFFFFFFFF"\n', "run.yaml:1:1: not YAML: Python int too large to convert to C int"),
        ("? [a]\n: 1\n", "run.yaml:1:3: a key must be plain text"),
        ("a: " + "[" * 21, "run.yaml:1:23: is nested deeper than 20 levels"),
        ("a: 1\nb: \x01\n", "run.yaml:2:4: not YAML: U+0001 is not allowed"),
        (b"version: 1\nname: \xff\n", "run.yaml:2:1: the file is not UTF-8 text"),
        ("x" * (4 * 256 * 1024 + 1), "run.yaml:1:1: the file is larger than 1024 KiB"),
        ("just text\n", 'run.yaml:1:1: must be a mapping, not the text "just text"'),
        ("[1, 2]\n", "run.yaml:1:1: must be a mapping, not a list"),
    ],
)
def test_a_file_that_cannot_be_read_says_where_and_why(text: str | bytes, line: str) -> None:
    assert lines(text) == [line]


def test_thousands_of_levels_are_refused_without_recursion() -> None:
    assert lines("[" * 50_000)[0].endswith(" 20 levels")
    assert lines("[" * 50_000, is_json=True)[0].endswith(" 20 levels")


def test_a_missing_field_is_placed_at_the_nearest_part_that_is_there() -> None:
    found = lines(GOOD + "timeout:\n  {}\n")
    assert found == ["run.yaml:5:1: timeout: must have attemptDurationSeconds or runDurationSeconds"]


def test_faults_come_in_the_order_of_the_file() -> None:
    text = "nmae: x\narray: {size: 0}\nversion: 2\ncontainer: {image: a}\nname: x\n"
    assert lines(text) == [
        "run.yaml:1:1: nmae: unknown field; did you mean name?",
        "run.yaml:2:9: array.size: must be at least 1",
        "run.yaml:3:1: version: must be 1, not the number 2",
    ]


def test_of_a_key_written_twice_the_first_counts_and_the_second_is_the_fault() -> None:
    document = read("a: {b: 1}\na: {b: 2, c: 3}\n")
    assert document.data == {"a": {"b": 1}}
    assert [fault.text() for fault in document.faults] == ["2:1: a: is written twice, first on line 1"]


def test_a_key_written_twice_is_refused_even_when_nothing_else_is_wrong() -> None:
    assert lines(GOOD + "name: digits\n") == ["run.yaml:5:1: name: is written twice, first on line 2"]


def test_json_is_recognised_by_the_file_name() -> None:
    assert is_json_name("run.JSON")
    assert not is_json_name("run.yaml")


def test_the_second_of_two_json_keys_is_the_fault_too() -> None:
    document = read('{"a": 1,\n "a": 2}', is_json=True)
    assert document.data == {"a": 1}
    assert [fault.text() for fault in document.faults] == ["2:2: a: is written twice, first on line 1"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-3", -3),
        ("0x10", 16),
        ("0o17", 15),
        ("012", "012"),  # octal in YAML 1.1, a decimal to others: text, so that a number field refuses it
        ("1_000", "1_000"),
        ("10:20", "10:20"),  # 620 in YAML 1.1
        ("yes", "yes"),
        ("true", True),
        ("~", None),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("2026-11-21", "2026-11-21"),
        ('"12"', "12"),
        ("9" * 60, "9" * 60),
    ],
)
def test_plain_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    assert read(f"a: {text}\n").data == {"a": value}


@pytest.mark.parametrize("text", [".nan", ".inf", "-.inf", "1e999"])
def test_numbers_that_are_none_are_refused_where_they_stand(text: str) -> None:
    assert lines(GOOD + f"resources: {{vcpus: {text}}}\n") == [
        "run.yaml:5:13: resources.vcpus: must be a finite number"
    ]
    items = GOOD.replace('{range: "0:100", shardSize: 10}', f"{{items: [{text}]}}").replace("${range}", "${item}")
    assert lines(items) == ["run.yaml:4:17: array.items[0]: must be a finite number"]


def test_json_indented_by_tabs_still_has_locations() -> None:
    text = '{\n\t"version": 1,\n\t"name": "x\\ud83d\\ude00",\n\t"container": {"image": "a"},\n\t"array": {"size": 0}\n}'
    assert lines(text, is_json=True) == [
        "run.yaml:3:2: name: must match ^[a-z][a-z0-9-]{0,62}$; write x",
        "run.yaml:5:12: array.size: must be at least 1",
    ]
    assert read(text, is_json=True).data["name"] == "x\N{GRINNING FACE}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"a": }', "run.yaml:1:7: not JSON: Expecting value"),
        ('{"a": ' + "1" * 5000 + "}", "run.yaml:1:1: not JSON: Exceeds the limit (4300 digits)"),
    ],
)
def test_json_that_is_none_says_where(text: str, line: str) -> None:
    found = lines(text, is_json=True)
    assert len(found) == 1
    assert found[0].startswith(line)


def test_json_that_yaml_cannot_place_is_read_without_places() -> None:
    text = json.dumps({"k" * 2000: 1})
    document = read(text, is_json=True)
    assert document.data == {"k" * 2000: 1}
    assert document.places == {}


def test_faults_that_the_api_sends_are_located_in_the_users_file() -> None:
    faults = [Fault("output", "bucket x is not ours"), Fault("container.image", "is not known")]
    document = read(GOOD + "output: s3://x/\n")
    assert [fault.text("my.yaml") for fault in document.placed(faults)] == [
        "my.yaml:3:13: container.image: is not known",
        "my.yaml:5:1: output: bucket x is not ours",
    ]


def test_a_byte_order_mark_is_not_part_of_the_text() -> None:
    assert check_text(b"\xef\xbb\xbf" + GOOD.encode())[0].name == "digits"
    assert check_text("\ufeff" + GOOD)[0].name == "digits"
