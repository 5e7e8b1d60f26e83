"""A client of the Fault Injection Service."""

from __future__ import annotations

from typing import Any

import botocore.session
from botocore.validate import ParamValidator


class Fis:
    """Fault Injection Service: an experiment begins after some looks. Requests are checked by botocore's model."""

    def __init__(self, *states: str) -> None:
        self._states = list(states)
        self._model = botocore.session.get_session().get_service_model("fis")
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def _take(self, operation: str, request: dict[str, Any]) -> None:
        shape = self._model.operation_model(operation).input_shape
        tokens = {name: "made" for name, its in shape.members.items() if its.metadata.get("idempotencyToken")}
        assert ParamValidator().validate({**tokens, **request}, shape).generate_report() == ""
        self.calls.append((operation, request))

    def _state(self) -> dict[str, Any]:
        status = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        reason = {"reason": "Target resolution returned empty set."} if status == "failed" else {}
        return {"experiment": {"id": "EXP1", "state": {"status": status, **reason}}}

    def create_experiment_template(self, **request: Any) -> dict[str, Any]:
        self._take("CreateExperimentTemplate", request)
        return {"experimentTemplate": {"id": "EXT1"}}

    def start_experiment(self, **request: Any) -> dict[str, Any]:
        self._take("StartExperiment", request)
        return self._state()

    def get_experiment(self, **request: Any) -> dict[str, Any]:
        self._take("GetExperiment", request)
        return self._state()

    def delete_experiment_template(self, **request: Any) -> dict[str, Any]:
        self._take("DeleteExperimentTemplate", request)
        return {}
