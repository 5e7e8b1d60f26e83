"""SSM's answers about the parameters of one account and Region, as far as Argosy and its users need them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from argosy.emulator.operations import EmulatedService, Refusal, operation
from argosy.model.arns import arn_of

JSON = dict[str, Any]


class ParametersModel(EmulatedService):
    """Parameters by name. Descriptions, tags and tiers are dropped; listings have one page. now: epoch seconds."""

    def __init__(self, now: Callable[[], float], region: str, account: str) -> None:
        super().__init__()
        self._now, self._region, self._account = now, region, account
        self._stored: dict[str, JSON] = {}

    @operation
    def put_parameter(self, request: JSON) -> JSON:
        """Each change of a value is a new version."""
        name, before = request["Name"], self._stored.get(request["Name"])
        if before is not None and not request.get("Overwrite"):
            raise Refusal("ParameterAlreadyExists", "The parameter already exists.")
        version = 1 if before is None else before["Version"] + 1
        self._stored[name] = {
            "Name": name,
            "Type": request.get("Type", "String"),
            "Value": request["Value"],
            "Version": version,
            "LastModifiedDate": datetime.fromtimestamp(self._now(), UTC),
            "ARN": arn_of("ssm", self._region, self._account, f"parameter{name}"),
            "DataType": "text",
        }
        return {"Version": version, "Tier": "Standard"}

    @operation
    def get_parameter(self, request: JSON) -> JSON:
        return {"Parameter": self._known(request["Name"])}

    @operation
    def get_parameters_by_path(self, request: JSON) -> JSON:
        """Those of the folder, and with Recursive those of folders in it."""
        folder = f"{request['Path'].rstrip('/')}/"
        inside = {name.removeprefix(folder): each for name, each in self._stored.items() if name.startswith(folder)}
        return {"Parameters": [each for name, each in inside.items() if request.get("Recursive") or "/" not in name]}

    @operation
    def delete_parameter(self, request: JSON) -> JSON:
        del self._stored[self._known(request["Name"])["Name"]]
        return {}

    def _known(self, name: str) -> JSON:
        if name not in self._stored:
            raise Refusal("ParameterNotFound", f"Parameter {name} not found.")
        return self._stored[name]
