"""STS over a real socket: the signer of real signatures, and what happens when STS does not answer."""

from __future__ import annotations

import json
import socket

import pytest

from argosy.aws.identities import StsIdentities
from argosy.client.api import Signer
from argosy.model.signed_requests import BODY, SignedFor
from argosy.ports import IdentityUnknown, SignatureRefused
from tests.fakes.sts import ERROR, SPACE, Sts, credentials, sts

TEXT = json.dumps({"action": "SubmitRun", "spec": {"name": "ä"}})


def proof(found: Sts, who: str = "AKIDALICE", secret: str = "", token: str | None = None) -> dict[str, str]:
    made = Signer(found.signed_for, lambda: credentials(who, secret, token), "us-east-1").headers("SubmitRun", TEXT)
    assert made is not None
    return made


def asked(found: Sts, headers: dict[str, str]) -> str:
    return StsIdentities(found.signed_for, scheme="http").arn(headers)


def test_a_real_signature_identifies_its_signer() -> None:
    with sts() as found:
        assert asked(found, proof(found)) == "arn:aws:iam::123456789012:user/alice"
        assert asked(found, proof(found, "AKIDBOB", token="session-token")).endswith("/bob@example.com")
        assert found.bodies == [BODY, BODY]
        assert found.seen[1]["x-amz-security-token"] == "session-token"


def test_what_was_changed_is_not_accepted() -> None:
    with sts() as found:
        for change in ({"x-argosy-action": "ListRuns"}, {"x-argosy-request": "0" * 64}, {"x-argosy-deployment": "x"}):
            with pytest.raises(SignatureRefused, match="SignatureDoesNotMatch"):
                asked(found, {**proof(found), **change})
        with pytest.raises(SignatureRefused, match="SignatureDoesNotMatch"):
            asked(found, proof(found, secret="another"))
        with pytest.raises(SignatureRefused, match="InvalidClientTokenId"):
            asked(found, proof(found, "AKIDNOBODY", secret="x"))


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (400, ERROR.format(code="Throttling"), "Throttling"),
        (503, ERROR.format(code="ServiceUnavailable"), "ServiceUnavailable"),
        (500, "<html>", "status 500"),
        (429, ERROR.format(code="TooMany"), "TooMany"),
        (302, "<a/>", "status 302"),
        (200, "<a/>", "an unexpected answer"),
        (200, f'<GetCallerIdentityResponse xmlns="{SPACE}"/>', "an unexpected answer"),
        (200, "", "status 200"),
    ],
)
def test_an_answer_that_says_nothing_is_no_refusal(status: int, body: str, says: str) -> None:
    with sts() as found:
        found.answers = [(status, body)]
        with pytest.raises(IdentityUnknown, match=says):
            asked(found, proof(found))
        found.answers = [(403, ERROR.format(code="ExpiredToken"))]
        with pytest.raises(SignatureRefused, match="ExpiredToken"):
            asked(found, proof(found))


def test_a_request_does_not_wait_long_for_an_sts_that_does_not_answer() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        place = SignedFor(f"127.0.0.1:{deaf.getsockname()[1]}", "123456789012/us-east-1/argosy")
        with pytest.raises(IdentityUnknown, match="timeout"):
            StsIdentities(place, scheme="http", patience_s=(0.2, 0.2)).arn({})
    with pytest.raises(IdentityUnknown):
        StsIdentities(place, scheme="http").arn({})
