"""Which container instances should ECS drain or reactivate, and whose console output is read?

ECS and the tasks of others follow the status; our own tasks follow the cordon (`lifecycle.host_care`). Example: after
`argosy instances drain i-1 --for 2h` the next tick sets i-1 to DRAINING, and the first tick after two hours to ACTIVE.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice

from argosy.lifecycle.pools import NEVER_JOINED
from argosy.model.host_care import MOST_STATUSES, ReadConsole, SetHostStatus
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.moment import Moment
from argosy.model.setbacks import Act

CONSOLES_AT_ONCE = 3  # instances that fail alike say the same
REGISTERED = (InstanceStatus.ACTIVE, InstanceStatus.DRAINING)


def status_changes(moment: Moment) -> Iterator[SetHostStatus]:
    """The instances whose status is to change, by cell and status."""
    wanted: defaultdict[tuple[str, InstanceStatus], list[str]] = defaultdict(list)
    for instance in moment.state.instances.values():
        status = _wanted(instance, moment.now)
        if status is not instance.status and moment.state.may_try(Act.DRAIN, instance.id, moment.now):
            wanted[instance.cell, status].append(instance.id)
    for (cell, status), ids in wanted.items():
        for start in range(0, len(ids), MOST_STATUSES):
            yield SetHostStatus(cell, tuple(ids[start : start + MOST_STATUSES]), status)


def console_reads(moment: Moment) -> Iterator[ReadConsole]:
    """Instances that never joined the cluster, in the tick that gives them up: EC2 forgets the output soon after."""
    late = (each for each in moment.state.instances.values() if each.cordon == NEVER_JOINED and not each.console)
    yield from (ReadConsole(each.cell, each.id) for each in islice(late, CONSOLES_AT_ONCE))


def _wanted(instance: Instance, now: float) -> InstanceStatus:
    """The agent itself drains an instance that is about to be interrupted."""
    is_ours = instance.owned and instance.status in REGISTERED and not instance.interrupted_at
    if not is_ours or not (instance.drain_until or instance.impaired):
        return instance.status
    return InstanceStatus.DRAINING if instance.impaired or instance.drain_until > now else InstanceStatus.ACTIVE
