"""What does a request say that proves who sends it?

The client signs a call of sts:GetCallerIdentity and hands it in instead of making it. Whoever is handed it learns from
AWS whose it is, and can do nothing else with it: the signature covers the deployment, the action and every byte of the
request.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

BODY = "Action=GetCallerIdentity&Version=2011-06-15"
CONTENT_TYPE = "application/x-www-form-urlencoded; charset=utf-8"
DEPLOYMENT, ACTION, REQUEST = "x-argosy-deployment", "x-argosy-action", "x-argosy-request"
DATE, TOKEN, AUTHORIZATION, HOST, TYPE = "x-amz-date", "x-amz-security-token", "authorization", "host", "content-type"
DATE_FORMAT = "%Y%m%dT%H%M%SZ"
TEXT, PROOF = "request", "identity"  # members of what the function is invoked with
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
"""Actions whose requests are signed: they say whose what they start is."""


@dataclass(frozen=True, slots=True)
class SignedFor:
    """Who is to understand a signature."""

    host: str  # of the STS of the deployment's Region
    deployment: str  # account/region/prefix

    @property
    def account(self) -> str:
        """Twelve digits."""
        return self.deployment.partition("/")[0]

    def headers(self, action: str, text: str) -> dict[str, str]:
        """What is signed about a request, beside the date and the token. text: the whole request."""
        return {
            HOST: self.host,
            TYPE: CONTENT_TYPE,
            DEPLOYMENT: self.deployment,
            ACTION: action,
            REQUEST: hashlib.sha256(text.encode()).hexdigest(),
        }
