"""The launch protocol and its guards, step by step, in the simulated AWS."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from argosy.model.runs import RunStatus
from argosy.model.stored import documents
from argosy.model.tasks import TaskStatus
from tests.fakes.aws import refusal
from tests.scenarios.controlled import Controlled

ZONE = ("us-east-1a",)


class Unreliable:
    """ECS over a bad connection, as `run_task` and `listings` say."""

    def __init__(self, cluster: Controlled) -> None:
        self.cluster, self.real = cluster, cluster.ecs
        self.replies_lost = self.listings_fail = self.sweeps_fail = self.blind = False
        self.lagging: set[str] = set()  # plans whose next listing shows nothing yet
        self.sent: defaultdict[str, list[float]] = defaultdict(list)  # when each token was sent

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def run_task(self, **request: Any) -> Any:
        self.sent[request["clientToken"]].append(self.cluster.world.now)
        reply = self.real.run_task(**request)
        if self.replies_lost:
            raise ReadTimeoutError(endpoint_url="ecs")
        return reply

    def list_tasks(self, **request: Any) -> Any:
        plan = request.get("startedBy")
        if self.listings_fail or (self.sweeps_fail and not plan):
            raise refusal("ServerException", "try again")
        if self.blind or plan in self.lagging:
            if request["desiredStatus"] == "STOPPED":
                self.lagging.discard(plan)  # the listing is over
            return {"taskArns": []}
        return self.real.list_tasks(**request)


def behind_a_bad_line(**options: Any) -> tuple[Controlled, Unreliable]:
    cluster = Controlled(zones=ZONE, **options)
    line = Unreliable(cluster)
    cluster.controllers = [cluster.controller(line)]
    return cluster, line


def test_an_intent_whose_reply_was_lost_is_never_sent_again_after_ten_minutes() -> None:
    """No event arrives, listings lag and then fail for half an hour: until then the outcomes of the launches are
    unknown."""
    cluster, line = behind_a_bad_line(work_s=4000.0, lose=lambda message: True)
    line.replies_lost = line.blind = True
    cluster.submit(8)
    cluster.run_for(860.0)
    line.listings_fail, line.blind = True, False
    cluster.run_for(1000.0)
    spans = [moments[-1] - moments[0] for moments in line.sent.values()]
    assert len(spans) == 8
    assert max(map(len, line.sent.values())) > 2  # while it is young the identical request is sent again
    assert max(spans) <= 600.0
    line.replies_lost = line.listings_fail = False
    cluster.run_to_rest()
    assert cluster.record().counts[TaskStatus.SUCCEEDED] == 8
    assert cluster.starts() == {(str(index), "1"): 1 for index in range(8)}


def test_one_listing_that_lags_disproves_no_launch() -> None:
    """After a long outage, the first complete listing does not show the started task, and the second one does."""
    cluster, line = behind_a_bad_line(work_s=4000.0, lose=lambda message: True)
    line.replies_lost = line.sweeps_fail = True
    cluster.submit(8)
    cluster.tick()
    while len(line.sent) < 8:
        line.listings_fail = bool(line.sent)
        cluster.tick()
    line.listings_fail = True
    cluster.run_for(1300.0)  # until absence would be proof
    assert max(map(len, line.sent.values())) == 1  # not even the same request, before a listing was complete
    listed = cluster.ecs.describe_tasks(cluster="argosy", tasks=cluster.ecs.list_tasks(cluster="argosy")["taskArns"])
    line.lagging = {task["startedBy"] for task in listed["tasks"]}
    line.replies_lost = line.listings_fail = False
    cluster.run_for(120.0)
    assert not line.lagging
    line.sweeps_fail = False
    cluster.run_to_rest()
    assert cluster.record().counts[TaskStatus.SUCCEEDED] == 8
    assert cluster.starts() == {(str(index), "1"): 1 for index in range(8)}
    assert cluster.record().attempts == 8


def test_a_launch_without_effect_and_without_reply_is_given_a_new_number_only_after_complete_listings() -> None:
    cluster, line = behind_a_bad_line(work_s=60.0)
    lost = {"left": 4}

    def vanish(**request: Any) -> Any:
        line.sent[request["clientToken"]].append(cluster.world.now)
        if lost["left"]:
            raise ReadTimeoutError(endpoint_url="ecs")
        return line.real.run_task(**request)

    line.run_task = vanish  # type: ignore[method-assign]
    cluster.submit(4)
    cluster.run_for(120.0)
    line.listings_fail = True
    cluster.run_for(1500.0)
    assert len(line.sent) == 4  # nothing was given up while no listing was complete
    lost["left"], line.listings_fail = 0, False
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert len(line.sent) == 8  # the old tokens, and one new one for each
    assert max(cluster.starts().values()) == 1


def test_a_store_that_does_not_answer_ends_nothing() -> None:
    """Not even when only the lists of instances and runs are unreadable."""
    cluster = Controlled(zones=ZONE, work_s=3000.0)
    cluster.submit(8)
    cluster.run_for(200.0)
    instances, targets = cluster.live_instances(), cluster.fleet_targets()
    read = cluster.store.read_partition

    def gone(partition: str) -> dict[str, bytes]:
        if partition != documents.STATE:
            return read(partition)
        raise refusal("InternalServerError", "no answer")

    cluster.store.read_partition = gone  # type: ignore[method-assign]
    for _ in range(300):
        cluster.controllers = [cluster.controller()]
        with pytest.raises(Exception, match="no answer"):
            cluster.controllers[0].tick()
        cluster.world.run_for(6.0)
    assert {each["InstanceId"] for each in cluster.live_instances()} == {each["InstanceId"] for each in instances}
    assert cluster.fleet_targets() == targets
    cluster.store.read_partition = read  # type: ignore[method-assign]
    cluster.run_to_rest()
    assert (cluster.record().status, cluster.record().attempts) == (RunStatus.SUCCEEDED, 8)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("ThrottlingException", "Rate exceeded"),
        ("InvalidParameterException", "Error retrieving ...: Rate exceeded"),  # reliability.md row 6
        ("ClientException", "Too many concurrent attempts to create a new revision: Too Many Requests"),
    ],
)
def test_throttling_in_any_coat_slows_down_and_loses_nothing(code: str, message: str) -> None:
    cluster, line = behind_a_bad_line(work_s=30.0)
    left = {"throttles": 20}

    def throttled(**request: Any) -> Any:
        if left["throttles"]:
            left["throttles"] -= 1
            raise refusal(code, message)
        return line.real.run_task(**request)

    line.run_task = throttled  # type: ignore[method-assign]
    cluster.submit(8)
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.attempts) == (RunStatus.SUCCEEDED, 8)
    assert max(cluster.starts().values()) == 1


REASONS = ["RESOURCE:MEMORY", "RESOURCE:GPU", "RESOURCE:ENI", "AGENT", "ATTRIBUTE", "MISSING", "INACTIVE"]


@pytest.mark.parametrize("reason", REASONS)
def test_a_refused_start_spends_no_attempt_and_is_placed_again(reason: str) -> None:
    cluster, line = behind_a_bad_line(work_s=30.0)
    left = {"refusals": 6}

    def refuse(**request: Any) -> Any:
        if left["refusals"]:
            left["refusals"] -= 1
            arn = "arn:aws:ecs:us-east-1:123456789012:container-instance/argosy/1"
            return {"tasks": [], "failures": [{"arn": arn, "reason": reason}]}
        return line.real.run_task(**request)

    line.run_task = refuse  # type: ignore[method-assign]
    cluster.submit(4, retryStrategy={"attempts": 1})
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.attempts) == (RunStatus.SUCCEEDED, 4)


def test_a_task_that_starts_although_its_launch_was_refused_is_found_by_its_token() -> None:
    """reliability.md row 2: `failures` are no proof."""
    cluster, line = behind_a_bad_line(work_s=600.0)

    def lie(**request: Any) -> Any:
        reply = line.real.run_task(**request)
        line.sent[request["clientToken"]].append(cluster.world.now)
        if len(line.sent) <= 4 and len(line.sent[request["clientToken"]]) == 1:
            return {"tasks": [], "failures": [{"arn": "arn:x", "reason": "RESOURCE:CPU"}]}
        return reply

    line.run_task = lie  # type: ignore[method-assign]
    cluster.submit(8)
    cluster.run_to_rest()
    assert cluster.record().attempts == 8
    assert max(cluster.starts().values()) == 1


def test_a_controller_that_pauses_in_the_middle_of_a_launch_starts_no_second_copy() -> None:
    """Its successor's requests for the same launch are refused for a minute, because there is no room. Then there is
    room, the first one wakes up, and its request is sent."""
    cluster, first = behind_a_bad_line(work_s=600.0)
    second = Unreliable(cluster)
    sleeps = {"left": 1}

    def refused_for_a_minute(**request: Any) -> Any:
        if cluster.world.now - fell_asleep[0] < 60.0:
            return {"tasks": [], "failures": [{"arn": "arn:x", "reason": "RESOURCE:CPU"}]}
        return second.real.run_task(**request)

    def fall_asleep(**request: Any) -> Any:
        if sleeps["left"]:
            sleeps["left"] -= 1
            fell_asleep.append(cluster.world.now)
            successor = cluster.controller(second)
            while cluster.world.now - fell_asleep[0] < 200.0:
                successor.tick()
                cluster.pass_time(2.0)
        return first.real.run_task(**request)

    fell_asleep: list[float] = []
    second.run_task = refused_for_a_minute  # type: ignore[method-assign]
    first.run_task = fall_asleep  # type: ignore[method-assign]
    cluster.submit(4)
    cluster.run_to_rest()
    assert fell_asleep
    assert cluster.starts() == {(str(index), "1"): 1 for index in range(4)}
    assert cluster.record().counts[TaskStatus.SUCCEEDED] == 4


def test_an_existing_task_that_a_conflict_names_is_adopted() -> None:
    cluster, line = behind_a_bad_line(work_s=600.0)
    left = {"conflicts": 4}

    def conflict(**request: Any) -> Any:
        reply = line.real.run_task(**request)
        if left["conflicts"]:
            left["conflicts"] -= 1
            error = refusal("ConflictException", "made before with other parameters")
            error.response["resourceIds"] = [reply["tasks"][0]["taskArn"]]
            raise error
        return reply

    line.run_task = conflict  # type: ignore[method-assign]
    cluster.submit(4)
    cluster.run_to_rest()
    assert cluster.record().attempts == 4
    assert cluster.starts() == {(str(index), "1"): 1 for index in range(4)}


@pytest.mark.parametrize("code", ["AccessDeniedException", "ClientException"])
def test_what_may_not_start_is_asked_for_at_growing_pauses_for_a_quarter_of_an_hour(
    code: str,
) -> None:
    cluster, line = behind_a_bad_line()

    def denied(**request: Any) -> Any:
        line.sent[request["clientToken"]].append(cluster.world.now)
        raise refusal(code, "User is not authorized to perform: iam:PassRole on resource")

    line.run_task = denied  # type: ignore[method-assign]
    cluster.submit(48)
    cluster.run_for(300.0)
    assert "no task can be started: " in cluster.record().waiting
    assert "iam:PassRole" in cluster.record().waiting
    took_s = 300.0 + cluster.run_to_rest(limit_s=1800.0)
    assert cluster.record().status == RunStatus.FAILED
    assert "iam:PassRole" in cluster.record().status_reason
    assert took_s > cluster.policy.refusal_patience_s
    assert sum(map(len, line.sent.values())) <= 60


def test_what_no_request_may_say_stops_the_run_after_at_most_three_calls() -> None:
    cluster, line = behind_a_bad_line()

    def invalid(**request: Any) -> Any:
        line.sent[request["clientToken"]].append(cluster.world.now)
        raise refusal("InvalidParameterException", "Override for container named main is not a container")

    line.run_task = invalid  # type: ignore[method-assign]
    cluster.submit(48)
    cluster.run_to_rest(limit_s=1800.0)
    assert cluster.record().status == RunStatus.FAILED
    assert sum(map(len, line.sent.values())) <= 3


@pytest.mark.parametrize("code", ["AccessDeniedException", "UnrecognizedClientException", "SomethingNewException"])
def test_a_minute_of_refusals_in_the_middle_of_a_run_costs_no_task(code: str) -> None:
    cluster, line = behind_a_bad_line()
    honest = line.run_task
    cluster.submit(40)
    cluster.run_for(60.0)
    until = cluster.world.now + 60.0

    def denied(**request: Any) -> Any:
        if cluster.world.now < until:
            raise refusal(code, "not now")
        return honest(**request)

    line.run_task = denied  # type: ignore[method-assign]
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert cluster.record().attempts == 40


def test_listings_of_instances_that_break_off_lose_nothing() -> None:
    cluster = Controlled(zones=ZONE, work_s=3000.0)
    cluster.submit(4)
    cluster.run_for(700.0)
    honest = cluster.ec2

    class Broken:
        def __getattr__(self, name: str) -> Any:
            return getattr(honest, name)

        def describe_instances(self, **request: Any) -> Any:
            raise refusal("InternalError", "try again")

    cluster.ec2 = Broken()
    cluster.controllers = [cluster.controller()]
    cluster.run_for(1200.0)
    cluster.ec2 = honest
    cluster.controllers = [cluster.controller()]
    cluster.run_to_rest()
    assert (cluster.record().status, cluster.record().attempts) == (RunStatus.SUCCEEDED, 4)
