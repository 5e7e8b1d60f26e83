"""The signer of a call, according to AWS's STS, which receives the signed call itself.

Host, path, method and body are Argosy's; of the caller's data only the headers that were checked are sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from xml.etree import ElementTree

from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import BotoCoreError
from botocore.httpsession import URLLib3Session

from argosy.model.signed_requests import BODY, SignedFor
from argosy.ports import IdentityUnknown, SignatureRefused

_SPACE = "{https://sts.amazonaws.com/doc/2011-06-15/}"
PATIENCE_S = (2.0, 3.0)  # a caller waits
_REFUSED = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN)
_SLOW_DOWN = ("Throttling", "ThrottlingException", "RequestLimitExceeded", "ServiceUnavailable")


class StsIdentities:
    """`ports.Identities`. patience_s: to connect, and for an answer."""

    def __init__(
        self, signed_for: SignedFor, scheme: str = "https", patience_s: tuple[float, float] = PATIENCE_S
    ) -> None:
        self.signed_for = signed_for
        self._http, self._scheme = URLLib3Session(timeout=patience_s), scheme

    def arn(self, headers: Mapping[str, str]) -> str:
        """See `ports.Identities`."""
        url = f"{self._scheme}://{self.signed_for.host}/"
        try:
            reply = self._http.send(AWSPreparedRequest("POST", url, dict(headers), BODY.encode(), False))
        except BotoCoreError as fault:
            raise IdentityUnknown(str(fault)) from fault
        try:
            root = ElementTree.fromstring(reply.content)
        except ElementTree.ParseError as fault:
            raise IdentityUnknown(f"status {reply.status_code}") from fault
        if reply.status_code == HTTPStatus.OK:
            return _arn_in(root)
        code = root.findtext(f"{_SPACE}Error/{_SPACE}Code") or f"status {reply.status_code}"
        if reply.status_code in _REFUSED and code not in _SLOW_DOWN:
            raise SignatureRefused(code)
        raise IdentityUnknown(code)


def _arn_in(root: ElementTree.Element) -> str:
    arn = root.findtext(f"{_SPACE}GetCallerIdentityResult/{_SPACE}Arn")
    if root.tag != f"{_SPACE}GetCallerIdentityResponse" or not arn:
        raise IdentityUnknown("an unexpected answer")
    return arn
