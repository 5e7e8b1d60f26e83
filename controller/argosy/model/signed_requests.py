"""How does a signed request prove its sender?

The client signs a call of sts:GetCallerIdentity and submits it instead of making it. The receiver learns the client's
identity from AWS and can do nothing else with the call: the signature covers the deployment, the action and every byte
of the request.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

BODY = "Action=GetCallerIdentity&Version=2011-06-15"
CONTENT_TYPE = "application/x-www-form-urlencoded; charset=utf-8"
DEPLOYMENT, ACTION, REQUEST = "x-argosy-deployment", "x-argosy-action", "x-argosy-request"
DATE, TOKEN, AUTHORIZATION, HOST, TYPE = "x-amz-date", "x-amz-security-token", "authorization", "host", "content-type"
DATE_FORMAT = "%Y%m%dT%H%M%SZ"
TEXT, PROOF = "request", "identity"  # members of the event that invokes the function
WITH_SPECS = frozenset(
    {
        "SubmitRun",
        "ValidateRun",
        "PlanRun",
        "CreateEnvironment",
        "UpdateEnvironment",
        "CreateSchedule",
        "UpdateSchedule",
    }
)
"""Actions whose requests are signed: what they start has an owner."""


@dataclass(frozen=True, slots=True)
class SignedFor:
    """The deployment that a signature is meant for."""

    host: str  # of the STS of the deployment's Region
    deployment: str  # account/region/prefix

    @property
    def account(self) -> str:
        """Twelve digits."""
        return self.deployment.partition("/")[0]

    def headers(self, action: str, text: str) -> dict[str, str]:
        """The signed content of a request, besides the date and the token. text: the whole request."""
        return {
            HOST: self.host,
            TYPE: CONTENT_TYPE,
            DEPLOYMENT: self.deployment,
            ACTION: action,
            REQUEST: hashlib.sha256(text.encode()).hexdigest(),
        }
