"""Whatever is done to the simulated ECS, nothing is given out twice, lost or reported out of order."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from argosy.catalogue.lookup import load_catalogue
from tests.fakes.ecs_clouds import CLUSTER, EcsCloud, simulation

TYPES = ("c5.large", "c5.2xlarge", "p3.2xlarge", "p3.8xlarge")


class Launches(RuleBasedStateMachine):
    """Launches, reports, stops, losses and passing time in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.cloud: EcsCloud = simulation()
        self.types: dict[str, str] = {}
        self.tasks: list[str] = []
        for gpus in (0, 1, 2):
            self.cloud.define(f"gpus-{gpus}", gpus=gpus)

    @rule(instance_type=st.sampled_from(TYPES))
    def register(self, instance_type: str) -> None:
        if len(self.types) < 6:
            self.types[self.cloud.register(instance_type)["containerInstanceArn"]] = instance_type

    @precondition(lambda self: any(self.alive()))
    @rule(gpus=st.integers(0, 2), count=st.integers(1, 10), token=st.integers(0, 5))
    def run(self, gpus: int, count: int, token: int) -> None:
        more = {"clientToken": f"{gpus}-{count}-{token}"} if token else {}
        reply = self.cloud.run(f"gpus-{gpus}", count=count, startedBy=f"plan-{token}", **more)
        assert len(reply["tasks"]) == count or reply["failures"]
        self.tasks += [task["taskArn"] for task in reply["tasks"]]

    @precondition(lambda self: self.tasks)
    @rule(pick=st.integers(0), status=st.sampled_from(["RUNNING", "STOPPED", "stop"]))
    def change(self, pick: int, status: str) -> None:
        arn = self.tasks[pick % len(self.tasks)]
        if not self.cloud.client.describe_tasks(cluster=CLUSTER, tasks=[arn])["tasks"]:
            return
        if status == "stop":
            self.cloud.client.stop_task(cluster=CLUSTER, task=arn)
        else:
            self.cloud.report(arn, status)

    @precondition(lambda self: any(self.alive()))
    @rule(pick=st.integers(0))
    def lose(self, pick: int) -> None:
        arns = self.alive()
        assert self.cloud.lose_instance is not None
        self.cloud.lose_instance(arns[pick % len(arns)])

    @rule(seconds=st.sampled_from([1.0, 1800.0, 3600.0]))
    def wait(self, seconds: float) -> None:
        assert self.cloud.pass_time is not None
        self.cloud.pass_time(seconds)

    def alive(self) -> list[str]:
        found: list[str] = self.cloud.client.list_container_instances(cluster=CLUSTER)["containerInstanceArns"]
        return found

    def live_tasks(self) -> list[dict[str, Any]]:
        names = list(dict.fromkeys(self.tasks))
        chunks = [names[start : start + 100] for start in range(0, len(names), 100)]
        found = [self.cloud.client.describe_tasks(cluster=CLUSTER, tasks=chunk)["tasks"] for chunk in chunks]
        return [task for tasks in found for task in tasks if task["lastStatus"] != "STOPPED"]

    @invariant()
    def what_is_taken_and_what_is_left_is_all_there_is(self) -> None:
        live = self.live_tasks()
        for arn in self.alive():
            here = [task for task in live if task["containerInstanceArn"] == arn]
            left = self.cloud.remaining({"containerInstanceArn": arn})
            machine = load_catalogue()[self.types[arn]]
            assert left["CPU"] + sum(int(task["cpu"]) for task in here) == machine.cpu_units
            assert left["MEMORY"] + sum(int(task["memory"]) for task in here) == machine.registered_memory_mib
            assert left["CPU"] >= 0
            assert left["MEMORY"] >= 0
            gpus = [gpu for task in here for each in task["containers"] for gpu in each.get("gpuIds", [])]
            assert len(gpus) == len(set(gpus))
            assert len(gpus) + len(left.get("GPU", [])) == machine.gpus
            assert set(gpus).isdisjoint(left.get("GPU", []))

    @invariant()
    def listings_agree_with_descriptions(self) -> None:
        wanted = {task["taskArn"] for task in self.live_tasks() if task["desiredStatus"] == "RUNNING"}
        pages = self.cloud.client.get_paginator("list_tasks").paginate(
            cluster=CLUSTER, PaginationConfig={"PageSize": 7}
        )
        listed = [arn for page in pages for arn in page["taskArns"]]
        assert len(listed) == len(set(listed))
        assert set(listed) == wanted

    @invariant()
    def versions_of_each_resource_only_rise_and_stopped_is_final(self) -> None:
        versions: dict[str, int] = {}
        stopped: set[str] = set()
        assert self.cloud.events is not None
        for message in self.cloud.events:
            (arn,), detail = message["resources"], message["detail"]
            assert arn not in stopped
            assert detail["version"] > versions.get(arn, 0)
            versions[arn] = detail["version"]
            if detail.get("lastStatus") == "STOPPED":
                stopped.add(arn)


TestLaunches = Launches.TestCase
TestLaunches.settings = settings(max_examples=40, stateful_step_count=30)


@given(st.lists(st.integers(1, 10), min_size=1, max_size=6), st.integers(1, 100))
def test_pages_of_any_size_show_every_task_once_even_if_some_end_meanwhile(counts: list[int], size: int) -> None:
    cloud = simulation()
    cloud.register("c5.18xlarge")
    cloud.define(container={"cpu": 10, "memory": 10})
    started = [task["taskArn"] for count in counts for task in cloud.run(count=count)["tasks"]]
    ended = set(started[::3])
    seen: list[str] = []
    token: dict[str, str] = {}
    while True:
        reply = cloud.client.list_tasks(cluster=CLUSTER, maxResults=size, **token)
        seen += reply["taskArns"]
        for arn in ended:
            cloud.client.stop_task(cluster=CLUSTER, task=arn)
        if "nextToken" not in reply:
            break
        token = {"nextToken": reply["nextToken"]}
    assert len(seen) == len(set(seen))
    assert set(started) - ended <= set(seen)
