"""Minimum sizes of the cluster, and the instances that may go without it falling below them.

Every setting and request that keeps a number of instances is a floor here, and only here. All of them hold at once: an
instance counts towards each one that it fits, so the largest floor sets the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from argosy.model.instances import Instance, InstanceStatus
from argosy.model.moment import Moment
from argosy.model.state import State


class LeastSize(NamedTuple):
    """That many instances of these types; () = of all. for_work: buy only instances that open runs could use."""

    instances: int
    types: tuple[str, ...] = ()
    for_work: bool = False

    def is_of(self, instance_type: str) -> bool:
        return not self.types or instance_type in self.types


def least_sizes(moment: Moment) -> list[LeastSize]:
    """The floors above 0 now: `minInstances` while runs other than daemons are open, and the latest request of a
    user."""
    state, found = moment.state, list[LeastSize]()
    if moment.policy.min_instances and serves_runs(state):
        found.append(LeastSize(moment.policy.min_instances, for_work=True))
    if state.floor.instances:
        found.append(LeastSize(state.floor.instances, state.floor.types))
    return found


def serves_runs(state: State) -> bool:
    """Whether runs other than daemons are open."""
    return any(not (run.done or run.is_daemon) for run in state.runs.values())


def counts(instance: Instance) -> bool:
    """Whether it counts towards floors: present or booting, and not about to go."""
    leaves = instance.cordon or instance.rebalance_at or instance.status is InstanceStatus.DRAINING
    return instance.counts_for_target and not leaves


def missing(moment: Moment, least: LeastSize) -> int:
    """The number of instances that a floor lacks; 0 or more."""
    has = sum(counts(each) and least.is_of(each.instance_type) for each in moment.state.instances.values())
    return max(0, least.instances - has)


def beyond(moment: Moment, spare: Iterable[Instance]) -> Iterator[Instance]:
    """The instances, in their order, that every floor can spare from those that can take tasks."""
    floors = least_sizes(moment)
    able = [each.instance_type for each in moment.state.instances.values() if each.placeable] if floors else []
    left = [sum(map(least.is_of, able)) - least.instances for least in floors]
    for instance in spare:
        its = [number for number, least in enumerate(floors) if least.is_of(instance.instance_type)]
        if all(left[number] > 0 for number in its):
            for number in its:
                left[number] -= 1
            yield instance
