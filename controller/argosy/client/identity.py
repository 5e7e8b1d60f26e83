"""Proof of the sender's identity: a signed call of sts:GetCallerIdentity, handed in unsent.

That needs no right and no call, and no secret leaves the machine: only a signature does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from argosy.model.signed_requests import BODY, SignedFor


@dataclass(frozen=True, slots=True)
class Signer:
    """Of one deployment. credentials: returns those to sign with, as botocore has them; None = there are none. region:
    of the
    deployment.
    """

    signed_for: SignedFor
    credentials: Callable[[], Any]
    region: str

    def headers(self, action: str, text: str) -> dict[str, str] | None:
        """Of the call, for a request of this text. None if nothing can be signed."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        found = self.credentials()
        if found is None:
            return None
        call = AWSRequest(
            "POST", f"https://{self.signed_for.host}/", self.signed_for.headers(action, text), BODY.encode()
        )
        SigV4Auth(found, "sts", self.region).add_auth(call)
        return {name.lower(): str(value) for name, value in call.headers.items()}
