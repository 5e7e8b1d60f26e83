"""Requests to Elastic Load Balancing about the target groups that the settings name, answered by the emulator's model.

moto knows one port of each instance, while tasks of a service share instances. So these groups are the emulator's, as
in the simulation, and exist without being created. All other requests to load balancers are moto's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from botocore import xform_name

from argosy.emulator.botocore_check import service_model
from argosy.emulator.elbv2 import TargetGroupsModel, anything_runs
from argosy.local.server.ec2_query import action_of, fill, parameters, xml_reply
from argosy.local.server.protocol import Reply, WireRefusal, answer

NAMESPACE = "http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/"


class OwnTargetGroups:
    """The target groups with these ARNs. runs: whether the instance with this id runs."""

    target = "elasticloadbalancing"

    def __init__(self, arns: Iterable[str], runs: Callable[[str], bool] = anything_runs) -> None:
        self.model, self._wire = TargetGroupsModel(runs), ElbWire()
        self._arns = frozenset(arns)
        for arn in self._arns:
            self.model.add_group(arn)

    def reply(self, headers: Mapping[str, str], body: bytes) -> Reply | None:
        """None for a request about another group, or of a kind that the model does not know."""
        named = parse_qs(body.decode("utf-8", "replace")).get("TargetGroupArn", [""])[0]
        if named not in self._arns or not hasattr(self.model, xform_name(action_of(body))):
            return None
        return answer(self._wire, self.model, headers, body)


class ElbWire:
    """The query protocol: like EC2's, with `member` in the names of lists, and the result in a separate element."""

    def __init__(self) -> None:
        self.service = service_model("elbv2")

    def read(self, headers: Mapping[str, str], body: bytes) -> tuple[Any, dict[str, Any]]:
        """See protocol.Wire."""
        return parameters(self.service, body.replace(b".member.", b"."))

    def write(self, operation: Any, result: Mapping[str, Any], request_id: str) -> Reply:
        """See protocol.Wire."""
        name, body = operation.name, [f"<{operation.name}Result>"]
        fill(body, result, operation.output_shape, "member")
        body.append(f"</{name}Result><ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata>")
        return xml_reply(200, f'<{name}Response xmlns="{NAMESPACE}">', body, f"</{name}Response>")

    def refuse(self, refusal: WireRefusal, request_id: str) -> Reply:
        """See protocol.Wire."""
        said = f"<Type>Sender</Type><Code>{escape(refusal.code)}</Code><Message>{escape(refusal.message)}</Message>"
        body = [f"<Error>{said}</Error><RequestId>{request_id}</RequestId>"]
        return xml_reply(refusal.status, f'<ErrorResponse xmlns="{NAMESPACE}">', body, "</ErrorResponse>")
