"""What is noted when an attempt starts: the parts of its start, and that its instance holds the image."""

from __future__ import annotations

from argosy.lifecycle import readings
from argosy.model.attempts import AttemptStatus
from argosy.model.events import TaskSeen
from argosy.model.instances import Instance
from argosy.model.runs import Run
from argosy.model.start_ups import image_key, with_image
from argosy.model.state import State


def note_pull(state: State, row: int, seen: TaskSeen) -> None:
    """ECS may tell of a pull while the task is PENDING; with RUNNING and later `note_start` notes it."""
    table, told = state.attempts, {"pull_started_at": seen.pull_started_at, "pull_stopped_at": seen.pull_stopped_at}
    is_launched = table["status"][row] == AttemptStatus.LAUNCHED.value and seen.last_status not in (
        "RUNNING",
        "STOPPED",
    )
    if is_launched and any(told[name] > table[name][row] for name in told):
        table.set(row, **told)
        readings.note_pull_told(state, seen)


def note_start(state: State, run: Run, row: int, seen: TaskSeen) -> None:
    """The attempt in a row is running, or has ended: its start is noted once, if it had one."""
    table, instance = state.attempts, state.instance_of(row)
    readings.note_cut_pull(state, row, seen, image_key(run.image, run.task_definition))
    if not seen.started_at or table["status"][row] != AttemptStatus.LAUNCHED.value:
        return
    began, pulled = seen.pull_started_at, seen.pull_stopped_at
    is_told = 0.0 < began <= pulled
    if is_told:
        table.set(row, pull_started_at=began, pull_stopped_at=pulled)
    pull_s = pulled - began if is_told else 0.0
    start_s = max(0.0, seen.started_at - float(table["launched_at"][row]) - pull_s)
    run.start_ups = run.start_ups.with_start(start_s)
    if instance is not None and is_told:
        readings.note_pull(state, instance, image_key(run.image, run.task_definition), pull_s, pulled)
    if instance is not None:
        _note_image(state, run, instance, (began, pulled) if is_told else (0.0, seen.started_at))


def _note_image(state: State, run: Run, instance: Instance, pull: tuple[float, float]) -> None:
    """pull: begin and end, epoch seconds; begin 0 = ECS does not say."""
    (began, ended), key = pull, image_key(run.image, run.task_definition)
    held_at = instance.images.get(key)
    if began and (held_at is None or began < held_at):
        usd = (ended - began) * run.needs.share_of(instance.size) * instance.price_usd_per_hour / 3600
        run.start_ups = run.start_ups.with_pull(ended - began, usd)
    if held_at is None:
        instance.images = with_image(instance.images, key, ended)
        state.changed_instances.add(instance.id)


def note_boot(run: Run, instance: Instance | None) -> None:
    """An attempt of the run was launched on the instance. Its boot was for the run if that was already open."""
    if instance is None or instance.id in run.instances:
        return
    if instance.registered_at > instance.launched_at >= run.opened_at:
        run.start_ups = run.start_ups.with_boot(instance.registered_at - instance.launched_at)
