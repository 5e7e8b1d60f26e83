"""Runs of the shipped examples under chance, each compared with a plan's forecast before it was submitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from argosy.api.actions import Api
from argosy.api.admission.specs import DeploymentLimits, Sources
from argosy.catalogue.lookup import load_catalogue
from argosy.cli.runs.spec_source import load
from argosy.emulator.ec2.market import walking_prices
from argosy.emulator.ec2.service import Ec2Instance
from argosy.local.deployment import LOCAL_TYPES
from argosy.local.options import EAGER_POLICY
from tests.fakes.api import Definitions, Images, Items, Wake
from tests.harness.simulation.faults import Faults
from tests.harness.simulation.injection.machine_faults import MachineDefects, MachineFaults
from tests.harness.simulation.world.agent import AgentBehaviour
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.harness.simulation.world.world import START, share
from tests.scenarios.controlled import RUN_ID, ZONES, Controlled

IMAGES = Path(__file__).parents[2] / "containers"
DEMO = "the demo's first run"
EXAMPLES = (
    "digits/run.yaml", "digits/run-gpu.yaml", "recommender/run.yaml", "sweep/run.yaml", "tensorflow-inference/run.yaml",
    DEMO,
)  # fmt: skip
FAULTS = frozenset({"interruption", "host-loss", "rebalance", "shortage"})
OTHER_ID = "other-261121-062733-k3f9"
TYPES = ("c5.large", "c5.xlarge", "c5.4xlarge", "g4dn.xlarge", "g4dn.12xlarge")
TICK_S = 5.0
MOST_S = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """A forecast, and the actual run."""

    seed: int
    example: str
    cost: dict[str, float]
    seconds: dict[str, float]
    cost_usd: float
    took_s: float
    status: str
    interruptions: int

    @property
    def cost_held(self) -> bool:
        return self.cost["low"] <= self.cost_usd <= self.cost["high"]

    @property
    def seconds_held(self) -> bool:
        return self.seconds["low"] <= self.took_s <= self.seconds["high"]


class Chance:
    """How long the tasks and boots of a run take."""

    def __init__(self, seed: int, low_s: float, high_s: float) -> None:
        """low_s, high_s: the range for the mean of the tasks, from the plan."""
        self.seed = seed
        self.mean_s = low_s * (high_s / low_s) ** share(seed, "mean")
        self.boot_s = 60.0 + 180.0 * share(seed, "boots")

    def task(self, task: dict[str, Any], instance: Ec2Instance) -> TaskBehaviour:
        return TaskBehaviour(self.mean_s * (0.5 + share(self.seed, "task", task["taskArn"])))

    def agent(self, instance: Ec2Instance) -> AgentBehaviour:
        return AgentBehaviour(register_s=self.boot_s * (0.5 + share(self.seed, "boot", instance.instance_id)) - 30.0)


def outcome(seed: int) -> Outcome:
    """One run of one of the examples, or the first run of the demo."""
    example = EXAMPLES[seed % len(EXAMPLES)]
    return demo_outcome(seed) if example == DEMO else example_outcome(seed, example)


def example_outcome(seed: int, example: str) -> Outcome:
    """Alone on a deployment at rest, with interruptions, losses and shortages as trials draw them."""
    spec, _ = load(IMAGES / example)
    cluster = Controlled(types=TYPES, prices=partial(price, seed), tick_s=TICK_S)
    plan = planned(cluster, spec, TYPES)
    chance = Chance(seed, plan["taskSeconds"]["low"], plan["taskSeconds"]["high"])
    cluster.world.workload, cluster.world.agent_behaviour = chance.task, chance.agent
    faults = Faults(seed, FAULTS)
    MachineFaults(cluster.world, faults, MachineDefects(faults, cluster.world.timeline, load_catalogue())).begin()
    cluster.submit(plan["tasks"], **spec)
    return ended(seed, example, cluster, plan)


def demo_outcome(seed: int) -> Outcome:
    """As `argosy demo`: in local mode's time, with a second run on GPUs alongside it, and an instance taken away under
    its tasks. The machine is loaded, so tasks take up to twice what they should."""
    first, second = (load(IMAGES / f"digits/{name}.yaml")[0] for name in ("run", "run-gpu"))
    types = [name for names in LOCAL_TYPES.values() for name in names]
    prices, patience = walking_prices(load_catalogue()), {**EAGER_POLICY, "linger_s": 10.0, "machine_programs": 4}
    cluster = Controlled(types=types, prices=prices, tick_s=0.5, starts_s=0.3, **patience)
    plan = planned(cluster, first, types)
    chance = Chance(seed, 6.5, 13.0)
    world = cluster.world
    world.workload = chance.task
    world.agent_behaviour = lambda instance: AgentBehaviour(register_s=0.2 + share(seed, instance.instance_id))
    cluster.submit(plan["tasks"], **first)
    while not any(cluster.fleet_targets().values()):
        cluster.step()
    cluster.submit(8, OTHER_ID, **second)

    def take() -> None:
        busy = sorted(cluster.controllers[0].state.attempts.runs_on_instance) if cluster.controllers[0].state else []
        spot = [name.decode() for name in busy if world.ec2.ledger.instances[name.decode()].state == "running"]
        if spot:
            world.interrupt(spot[int(len(spot) * share(seed, "taken"))], notice_s=4.0)

    world.later(5.0 + 10.0 * share(seed, "when"), take)
    return ended(seed, DEMO, cluster, plan)


def ended(seed: int, example: str, cluster: Controlled, plan: dict[str, Any]) -> Outcome:
    """The run is submitted: tick until it has ended."""
    while not any(name in (f"{RUN_ID}/_SUCCESS", f"{RUN_ID}/_FAILED") for name in cluster.s3.objects):
        cluster.step()
        assert cluster.world.now < START + MOST_S, seed
    cluster.tick()
    record = cluster.record(RUN_ID)
    took_s = record.stopped_at - record.submitted_at
    return Outcome(
        seed, example, plan["costUsd"], plan["seconds"], record.cost_usd, took_s, record.status, record.interruptions
    )


def price(seed: int, kind: str, zone: str, at: float) -> float:
    """As in trials: between 70 and 130 % of the typical one, new every half hour."""
    change = 0.7 + 0.6 * share(seed, "price", kind, zone, int(at // 1800))
    return load_catalogue()[kind].typical_spot_usd_per_hour * change


def planned(cluster: Controlled, spec: dict[str, Any], types: Sequence[str]) -> dict[str, Any]:
    """The plan of a deployment as it is."""
    fleets = [("us-east-1", kind, zone) for kind in types for zone in ZONES]
    limits = DeploymentLimits("s3://results/", frozenset({"results"}), {})
    sources, now, policy = Sources(Images(), Items(), Definitions()), cluster.world.clock, cluster.policy
    api = Api(cluster.store, Wake(), sources, limits, "argosy", ["us-east-1"], now, policy=policy, fleets=fleets)
    reply = api.handle({"action": "PlanRun", "spec": spec}, "r")
    assert reply["statusCode"] == 200, reply
    return dict(reply["body"])
