"""Requests to SSM about the deployment's own parameters, answered by the emulator's model.

moto's SSM imports moto's EC2, which takes a second of CPU time: a fifth of a start of local mode. Parameters that
users make under other names are moto's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

from botocore import xform_name

from argosy.emulator.ssm import ParametersModel
from argosy.local.server.protocol import JsonWire, Reply, answer


class OwnParameters:
    """Those whose names begin with `/<prefix>/`."""

    target = "AmazonSSM."

    def __init__(self, prefix: str, account: str, region: str) -> None:
        self.model = ParametersModel(time.time, region, account)
        self._folder, self._wire = f"/{prefix}/", JsonWire("ssm")

    def reply(self, headers: Mapping[str, str], body: bytes) -> Reply | None:
        """None for a request about another parameter, or of a kind that the model does not know."""
        operation = headers.get("x-amz-target", "").removeprefix(self.target)
        if not hasattr(self.model, xform_name(operation)) or not _named(body).startswith(self._folder):
            return None
        return answer(self._wire, self.model, headers, body)


def _named(body: bytes) -> str:
    """The name or the path that a request is about, with a slash at its end."""
    try:
        request = json.loads(body)
        return f"{request.get('Name') or request.get('Path')}/"
    except (ValueError, AttributeError):
        return ""  # moto reports what is wrong with it
