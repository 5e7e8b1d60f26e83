"""Who sent a request, and under which name do they own the runs that it starts?

The sender signs a call of sts:GetCallerIdentity for this request, and AWS says who signed it. Every fault that can be
found locally is refused before the call to AWS, which goes to a host that we name ourselves. A request without a
signature is answered too: its owner is then unproven.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from argosy.api.refusals import RequestRefused, throttled
from argosy.model.signed_requests import AUTHORIZATION, DATE, DATE_FORMAT, HOST, PROOF, TEXT, TOKEN, SignedFor
from argosy.ports import Identities, IdentityUnknown, SignatureRefused
from argosy.spec.faults import Fault, SpecError

DENIED = "AccessDeniedException"
FRESH_S = 900.0  # AWS itself accepts a signature for about as long
AHEAD_S = 300.0  # by which the signer's clock may be ahead
MOST_HEADERS = 12
MOST_BYTES = 8_192  # of a header; a session's token has some thousands
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=[\w/+=-]{1,200}, SignedHeaders=([a-z0-9;-]{1,500}), Signature=[0-9a-f]{64}", re.ASCII
)
_HEADERS = (
    f"must be at most {MOST_HEADERS} headers of a signed call, each of at most {MOST_BYTES:,} printable characters"
)
_SSO = "AWSReservedSSO_"  # begins the roles of IAM Identity Center, which itself names the sessions after its users


@dataclass(frozen=True, slots=True)
class Proof:
    """What was signed. headers: of the call, by names in lower case."""

    text: str  # of the whole request
    headers: Mapping[str, str]


def opened(request: Any) -> tuple[Any, Proof | None]:
    """The request itself, and the proof of its sender. Raises SpecError."""
    if not isinstance(request, Mapping) or not {TEXT, PROOF} & {*request}:
        return request, None
    faults = [Fault(str(name)[:60], "must not be in a signed request") for name in request if name not in (TEXT, PROOF)]
    text, headers = request.get(TEXT), request.get(PROOF)
    if not isinstance(text, str) or not _is_utf8(text):
        faults.append(Fault(TEXT, "must be the exact text that was signed"))
    if not _is_headers(headers):
        faults.append(Fault(PROOF, _HEADERS))
    if faults:
        raise SpecError(faults)
    try:
        inner = json.loads(str(text))
    except (ValueError, RecursionError) as fault:
        raise SpecError([Fault(TEXT, f"is not JSON: {fault}")]) from fault
    return inner, Proof(str(text), {name.lower(): value for name, value in dict(headers or {}).items()})


def _is_headers(given: Any) -> bool:
    if not isinstance(given, Mapping) or len(given) > MOST_HEADERS:
        return False
    return all(isinstance(each, str) and _is_plain(each) for pair in given.items() for each in pair)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_plain(text: str) -> bool:
    return len(text) <= MOST_BYTES and text.isascii() and text.isprintable()


def owner_of(proof: Proof, action: str, identities: Identities, now: float, named_by_session: Sequence[str]) -> str:
    """The sender's name. action: of the request; named_by_session: globs of roles. Raises RequestRefused."""
    _check(proof, identities.signed_for, action, now)
    try:
        arn = identities.arn(proof.headers)
    except SignatureRefused as why:
        raise RequestRefused(DENIED, f"AWS does not accept this signature: {why}") from why
    except IdentityUnknown as why:
        message = "AWS cannot verify the sender at the moment: try again, or send the request unsigned"
        raise throttled(message) from why
    return name_of(arn, identities.signed_for.account, named_by_session)


def _check(proof: Proof, ours: SignedFor, action: str, now: float) -> None:
    """Raises RequestRefused unless it was signed for this request, here and now."""
    given = proof.headers
    wanted = ours.headers(action, proof.text)
    needed = {*wanted, DATE, AUTHORIZATION}
    if missing := sorted(needed - {*given}):
        raise _wrong(f"has no {missing[0]}")
    if unknown := sorted({*given} - needed - {TOKEN}):
        raise _wrong(f"has the header {unknown[0][:60]}, which it may not have")
    signature = _AUTHORIZATION.fullmatch(given[AUTHORIZATION])
    if signature is None:
        raise _wrong("has an Authorization header that is not a signature of version 4")
    if unsigned := sorted({*given} - {AUTHORIZATION} - {*signature[1].split(";")}):
        raise _wrong(f"does not sign {unsigned[0]}")
    for name, value in wanted.items():
        if given[name] != value:
            raise _wrong(_OTHER.get(name, f"has a different {name}").format(given[name][:80], value))
    _check_date(given[DATE], now)


_OTHER = {
    HOST: "is for the host {}, and not for {}",
    "x-argosy-deployment": "is for the deployment {}, and not for {}",
    "x-argosy-action": "is for the action {}, and not for {}",
    "x-argosy-request": "does not match the request that it came with",
}


def _check_date(text: str, now: float) -> None:
    try:
        signed_at = datetime.strptime(text, DATE_FORMAT).replace(tzinfo=UTC).timestamp()
    except ValueError as fault:
        raise _wrong(f"has the date {text[:40]}, which is not a date") from fault
    if now - signed_at > FRESH_S:
        raise _wrong(f"is {now - signed_at:,.0f} s old and was valid for {FRESH_S:.0f} s: sign it again")
    if signed_at - now > AHEAD_S:
        raise _wrong(f"is dated {signed_at - now:,.0f} s in the future: set the clock of the machine that signs")


def _wrong(what: str) -> RequestRefused:
    return RequestRefused(DENIED, f"the signature {what}")


def name_of(arn: str, account: str, named_by_session: Sequence[str]) -> str:
    """The sender's name: `alice` for a user, `ROLE/*` for a role. A session name is chosen by the person who takes the
    role, so it counts only where another party sets it: in IAM Identity Center (`sso/alice`), and in the roles that
    the deployment's owner lists (`ROLE/alice`). account: the deployment's; the id of another account comes first."""
    _, _, _, its_account, resource = arn.split(":", 5)[1:]
    kind, _, rest = resource.partition("/")
    role, _, session = rest.partition("/")
    if kind == "user":
        name = rest.rpartition("/")[2]
    elif kind != "assumed-role":
        name = f"{kind}/*"
    elif role.startswith(_SSO):
        name = f"sso/{session}"
    else:
        name = f"{role}/{session if any(fnmatchcase(role, glob) for glob in named_by_session) else '*'}"
    return name if its_account == account else f"{its_account}:{name}"
