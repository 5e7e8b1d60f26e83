"""The service of a trial: it is deployed repeatedly, scaled, frozen, thawed and deleted.

Some of its revisions are broken: their tasks end soon after they have started. Once the faults have ended it is left
alone until it has reached its target and for some minutes more. Then it is deleted, so that the trial comes to rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from argosy.model.run_terms import DEFAULT_QUEUE
from argosy.model.services.environments import Environment
from argosy.spec.parse import parse_spec, to_json
from tests.harness.simulation.audit.facts import TrialFacts
from tests.harness.simulation.controllers.deployment import TARGET_GROUP, SimulatedDeployment
from tests.harness.simulation.users.environment_desk import EnvironmentDesk
from tests.harness.simulation.world.members import Arrival
from tests.harness.simulation.world.workload import CANARY, SimulatedJob
from tests.harness.simulation.world.world import share

JSON = dict[str, Any]
T = TypeVar("T")

NAME = "service"
FEWEST_CHANGES, MOST_CHANGES = 2, 8
MOST_DESIRED = 5
LEAST_HEALTHY, MOST_OVER = (0, 50, 75, 100), (25, 50, 100)  # percent; nothing above where less may be healthy
BROKEN, CRASHING, FALLING_ILL = 0.3, 0.15, 0.3  # broken revisions; failing attempts of the others
LOOPING, LOOPS_S = 0.15, (60.0, 120.0)  # share of revisions whose tasks serve for a while, and end repeatedly
WITH_BASE, MOST_BASE = 0.4, 3  # of the revisions; tasks
WITH_TARGET_GROUP, DRAINS_S = 0.5, (0, 10, 30, 120)  # of the services
ALIKE = 0.3  # share of later revisions that differ from an earlier one only in the desired number
LEAVES = 0.15  # share of trials in which it is deleted once without its tasks
STAYS_FROZEN = 0.2  # share of trials in which no user thaws it
MOST_ROLLBACKS = 3  # that its user asks for
ENDS_BADLY = 0.3  # share of trials in which the tasks of the last revision always fail before they are healthy
SCALED = 0.4  # share of trials in which what was scaled is deployed again
NUMBER = 1_000  # among the runs of the trial's users, for draws
MOST_STEADY_S = 3600.0  # seconds for which it then continues
PATIENCE_S = 4500.0  # after the faults: then it is deleted in any state


class Draw:
    """Chance that the seed decides, and the number of the draw."""

    def __init__(self, seed: int, about: str = NAME) -> None:
        self._seed, self._about, self._count = seed, about, 0

    def share(self) -> float:
        self._count += 1
        return share(self._seed, self._about, self._count)

    def between(self, least: float, greatest: float) -> float:
        return least + (greatest - least) * self.share()

    def number(self, least: int, greatest: int) -> int:
        return least + int((greatest - least + 1) * self.share())

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[int(len(choices) * self.share())]


class TrialService:
    """The service of a trial, and the user who deploys it."""

    def __init__(self, deployment: SimulatedDeployment, facts: TrialFacts, seed: int) -> None:
        self._deployment, self._world, self._stored = deployment, deployment.world, facts.stored
        self._desk = EnvironmentDesk(deployment, NAME, facts)
        self._draw, self._seed, self._facts = Draw(seed), seed, facts
        self._draw_health = Draw(seed, "health")  # its own generator, so that old seeds stay the same
        self._deployments = self._revisions = 0
        self._terms: JSON = {}
        self._specs: dict[int, JSON] = {}
        """By revision."""
        self._broken: set[int] = set()
        self._hopeless = 0
        """The revision whose tasks always fail; 0 = none."""
        self._left_alone_at = self._settled_at = self._stays_s = 0.0
        self._deleted = True
        self._update = self._drawn_update()
        self._health = self._drawn_health()
        has_group = share(seed, NAME, "has a target group") < WITH_TARGET_GROUP
        self._drain_s = DRAINS_S[int(len(DRAINS_S) * share(seed, NAME, "drains"))] if has_group else None

    @property
    def is_over(self) -> bool:
        """Whether it gets no more requests."""
        return (self._deleted and not self._desk.is_waiting) or self._deployment.is_torn_down

    def plan(self, faulty_s: float, terms: JSON) -> None:
        """The first deployment comes soon, everything else at random times in the phase of faults. terms: its queue and
        its owner, as far as it names them.
        """
        self._deleted, self._terms = False, terms
        self._desk.came = self._deployment.members.of(NUMBER, terms)
        first_s = self._draw.between(0.0, min(60.0, faulty_s / 4))
        self._world.later(first_s, self._create)
        changes: tuple[Callable[[], None], ...] = (
            self._deploy_new, self._deploy_new, self._deploy_new, self._deploy_again, self._scale, self._scale,
            self._freeze, self._thaw, self._stop,
        )  # fmt: skip
        for _ in range(self._draw.number(FEWEST_CHANGES, MOST_CHANGES)):
            self._world.later(self._draw.between(first_s, faulty_s), self._draw.one_of(changes))
        if self._draw.share() < 0.15:
            self._world.later(self._draw.between(first_s, faulty_s), partial(self._delete, "stop"))
        if share(self._seed, "service left") < LEAVES:
            between = first_s, faulty_s
            self._world.later(self._draw.between(*between), partial(self._delete, "leave"))
            self._world.later(self._draw.between(*between), self._deploy_new)
        for number in range(int(share(self._seed, "service rolls back") * (1 + MOST_ROLLBACKS))):
            at = first_s + (faulty_s - first_s) * share(self._seed, "service rolls back at", number)
            self._world.later(at, partial(self._roll_back, f"back-{number}"))
        if share(self._seed, "service scaled") < SCALED:  # and the same revision is deployed again
            at, desired = faulty_s * share(self._seed, "service scaled at"), share(self._seed, "service scaled to")
            change = partial(self._desk.change, "ScaleEnvironment", desired=int((MOST_DESIRED + 1) * desired))
            self._world.later(max(at, first_s), change)
            self._world.later(max(at, first_s) + 20.0, self._deploy_newest)
        if terms:
            self._world.later(faulty_s * share(self._seed, "stranger at"), self._meet_a_stranger)

    def leave_alone(self) -> None:
        """The faults have ended: nothing changes any more until it has reached its target."""
        self._left_alone_at, self._stays_s = self._world.now, MOST_STEADY_S * self._draw.share()
        if not self._deleted and self._draw.share() >= STAYS_FROZEN:
            self._thaw()
        if not self._deleted and share(self._seed, "service ends badly") < ENDS_BADLY:
            self._hopeless = self._revisions + 1
            self._deploy_new()

    def ask(self) -> None:
        """Send the requests that are due."""
        self._desk.act()

    def act(self, is_settled: bool) -> None:
        """Between two steps once the faults have ended."""
        if self._deleted or self._deployment.is_torn_down:
            return
        waited_s = self._world.now - self._left_alone_at
        if is_settled and waited_s > 0 and not self._settled_at:
            self._settled_at = self._world.now
            self._world.later(self._draw.share() * self._stays_s, self._take_an_instance)
        stays = self._env is not None and self._world.now - self._settled_at < self._stays_s
        if waited_s > PATIENCE_S or (waited_s > 0 and is_settled and not stays):
            self._delete("stop")
            self._deleted = True

    def _take_an_instance(self) -> None:
        """EC2 continues to reclaim spot instances, and an idle controller has to notice."""
        if self._deleted:
            return
        at_work = sorted({each.instance for each in self._stored.live.values()})
        for name in at_work:
            instance = self._world.ec2.ledger.instances.get(name)
            if instance is not None and instance.purchase == "spot" and instance.state == "running":
                self._world.interrupt(name)
                return

    @property
    def _env(self) -> Environment | None:
        return self._stored.environments.get(NAME)

    def _drawn_update(self) -> JSON:
        least = self._draw.one_of(LEAST_HEALTHY)
        over = self._draw.one_of(MOST_OVER if least == 100 else (0, *MOST_OVER))
        healthy_s = self._draw.one_of((1, 5, 15, 60))
        rolls_back = self._draw.share() < 0.7
        return {
            "minHealthyPercent": least,
            "maxOverPercent": over,
            "healthySeconds": healthy_s,
            "progressSeconds": self._draw.one_of((60, 600)),
            "rollback": rolls_back,
        }

    def _drawn_health(self) -> JSON:
        """Half of the services have a health command."""
        if self._draw_health.share() < 0.5:
            return {}
        interval_s = self._draw_health.one_of((5, 15, 30))
        numbers = {"intervalSeconds": interval_s, "retries": self._draw_health.number(1, 3), "timeoutSeconds": 2}
        return {"health": {"command": ["CMD", "check"], "startSeconds": self._draw_health.one_of((0, 30)), **numbers}}

    def _new_revision(self) -> int:
        self._revisions += 1
        number = self._revisions
        earlier = 1 + int((number - 1) * share(self._seed, "earlier", number))
        if number > 1 and number != self._hopeless and share(self._seed, "alike", number) < ALIKE:
            self._specs[number] = {
                **self._specs[earlier],
                "service": {**self._specs[earlier]["service"], **self._desired()},
            }
            self._broken |= {number} if earlier in self._broken else set()
            return number
        if self._draw.share() < BROKEN:
            self._broken.add(number)
        spec: JSON = {
            "version": 1,
            "kind": "service",
            "name": NAME,
            "container": {
                "image": "argosy/web",
                "command": ["serve", str(number)],
                "environment": {"TOKEN": CANARY},
                "ports": [{"container": 8080}],
                **self._health,
            },
            "resources": {"vcpus": self._draw.one_of((0.5, 1, 2)), "memory": 1024},
            "service": {**self._desired(), "update": self._update},
            **self._terms,
        }
        if share(self._seed, "service", "has a base", number) < WITH_BASE:
            base = 1 + int(MOST_BASE * share(self._seed, "service", "base", number))
            spec["capacity"] = {"onDemandBase": base}
        if self._drain_s is not None:
            spec["service"] |= {"targetGroup": TARGET_GROUP, "drainSeconds": self._drain_s}
            spec["capacity"] = {**spec.get("capacity", {}), "cells": [self._world.region]}
        self._specs[number] = spec
        return number

    def _desired(self) -> JSON:
        return {"desired": self._draw.number(0, MOST_DESIRED)}

    def _create(self) -> None:
        number = self._new_revision()
        self._desk.create(number, self._specs[number])
        self._deploy(number)

    def _deploy_new(self) -> None:
        """Also for one that was deleted before, and is forgotten or has left its tasks."""
        if self._env is None or self._env.left:
            self._create()
            return
        number = self._new_revision()
        self._desk.update(number, self._specs[number])
        self._deploy(number)

    def _deploy_again(self) -> None:
        """An earlier revision, or the present one again; sometimes the request comes twice."""
        if self._revisions:
            self._deploy(self._draw.number(1, self._revisions), times=self._draw.one_of((1, 2)))

    def _deploy_newest(self) -> None:
        if self._revisions:
            self._deploy(self._revisions)

    def _deploy(self, revision: int, times: int = 1) -> None:
        self._deployments += 1
        job = self._job(revision)
        for _ in range(times):
            self._desk.deploy(revision, f"deployment-{self._deployments}", lambda submit: job)

    def _meet_a_stranger(self) -> None:
        """Who comes through the entrance of another queue may change nothing (S11)."""
        queues = self._stored.sharing.queues()
        its = self._terms.get("queue", DEFAULT_QUEUE)
        its = its if its in queues else DEFAULT_QUEUE
        other = next((name for name in sorted(queues) if name != its), "")
        request = {"action": "ScaleEnvironment", "name": NAME, "desired": MOST_DESIRED}
        if other and self._desk.stranger(request, Arrival(other)):
            self._facts.violated("S11", f"the service of queue {its} is scaled through the entrance of {other}")

    def _roll_back(self, token: str) -> None:
        """To a revision that the api chooses: the container's command names the revision whose programs these are."""
        self._desk.roll_back(token, lambda submit: self._job(int(submit.spec["container"]["command"][-1])))

    def _job(self, revision: int) -> SimulatedJob:
        is_broken = revision in self._broken
        is_mute = is_broken and bool(self._health) and self._draw_health.share() < 0.5  # it runs, and never serves
        loops = not is_broken and share(self._seed, "loops", revision) < LOOPING
        form = to_json(parse_spec(self._specs[revision]))
        its = SimulatedJob(
            "",
            form,
            max(1, form["service"]["desired"]),
            shortest_s=LOOPS_S[0] if loops else 1.0,
            longest_s=LOOPS_S[1] if loops else 5.0 if is_broken else 600.0,
            failing=1.0 if loops or (is_broken and not is_mute) else CRASHING * (not is_mute),
            ill=FALLING_ILL,
            never_well=1.0 if is_mute else 0.0,
            deaf=0.1 * self._draw.share(),
            unpullable=0.1 * (self._draw.share() < 0.2),
            clean=self._draw.share(),
        )
        return replace(its, faulty=1.0, shortest_s=0.1, longest_s=0.9) if revision == self._hopeless else its

    def _scale(self) -> None:
        self._desk.change("ScaleEnvironment", desired=self._draw.number(0, MOST_DESIRED))

    def _freeze(self) -> None:
        self._desk.change("FreezeEnvironment", reason="so it is wanted")

    def _thaw(self) -> None:
        self._desk.change("ThawEnvironment")

    def _stop(self) -> None:
        self._desk.change("StopDeployment", reason="so it is wanted")

    def _delete(self, tasks: str) -> None:
        self._desk.change("DeleteEnvironment", tasks=tasks)
