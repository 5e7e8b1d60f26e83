"""Does a load balancer send requests only to tasks that can answer them?

G1: we stop no task while it is registered with a target group, nor sooner after its deregistration than its
drainSeconds, or than a spot warning allows. G2: at rest nothing is registered. G3: every registration was stored before
the call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.messages.ecs import key_of_task
from tests.harness.simulation.audit.facts import Checker, EffectCheck, Operation, TrialFacts, TrialResults

JSON = dict[str, Any]
Place = tuple[str, int]  # instance, port

WARNING_S = 120.0  # from the warning of an instance to its end
GIVES_UP_S = 600.0  # AWS does not deregister it for this long and more: then it is stopped anyway
OF_NOBODY = ("belongs to no live attempt", "argosy: the controller failed to process its run")  # how the reasons begin
LATE_S = 1.0  # of clocks that show the same time


class TargetChecker(Checker):
    """The calls about targets, the stops, and the registered targets at the end."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._in: dict[Place, str] = {}
        """With the ARN of the group."""
        self._out_at: dict[Place, float] = {}
        self.registered = 0
        """How often something was."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {
            ("elbv2", "register_targets"): self._registered,
            ("elbv2", "deregister_targets"): self._deregistered,
            ("ecs", "stop_task"): self._stopped,
        }

    def at_rest(self, rest: TrialResults) -> None:
        if self.facts.torn_down or self.facts.ledger_is_lost or self.facts.damaged:
            return
        for place, arn in self._in.items():
            self.facts.violated("G2", f"{place[0]}:{place[1]} is registered with {arn} at rest", place[0])

    def _registered(self, request: JSON, reply: JSON) -> None:
        known = {place[1:] for env in self.facts.stored.environments.values() for place in env.targets}
        for place in _places(request):
            self.registered += place not in self._in
            self._in[place] = request["TargetGroupArn"]
            self._out_at.pop(place, None)
            if place not in known and self.facts.one_controller:
                self.facts.violated("G3", f"{place[0]}:{place[1]} is registered before that is stored", place[0])

    def _deregistered(self, request: JSON, reply: JSON) -> None:
        for place in _places(request):
            if self._in.pop(place, None) is not None:
                self._out_at[place] = self.facts.world.now

    def _stopped(self, request: JSON, reply: JSON) -> None:
        task = self.facts.regions.task(request["task"])
        key = key_of_task(reply["task"])
        job = self.facts.jobs.get(key.run_id) if key is not None else None
        if (
            task is None
            or key is None
            or job is None
            or not job.serves
            or str(request.get("reason")).startswith(OF_NOBODY)
        ):
            return
        host = self.facts.regions.find(task.instance.ec2_instance_id)
        bound = task.containers[0].network_bindings
        service = job.terms.service
        if host is None or not bound or service is None or task.last_status == "STOPPED" or self._is_late(host.ends_at):
            return
        place, now = (host.instance_id, int(bound[0]["hostPort"])), self.facts.world.now
        if place in self._in and not self._is_given_up(place):
            self.facts.violated("G1", f"{key} is stopped while it is registered: {request.get('reason')}", key.run_id)
        slack_s = LATE_S + self.facts.clocks_differ_s
        out_at = self._out_at.get(place, float("-inf"))
        drained_s = now - out_at if out_at >= task.created_at else float("inf")  # else it was an earlier task's port
        if drained_s < service.drain_s - slack_s:
            self.facts.violated("G1", f"{key} is stopped {drained_s:.0f} s after it was taken out", key.run_id)

    def _is_late(self, ends_at: float | None) -> bool:
        """Whether so much of a warning's time is over that the task is stopped whatever its state."""
        if ends_at is None:
            return False
        warned_s = self.facts.world.now - (ends_at - WARNING_S)
        return warned_s >= self.facts.policy.hand_over_s - LATE_S - self.facts.clocks_differ_s

    def _is_given_up(self, place: Place) -> bool:
        targets = [
            target
            for env in self.facts.stored.environments.values()
            for known, target in env.targets.items()
            if known[1:] == place
        ]
        return any(each.leaves_since and self.facts.world.now - each.leaves_since >= GIVES_UP_S for each in targets)


def _places(request: JSON) -> Iterable[Place]:
    return [(each["Id"], each["Port"]) for each in request["Targets"]]
