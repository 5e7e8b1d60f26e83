"""Which runs a deployment takes: its buckets, cells, items and deadlines, and all faults together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.api.admission.specs import admit, check_spec, fingerprint, limits_of
from argosy.settings.settings import load_settings
from argosy.spec.faults import SpecError
from argosy.spec.parse import parse_spec, to_json
from tests.fakes.admission import LIMITS, SOURCES, Items, faults, sources, spec


def test_a_run_within_the_limits_is_taken() -> None:
    data = spec(
        output="s3://shared/x/", placement={"constraints": ["distinctInstance"], "strategy": ["binpack:memory"]}
    )
    admission = admit(data, LIMITS, SOURCES)
    assert admission.image == "registry/argosy/digits@sha256:1"
    assert admission.task_count == 2
    assert admission.form == to_json(parse_spec(data))


@pytest.mark.parametrize(
    ("image", "gpus", "said"),
    [
        ("argosy/classify", 1, True),
        ("argosy/classify", 0, False),
        ("argosy/classify-gpu", 1, False),
        ("argosy/digits", 1, False),  # it has no flavours
        ("elsewhere/classify", 1, False),
    ],
)
def test_an_image_for_cpus_on_gpus_is_taken_with_a_note(image: str, gpus: int, said: bool) -> None:
    data = spec(container={"image": image}, resources={"vcpus": 1, "memory": 1024, "gpus": gpus})
    notes = admit(data, LIMITS, SOURCES).notes
    assert [note.split(":")[0] for note in notes] == ["container.image"] * said
    if said:
        assert "cannot use the 1 GPU of each task: use argosy/classify-gpu" in notes[0]


@pytest.mark.parametrize(
    ("checkpoint", "said"),
    [
        ({"sizeGiB": 7.5}, ""),  # 7.5 GiB at 90 MB/s: 89.5 s
        ({"sizeGiB": 20}, "239 s to upload, at an assumed 90 MB/s, and a stopped task has 90 s: set checkpoint.everyS"),
        ({"sizeGiB": 20, "everySeconds": 600}, "has 90 s: a stopped task then resumes from its latest interval"),
        ({"everySeconds": 600}, ""),
    ],
)
def test_a_checkpoint_that_is_too_large_for_a_stop_is_taken_with_a_note(checkpoint: dict[str, Any], said: str) -> None:
    data = spec(run=["true"], result="none", container={"image": "argosy/digits"}, checkpoint=checkpoint)
    notes = admit(data, LIMITS, SOURCES).notes
    assert len(notes) == bool(said)
    assert said in "".join(notes)


def test_results_go_to_allowed_buckets_only() -> None:
    assert faults(spec(output="s3://foreign/x/")) == [
        "output: bucket foreign is not one that this deployment may write to: own, shared"
    ]
    assert faults(spec(output="no address"))[0].startswith("output: must be s3://BUCKET/PREFIX/")


@pytest.mark.parametrize("folder", ["argosy/journal", "argosy/journal/", "argosy/journal/2026-11-23/mine/"])
def test_no_run_has_its_results_where_they_would_expire_with_the_journal(folder: str) -> None:
    assert faults(spec(output=f"s3://own/{folder}")) == [
        "output: argosy/journal/ holds the controller's record, which expires: programs may not write there"
    ]


@pytest.mark.parametrize("output", ["s3://shared/argosy/journal/", "s3://own/argosy/", "s3://own/argosy/journals/"])
def test_folders_that_only_look_like_the_journals_are_like_any_other(output: str) -> None:
    assert admit(spec(output=output), LIMITS, SOURCES).form["output"] == output


def test_no_run_has_its_results_among_the_users_programs_or_the_checkpoints() -> None:
    assert faults(spec(output="s3://own/argosy/programs/mine")) == [
        "output: argosy/programs/ holds users' programs: name another folder"
    ]
    assert faults(spec(output="s3://own/argosy/checkpoints/")) == [
        "output: argosy/checkpoints/ holds checkpoints, which expire: name another folder"
    ]
    assert admit(spec(output="s3://shared/argosy/programs/"), LIMITS, SOURCES).task_count == 2


def own_program(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in spec(run=["x"], **fields).items() if name != "container"}


def test_a_program_runs_in_the_stock_image_unless_it_names_another() -> None:
    assert admit(own_program(), LIMITS, SOURCES).image == "registry/argosy/python@sha256:1"
    other = {**own_program(), "container": {"image": "argosy/digits"}}
    assert admit(other, LIMITS, SOURCES).image == "registry/argosy/digits@sha256:1"


@pytest.mark.parametrize("fields", [{"workdir": "."}, {"setup": "make"}, {"packages": ["numpy"]}])
def test_an_unpacked_program_is_refused_with_the_commands_that_pack_it(fields: dict[str, Any]) -> None:
    """Direct invocations of the function, without the command, get this."""
    (name,) = fields
    assert faults(own_program(**fields)) == [
        f"{name}: must be packed before submission: `argosy submit`, `argosy run` and the SDK pack it and"
        " send job instead"
    ]
    check_spec(own_program(**fields))  # a file is checked before it is packed


def test_inputs_of_a_users_machine_are_refused_with_the_commands_that_upload_them() -> None:
    why = "must be uploaded before submission: `argosy submit`, `argosy run` and the SDK do that"
    assert faults(own_program(inputs=["./images/", "s3://own/x"])) == [f"inputs[0]: {why}"]
    assert faults(own_program(inputs="clips")) == [f"inputs: {why}"]
    check_spec(own_program(inputs="./images/"))  # a file is checked before its inputs are uploaded


def test_what_a_program_needs_lies_where_its_tasks_may_read_it() -> None:
    limits = replace(LIMITS, input_buckets=frozenset({"data"}))
    taken = own_program(job="s3://own/j.json", inputs=["s3://data/${index}/", "s3://shared/x", "s3://own/argosy/x"])
    assert admit(taken, limits, SOURCES).form["inputs"] == taken["inputs"]
    refused = own_program(job="s3://foreign/j.json", inputs=["s3://data/", "s3://other/x", "s3://own/argosy/journal/"])
    may = "is not one that this deployment's programs may read: data, own, shared; its owner can allow it with"
    where = "in cdk.json (for `argosy local`: in a file for --settings)"
    assert faults(refused, limits) == [
        f'job: bucket foreign {may} "inputBuckets": ["data", "foreign"] {where}',
        f'inputs[1]: bucket other {may} "inputBuckets": ["data", "other"] {where}',
        "inputs[2]: argosy/journal/ holds the controller's own record, which programs may not read",
    ]
    one = f'inputs: bucket other {may} "inputBuckets": ["data", "other"] {where}'
    assert faults(own_program(inputs="s3://other/"), limits) == [one]


def test_the_items_of_a_file_are_counted_and_checked() -> None:
    data = spec(array={"itemsFrom": "s3://bucket/items"}, container={"image": "a", "command": ["${item.k}"]})
    assert admit(data, LIMITS, sources(Items([{"k": 1}, {"k": 2}, {"k": 3}]))).task_count == 3
    assert faults(data, items=Items([{"k": 1}, {}, 7])) == [
        "array.itemsFrom[1]: has no k, which container.command[0] uses",
        "array.itemsFrom[2]: must be a mapping with k, which container.command[0] uses",
    ]
    assert faults(data, items=Items([{"k": float("nan")}])) == ["array.itemsFrom[0].k: must be a finite number"]
    assert faults(data, items=Items([])) == ["array.itemsFrom: has 0 items; a run has 1 to 1000000 tasks"]
    assert faults(data, items=Items(None)) == ["array.itemsFrom: s3://bucket/items does not exist"]
    assert faults(data, items=Items([{"k": "x" * 9000}]))[0].startswith("container.command: ")


def test_faults_of_the_spec_the_deployment_and_the_image_come_together() -> None:
    data = spec(
        nmae="x",
        container={"image": "argosy/unknown"},
        output="s3://foreign/",
        resources={"gpus": 9},
        array={"size": 0},
    )
    assert [text.split(": ")[0] for text in faults(data)] == [
        "array.size",
        "nmae",
        "output",
        "resources.gpus",
        "container.image",
    ]


def test_far_from_any_deployment_only_the_spec_is_checked() -> None:
    check_spec(spec(output="s3://foreign/", resources={"gpus": 16}))
    with pytest.raises(SpecError):
        check_spec(spec(placement={"constraints": ["((("]}))
    with pytest.raises(SpecError):
        check_spec(spec(output="s3://foreign/"), LIMITS)


def test_the_limits_of_a_deployment_are_its_offered_types_and_buckets() -> None:
    settings = load_settings(
        {
            "instanceTypes": {"cpu": ["c5.large"], "gpu": ["g5.xlarge"]},
            "outputBuckets": ["shared"],
            "inputBuckets": ["data"],
        }
    )
    limits = limits_of(settings, "own")
    assert limits.default_output == "s3://own/"
    assert limits.buckets == {"own", "shared"}
    assert limits.input_buckets == {"data"}
    assert set(limits.shapes) == {"c5.large", "g5.xlarge"}
    assert limits.shapes["g5.xlarge"].gpus == 1
    assert 0 < limits.shapes["c5.large"].memory_mib < 4096


def test_a_fingerprint_does_not_depend_on_order_and_does_on_content() -> None:
    one, other = to_json(parse_spec(spec())), to_json(parse_spec(dict(reversed(list(spec().items())))))
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint(one) != fingerprint({**one, "name": "m"})


def test_a_fingerprint_stays_the_same_because_client_tokens_remember_it() -> None:
    form = {"version": 1, "name": "digits", "resources": {"vcpus": 1}}
    assert fingerprint(form) == "15125aaa20fa74d0733071c94aad5581b9a91932cee33ea020c8a9a0dbc51225"


def test_cells_that_the_deployment_does_not_have_are_all_named() -> None:
    limits = replace(LIMITS, cells=("us-east-1", "eu-west-1"))
    with pytest.raises(SpecError) as refusal:
        check_spec(spec(capacity={"cells": ["eu-west-1", "us-west-2", "ap-south-1"]}), limits)
    assert [fault.text() for fault in refusal.value.faults] == [
        "capacity.cells[1]: us-west-2 is not a cell of this deployment (us-east-1, eu-west-1)",
        "capacity.cells[2]: ap-south-1 is not a cell of this deployment (us-east-1, eu-west-1)",
    ]


@pytest.mark.parametrize(
    ("deadline", "fault"),
    [
        ("2026-11-21T18:00:00Z", "2026-11-21T18:00:00Z is in the past"),
        ("2029-01-01T00:00:00+01:00", "2029-01-01T00:00:00+01:00 is more than 366 days from now"),
    ],
)
def test_a_deadline_in_the_past_or_years_away_is_refused(deadline: str, fault: str) -> None:
    now = 1_800_000_000.0  # January 2027
    with pytest.raises(SpecError) as refusal:
        check_spec(spec(capacity={"deadline": deadline}), LIMITS, now)
    assert [each.text() for each in refusal.value.faults] == [f"capacity.deadline: {fault}"]
    assert check_spec(spec(capacity={"deadline": deadline}), LIMITS).capacity.deadline == deadline
    assert check_spec(spec(capacity={"deadline": "2027-01-15T12:00:00Z"}), LIMITS, now)


def test_a_deadline_without_a_purchase_means_spot_then_on_demand() -> None:
    given = {"deadline": "2h"}
    assert to_json(check_spec(spec(capacity=given)))["capacity"]["purchase"] == "spot-then-on-demand"
    given = {"deadline": "2h", "purchase": "on-demand"}
    assert to_json(check_spec(spec(capacity=given)))["capacity"]["purchase"] == "on-demand"
