"""Forks of local mode's functions that write down each call of AWS they make: one JSON line with function, service,
operation and parameters."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from botocore import xform_name
from botocore.session import Session

from argosy.emulator.botocore_check import SimulatedClient
from tests.fakes import imported

FOLDER = "RECORDED_CALLS"  # of the forks' server: where each process writes its file


def warm() -> None:
    imported.warm()
    folder, made, found = Path(os.environ[FOLDER]), Session.create_client, SimulatedClient.__getattr__

    def record(params: dict[str, Any], model: Any, **_: Any) -> None:
        function = os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "")
        line = [function, model.service_model.service_name, model.name, params]
        with (folder / str(os.getpid())).open("a") as file:
            file.write(json.dumps(line, default=lambda value: "") + "\n")  # bytes and streams name no resource

    def recording(client: SimulatedClient, name: str) -> Any:
        call, service = found(client, name), client.meta.service_model
        operation = next(each for each in service.operation_names if xform_name(each) == name)

        def recorded(**request: Any) -> Any:
            record(request, service.operation_model(operation))
            return call(**request)

        return recorded

    def create_client(session: Session, *words: Any, **named: Any) -> Any:
        client = made(session, *words, **named)
        client.meta.events.register("provide-client-params.*.*", record)
        return client

    Session.create_client = create_client
    SimulatedClient.__getattr__ = recording  # type: ignore[assignment, method-assign]  # calls over local mode's socket


def calls(folder: Path) -> list[tuple[str, str, str, dict[str, Any]]]:
    return [tuple(json.loads(line)) for file in sorted(folder.iterdir()) for line in file.read_text().splitlines()]
