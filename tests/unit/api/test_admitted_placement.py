"""Which constraints, strategies and fitness functions are taken, and where a fault is located."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from argosy.api.admission.specs import admit, check_spec, limits_of
from argosy.settings.settings import load_settings
from argosy.spec.faults import SpecError
from tests.fakes.admission import LIMITS, SOURCES, faults, spec

HERE = limits_of(load_settings({"attributes": {"c5.*": {"team": "vision"}}}), "own")


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"placement": {"constraints": ["attribute:ecs.instance-type == m9.large"]}}, "placement.constraints[0]"),
        ({"placement": {"constraints": ["attribute:ecs.availability-zone == eu-west-1a"]}}, "placement.constraints[0]"),
        ({"placement": {"constraints": ["distinctInstance", "attribute:team == audio"]}}, "placement.constraints[1]"),
        ({"placement": {"constraints": ["attribute:argosy.purchase == on-demand"]}}, "placement.constraints"),
        (
            {
                "placement": {"constraints": ["attribute:ecs.instance-type =~ c5.*"]},
                "resources": {"gpus": 1, "gpuModel": "T4"},
            },
            "placement.constraints",
        ),
    ],
)
def test_a_constraint_that_nothing_can_ever_meet_is_refused(fields: Any, path: str) -> None:
    (found,) = faults(spec(**fields), HERE)
    assert found.startswith(f"{path}: no instance that this deployment could buy meets ")


@pytest.mark.parametrize(
    ("constraints", "capacity", "notes"),
    [
        (["attribute:team == vision", "attribute:ecs.instance-type =~ c5.*"], {}, 0),
        (["attribute:argosy.purchase == on-demand"], {"purchase": "on-demand"}, 0),
        (["attribute:argosy.purchase == on-demand"], {"purchase": "spot-then-on-demand"}, 0),
        (["task:group == database", "runningTasksCount < 3", "agentVersion > 9.9"], {}, 0),
        (["attribute:stack == prod"], {}, 1),
    ],
)
def test_a_constraint_that_something_may_meet_is_taken(constraints: Any, capacity: Any, notes: int) -> None:
    found = admit(spec(placement={"constraints": constraints}, capacity=capacity), HERE, SOURCES)
    assert len(found.notes) == notes
    assert all("attribute:stack" in note for note in found.notes)


def test_where_the_pools_are_not_known_no_constraint_is_judged() -> None:
    admit(spec(placement={"constraints": ["attribute:ecs.instance-type == m9.large"]}), LIMITS, SOURCES)


def test_placement_is_checked_by_the_placement_module_and_located() -> None:
    found = faults(spec(placement={"constraints": ["attribute:ecs.instance-type =~ c5.*", "((("]}))
    assert len(found) == 1
    assert found[0].startswith("placement.constraints[1]: ")
    found = faults(spec(placement={"strategy": ["binpack:colour"]}))
    assert len(found) == 1
    assert found[0].startswith("placement.strategy[0]: ")
    assert faults(spec(placement={"constraints": "x"})) == [
        'placement.constraints: must be a list, not the text "x"; write ["x"]'
    ]
    assert faults(spec(placement=1)) == ["placement: must be a mapping, not the number 1"]


def test_soft_constraints_are_checked_and_located_like_hard_ones() -> None:
    soft = [{"expression": "distinctInstance"}, {"expression": "(((", "weight": 2}, {"expression": 3}, 4]
    found = faults(spec(placement={"softConstraints": soft}))
    assert [text.split(": ")[0] for text in found] == [
        "placement.softConstraints[2].expression",
        "placement.softConstraints[3]",
        "placement.softConstraints[1].expression",
    ]
    assert "is not a cluster query" in found[2]
    assert faults(spec(placement={"softConstraints": 1})) == [
        "placement.softConstraints: must be a list, not the number 1"
    ]


def test_a_fitness_function_is_taken_where_the_settings_list_it_and_nowhere_else() -> None:
    chain = {"strategy": ["ours.scores:warm", "binpack:memory"]}
    allowing = limits_of(load_settings({"fitnessFunctions": ["ours.scores:warm"]}), "own")
    assert admit(spec(placement=chain), allowing, SOURCES).form["placement"]["strategy"] == chain["strategy"]
    assert faults(spec(placement=chain)) == [
        "placement.strategy[0]: 'ours.scores:warm' is neither a strategy nor an allowed fitness function."
    ]
    assert faults(spec(placement={"strategy": ["ours.scores:cold"]}), allowing)


def test_far_from_a_deployment_any_name_of_a_function_will_do() -> None:
    check_spec(spec(placement={"strategy": ["ours.scores:warm"]}))
    for name in ("binpack:colour", "spread:colour", "os.system()", "a b:c"):
        with pytest.raises(SpecError):
            check_spec(spec(placement={"strategy": [name]}))


def test_the_example_of_the_placement_page_is_taken() -> None:
    page = (Path(__file__).parents[3] / "docs/concepts/placement.md").read_text(encoding="utf-8")
    data = YAML(typ="safe").load(page.split("```yaml\n")[1].split("```")[0])
    admission = admit(data, LIMITS, SOURCES)
    assert admission.form["container"]["hostPorts"] == [8080, "53/udp"]
    assert [each["weight"] for each in admission.form["placement"]["softConstraints"]] == [10, 1]
