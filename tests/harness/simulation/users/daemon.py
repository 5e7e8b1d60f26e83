"""The daemon of a trial: it is deployed repeatedly, frozen, thawed and stopped.

Some of its revisions are broken, and some run in one zone only. Once the faults have ended it is left alone until
everything rests, because it must keep nothing awake, and then it is deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from argosy.model.services.environments import Environment
from argosy.spec.parse import parse_spec, to_json
from tests.harness.simulation.audit.facts import TrialFacts
from tests.harness.simulation.controllers.deployment import SimulatedDeployment
from tests.harness.simulation.users.environment_desk import EnvironmentDesk
from tests.harness.simulation.users.service import Draw
from tests.harness.simulation.world.workload import CANARY, SimulatedJob

JSON = dict[str, Any]

NAME = "daemon"
FEWEST_CHANGES, MOST_CHANGES = 1, 6
LEAST_HEALTHY = (0, 50, 80, 100)  # percent
BROKEN, CRASHING = 0.25, 0.1  # share of revisions that are broken; share of failing attempts of the others
PATIENCE_S = 9000.0  # after the faults: then it is deleted in any state


class TrialDaemon:
    """The daemon of a trial, and the user who deploys it."""

    def __init__(self, deployment: SimulatedDeployment, facts: TrialFacts, seed: int) -> None:
        self._deployment, self._world, self._stored = deployment, deployment.world, facts.stored
        self._desk = EnvironmentDesk(deployment, NAME, facts)
        self._draw, self._seed = Draw(seed, NAME), seed
        self._deployments = self._revisions = 0
        self._specs: dict[int, JSON] = {}
        """By revision."""
        self._broken: set[int] = set()
        self._left_alone_at = 0.0
        self._deleted = True
        self._host_ports = self._draw.share() < 0.3

    @property
    def is_over(self) -> bool:
        """Whether it gets no more requests."""
        return (self._deleted and not self._desk.is_waiting) or self._deployment.is_torn_down

    def plan(self, faulty_s: float) -> None:
        """It comes soon, before the instances or after the first of them, and changes at random times."""
        self._deleted = False
        first_s = self._draw.between(0.0, min(300.0, faulty_s / 3))
        self._world.later(first_s, self._create)
        changes: tuple[Callable[[], None], ...] = (
            self._deploy_new, self._deploy_new, self._deploy_new, self._deploy_again,
            partial(self._desk.change, "FreezeEnvironment"), partial(self._desk.change, "ThawEnvironment"),
            partial(self._desk.change, "StopDeployment"),
        )  # fmt: skip
        for _ in range(self._draw.number(FEWEST_CHANGES, MOST_CHANGES)):
            self._world.later(self._draw.between(first_s, faulty_s), self._draw.one_of(changes))

    def leave_alone(self) -> None:
        """The faults have ended: nothing changes any more until everything rests."""
        self._left_alone_at = self._world.now
        if not self._deleted:
            self._desk.change("ThawEnvironment")

    def ask(self) -> None:
        """Send the requests that are due."""
        self._desk.act()

    def act(self, are_others_done: bool) -> None:
        """Between two steps once the faults have ended. are_others_done: everything else that users wanted is over."""
        if self._deleted or self._deployment.is_torn_down:
            return
        waited_s = self._world.now - self._left_alone_at
        if waited_s > PATIENCE_S or (waited_s > 0 and are_others_done and self._deployment.is_at_rest):
            self._desk.change("DeleteEnvironment")
            self._deleted = True

    @property
    def _env(self) -> Environment | None:
        return self._stored.environments.get(NAME)

    def _new_revision(self) -> int:
        self._revisions += 1
        number = self._revisions
        if self._draw.share() < BROKEN:
            self._broken.add(number)
        ports = {"hostPorts": [9100]} if self._host_ports else {}
        order = "stop-first" if self._host_ports else self._draw.one_of(("stop-first", "start-first"))
        zone = self._draw.one_of(("", "", "", "us-east-1a"))
        query = {"instances": f"attribute:ecs.availability-zone == {zone}"} if zone else {}
        spec = {
            "version": 1,
            "kind": "daemon",
            "name": NAME,
            "container": {
                "image": "argosy/web",
                "command": ["watch", str(number)],
                "environment": {"TOKEN": CANARY},
                **ports,
            },
            "resources": {"vcpus": self._draw.one_of((0.25, 0.5)), "memory": self._draw.one_of((128, 512))},
            "daemon": {**query, "update": self._drawn_update(order)},
        }
        self._specs[number] = spec
        return number

    def _drawn_update(self, order: str) -> JSON:
        return {
            "minHealthyPercent": self._draw.one_of(LEAST_HEALTHY),
            "order": order,
            "healthySeconds": self._draw.one_of((1, 5, 15, 60)),
            "progressSeconds": self._draw.one_of((60, 600)),
            "rollback": self._draw.share() < 0.7,
        }

    def _create(self) -> None:
        number = self._new_revision()
        self._desk.create(number, self._specs[number])
        self._deploy(number)

    def _deploy_new(self) -> None:
        if self._env is not None:
            number = self._new_revision()
            self._desk.update(number, self._specs[number])
            self._deploy(number)

    def _deploy_again(self) -> None:
        if self._revisions:
            self._deploy(self._draw.number(1, self._revisions))

    def _deploy(self, revision: int) -> None:
        self._deployments += 1
        job = self._job(revision)
        self._desk.deploy(revision, f"deployment-{self._deployments}", lambda submit: job)

    def _job(self, revision: int) -> SimulatedJob:
        is_broken = revision in self._broken
        return SimulatedJob(
            "",
            to_json(parse_spec(self._specs[revision])),
            1,
            shortest_s=1.0,
            longest_s=5.0 if is_broken else 600.0,
            failing=1.0 if is_broken else CRASHING,
            deaf=0.1 * self._draw.share(),
            clean=self._draw.share(),
        )
