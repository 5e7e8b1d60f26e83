"""The status of container instances at ECS, and the console output of those that never joined it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from argosy.aws.cell import TIME_WAS_UP, Cell, read_each
from argosy.aws.errors import AWS_ERRORS, classify
from argosy.messages.ecs import container_instance_seen
from argosy.model.events import Event, NotCarriedOut
from argosy.model.host_care import ConsoleRead, ReadConsole, SetHostStatus
from argosy.model.redaction import last_lines, redacted
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State

LINES, CHARACTERS = 20, 1_500  # kept of a console output


class HostStatuses:
    """UpdateContainerInstancesState and GetConsoleOutput, in every cell."""

    def __init__(self, cells: Mapping[str, Cell], clock: Callable[[], float]) -> None:
        self._cells, self._clock = cells, clock

    def set(self, action: SetHostStatus, state: State, deadline: float) -> Iterator[Event]:
        """The instances as ECS then shows them. What fails is a set-back of each instance."""
        cell = self._cells.get(action.cell)
        if cell is None or self._clock() >= deadline or not cell.rates.reads.take(deadline):
            yield NotCarriedOut(TIME_WAS_UP if cell else f"there is no cell {action.cell}")
            return
        arns = {state.instances[each].arn: each for each in action.instance_ids if each in state.instances}
        try:
            answer = cell.ecs.update_container_instances_state(
                cluster=cell.cluster, containerInstances=[*arns], status=action.status.value
            )
        except AWS_ERRORS as error:
            fault = classify(error)
            for name in arns.values():
                yield NotCarriedOut(fault.text, about=Subject(Act.DRAIN, name), passing=fault.passing)
            return
        yield from read_each(partial(container_instance_seen, cell=cell.name), answer["containerInstances"])
        for failure in answer.get("failures", ()):
            name = arns.get(failure.get("arn", ""), "")
            yield NotCarriedOut(f"{name}: {failure.get('reason')}", about=Subject(Act.DRAIN, name))

    def console(self, action: ReadConsole, deadline: float) -> Iterator[Event]:
        """What EC2 has of it, or EC2's refusal. The newest output if the type has it (Nitro), else what EC2 posted."""
        cell = self._cells.get(action.cell)
        if cell is None or self._clock() >= deadline or not cell.rates.fleets.take(deadline):
            yield NotCarriedOut(TIME_WAS_UP if cell else f"there is no cell {action.cell}")
            return
        text = ""
        for newest in ({"Latest": True}, {}):
            try:
                answer = cell.ec2.get_console_output(InstanceId=action.instance_id, **newest)
                text = (
                    last_lines(str(answer.get("Output") or ""), LINES, CHARACTERS) or "EC2 has no console output of it"
                )
                break
            except AWS_ERRORS as error:
                text = f"the console output cannot be read: {classify(error).text}"[:CHARACTERS]
        yield ConsoleRead(action.instance_id, redacted(text), self._clock())
