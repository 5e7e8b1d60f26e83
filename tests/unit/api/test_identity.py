"""The sender of a request is the identity that AWS confirms for this request and deployment now; all else is
refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from argosy.api.access.identity import AHEAD_S, FRESH_S, name_of
from argosy.model.signed_requests import AUTHORIZATION, DATE, PROOF, TEXT, SignedFor
from argosy.ports import IdentityUnknown, SignatureRefused
from tests.fakes.api import SPEC, Desk, error_of
from tests.harness.simulation.world.members import SIGNED_FOR, Members

JSON = dict[str, Any]


class Said:
    """STS with prepared answers."""

    signed_for = SIGNED_FOR

    def __init__(self, answer: str | Exception = "arn:aws:iam::123456789012:user/team/alice") -> None:
        self.answer, self.asked = answer, 0

    def arn(self, headers: Mapping[str, str]) -> str:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def sts() -> Said:
    return Said()


@pytest.fixture
def desk(desk: Desk, sts: Said) -> Desk:
    desk.api.identities = sts
    return desk


def signed(desk: Desk, request: JSON, who: str = "alice", at: float | None = None) -> JSON:
    return Members().event(request, who, desk.time if at is None else at)


def submit(**fields: Any) -> JSON:
    return {"action": "SubmitRun", "clientToken": "t-1", "spec": {**SPEC, **fields}}


def ask(desk: Desk, event: Any) -> JSON:
    return desk.api.handle(event, "r")


def body(desk: Desk, event: Any) -> JSON:
    answer = ask(desk, event)
    assert answer["statusCode"] == 200, answer
    return dict(answer["body"])


def test_the_signer_is_the_owner_and_stays_the_owner(desk: Desk) -> None:
    view = body(desk, signed(desk, submit()))
    assert (view["owner"], view["ownerProven"]) == ("alice", True)
    desk.fold_in()
    run = desk.state.runs[view["runId"]]
    assert run.proven_owner == "alice"
    again = desk.body("DescribeRun", runId=run.id)
    assert (again["owner"], again["ownerProven"]) == ("alice", True)
    desk.time += 1
    desk.body("UpdateRun", runId=run.id, changes={"priority": 3})
    desk.body("CancelRun", runId=run.id)
    desk.fold_in()
    assert desk.body("ListRuns")["runs"][0]["ownerProven"] is True


def test_an_unsigned_request_proves_no_owner(desk: Desk, sts: Said) -> None:
    view = body(desk, submit(owner="alice"))
    assert (view["owner"], view["ownerProven"], sts.asked) == ("alice", False, 0)
    nobody = body(desk, {**submit(), "clientToken": "t-2"})
    assert (nobody["owner"], nobody["ownerProven"]) == (None, False)


def test_without_an_sts_to_ask_a_signature_proves_nothing(desk: Desk) -> None:
    """As in local mode, which has no STS to ask."""
    desk.api.identities = None
    view = body(desk, signed(desk, submit(owner="alice")))
    assert (view["owner"], view["ownerProven"]) == ("alice", False)


def test_a_spec_that_names_another_owner_is_refused(desk: Desk) -> None:
    for action in ("SubmitRun", "ValidateRun", "PlanRun"):
        request = {"action": action, "spec": {**SPEC, "owner": "bob"}}
        answer = ask(desk, signed(desk, request))
        [fault] = error_of(answer)["fieldList"]
        assert fault["path"] == "owner"
        assert fault["message"].startswith("is alice, by its signature: leave it out")
    assert not desk.store.read_partition("INBOX")
    assert body(desk, signed(desk, submit(owner="alice")))["ownerProven"]


WRONG: dict[str, tuple[Callable[[JSON], Any], str]] = {
    "another host": (
        lambda h: h.update(host="sts.amazonaws.com"),
        "is for the host sts.amazonaws.com, and not for sts.us",
    ),
    "another deployment": (
        lambda h: h.update({"x-argosy-deployment": "123456789012/us-east-1/argosy-dev"}),
        "is for the deployment 123456789012/us-east-1/argosy-dev, and not for 123456789012/us-east-1/argosy",
    ),
    "another action": (
        lambda h: h.update({"x-argosy-action": "ListRuns"}),
        "is for the action ListRuns, and not for SubmitRun",
    ),
    "another body": (
        lambda h: h.update({"x-argosy-request": "0" * 64}),
        "does not match the request that it came",
    ),
    "another type": (lambda h: h.update({"content-type": "text/plain"}), "has a different content-type"),
    "no date": (lambda h: h.pop(DATE), "has no x-amz-date"),
    "a date that is none": (lambda h: h.update({DATE: "yesterday"}), "has the date yesterday, which is not a date"),
    "no signature": (lambda h: h.pop(AUTHORIZATION), "has no authorization"),
    "another signature": (
        lambda h: h.update({AUTHORIZATION: "Basic YTpi"}),
        "has an Authorization header that is not a signature",
    ),
    "a further header": (
        lambda h: h.update(accept="application/json"),
        "has the header accept, which it may not have",
    ),
    "an unsigned header": (
        lambda h: h.update({AUTHORIZATION: h[AUTHORIZATION].replace("x-argosy-action;", "")}),
        "does not sign x-argosy-action",
    ),
    "an unsigned token": (lambda h: h.update({"x-amz-security-token": "t"}), "does not sign x-amz-security-token"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_signature_for_anything_else_is_refused_before_aws_is_asked(desk: Desk, sts: Said, name: str) -> None:
    change, says = WRONG[name]
    event = signed(desk, submit())
    change(event[PROOF])
    refused(desk, event, says)
    assert sts.asked == 0


def refused(desk: Desk, event: Any, says: str, code: str = "AccessDeniedException") -> None:
    """In one sentence, and nothing is changed."""
    before = dict(desk.store.items)
    error = error_of(ask(desk, event))
    assert (error["code"], error["fieldList"]) == (code, [])
    assert says in error["message"]
    assert desk.store.items == before


def test_a_request_that_was_changed_after_it_was_signed_is_refused() -> None:
    other_requests_are_refused()


def other_requests_are_refused() -> None:
    """For planted bugs, too."""
    desk = Desk()
    desk.api.identities = Said()
    event = signed(desk, submit())
    refused(desk, {**event, TEXT: event[TEXT].replace("digits", "digit5")}, "does not match the request")


def old_signatures_are_refused() -> None:
    """For planted bugs."""
    desk = Desk()
    desk.api.identities = Said()
    refused(desk, signed(desk, submit(), at=desk.time - FRESH_S - 1), "sign it again")


@pytest.mark.parametrize(
    ("at", "says"),
    [
        (-FRESH_S - 1, "is 901 s old and was valid for 900 s: sign it again"),
        (AHEAD_S + 1, "is dated 301 s in the future: set the clock of the machine that signs"),
    ],
)
def test_an_old_signature_and_one_of_a_time_to_come_are_refused(desk: Desk, at: float, says: str) -> None:
    refused(desk, signed(desk, submit(), at=desk.time + at), says)
    assert body(desk, signed(desk, submit(), at=desk.time + at / 1.2))["ownerProven"]


def test_what_aws_does_not_accept_is_refused(desk: Desk, sts: Said) -> None:
    sts.answer = SignatureRefused("SignatureDoesNotMatch")
    refused(desk, signed(desk, submit()), "AWS does not accept this signature: SignatureDoesNotMatch")


def test_while_aws_cannot_be_asked_the_request_is_to_be_sent_again(desk: Desk, sts: Said) -> None:
    """An owner is kept with the run forever: a temporary fault must not decide it."""
    sts.answer = IdentityUnknown("Throttling")
    refused(desk, signed(desk, submit()), "try again, or send the request unsigned", "ThrottlingException")
    assert ask(desk, signed(desk, submit()))["statusCode"] == 429
    sts.answer = "arn:aws:iam::123456789012:user/alice"
    assert body(desk, signed(desk, submit()))["ownerProven"]


@pytest.mark.parametrize(
    ("event", "path"),
    [
        ({TEXT: 7, PROOF: {}}, TEXT),
        ({TEXT: "{", PROOF: {}}, TEXT),
        ({TEXT: "\ud800", PROOF: {}}, TEXT),
        ({TEXT: "[" * 100_000, PROOF: {}}, TEXT),
        ({PROOF: {}}, TEXT),
        ({TEXT: "{}"}, PROOF),
        ({TEXT: "{}", PROOF: {"host": "x" * 1_000_000}}, PROOF),
        ({TEXT: "{}", PROOF: {"host": "a\r\nb"}}, PROOF),
        ({TEXT: "{}", PROOF: {"host": 7}}, PROOF),
        ({TEXT: "{}", PROOF: {f"h{number}": "" for number in range(13)}}, PROOF),
        ({TEXT: "{}", PROOF: {}, "action": "SubmitRun"}, "action"),
        ({TEXT: "{}", PROOF: {}}, "action"),
    ],
)
def test_what_is_no_signed_request_is_refused(desk: Desk, event: JSON, path: str) -> None:
    error = error_of(ask(desk, event))
    assert (error["code"], error["fieldList"][0]["path"]) == ("ValidationException", path)
    assert not desk.store.items


def test_an_owner_of_a_million_characters_is_refused(desk: Desk) -> None:
    error = error_of(ask(desk, signed(desk, submit(owner="x" * 1_000_000))))
    assert error["code"] == "ValidationException"
    assert len(json.dumps(error)) < 2_000


def test_a_schedules_runs_belong_to_the_author_of_its_spec(desk: Desk, sts: Said) -> None:
    wanted = {"action": "CreateSchedule", "name": "nightly", "expression": "rate(1 day)", "spec": SPEC}
    body(desk, signed(desk, wanted))
    sts.answer = "arn:aws:iam::123456789012:user/bob"
    first = desk.body("RunScheduleNow", name="nightly")
    assert (first["owner"], first["ownerProven"]) == ("alice", True)
    desk.body("UpdateSchedule", name="nightly", revision=1, expression="rate(2 days)")
    assert desk.body("RunScheduleNow", name="nightly", clientToken="2")["owner"] == "alice"
    update = {"action": "UpdateSchedule", "name": "nightly", "revision": 2, "spec": {**SPEC, "priority": 1}}
    body(desk, signed(desk, update))
    assert desk.body("RunScheduleNow", name="nightly", clientToken="3")["owner"] == "bob"
    desk.body("UpdateSchedule", name="nightly", revision=3, spec=SPEC)  # its author is unproven
    assert desk.body("RunScheduleNow", name="nightly", clientToken="4")["owner"] is None


def test_a_services_run_belongs_to_the_author_of_its_revision(desk: Desk) -> None:
    service = {
        "version": 1, "kind": "service", "name": "web", "container": {"image": "argosy/web"}, "service": {"desired": 1},
    }  # fmt: skip
    body(desk, signed(desk, {"action": "CreateEnvironment", "spec": service}))
    desk.time += 1
    desk.body("StartDeployment", name="web")
    desk.fold_in()
    assert [run.proven_owner for run in desk.state.runs.values()] == ["alice"]
    desk.time += 1
    wider = {**service, "service": {"desired": 2}}  # the same tasks, which the next revision adopts
    desk.body("UpdateEnvironment", name="web", baseRevision=1, spec=wider)
    desk.time += 1
    desk.body("StartDeployment", name="web", clientToken="2")
    desk.fold_in()
    assert [run.proven_owner for run in desk.state.runs.values()] == [""]


@pytest.mark.parametrize(
    ("arn", "name"),
    [
        ("arn:aws:iam::123456789012:user/alice", "alice"),
        ("arn:aws:iam::123456789012:user/team/ml/alice", "alice"),
        ("arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Data_0123/alice@example.com", "sso/alice@example.com"),
        ("arn:aws:sts::123456789012:assumed-role/jobs/i-0abc", "jobs/*"),
        ("arn:aws:sts::123456789012:assumed-role/jobs/a-name-that-i-made-up", "jobs/*"),
        ("arn:aws:sts::123456789012:assumed-role/Okta-ml/alice", "Okta-ml/alice"),
        ("arn:aws:iam::123456789012:root", "root/*"),
        ("arn:aws:sts::123456789012:federated-user/alice", "federated-user/*"),
        ("arn:aws-cn:iam::999999999999:user/alice", "999999999999:alice"),
    ],
)
def test_an_owner_cannot_choose_the_proven_name(arn: str, name: str) -> None:
    assert name_of(arn, "123456789012", ("Okta-*",)) == name


def test_the_deployment_is_named_with_its_account(desk: Desk) -> None:
    assert SignedFor("h", "123456789012/us-east-1/argosy").account == "123456789012"
