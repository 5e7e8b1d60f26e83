"""How do the users of a trial prove their identity and reach their queues?

Without members, every user who names themselves proves it, like a program with credentials, and comes without an alias.
With members, some users come through their queue's entrance, one user proves nothing, and AWS does not always say at
once whose signature it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from argosy.model.run_terms import DEFAULT_QUEUE
from argosy.model.signed_requests import AUTHORIZATION, DATE, DATE_FORMAT, PROOF, TEXT, WITH_SPECS, SignedFor
from argosy.ports import IdentityUnknown
from tests.harness.simulation.world.world import share

JSON = dict[str, Any]
SIGNED_FOR = SignedFor("sts.us-east-1.amazonaws.com", "123456789012/us-east-1/argosy")
PROVES_NOTHING = "carol"
THROUGH = 0.6  # share of the runs of members that come through an entrance
UNANSWERED = 0.2  # share of the requests to STS


class Arrival(NamedTuple):
    """How a run came in. queue: through whose entrance, "" = none; owner: the proven owner, "" = none."""

    queue: str = ""
    owner: str = ""


UNNAMED = Arrival()


@dataclass(slots=True)
class Members:
    """The members of one trial. are_there: otherwise no user comes through an entrance, and nothing is unproven."""

    seed: int = 0
    are_there: bool = False
    came: dict[str, Arrival] = field(default_factory=dict)
    """By run id."""
    signed_for: SignedFor = SIGNED_FOR
    _asked: int = 0

    def arn(self, headers: Mapping[str, str]) -> str:
        """As `ports.Identities`."""
        self._asked += 1
        if self.are_there and share(self.seed, "sts", self._asked) < UNANSWERED:
            raise IdentityUnknown("slow down")
        who = headers[AUTHORIZATION].partition("Credential=")[2].partition("/")[0]
        return f"arn:aws:iam::{self.signed_for.account}:user/{who}"

    def of(self, number: int, spec: Mapping[str, Any]) -> Arrival:
        """How the user of a job comes in."""
        owner = str(spec.get("owner", ""))
        if not self.are_there:
            return Arrival(owner=owner)
        comes = share(self.seed, "entrance", number) < THROUGH
        proven = "" if owner == PROVES_NOTHING else owner
        return Arrival(str(spec.get("queue", DEFAULT_QUEUE)) if comes else "", proven)

    def event(self, request: JSON, owner: str, now: float) -> JSON:
        """The event that invokes the function: signed by the owner, if there is one."""
        if not owner or request["action"] not in WITH_SPECS:
            return request
        text, date = json.dumps(request), datetime.fromtimestamp(now, UTC).strftime(DATE_FORMAT)
        headers = {**self.signed_for.headers(request["action"], text), DATE: date}
        names, scope = ";".join(sorted(headers)), f"{owner}/{date[:8]}/us-east-1/sts/aws4_request"
        proof = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={names}, Signature={0:064x}"
        return {TEXT: text, PROOF: {**headers, AUTHORIZATION: proof}}
