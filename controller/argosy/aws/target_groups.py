"""Tasks in the target groups of load balancers: registration and removal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from argosy.aws.cell import TIME_WAS_UP, Cell
from argosy.aws.errors import AWS_ERRORS, classify
from argosy.model.actions import DeregisterTargets, RegisterTargets
from argosy.model.events import Event, NotCarriedOut
from argosy.model.services.targets import TargetPlace, TargetsDeregistered, TargetsRegistered
from argosy.model.setbacks import Act, Subject

NO_SUCH_GROUP, NO_SUCH_TARGET = "TargetGroupNotFound", "InvalidTarget"
Call = Callable[..., Any]


class _Answer(NamedTuple):
    """The result of one call: the places that are as requested, or why they are not."""

    done: tuple[TargetPlace, ...] = ()
    reason: str = ""
    passing: bool = False


class TargetGroups:
    """Those of the settings, by name. Each is in one of the cells' Regions."""

    def __init__(self, arns: Mapping[str, str], cells: Mapping[str, Cell], clock: Callable[[], float]) -> None:
        self._arns, self._cells, self._clock = arns, cells, clock

    def change(self, action: RegisterTargets | DeregisterTargets, deadline: float) -> Iterator[Event]:
        """Both are safe to do twice. All places are of one group."""
        registers = isinstance(action, RegisterTargets)
        about = Subject(Act.TARGETS_IN if registers else Act.TARGETS_OUT, action.environment)
        group = action.places[0].group
        arn = self._arns.get(group, "")
        cell = self._cells.get(arn.split(":")[3]) if arn else None
        if cell is None or cell.elbv2 is None:
            yield NotCarriedOut(f"the setting targetGroups has no {group!r}", about=about)
            return
        call = partial(cell.elbv2.register_targets if registers else cell.elbv2.deregister_targets, TargetGroupArn=arn)
        answers = list(self._send(call, action.places, deadline, registers=registers))
        outcome = TargetsRegistered if registers else TargetsDeregistered
        if done := [place for answer in answers for place in answer.done]:
            yield outcome(action.environment, tuple(done))
        if fault := next((answer for answer in answers if answer.reason), None):
            yield NotCarriedOut(f"target group {group!r}: {fault.reason}", about=about, passing=fault.passing)

    def _send(
        self, call: Call, places: tuple[TargetPlace, ...], deadline: float, *, registers: bool
    ) -> Iterator[_Answer]:
        """One bad target fails a whole call: then each is sent by itself."""
        if self._clock() >= deadline:
            yield _Answer(reason=TIME_WAS_UP, passing=True)
            return
        try:
            call(Targets=[{"Id": each.instance, "Port": each.port} for each in places])
            yield _Answer(places)
        except AWS_ERRORS as error:
            fault = classify(error)
            if fault.code == NO_SUCH_TARGET and len(places) > 1:
                for place in places:
                    yield from self._send(call, (place,), deadline, registers=registers)
            elif fault.code in (NO_SUCH_GROUP, NO_SUCH_TARGET) and not registers:
                yield _Answer(places)  # it is out, with its instance or its group
            else:
                yield _Answer(reason=fault.text, passing=fault.passing)
