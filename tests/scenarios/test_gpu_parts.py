"""Tasks with a part of a GPU run on instances that have such a part, and tasks with a whole one do not."""

from __future__ import annotations

from typing import Any

from argosy.api.views import full_run_view
from argosy.api.waiting.explanation import explain_run
from argosy.catalogue.lookup import load_catalogue
from argosy.cli.runs.explain import lines_of
from argosy.model.moment import Moment
from argosy.model.tasks import TaskStatus
from tests.builders import RUN_ID
from tests.scenarios.controlled import Controlled

WHOLE = "whole-261121-062735-bbbb"
PARTS = "g6f.xlarge", "g6f.2xlarge", "g6f.4xlarge"


def needs(gpus: float) -> dict[str, Any]:
    return {"vcpus": 1, "memory": 1000, "gpus": gpus}


def asked_of_ecs(cluster: Controlled) -> list[str]:
    """The GPU values of the definitions of all live tasks."""
    arns = cluster.ecs.list_tasks(cluster="argosy")["taskArns"]
    tasks = cluster.ecs.describe_tasks(cluster="argosy", tasks=arns)["tasks"]
    names = [task["taskDefinitionArn"] for task in tasks]
    found = [cluster.ecs.describe_task_definition(taskDefinition=name)["taskDefinition"] for name in names]
    return sorted(each["containerDefinitions"][0]["resourceRequirements"][0]["value"] for each in found)


def test_each_task_gets_the_part_of_a_gpu_or_the_whole_one_that_it_asked_for() -> None:
    cluster = Controlled(types=(*PARTS, "g6.xlarge"), zones=("us-east-1a",), work_s=300.0)
    cluster.submit(2, resources=needs(0.25))
    cluster.submit(2, WHOLE, resources=needs(1), name="whole")
    cluster.run_for(250)
    targets = {pool: count for pool, count in cluster.fleet_targets().items() if count}
    assert targets == {"g6f.2xlarge/us-east-1a": 2, "g6.xlarge/us-east-1a": 2}
    assert asked_of_ecs(cluster) == ["0.25", "0.25", "1", "1"]
    cluster.run_to_rest()
    assert [cluster.record(run_id).counts[TaskStatus.SUCCEEDED] for run_id in (RUN_ID, WHOLE)] == [2, 2]


def test_a_whole_gpu_is_not_bought_as_a_part_although_that_is_cheaper() -> None:
    cluster = Controlled(types=PARTS, zones=("us-east-1a",))
    cluster.submit(1, WHOLE, resources=needs(1), name="whole")
    cluster.run_for(120)
    assert not any(cluster.fleet_targets().values())


def test_the_part_is_shown_and_explain_says_that_no_interruptions_of_its_types_are_known() -> None:
    cluster = Controlled(types=PARTS, zones=("us-east-1a",))
    cluster.world.ec2.set_shortage("g6f.2xlarge/us-east-1a", 0)
    cluster.submit(1, resources=needs(0.25))
    cluster.run_for(90)
    view = full_run_view(cluster.record())
    assert (view["gpus"], view["gpuPart"]) == (1, 0.25)
    state = cluster.controllers[0].state
    assert state is not None
    explained = explain_run(Moment(state, load_catalogue(), cluster.world.now, cluster.policy), cluster.run)
    assert any(line.startswith("AWS's Spot Instance Advisor lists g6f.2xlarge with no") for line in lines_of(explained))
