"""A world of ticks for an environment's tasks under `rollout.step`, in which everything happens.

No engine and no AWS: slots that start, become healthy, crash and are lost, deployments over deployments, scaling and
freezing. After each step it says which law was broken.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from argosy.model.run_terms import ServiceTerms
from argosy.scheduler.services import rollout
from argosy.scheduler.services.rollout import Slot, SlotStatus

PERCENTAGES = (0, 25, 50, 75, 90, 95, 100)
OVER = (0, 5, 25, 50, 100)
WARNED_TICKS = 6  # from a warning to the end of its instance
SLOWEST = 6  # ticks that a start takes while there are faults
LONGEST_PAUSE = 8  # ticks, after crashes
RECOVERY = 30  # ticks until a task that was unhealthy would be well again, if it were let


def updating(least: int, over: int, desired: int = 0) -> ServiceTerms:
    """The terms of a service that may fall to `least` percent and start `over` percent more, without a target group."""
    return ServiceTerms(
        desired, least, over, healthy_s=0.0, progress_s=0.0, rolls_back=False, target_group="", drain_s=0.0, content=""
    )


@dataclass(slots=True)
class Task:
    """A wanted one. due: the tick from which its next status is due; ends: when its instance goes, 0 = it stays."""

    slot: Slot
    due: int
    ends: int = 0


@dataclass(frozen=True, slots=True)
class Weather:
    """Chances a tick, of each task or of the environment as said."""

    crash: float = 0.0  # a live task
    warning: float = 0.0  # a live task
    loss: float = 0.0  # a live task, without a warning
    change: float = 0.0  # the environment: a deployment, another desired count, freezing and thawing
    slow: float = 0.0  # a start
    sick: float = 0.0  # a running task becomes unhealthy

    @classmethod
    def drawn(cls, draw: Random) -> Weather:
        def chance(most: float) -> float:
            return draw.random() * most if draw.random() < 0.6 else 0.0

        return cls(chance(0.2), chance(0.15), chance(0.1), chance(0.2), chance(0.5), chance(0.2))


CALM = Weather()


class RolloutWorld:
    """One environment. Everything follows from the seed."""

    def __init__(self, seed: int) -> None:
        self._draw = Random(seed)
        self.weather = Weather.drawn(self._draw)
        self.terms = self._drawn_terms()
        self.desired = self._draw.randint(0, 20)
        self.base = self._draw.choice((0, 0, 1, 2, 5, 20))
        self.is_frozen = False
        self.revision, self.now = 1, 0
        self.tasks: dict[tuple[str, int], Task] = {}
        self.rows: dict[str, int] = {}
        self.broken: list[str] = []

    def _drawn_terms(self) -> ServiceTerms:
        while True:
            least, over = self._draw.choice(PERCENTAGES), self._draw.choice(OVER)
            if (least, over) != (100, 0):  # which specs may not say
                return updating(least, over)

    @property
    def target(self) -> str:
        return f"run{self.revision}"

    def slots(self) -> list[Slot]:
        found = [task.slot._replace(is_target=task.slot.run_id == self.target) for task in self.tasks.values()]
        self._draw.shuffle(found)
        return found

    def tick(self) -> None:
        """Something happens, and then we act."""
        self.now += 1
        self._change()
        for name in list(self.tasks):
            self._live(name)
        slots = self.slots()
        step = self.step(slots)
        self.broken += broken_laws(slots, self.desired, self.terms, step, is_frozen=self.is_frozen, base=self.base)
        for slot in (*step.parks, *step.stops, *step.failed):
            del self.tasks[slot.run_id, slot.index]
        for _ in range(step.starts):
            index = next(n for n in range(len(self.tasks) + 1) if (self.target, n) not in self.tasks)
            slot = Slot(self.target, index, SlotStatus.PENDING, is_target=True)
            self.tasks[self.target, index] = Task(slot, self.now + 1)

    def step(self, slots: list[Slot]) -> rollout.Step:
        """The next one."""
        return rollout.step(slots, self.desired, self.terms, is_frozen=self.is_frozen, base=self.base)

    @property
    def is_settled(self) -> bool:
        """Exactly the desired tasks of the target exist and are healthy, with as many base tasks among them as
        possible."""
        slots = self.slots()
        fit = [slot for slot in slots if slot.is_target and slot.status is SlotStatus.HEALTHY and not slot.leaves]
        on_demand = sum(not slot.is_spot for slot in fit)
        return len(fit) == len(slots) == self.desired and on_demand >= min(self.base, self.desired)

    def _lacks_of_the_base(self) -> bool:
        """As `scheduler.turns.on_demand_base` has it."""
        alive = [slot for slot in self.slots() if slot.is_target and slot.status is not SlotStatus.PENDING]
        return sum(not (slot.is_spot or slot.leaves) for slot in alive) < self.base

    def grow_calm(self) -> None:
        """From now on nothing happens by itself."""
        self.weather, self.is_frozen = CALM, False

    def _happens(self, chance: float) -> bool:
        return self._draw.random() < chance

    def _change(self) -> None:
        if not self._happens(self.weather.change):
            return
        what = self._draw.choice(("deploy", "deploy", "scale", "freeze", "back"))
        if what == "deploy":
            self.revision, self.terms, self.is_frozen = self.revision + 1, self._drawn_terms(), False
        elif what == "scale":
            self.desired = self._draw.randint(0, 20)
        elif what == "freeze":
            self.is_frozen = not self.is_frozen
        else:
            self.revision, self.is_frozen = max(1, self.revision - 1), False

    def _live(self, name: tuple[str, int]) -> None:
        """One task advances, or ends."""
        task = self.tasks[name]
        if task.slot.status is not SlotStatus.PENDING:
            lost = (task.ends and self.now >= task.ends) or self._happens(self.weather.loss)
            if lost or self._happens(self.weather.crash):
                self._ended(name, 0 if lost else self._draw.randint(0, LONGEST_PAUSE))
                return
            if not task.ends and self._happens(self.weather.warning):
                task.ends, task.slot = self.now + WARNED_TICKS, task.slot._replace(leaves=True)
        runs = task.slot.status in (SlotStatus.YOUNG, SlotStatus.HEALTHY)
        if runs and self._happens(self.weather.sick):  # for good, or until it is well again
            task.slot, task.due = task.slot._replace(status=SlotStatus.YOUNG, fails=True), self.now + RECOVERY
        elif self.now >= task.due and task.slot.status is not SlotStatus.HEALTHY:
            task.slot = task.slot._replace(fails=False)
            self._further(task)

    def _ended(self, name: tuple[str, int], pause: int) -> None:
        """As `lifecycle.services` has it: wanted again, unless the environment is frozen."""
        if self.is_frozen:
            del self.tasks[name]
        else:
            slot = self.tasks[name].slot._replace(status=SlotStatus.PENDING, leaves=False, fails=False, is_sent=True)
            self.tasks[name] = Task(slot, self.now + 1 + pause)

    def _further(self, task: Task) -> None:
        status = SlotStatus(task.slot.status + 1)
        is_sent = status is not SlotStatus.STARTING or not self._happens(self.weather.slow)
        is_spot = task.slot.is_spot
        if status is SlotStatus.STARTING:
            is_spot = not self._lacks_of_the_base() and self._draw.random() < 0.7
        task.slot = task.slot._replace(status=status, is_sent=is_sent, is_spot=is_spot)
        task.due = self.now + (self._draw.randint(1, SLOWEST) if self._happens(self.weather.slow) else 1)


def broken_laws(
    slots: list[Slot], desired: int, terms: ServiceTerms, step: rollout.Step, *, is_frozen: bool, base: int = 0
) -> list[str]:
    """The violations by our own acts, in sentences. The bounds are computed here again, from the percentages."""
    least, most = bounds(terms, desired)
    healthy = sum(slot.status is SlotStatus.HEALTHY for slot in slots)
    left = healthy - sum(slot.status is SlotStatus.HEALTHY for slot in step.stops)
    active = len(slots) - len(step.parks) - len(step.stops) - len(step.failed) + step.starts
    going = {*step.parks, *step.stops, *step.failed}
    # With a base, what stands in for it on spot stays until that is healthy.
    fit = sum(slot.is_target and not (slot.leaves or slot.is_failing) and slot not in going for slot in slots)
    fit = fit if not base else 0
    well = sum(slot.is_target and not slot.leaves and slot.status is SlotStatus.HEALTHY for slot in slots)
    ill = [slot for slot in slots if slot.is_target and slot.is_failing]
    laws = {
        f"{left} of {healthy} healthy tasks are left, {least} have to be": left >= min(healthy, least),
        f"{active} tasks are active, {most} may be": not step.starts or active <= most,
        f"{step.starts} start besides {fit}, {desired} are desired": not step.starts or step.starts + fit <= desired,
        "something is frozen and changes": not is_frozen or not (step.starts or step.stops or step.failed),
        "what is not unhealthy is stopped as that": {*step.failed} <= {*ill},
        "an unhealthy task goes though its successor has room and is not healthy": active >= most
        or len(ill) - len(step.failed) >= min(len(ill), desired - well),
        "an unhealthy task stays though others are healthy in its place": is_frozen
        or len(ill) - len(step.failed) <= max(0, desired - well),
        "what is pending is stopped": all(slot.status is not SlotStatus.PENDING for slot in step.stops),
        "what is alive is parked": all(slot.status is SlotStatus.PENDING for slot in step.parks),
        "what ECS does not know is stopped": all(slot.is_sent for slot in step.stops),
        "something goes that is not there, or twice": going <= {*slots}
        and len(going) == len(step.parks) + len(step.stops) + len(step.failed),
    }
    return [sentence for sentence, holds in laws.items() if not holds]


def bounds(terms: ServiceTerms, desired: int) -> tuple[int, int]:
    """How many healthy tasks our own acts leave, and how many active ones they lead to; both are rounded up. If that
    would allow nothing, one may be stopped first."""
    least = -(-desired * terms.min_healthy_percent // 100)
    most = desired - (-desired * terms.max_over_percent // 100)
    return (max(0, desired - 1) if least >= desired == most else least), most
