"""The sharing document through the api: applied, overtaken, restored, refused; and which queues a run may name."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from argosy.figures.document import parts
from argosy.figures.queues import queues_page
from argosy.model import inbox
from argosy.model.policy import Policy, VcpuQuota
from argosy.model.resources import Resources
from argosy.model.shares.recent_use import UNIT, RecentUse
from argosy.model.shares.sharing import MOST_EARLIER, SHARING, Sharing
from argosy.model.stored import documents
from argosy.model.stored.documents import restore
from tests.fakes.api import SPEC, Desk, error_of

TAKES: dict[str, Any] = {
    "version": 1,
    "queues": {"q": {"preempts": True}, "r": {"preemptible": True}},
    "reclaim": {"by": "preempt"},
}
DOCUMENT: dict[str, Any] = {
    "version": 1,
    "queues": {"research": {"weight": 3}, "team": {"within": "owners", "cap": {"vcpus": 8}}},
}

PROMISES: dict[str, Any] = {
    "version": 1,
    "limits": {"usdPerHour": 10},
    "queues": {"a": {"guarantee": {"usdPerHour": 7}}, "b": {"guarantee": {"usdPerHour": 5}, "cap": {"usdPerHour": 4}}},
}


def applied(desk: Desk, **fields: Any) -> dict[str, Any]:
    desk.time += 1
    body = desk.body("ApplySharing", **fields)
    desk.fold_in()
    return body


def queues(desk: Desk) -> list[str]:
    return [each["name"] for each in desk.body("DescribeSharing")["queues"]]


def test_a_document_is_in_force_once_the_controller_has_taken_it_in(desk: Desk) -> None:
    assert queues(desk) == ["default"]
    assert applied(desk, document=DOCUMENT) == {"revision": 1, "document": DOCUMENT, "warnings": []}
    assert queues(desk) == ["default", "research", "team"]
    view = desk.body("DescribeSharing")
    assert (view["revision"], view["document"], view["earlier"]) == (1, DOCUMENT, [])
    assert [each["cap"] for each in view["queues"]] == [None, None, {"vcpus": 8.0}]
    assert view["queues"][2]["used"] == {"usdPerHour": 0, "vcpus": 0, "gpus": 0, "instances": 0}


def test_the_answer_names_the_open_runs_that_the_document_shuts_out(desk: Desk) -> None:
    """They are not reason enough to refuse it: then any member could keep an owner from lowering a cap."""
    applied(desk, document=DOCUMENT)
    large = desk.submit(queue="team", resources={"vcpus": 4, "memory": 1024})["runId"]
    desk.submit("t-2", queue="team", resources={"vcpus": 1, "memory": 1024})
    desk.fold_in()
    lower = {"version": 1, "queues": {"team": {"cap": {"vcpus": 2}}}}
    told = "a task needs 4 vCPUs, the cap of queue team is 2; it ends after 60 minutes without work"
    assert applied(desk, document=lower)["warnings"] == [f"{large}: {told}"]
    for number in range(12):
        desk.submit(f"more-{number}", resources={"vcpus": 4, "memory": 1024})
    desk.fold_in()
    warnings = applied(desk, document={"version": 1, "queues": {"default": {"cap": {"vcpus": 0}}}})["warnings"]
    assert len(warnings) == 11
    assert warnings[-1] == "4 more open runs cannot continue either"
    del desk.store.items[documents.STATE, documents.ROOT]
    assert desk.body("ApplySharing", document=DOCUMENT)["warnings"] == []  # unreadable: it can be replaced


def test_an_earlier_document_can_be_put_into_force_again(desk: Desk) -> None:
    applied(desk, document=DOCUMENT)
    applied(desk, document={"version": 1, "queues": {"other": {}}})
    assert applied(desk, restore=1) == {"revision": 3, "document": DOCUMENT, "warnings": []}
    view = desk.body("DescribeSharing")
    assert [each["revision"] for each in view["earlier"]] == [2, 1]


def test_only_the_latest_documents_are_kept(desk: Desk) -> None:
    for _ in range(MOST_EARLIER + 3):
        applied(desk, document=DOCUMENT)
    error = error_of(desk.ask("ApplySharing", restore=1))
    assert error["code"] == "ResourceNotFoundException"
    assert "revision 1 is not kept; kept: 13, 12" in error["message"]
    assert error_of(Desk().ask("ApplySharing", restore=1))["message"] == "revision 1 is not kept; kept: none"


def test_a_document_that_follows_another_revision_is_a_conflict(desk: Desk) -> None:
    applied(desk, document=DOCUMENT)
    error = error_of(desk.ask("ApplySharing", document=DOCUMENT, revision=0))
    assert error["code"] == "ConflictException"
    assert "revision 1 is in force now, not 0" in error["message"]


def test_of_two_documents_at_one_moment_the_first_counts(desk: Desk) -> None:
    desk.body("ApplySharing", document=DOCUMENT)
    desk.body("ApplySharing", document={"version": 1, "queues": {"late": {}}})
    desk.fold_in()
    assert (desk.state.sharing.revision, queues(desk)) == (1, ["default", "research", "team"])


def test_of_too_many_simultaneous_requests_one_is_asked_to_wait(desk: Desk) -> None:
    for _ in range(10):
        desk.body("ApplySharing", document=DOCUMENT)
    assert error_of(desk.ask("ApplySharing", document=DOCUMENT))["code"] == "ThrottlingException"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "give document or restore, and not both"),
        ({"document": DOCUMENT, "restore": 1}, "give document or restore, and not both"),
        ({"document": {}}, "is required"),
        ({"document": {"version": 1, "queues": {}}}, "must not be empty"),
        ({"document": {"version": 1, "queues": {"default": {"weight": 0}}}}, "every queue has weight 0"),
        ({"document": {"version": 1, "queues": {f"q{n}": {} for n in range(201)}}}, "at most 200 entries, not 201"),
        ({"document": {"version": 1, "queues": {"Q": {}}}}, "must match"),
        (
            {"document": {"version": 1, "queues": {"q": {"half": {}}}}},
            "unknown field; known: weight, within, guarantee",
        ),
        ({"document": {"version": 1, "limits": {"usdPerHour": -1}, "queues": {"q": {}}}}, "at least 0"),
        ({"document": {"version": 1, "limits": {"usd": 1}, "queues": {"q": {}}}}, "known: usdPerHour"),
        ({"document": {"version": 1, "queues": {"q": {"guarantee": {}}}}}, "a guarantee has one unit"),
        ({"document": {"version": 1, "queues": {"q": {"guarantee": {"gpus": 1, "vcpus": 1}}}}}, "has one unit"),
        (
            {"document": {"version": 1, "queues": {"q": {"lend": False}}}},
            "needs a guarantee in instances or usdPerHour",
        ),
        (
            {"document": {"version": 1, "queues": {"q": {"guarantee": {"vcpus": 9}, "cap": {"vcpus": 8}}}}},
            "9 vcpus are guaranteed, and its cap is 8",
        ),
        ({"document": PROMISES}, "the guarantees add up to 12 USD an hour, and the deployment may use 10"),
        ({"document": PROMISES}, "5 usdPerHour are guaranteed, and its cap is 4"),
        ({"document": {"version": 1, "queues": {"q": {"cap": {}}}}}, "an empty cap has no effect"),
        ({"document": {"version": 1, "queues": {"q": {"cap": {"usd": 1}}}}}, "known: usdPerHour, vcpus, gpus"),
        ({"document": {"version": 1, "queues": {"q": {"cap": {"vcpus": -1}}}}}, "at least 0"),
        ({"document": {"version": 1, "queues": {"q": {"cap": {"gpus": 1.5}}}}}, "must be a whole number"),
        ({"document": {"version": 1, "queues": {"q": {"weight": 1.5}}}}, "must be a whole number"),
        ({"document": {"version": 1, "queues": {"q": {"weight": 1001}}}}, "at most 1,000"),
        (
            {"document": {"version": 1, "caps": {}, "queues": {"q": {}}}},
            "unknown field; known: version, limits, queues",
        ),
        ({"document": {"version": 1, "reclaim": {}, "queues": {"q": {}}}}, "give one of them preempts: true"),
        (
            {"document": {"version": 1, "queues": {"q": {"preempts": True}}}},
            "queue q has preempts: true, but there is no reclaim",
        ),
        ({"document": TAKES | {"queues": {"q": {"preempts": True, "weight": 0}}}}, "a weight, or drop preempts"),
        ({"document": TAKES | {"reclaim": {"by": "force"}}}, "must be 'drain' or 'preempt'"),
        ({"document": TAKES | {"reclaim": {"perTask": -1}}}, "must be at least 0"),
        ({"document": TAKES | {"reclaim": {"after": 1}}}, "unknown field; known: afterSeconds, by, perTask, perHour"),
        ({"document": {"version": 1, "queues": {"q": {"within": "x" * 70_000}}}}, "the limit is 65536"),
    ],
)
def test_a_document_that_says_what_it_may_not_is_refused(desk: Desk, fields: dict[str, Any], said: str) -> None:
    answer = desk.ask("ApplySharing", **fields)
    assert answer["statusCode"] == 400
    assert said in json.dumps(error_of(answer))
    assert not desk.store.read_partition(inbox.INBOX)


def test_a_run_of_an_unknown_queue_is_refused_with_the_known_ones(desk: Desk) -> None:
    for action in ("SubmitRun", "ValidateRun", "PlanRun"):
        [fault] = error_of(desk.ask(action, spec={**SPEC, "queue": "physics"}))["fieldList"]
        assert fault == {"path": "queue", "message": "there is no queue physics; the queues are: default"}
    applied(desk, document=DOCUMENT)
    assert desk.submit(queue="research", owner="alice", priority=-5)["created"]
    [fault] = error_of(desk.ask("SubmitRun", spec={**SPEC, "queue": "physics"}))["fieldList"]
    assert fault["message"] == "there is no queue physics; the queues are: default, research, team"


def test_a_spec_that_says_nothing_of_queues_is_stored_as_it_was(desk: Desk) -> None:
    desk.submit()
    [body] = desk.store.read_partition(inbox.INBOX).values()
    request = inbox.from_bytes(body)
    assert isinstance(request, inbox.SubmitRequest)
    assert not {"queue", "owner", "priority"} & set(request.spec)


@pytest.mark.parametrize(
    ("field", "value"), [("priority", 101), ("priority", "high"), ("owner", "x" * 65), ("owner", ""), ("queue", "A")]
)
def test_fields_of_a_spec_have_bounds(desk: Desk, field: str, value: Any) -> None:
    [fault] = error_of(desk.ask("SubmitRun", spec={**SPEC, field: value}))["fieldList"]
    assert fault["path"] == field


def test_a_document_that_cannot_be_read_is_left_out_and_can_be_replaced(desk: Desk) -> None:
    applied(desk, document=DOCUMENT)
    items = {**desk.store.read_partition(documents.STATE), SHARING: b"nonsense"}
    state = restore(1, items, {})
    assert state.sharing == Sharing()
    assert [each.document for each in state.losses.found] == ["sharing document"]
    desk.state.sharing = Sharing()
    desk.store.commit(desk.state.version, {(documents.STATE, SHARING): b"nonsense"}, [])
    desk.state.version += 1
    assert applied(desk, document=DOCUMENT)["revision"] == 1
    assert queues(desk) == ["default", "research", "team"]


def test_the_view_says_which_queues_take_and_give_room(desk: Desk) -> None:
    assert desk.body("ApplySharing", document=TAKES)["document"] == TAKES
    desk.fold_in()
    shown = {each["name"]: each for each in desk.body("DescribeSharing")["queues"]}
    assert [(each["preempts"], each["preemptible"]) for each in shown.values()] == [
        (False, None), (True, None), (False, True)
    ]  # fmt: skip
    assert (shown["q"]["kept"], shown["r"]["preempted"]) == (0, 0)


def faults(desk: Desk, **fields: Any) -> list[str]:
    answer = desk.ask("ApplySharing", **fields)
    assert answer["statusCode"] == 400
    return [f"{each['path']}: {each['message']}" for each in error_of(answer)["fieldList"]]


def guaranteeing(**queues: dict[str, float]) -> dict[str, Any]:
    return {"version": 1, "queues": {name: {"guarantee": each} for name, each in queues.items()}}


def test_guarantees_that_do_not_fit_the_deployment_are_refused_with_every_fault(desk: Desk) -> None:
    desk.api.policy = Policy(max_instances=10)  # of 32 vCPUs and 4 GPUs
    said = guaranteeing(a={"instances": 6}, b={"instances": 4.5}, c={"vcpus": 321}, d={"gpus": 41}, e={"usdPerHour": 3})
    said["queues"]["e"]["cap"] = {"usdPerHour": 2}
    assert faults(desk, document={**said, "limits": {"usdPerHour": 1}}) == [
        "queues.e.guarantee: 3 usdPerHour are guaranteed, and its cap is 2",
        "queues: the guarantees add up to 10.5 instances, and maxInstances of the deployment is 10",
        "queues: the guarantees add up to 321 vCPUs, "
        "and maxInstances of the deployment (10) times the largest instance is 320",
        "queues: the guarantees add up to 41 GPUs, "
        "and maxInstances of the deployment (10) times the largest instance is 40",
        "limits.usdPerHour: the guarantees add up to 3 USD an hour, and the deployment may use 1",
    ]
    applied(desk, document=guaranteeing(a={"instances": 10}, c={"vcpus": 320}, d={"gpus": 40}))
    assert queues(desk) == ["default", "a", "c", "d"]


def test_vcpu_quotas_bound_guarantees_where_there_is_one_for_everything(desk: Desk) -> None:
    quotas = VcpuQuota("us-east-1", "spot", "p", 96), VcpuQuota("us-east-1", "on-demand", "p", 32)
    desk.api.limits = replace(desk.api.limits, cells=("us-east-1",))
    desk.api.policy = Policy(vcpu_quotas=quotas[:1])
    applied(desk, document=guaranteeing(a={"vcpus": 129}))
    desk.api.policy = Policy(vcpu_quotas=quotas)
    told = "queues: the guarantees add up to 129 vCPUs, and the vCPU quotas of the deployment add up to 128"
    assert faults(desk, document=guaranteeing(a={"vcpus": 129})) == [told]


def test_where_no_instance_type_has_gpus_none_can_be_guaranteed(desk: Desk) -> None:
    desk.api.limits = replace(desk.api.limits, shapes={"c5.xlarge": Resources(4096, 7_000, 0)})
    told = "queues: the guarantees add up to 1 GPUs, and no instance type of the deployment has GPUs"
    assert faults(desk, document=guaranteeing(a={"gpus": 1})) == [told]
    desk.api.limits = replace(desk.api.limits, shapes={})  # nothing is known of its types
    applied(desk, document=guaranteeing(a={"gpus": 1}))


def test_an_earlier_document_that_does_not_fit_any_more_is_refused(desk: Desk) -> None:
    applied(desk, document=guaranteeing(a={"instances": 100}))
    applied(desk, document=DOCUMENT)
    desk.api.policy = Policy(max_instances=99)
    told = "queues: the guarantees add up to 100 instances, and maxInstances of the deployment is 99"
    assert faults(desk, restore=1) == [told]
    assert desk.body("DescribeSharing")["document"] == DOCUMENT


def test_what_is_refused_reads_as_one_sentence(desk: Desk) -> None:
    nobody = {"version": 1, "queues": {"default": {"weight": 0}, "night": {"weight": 0}}}
    assert faults(desk, document=nobody) == [": every queue has weight 0: give one of them a weight"]
    many = {"version": 1, "queues": {f"q{number}": {} for number in range(201)}}
    assert faults(desk, document=many) == ["queues: must have at most 200 entries, not 201"]
    told = "revision 0 is in force now, not 7: read it, then apply your change to it"
    assert error_of(desk.ask("ApplySharing", document=DOCUMENT, revision=7))["message"] == told


@pytest.mark.parametrize("said", ["1d2", "24", "", "9m", "91d", 24])
def test_a_half_life_is_a_duration_of_ten_minutes_to_ninety_days(desk: Desk, said: Any) -> None:
    answer = desk.ask("ApplySharing", document={**DOCUMENT, "halfLife": said})
    assert answer["statusCode"] == 400
    assert "halfLife" in json.dumps(error_of(answer))


def test_what_was_used_lately_is_shown_where_it_counts(desk: Desk) -> None:
    applied(desk, document={**DOCUMENT, "halfLife": "24h"})
    desk.submit(queue="research")
    desk.fold_in()
    means = {("research", ""): (3 * UNIT, 0, 0)}
    desk.state.sharing = replace(desk.state.sharing, recent=RecentUse(desk.time, (10, 10, 0), means))
    desk.state.changed_recent_use = True
    desk.commit()
    view = desk.body("DescribeSharing")
    assert view["halfLifeSeconds"] == 86_400
    assert [each["lately"] for each in view["queues"]] == [[], [{"owner": None, "use": 0.3, "factor": 3.328125}], []]
    applied(desk, document=DOCUMENT)
    assert desk.body("DescribeSharing")["halfLifeSeconds"] == 0


def test_the_quotas_of_the_settings_are_shown_with_what_is_left_of_them(desk: Desk) -> None:
    assert desk.body("DescribeSharing")["quotas"] == []
    desk.api.policy = Policy(vcpu_quotas=(VcpuQuota("us-east-1", "spot", "p", 96),))
    (quota,) = desk.body("DescribeSharing")["quotas"]
    assert quota == {"region": "us-east-1", "purchase": "spot", "family": "p", "vcpus": 96, "left": 96, "used": {}}


@pytest.mark.parametrize("document", [None, DOCUMENT, TAKES | {"halfLife": "24h"}])
def test_what_it_answers_is_all_that_the_page_of_the_queues_asks_for(desk: Desk, document: Any) -> None:
    if document is not None:
        applied(desk, document=document)
    page = queues_page(desk.body("DescribeSharing"))
    assert all(f">{name}</td>" in parts(page)["queues"] for name in queues(desk))
