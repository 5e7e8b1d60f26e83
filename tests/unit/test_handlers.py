"""The composition root of the controller hands on what the owner's settings say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy import handlers
from argosy.engine.report import TickReport
from argosy.model.actions import VerifyResult
from argosy.model.stored import documents
from tests.builders import RUN_ID, state_with
from tests.fakes.aws import refusal, timed_out
from tests.fakes.function_environment import FUNCTION_ENVIRONMENT

GOOD, GONE = "argosy.placement.keys:least_allocated", "no_such_module:f"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    settings = {"fitnessFunctions": [GOOD, GONE], "priceCaps": {"perGpuHour": 1.5}, "placementScores": True}
    names = FUNCTION_ENVIRONMENT | {"ARGOSY_SETTINGS": json.dumps(settings)}
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    handlers.forget_process()
    yield handlers.controller_of_process()[2]
    handlers.forget_process()


ARN = "arn:aws:lambda:us-east-1:123456789012:function:argosy-api"


def context(request_id: str, arn: str = ARN) -> SimpleNamespace:
    return SimpleNamespace(aws_request_id=request_id, invoked_function_arn=arn)


def answers(service: str, **replies: Any) -> list[str]:
    """From now on the process's client of this service answers so, by the operation's name, and sends nothing.

    A reply is a dict or an exception to raise; the one named `anything` is the answer of every other operation. Returns
    the list of the called operations, which grows.
    """
    asked: list[str] = []

    def reply(model: Any, **_: Any) -> tuple[Any, Any]:
        asked.append(model.name)
        found = replies.get(model.name, replies.get("anything"))
        if isinstance(found, Exception):
            raise found
        return SimpleNamespace(status_code=200), found

    handlers.clients_of_process().get(service).meta.events.register("before-call", reply)
    return asked


def test_listed_functions_are_loaded_and_one_that_cannot_be_is_logged_and_stops_nothing(
    engine: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert list(engine.functions.ready) == [GOOD]
    assert list(engine.functions.faults) == [GONE]
    (record,) = caplog.get_records("setup")
    assert (record.levelname, record.__dict__["function"]) == ("ERROR", GONE)
    assert "there is no fitness function" in record.__dict__["fault"]


def test_the_api_admits_what_the_settings_list(engine: Any) -> None:
    assert handlers.api_of_process().limits.fitness_functions == {GOOD, GONE}


def test_the_owners_price_caps_reach_the_controller_and_the_api(engine: Any) -> None:
    assert engine.policy.max_usd_per_gpu_hour == handlers.api_of_process().policy.max_usd_per_gpu_hour == 1.5


def fleets_of_three_types() -> dict[str, Any]:
    pools = ("c5.large/us-east-1a", "c5.xlarge/us-east-1a", "c5.2xlarge/us-east-1a")
    tags = [[{"Key": "argosy:stage", "Value": "main"}, {"Key": "argosy:pool", "Value": pool}] for pool in pools]
    return {"Fleets": [{"FleetId": f"fleet-{n}", "FleetState": "active", "Tags": each} for n, each in enumerate(tags)]}


EC2 = {
    "DescribeInstanceStatus": {"InstanceStatuses": []},
    "DescribeFleets": fleets_of_three_types(),
    "DescribeSpotPriceHistory": {"SpotPriceHistory": []},
    "DescribeAvailabilityZones": {"AvailabilityZones": [{"ZoneId": "use1-az1", "ZoneName": "us-east-1a"}]},
    "GetSpotPlacementScores": {"SpotPlacementScores": [{"AvailabilityZoneId": "use1-az1", "Score": 7}]},
    "DescribeInstances": {"Reservations": []},
}


def test_the_owners_wish_for_placement_scores_reaches_the_sweep(engine: Any) -> None:
    answers("ecs", ListContainerInstances={"containerInstanceArns": []}, ListTasks={"taskArns": []})
    answers("ec2", **EC2)
    answers("dynamodb", UpdateItem={})  # the lease is renewed in the meantime
    sweep = engine.executor.observe(0.0, state_with())
    assert {fleet.placement_score for fleet in sweep.fleets} == {7}


def asked(error: Exception) -> Any:
    answers("dynamodb", anything=error)
    return handlers.api({"action": "ListRuns"}, context("request-1"))


def throttled_transaction() -> ClientError:
    reasons = [{"Code": "None"}, {"Code": "ThrottlingError"}]
    return refusal("TransactionCanceledException", CancellationReasons=reasons)


@pytest.mark.parametrize("error", [refusal("ThrottlingException", "slow"), throttled_transaction()])
def test_throttling_is_reported_to_users_as_such(
    engine: Any, error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = asked(error)
    assert (answer["statusCode"], answer["body"]["error"]["code"]) == (429, "ThrottlingException")
    assert answer["body"]["error"]["requestId"] == "request-1"
    assert "ApiFaults" not in capsys.readouterr().out


@pytest.mark.parametrize("error", [refusal("AccessDeniedException", "no such right"), timed_out()])
def test_whatever_else_aws_does_is_an_answer_and_is_logged_and_counted(
    engine: Any, error: Exception, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    answer = asked(error)
    assert (answer["statusCode"], answer["body"]["error"]["code"]) == (500, "InternalError")
    assert "no such right" not in json.dumps(answer)
    (record,) = [each for each in caplog.records if each.message == "a request failed at AWS"]
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    metric = next(json.loads(line) for line in capsys.readouterr().out.splitlines() if "ApiFaults" in line)
    assert (metric["ApiFaults"], metric["Cluster"]) == ([1.0], "argosy")


def test_a_fault_of_our_own_is_raised_so_that_the_errors_alarm_sees_it(engine: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        asked(ZeroDivisionError())


def test_a_lease_that_cannot_be_renewed_in_the_middle_of_work_stops_nothing(
    engine: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def renew() -> bool:
        raise refusal("ThrottlingException", "slow")

    handlers.SignsOfLife(renew)()
    assert "the lease could not be renewed" in caplog.text


def test_the_executor_renews_the_lease_of_the_invocation_that_is_at_work(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed: list[str] = []

    def renew() -> bool:
        renewed.append("the lease")
        return True

    monkeypatch.setattr(handlers.signs_of_life, "renew", renew)
    answers("ecs", ListContainerInstances={"containerInstanceArns": []}, ListTasks={"taskArns": []})
    asked = answers("ec2", **EC2)
    engine.executor.observe(0.0, state_with())
    assert len(renewed) >= len(asked) >= 4
    before = len(renewed)
    engine.executor.carry_out([VerifyResult(RUN_ID, 0, 1)], state_with(), 0.0)
    assert len(renewed) > before


def test_a_process_that_is_forgotten_renews_no_lease_any_more(engine: Any) -> None:
    asked: list[float] = []
    handlers.signs_of_life.renew = lambda: bool(asked.append(0.0))
    handlers.forget_process()
    handlers.signs_of_life()
    assert not asked


def test_the_gap_of_a_purchase_to_the_least_possible_is_a_metric_where_it_is_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ARGOSY_CLUSTER", "argosy")
    quiet = TickReport(events=1, poison=0, actions=1, launches=0, at_rest=False)
    log = handlers.TickLog()
    log.note(quiet)
    log.note(replace(quiet, bought=3, order_gap_pct=1.5))
    without, told = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "TickSeconds" in line]
    assert "OrderGapPct" not in without
    assert told["OrderGapPct"] == [1.5]


def written_by_a_newer_version() -> dict[str, Any]:
    """The answers of a table whose root was written by a newer version."""
    root = documents.encode({"format": documents.FORMAT + 1, "runs": []})
    return {"Items": [{"pk": {"S": "STATE"}, "sk": {"S": documents.ROOT}, "body": {"B": root}}]}


def test_what_is_stored_and_cannot_be_read_is_an_answer_and_is_logged_and_counted(
    engine: Any, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    answers("dynamodb", anything=written_by_a_newer_version())
    answer = handlers.api({"action": "DescribeCluster"}, context("r-1"))
    assert (answer["statusCode"], answer["body"]["error"]["code"]) == (500, "InternalError")
    assert "deploy the newer version again" in answer["body"]["error"]["message"]
    assert "a stored document cannot be read" in caplog.messages
    assert '"ApiFaults"' in capsys.readouterr().out


def test_damaged_documents_are_logged_and_counted(
    engine: Any, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    damage = ("the stored INSTANCES#03 is corrupt: no",)
    handlers.TickLog().note(TickReport(events=0, poison=0, actions=0, launches=0, at_rest=False, damage=damage))
    errors = [record.__dict__ for record in caplog.records if record.levelname == "ERROR"]
    (told,) = [record["damage"] for record in errors if "damage" in record]
    assert told == damage[0]
    assert json.loads(capsys.readouterr().out)["CorruptDocuments"] == [1.0]


def test_instances_that_ec2_will_not_end_are_counted_while_there_are_any(
    engine: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for stubborn in (0, 2):
        report = TickReport(events=1, poison=0, actions=0, launches=0, at_rest=False, stubborn=stubborn)
        handlers.TickLog().note(report)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert [line["StubbornInstances"] for line in lines if "StubbornInstances" in line] == [[2.0]]


def test_fleets_that_do_not_deliver_are_logged_and_those_to_mend_are_counted(
    engine: Any, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    short = ("us-east-1/c5.xlarge/us-east-1a: its machine image (AMI) cannot be used",)
    handlers.TickLog().note(TickReport(1, 0, 0, 0, at_rest=False, to_mend=2, behind=3, short=short))
    assert [record.__dict__["fleet"] for record in caplog.records if "fleet" in record.__dict__] == list(short)
    (line,) = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "TickSeconds" in line]
    assert line["FleetsToMend"] == [2.0]
    assert line["FleetsBehind"] == [3.0]


def test_services_in_trouble_are_counted_also_in_ticks_that_do_nothing(
    engine: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers.TickLog().note(TickReport(0, 0, services_in_trouble=2))
    handlers.TickLog().note(TickReport(1, 0))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "TickSeconds" in line]
    assert [line.get("ServicesInTrouble") for line in lines] == [[2.0], None]


def test_a_tick_that_cannot_be_logged_is_counted_and_fails_nothing(
    engine: Any, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers.TickLog().note(TickReport(events=1, poison=0, repaired="many"))  # type: ignore[arg-type]
    assert "a tick could not be logged" in caplog.text
    assert '"TickFaults":[1.0]' in capsys.readouterr().out.replace(" ", "")


def test_asynchronous_events_fail_loudly_so_that_lambda_retries_them(engine: Any) -> None:
    """Scheduler calls asynchronously: an answer that says no would look like a success."""
    answers("dynamodb", anything=ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "GetItem"))
    request = {"name": "nightly", "scheduledTime": "2026-11-23T03:00:00Z"}
    with pytest.raises(handlers.UnattendedFault, match="ThrottlingException"):
        handlers.api({"action": "FireSchedule", **request}, context("r"))
    attended = handlers.api({"action": "DescribeSchedule", "name": "nightly"}, context("r"))
    assert attended["statusCode"] == 429


@pytest.mark.parametrize("action", [{}, [], None, 5])
def test_an_action_that_is_no_text_is_refused_and_not_raised(engine: Any, action: Any) -> None:
    assert handlers.api({"action": action}, context("r"))["statusCode"] == 400


def test_an_announcement_is_a_metric_and_an_event_and_stops_nothing(
    engine: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    denied = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "PutEvents")
    asked = answers("events", PutEvents=denied)
    handlers.Announcer(handlers.clients_of_process().get("events")).announce("Schedule Missed", {"verdict": "late"})
    assert asked == ["PutEvents"]
    assert '"SchedulesMissed": [1.0]' in capsys.readouterr().out.replace("[1]", "[1.0]")


def test_through_an_alias_a_clocks_action_that_fails_is_an_answer_and_no_alarm(engine: Any) -> None:
    answers("dynamodb", anything=ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "GetItem"))
    asked = {"action": "FireSchedule", "name": "nightly", "scheduledTime": "2026-11-23T03:00:00Z"}
    assert handlers.api(asked, context("r", f"{ARN}:q-research"))["statusCode"] == 429
    with pytest.raises(handlers.UnattendedFault):
        handlers.api(asked, context("r", f"{ARN}:$LATEST"))


def test_what_is_no_arn_of_a_function_is_not_taken_for_the_owners_call(engine: Any) -> None:
    for arn in ("argosy-api", "arn:aws:iam::123456789012:role/argosy-api:x", f"{ARN}:q-a:b"):
        with pytest.raises(ValueError, match="is not the ARN of a function"):
            handlers.api({"action": "ListRuns"}, context("r", arn))


def test_the_sender_of_a_request_is_verified_against_the_deployments_address(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert handlers.api_of_process().identities is None  # as in local mode
    handlers.forget_process()
    place = {"host": "sts.us-east-1.amazonaws.com", "deployment": "123456789012/us-east-1/argosy"}
    monkeypatch.setenv("ARGOSY_IDENTITY", json.dumps(place))
    assert handlers.api_of_process().identities.signed_for.host == "sts.us-east-1.amazonaws.com"
    handlers.forget_process()


OLDER = {name: value for name, value in FUNCTION_ENVIRONMENT.items() if name != "ARGOSY_SCHEDULES_ROLE_ARN"}
NEWER = FUNCTION_ENVIRONMENT | {"ARGOSY_SETTINGS": json.dumps({"aSettingOfNextMonth": 1})}


@pytest.mark.parametrize(
    ("environment", "sign"),
    [(OLDER, "no variable ARGOSY_SCHEDULES_ROLE_ARN"), (NEWER, "setting aSettingOfNextMonth: Extra inputs")],
    ids=["a template of last month", "a template of next month"],
)
def test_a_template_of_another_version_is_refused_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], sign: str
) -> None:
    for name in FUNCTION_ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    handlers.forget_process()
    answer = handlers.api({"action": "ListRuns"}, context("r-1"))
    assert answer["statusCode"] == 500
    said = answer["body"]["error"]["message"]
    assert said.startswith(f"the code and the template of this function are of different versions of Argosy ({sign}")
    assert said.endswith("deploy both, with `make deploy`")
    handlers.forget_process()


def test_the_controller_under_a_template_of_another_version_fails_with_the_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (FUNCTION_ENVIRONMENT | {"ARGOSY_SETTINGS": NEWER["ARGOSY_SETTINGS"]}).items():
        monkeypatch.setenv(name, value)
    handlers.forget_process()
    with pytest.raises(handlers.OtherVersion, match="different versions of Argosy"):
        handlers.controller({}, context("r-1"))
    handlers.forget_process()
