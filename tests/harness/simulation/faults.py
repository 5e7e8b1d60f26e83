"""Kinds of faults, their rates and their times, drawn from one seed.

Requests of users and deployments of an owner count as faults too if they strain the controller: caps, deadlines,
images. Each trial switches each kind on or off and draws its intensity, so rare faults also occur alone, and not only
among all the others. Everything follows from the seed and the order of the draws, so a seed repeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import numpy as np

KINDS: Mapping[str, tuple[float, float]] = {  # in the order of their generators: a new kind goes to the end
    # kind: least and greatest chance, for each call, message, instance or trial as noted
    "reply-lost": (0.005, 0.05),  # a call: it takes effect, and the reply is lost
    "effect-lost": (0.005, 0.05),  # a call: neither effect nor reply
    "server-error": (0.005, 0.05),  # a call: 500, with or without the effect
    "throttle": (0.05, 0.3),  # a call is refused because of its rate
    "time-out": (0.002, 0.01),  # a call hangs for a minute, with or without the effect
    "crash": (0.002, 0.02),  # a call: the controller dies before or after it
    "page-failure": (0.02, 0.1),  # a further page of a listing: the listing breaks off
    "listing-lag": (0.1, 0.6),  # a task: listings and descriptions do not show it for up to 5 minutes
    "events-lost": (0.02, 0.3),  # a message never arrives
    "events-doubled": (0.05, 0.3),  # a message arrives again later
    "events-late": (0.05, 0.4),  # a message comes up to 10 minutes late, and so out of order
    "poison": (0.01, 0.1),  # a message comes with a broken one
    "interruption": (0.5, 15.0),  # an instance, per hour: EC2 reclaims it with a warning
    "storm": (0.3, 1.0),  # a trial: every instance of a pool is reclaimed at once
    "host-loss": (0.1, 4.0),  # an instance, per hour: it dies without a warning
    "rebalance": (0.5, 8.0),  # an instance, per hour: EC2 recommends a rebalance
    "shortage": (0.2, 0.8),  # a pool: it delivers nothing for a while
    "no-register": (0.05, 0.6),  # an instance never joins the cluster
    "bad-gpu": (0.1, 0.5),  # an instance registers without its GPUs
    "black-hole": (0.05, 0.3),  # an instance on which every task fails at once
    "stuck": (0.01, 0.05),  # a task never leaves PENDING
    "partition": (0.5, 4.0),  # an instance, per hour: its agent is cut off for up to 25 minutes
    "clock-skew": (0.5, 1.0),  # a controller's clock is up to 2 minutes off
    "store-outage": (0.3, 1.0),  # a trial: DynamoDB does not answer for some minutes
    "destroy": (0.1, 0.1),  # a trial: the deployment is torn down in the middle
    "events-reordered": (0.1, 0.5),  # a message is overtaken by those of the next half minute
    "failure-lies": (0.01, 0.1),  # a launch: the answer reports failures, and yet the task starts
    "pull-storm": (0.3, 1.0),  # a trial: no image can be pulled on any instance of a pool for some minutes
    "clock-jump": (1.0, 10.0),  # a controller, per hour: its clock jumps, up to 5 minutes off, forward or back
    "overlap": (0.3, 1.0),  # a trial: up to 8 controllers at once, rather than one or two
    "two-versions": (0.3, 1.0),  # a trial: some controllers are of an invented next version, with its state format
    "absence": (0.1, 0.5),  # a trial: no controller works for up to 3 hours
    "token-misbehaviour": (0.3, 0.9),  # a launch: ECS forgets the client token at once
    "deregistered": (0.5, 4.0),  # an idle instance, per hour: it is removed from the cluster, and lives on
    "protected": (0.05, 0.3),  # an instance: EC2 refuses to end it, for as long as faults strike
    "fleet-replaced": (0.3, 1.0),  # a trial: a pool gets another fleet, its own is deleted and its instances live on
    "os-shutdown": (0.3, 1.0),  # an instance: its system ends the containers, and the agent reports their exit codes
    "refused": (0.002, 0.01),  # a call: it and all of its kind are refused for up to 80 s, as if they were wrong
    "freeze": (0.001, 0.005),  # a call: the process stands still before or after it, for up to an hour
    "pages": (0.3, 1.0),  # a trial: listings and queries come in pages of a few entries
    "no-start-time": (0.05, 0.3),  # a message about a task that has ended does not say when it started
    "clean-exit": (0.2, 0.8),  # a run: some programs answer SIGTERM with exit code 0 and no result
    "bad-program": (0.1, 0.4),  # a run: many of its attempts fail
    "instant": (0.1, 0.5),  # a run: some programs take no time at all
    "hours": (0.02, 0.1),  # a run: its programs take hours
    "time-limit": (0.1, 0.4),  # a run: the time-out of attempts, or of the whole run, may be too short for some
    "tight-budget": (0.1, 0.5),  # a run: its budget is between half of a first minute and twice of what it needs
    "tight-hourly-cap": (0.1, 0.4),  # a run: its hourly cap is from below the cheapest instance to a few of them
    "deadline": (0.1, 0.4),  # a run: its deadline is minutes or hours away
    "many-runs": (0.05, 0.2),  # a trial: up to a dozen runs
    "cancel": (0.05, 0.3),  # a run: its user cancels it
    "retry": (0.5, 1.0),  # a trial: users retry runs that ended without all their results
    "quota": (0.2, 0.6),  # a trial: EC2 grants a few instances' vCPUs at a time, which the settings may know
    "new-image": (0.2, 0.7),  # a trial: deployments make new versions of the launch templates
    "further-cell": (0.3, 0.7),  # a trial: the deployment has a second Region
    "cell-left-out": (0.3, 1.0),  # such a trial: deployments leave the second Region out, and put it back later
    "cell-destroyed": (0.2, 0.6),  # such a trial: the stack of the second Region is destroyed, and put back later
    "own-fault": (0.01, 0.1),  # a tick, twice at most: the controller's own code fails at one run, for up to 25 minutes
    "most-tasks": (0.1, 0.4),  # a trial: instances of one type or of all run fewer tasks than they have room for
    "torn-document": (0.7, 1.0),  # a trial: a stored document of one run becomes unreadable
    "own-program": (0.1, 0.5),  # a run: it brings its own program, which only instances with our runner can start
    "no-runner": (0.05, 0.4),  # an instance joins without our runner, because its installation failed
    "service": (0.5, 1.0),  # a trial: a service is deployed repeatedly, scaled and frozen, with its own tasks
    "dependency": (0.2, 0.8),  # a run: it waits for an earlier one, as a whole or task by task, or for a time
    "cluster-scaled": (0.3, 0.8),  # a trial: a user wants a number of instances kept, changes it, and ends it
    "queue": (0.3, 1.0),  # a trial: its users share the cluster by queues, and the owner changes their shares
    "call-lost": (0.1, 0.5),  # an urgent message: its call of the controller never arrives
    "tick-disabled": (0.2, 0.6),  # a trial: an update of the stack disables the controller's tick
    "daemon": (0.4, 1.0),  # a trial: a daemon is deployed repeatedly, frozen and thawed, with its own tasks
    "preemption": (0.4, 1.0),  # a trial: its users share the cluster by queues, and one of them may take room
    "readings": (0.3, 1.0),  # a trial: AWS takes some of its contradictory contracts in the less usual way
    "drained": (0.3, 0.8),  # a trial: users let instances drain for a while, and end that for some
    "no-gpu-sharing": (0.1, 0.5),  # an instance: its AMI or agent is too old to share GPUs
    "sick-gpu": (0.5, 4.0),  # an instance with GPUs, per hour: one falls off the bus, and ECS says so up to 45 s later
    "gpu-reset": (4.0, 30.0),  # an instance on which tasks share GPUs, per hour: one of those is reset
    "reservation": (0.3, 0.8),  # a trial: Capacity Reservations, which others use, and which end or are cancelled
    "reclaimed": (0.3, 0.8),  # a trial: an interruptible Capacity Reservation, of which its owner takes places back
    "xid": (0.5, 4.0),  # an instance with GPUs, per hour: one fails, and only its driver's log says so, by an attribute
    "headroom": (0.2, 0.5),  # a trial: the settings keep room for further tasks while runs are open
    "first-order": (0.3, 0.8),  # a trial: until an instance has joined, the first order is of very few
    "cancel-tasks": (0.2, 0.6),  # a run: its user cancels its first and its last task
    "sick-host": (1.0, 12.0),  # an instance, per hour: a check of ECS or EC2 fails there, in most cases for a while
}
PROMISED_AWAY = frozenset({"token-misbehaviour"})  # AWS guarantees that it does not happen
ALL = frozenset(KINDS) - PROMISED_AWAY
BLOCK = 64  # numbers drawn at once
# The share of kinds that are on, drawn for each trial. With most kinds on at once hardly a task starts while faults
# strike; with few, much work is under way when they strike (swarm testing, ISSTA'12).
SHARES_ON = (0.05, 0.15, 0.3, 0.75)
SHARE = 62  # number of the generator that draws it: later kinds leave it out, so that old seeds stay the same


def kinds_of(text: str) -> frozenset[str]:
    """`all`, `none`, or names joined by commas. Raises ValueError with a sentence for an unknown name."""
    if text in ("all", "none"):
        return ALL if text == "all" else frozenset()
    names = frozenset(_singular(part.strip()) for part in text.split(",") if part.strip())
    if unknown := sorted(names - KINDS.keys()):
        raise ValueError(f"unknown fault {unknown[0]!r}; there are: {', '.join(sorted(KINDS))}")
    return names


def _singular(name: str) -> str:
    """Accepts `interruptions` for `interruption`."""
    return name.removesuffix("s") if name not in KINDS and name.removesuffix("s") in KINDS else name


class _Numbers:
    """Numbers in 0..1 from one generator, drawn in blocks because numpy is slow at single ones."""

    def __init__(self, *seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._ready: list[float] = []

    def next(self) -> float:
        if not self._ready:
            self._ready = self._rng.random(BLOCK).tolist()
        return self._ready.pop()


class Faults:
    """The faults of one trial. `rates` says which are on and how strongly; `seen` counts the real events.

    Each kind has its own generator, so leaving one kind out changes the others as little as possible.
    """

    def __init__(self, seed: int, kinds: Collection[str], *, every: bool = False) -> None:
        """every: all `kinds` are on, rather than a random part of them."""
        self._rng = _Numbers(seed)
        self._rngs = {kind: _Numbers(seed, number + (number >= SHARE)) for number, kind in enumerate(KINDS)}
        self.seen: Counter[str] = Counter()
        self.active = True
        self.rates: dict[str, float] = {}
        share_on = SHARES_ON[int(_Numbers(seed, SHARE).next() * len(SHARES_ON))]
        for kind, (least, greatest) in KINDS.items():
            on, strength = self._rngs[kind].next(), self._rngs[kind].next()
            if kind in kinds and (every or len(kinds) == 1 or on < share_on):
                self.rates[kind] = least + (greatest - least) * strength

    def strikes(self, kind: str, share: float = 1.0) -> bool:
        """Whether this fault happens now. share: of its usual chance."""
        rate = self.rates.get(kind, 0.0)
        if not rate or not self.active or self._rngs[kind].next() >= rate * share:
            return False
        self.seen[kind] += 1
        return True

    def note(self, kind: str) -> None:
        """Count a fault that happened without being drawn."""
        self.seen[kind] += 1

    def on(self, kind: str) -> bool:
        return self.active and kind in self.rates

    def between(self, least: float, greatest: float) -> float:
        return least + (greatest - least) * self._rng.next()

    def coin(self) -> bool:
        return self._rng.next() < 0.5
