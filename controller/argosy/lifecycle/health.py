"""How much work may an instance be given?

- A broken instance fails tasks fast and so attracts all tasks. After a few quick failures in a row, no more work is
  placed there, unless the tasks fail elsewhere too: then the program is at fault.
- Other owners' tasks, such as a service on our instances, take the resources that are neither free in ECS nor used by
  our attempts. Our view may differ by a few seconds from an event. So they count only when every sighting for a while
  has shown them, or once ECS has refused a task. Their shares of GPUs count by GPU, from one sweep to the next.
- An instance that refuses tasks is paused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from argosy.lifecycle.accounts import Account, AttemptEnd
from argosy.model.attempts import AttemptStatus, StopCause
from argosy.model.events import ContainerInstanceSeen
from argosy.model.instances import GpuDevice, Instance
from argosy.model.policy import Policy
from argosy.model.resources import NOTHING, Resources
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus

MAX_PAUSE_S = 300.0
SETTLED_S = 5.0  # by then, sightings include a launch
SHARED = "NVIDIA_MPS"  # the mode of a GPU with shares
PATIENT_REFUSALS = 2  # tolerated in a row for reasons other than room: they may concern a single launch


def note_end(state: State, run: Run, instance: Instance, end: AttemptEnd, policy: Policy) -> None:
    """Note an attempt that ended on the instance. Its seconds are booked already; 0 = it never started."""
    if run.is_daemon:
        return  # a daemon that crashes everywhere would take every instance from all other runs
    account, seconds = end.account, float(run.tasks["seconds"][end.index])
    own = end.cause is StopCause.NONE and account in (Account.USER, Account.START) and not _is_on_trial(state, run)
    at_once = own and seconds < policy.quick_failure_s
    if not (at_once or end.cause in (StopCause.STUCK, StopCause.UNPULLED)):
        if instance.strikes and (account is Account.SUCCESS or seconds >= policy.quick_failure_s):
            instance.strikes = 0
            state.changed_instances.add(instance.id)
        return
    instance.strikes += 1
    state.changed_instances.add(instance.id)
    if instance.strikes >= policy.max_strikes and not instance.cordon and _is_its_own_fault(state, run, instance):
        instance.cordon = f"{instance.strikes} attempts in a row failed at once or never started"


def _is_on_trial(state: State, run: Run) -> bool:
    """Whether a deployment is trying out the run's revision: a quick failure is then the revision's fault."""
    env = state.environments.get(run.name) if run.terms.service else None
    if env is None or env.deployment is None or env.target is None or env.deployment.has_ended:
        return False
    return env.target.run_id == run.id


def _is_its_own_fault(state: State, run: Run, instance: Instance) -> bool:
    """Whether the run's tasks do better elsewhere, as far as is known: one has succeeded, they fail on no other live
    instance, or an untried instance could take them. Strikes on ended instances, or on instances without a task of
    this run, say nothing about its program."""
    if run.tasks.counts()[TaskStatus.SUCCEEDED]:
        return True
    others = [other for other in state.instances.values() if other.alive and other is not instance]
    if not any(other.strikes and other.id in run.instances for other in others):
        return True
    return any(other.placeable and not other.strikes and other.id not in run.instances for other in others)


def note_remaining(state: State, instance: Instance, seen: ContainerInstanceSeen, now: float, policy: Policy) -> None:
    """Record the free resources that ECS reports for the instance."""
    if seen.remaining is None or not _is_calm(state, instance, now):
        return
    shares, used = _foreign_shares(state, instance, seen.gpu_devices), state.used_on(instance.id)
    if shares is None:  # a message: only DescribeContainerInstances shows the memory of GPUs
        sharing = _sharing(state, instance) + sum(map(bool, instance.foreign_shares))
    else:
        sharing = sum(device.mode == SHARED for device in seen.gpu_devices)
        instance.foreign_shares = shares if any(shares) else ()
    used = used._replace(gpus=used.gpus + sharing, gpu_share_mib=0)
    _note_taken(instance, instance.total.minus(Resources(*seen.remaining)).beyond(used), now, policy)
    instance.foreign = instance.foreign._replace(gpu_share_mib=sum(instance.foreign_shares))


def _note_taken(instance: Instance, taken: Resources, now: float, policy: Policy) -> None:
    """taken: what tasks that are not ours take in this sighting."""
    less = Resources(*map(min, taken, instance.foreign))
    instance.foreign = less  # freed room is used at once
    if taken == less:
        instance.foreign_since, instance.foreign_seen = 0.0, NOTHING
        return
    if not instance.foreign_since:
        instance.foreign_since, instance.foreign_seen = now, taken
    instance.foreign_seen = Resources(*map(min, instance.foreign_seen, taken))
    if now - instance.foreign_since >= policy.foreign_patience_s or instance.refusals:
        instance.foreign = Resources(*map(max, less, instance.foreign_seen))
        instance.foreign_since, instance.foreign_seen = 0.0, NOTHING


def _foreign_shares(state: State, instance: Instance, devices: Sequence[GpuDevice]) -> tuple[int, ...] | None:
    """MiB that shares that are not ours take of each GPU; None if ECS does not say, or not which GPUs ours have."""
    left = {device.gpu_id: device.total_mib - device.free_mib for device in devices if device.mode == SHARED}
    if not devices or not all(device.total_mib for device in devices):
        return None
    needs, table = state.needs_by_number(), state.attempts
    for row in table.on_instance(instance.id):
        share, mask = needs.get(int(table["run"][row]), NOTHING).gpu_share_mib, int(table["gpu_mask"][row])
        if share and not mask:
            return None
        for bit, gpu in enumerate(instance.gpu_ids if share else ()):
            left[gpu] = left.get(gpu, 0) - share * (mask >> bit & 1)
    return tuple(max(0, left.get(gpu, 0)) for gpu in instance.gpu_ids)


def _sharing(state: State, instance: Instance) -> int:
    """The most GPUs that our tasks with a share may take from those that ECS has free."""
    here: Mapping[int, int] = state.attempts.runs_on_instance.get(instance.id.encode(), {})
    needs = state.needs_by_number()
    return sum(count for number, count in here.items() if needs.get(number, NOTHING).gpu_share_mib)


def _is_calm(state: State, instance: Instance, now: float) -> bool:
    """Whether no launch is under way there: ECS may or may not have counted it yet."""
    rows = state.attempts.on_instance(instance.id)
    if not rows:
        return True
    status, launched_at = state.attempts["status"][rows], state.attempts["launched_at"][rows]
    is_unsure = (status == AttemptStatus.INTENT.value) | (status == AttemptStatus.IN_DOUBT.value)
    return not (is_unsure | (now - launched_at < SETTLED_S)).any()


def note_refusal(state: State, instance_id: str, reason: str, now: float, policy: Policy) -> None:
    """ECS refused a task there. For lack of room, or after repeated refusals of any kind (it may have left the
    cluster), the instance is paused, each time for longer. A task refused within a pause was sent before it."""
    instance = state.instances.get(instance_id)
    if instance is None or now < instance.paused_until:
        return
    instance.refusals += 1
    patience = 0 if reason.startswith("RESOURCE") else PATIENT_REFUSALS
    if instance.refusals > patience:
        pause_s = policy.refusal_pause_s * 2.0 ** min(instance.refusals - patience - 1, 10)
        instance.paused_until = now + min(MAX_PAUSE_S, pause_s)
    state.changed_instances.add(instance_id)


def note_acceptance(state: State, instance_id: str) -> None:
    """ECS took a task there: earlier refusals no longer count."""
    instance = state.instances.get(instance_id)
    if instance is not None and instance.refusals:
        instance.refusals, instance.paused_until = 0, 0.0
        state.changed_instances.add(instance_id)
