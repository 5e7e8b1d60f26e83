"""Tasks in the target groups of load balancers: registration and removal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from argosy.aws.cell import TIME_WAS_UP, Cell
from argosy.aws.errors import AWS_ERRORS, classify
from argosy.model.actions import DeregisterTargets, RegisterTargets
from argosy.model.events import Event, NotCarriedOut
from argosy.model.services.targets import TargetPlace, TargetsDeregistered, TargetsRegistered
from argosy.model.setbacks import Subject, What

NO_SUCH_GROUP, NO_SUCH_TARGET = "TargetGroupNotFound", "InvalidTarget"
Call = Callable[..., Any]


class TargetGroups:
    """Those of the settings, by name. Each is in one of the cells' Regions."""

    def __init__(self, arns: Mapping[str, str], cells: Mapping[str, Cell], clock: Callable[[], float]) -> None:
        self._arns, self._cells, self._clock = arns, cells, clock

    def change(self, action: RegisterTargets | DeregisterTargets, deadline: float) -> Iterator[Event]:
        """Both are safe to do twice. All places are of one group."""
        registers = isinstance(action, RegisterTargets)
        about = Subject(What.TARGETS_IN if registers else What.TARGETS_OUT, action.environment)
        group = action.places[0].group
        arn = self._arns.get(group, "")
        cell = self._cells.get(arn.split(":")[3]) if arn else None
        if cell is None or cell.elbv2 is None:
            yield NotCarriedOut(f"the setting targetGroups has no {group!r}", about=about)
            return
        call = cell.elbv2.register_targets if registers else cell.elbv2.deregister_targets
        done: list[TargetPlace] = []
        faults = list(self._send(call, arn, action.places, done, deadline, registers=registers))
        outcome = TargetsRegistered if registers else TargetsDeregistered
        if done:
            yield outcome(action.environment, tuple(done))
        if faults:
            reason, passing = faults[0]
            yield NotCarriedOut(f"target group {group!r}: {reason}", about=about, passing=passing)

    def _send(
        self,
        call: Call,
        arn: str,
        places: tuple[TargetPlace, ...],
        done: list[TargetPlace],
        deadline: float,
        *,
        registers: bool,
    ) -> Iterator[tuple[str, bool]]:
        """The failure, and whether it passes. One bad target fails a whole call: then each is sent by itself."""
        if self._clock() >= deadline:
            yield TIME_WAS_UP, True
            return
        try:
            call(TargetGroupArn=arn, Targets=[{"Id": each.instance, "Port": each.port} for each in places])
            done += places
        except AWS_ERRORS as error:
            fault = classify(error)
            if fault.code == NO_SUCH_TARGET and len(places) > 1:
                for place in places:
                    yield from self._send(call, arn, (place,), done, deadline, registers=registers)
            elif fault.code in (NO_SUCH_GROUP, NO_SUCH_TARGET) and not registers:
                done += places  # it is out, with its instance or its group
            else:
                yield fault.text, fault.passing
