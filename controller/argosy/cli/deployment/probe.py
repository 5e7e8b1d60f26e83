"""What does this account's AWS say where its contracts can be read in two ways? (`argosy doctor --probe`)

Problem: some contracts of AWS contradict each other or are not published (docs/maintainers/notes/readings.md).
Idea: many of them are decided by a call that starts nothing or undoes itself: a modification to the same value, a
filter, a condition that must be refused. The probe makes these calls and says for each reading what AWS answered and
what follows. For the other readings it says what the controller has seen (`model.readings`), or which observation
decides.
Example: a fleet at rest has the targets 0, 0 and 0. Sending it 0, 0 and 0 changes nothing. If AWS answers
InvalidTargetCapacitySpecification, the total alone is the only form.
Cost: two small objects in S3; every other call is free.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from argosy.cli.deployment.findings import Finding, looked_at, note, ok, wrong
from argosy.client.errors import error_code, is_denied, is_from_aws

if TYPE_CHECKING:
    from argosy.cli.session import Session

JSON = dict[str, Any]
POOL, STAGE = "argosy:pool", "argosy:stage"
SEND_THIS = "send this line to the maintainers"
NOWHERE = "attribute:argosy.probe == nowhere"  # no container instance has it
PROBE_KEY = "argosy/probe"

BOTH_WAYS = "Argosy works the same way under either reading"
# Readings that no call without effect decides -> the observation that does.
OBSERVED = {
    "old-target-while-modifying": "the controller records the target that a fleet shows while it is being modified",
    "room-back-at-desired-stopped": "the controller records the free CPU units of an instance where a task is stopping",
    "agent-queue-stuck": "a task that stays PENDING behind another program's stopping task decides, by the log of the"
    " instance's agent",
    "pull-survives-stop": "the controller records a pull that is short after one that was stopped",
    "pull-told-at-once": "the controller records a task that is PENDING and shows `pullStartedAt`",
}
# What follows where what the controller has seen selects the way; elsewhere BOTH_WAYS.
SELECTS = {
    "fleet-deleted-over-limit": "Argosy buys from a pool as long as its fleet is listed",
    "docker-restart-blocks": "for an hour after an instance has joined without the runner, Argosy buys none with its"
    " AMI for programs",
}


def probe(session: Session) -> list[Finding]:
    """One finding for each reading. Nothing is started, and nothing stays changed."""
    found: list[Finding] = []
    seen: dict[str, JSON] = {}
    failed = looked_at("readings that were seen", partial(_read, session, seen))
    for name, ask in QUESTIONS.items():
        also = f". {_seen(name, seen[name])}" if name in seen else ""
        found += [replace(each, says=each.says + also) for each in looked_at(name, partial(ask, session, name))]
    for name, says in OBSERVED.items():
        found += ok(name, _seen(name, seen[name])) if name in seen else note(name, f"not seen yet: {says}. {BOTH_WAYS}")
    return found + failed


def _read(session: Session, seen: dict[str, JSON]) -> list[Finding]:
    """What the controller has recorded, by reading. An earlier version records nothing."""
    seen |= {each["reading"]: each for each in session.api.cluster().get("readings", ())}
    return []


def _seen(name: str, sighting: JSON) -> str:
    answer = "holds" if sighting["holds"] else "does not hold"
    saw = f"the controller saw at {sighting['at']} that it {answer}: {sighting['saw']}"
    return f"{saw}. {SELECTS.get(name, BOTH_WAYS)}"


def refusal(call: Callable[..., Any], **parameters: Any) -> str:
    """AWS's code and words if it refuses the call; "" if it takes it. A missing right is raised."""
    try:
        call(**parameters)
    except Exception as fault:
        if not _is_answer(fault):
            raise
        return _words(fault)
    return ""


def _is_answer(fault: Exception) -> bool:
    """Whether AWS refused the call for another reason than a missing right."""
    return is_from_aws(fault) and bool(error_code(fault)) and not is_denied(fault)


def _words(fault: Any) -> str:
    return f"{error_code(fault)}: {fault.response['Error'].get('Message', '')}"


def resting_fleets(session: Session) -> list[JSON]:
    """Those of ours that have no instance and want none. Each question takes another one: a fleet that was just
    modified may refuse the next modification."""
    wanted = "TargetCapacitySpecification"
    return [
        fleet
        for fleet in _fleets(session)
        if fleet["FleetState"] == "active" and not fleet[wanted]["TotalTargetCapacity"] + fleet["FulfilledCapacity"]
    ]


def _fleets(session: Session) -> list[JSON]:
    """Of this deployment's home Region."""
    tags = {"Key": STAGE, "Value": session.connection.stage}
    pages = session.client("ec2").get_paginator("describe_fleets").paginate()
    return [fleet for page in pages for fleet in page["Fleets"] if tags in fleet.get("Tags", ())]


def _modify(session: Session, fleet: JSON, **targets: int) -> str:
    """Sends an idle fleet its current targets again."""
    return refusal(
        session.client("ec2").modify_fleet,
        FleetId=fleet["FleetId"],
        TargetCapacitySpecification={"TotalTargetCapacity": 0, **targets},
    )


def total_only(session: Session, name: str) -> list[Finding]:
    fleets = resting_fleets(session)[:2]
    if len(fleets) < 2:
        return _no_fleet(name)
    if said := _modify(session, fleets[0]):
        return wrong(name, f"AWS refuses the total alone ({said}): nothing can be bought", SEND_THIS)
    if said := _modify(session, fleets[1], SpotTargetCapacity=0, OnDemandTargetCapacity=0):
        return ok(name, f"AWS refuses targets by purchase ({said}); it takes the total alone, which Argosy sends")
    return ok(name, "AWS takes the total alone, which Argosy sends, and targets by purchase as well")


def only_active(session: Session, name: str) -> list[Finding]:
    """The second of two modifications comes while the first may still be under way."""
    fleets = resting_fleets(session)
    if not fleets:
        return _no_fleet(name)
    if said := _modify(session, fleets[-1]) or _modify(session, fleets[-1]):
        return ok(name, f"AWS refuses a fleet that is being modified ({said}); Argosy asks again, with pauses")
    return ok(name, "AWS takes two modifications in a row")


def _no_fleet(name: str) -> list[Finding]:
    return note(
        name, "not asked: no two fleets of this deployment are at rest", "argosy doctor --probe, when nothing runs"
    )


def hyphens(session: Session, name: str) -> list[Finding]:
    """The nonsense says whether AWS looks at the values of this filter at all."""
    ask, said = session.client("ec2").describe_fleets, []
    for state in ("deleted-running", "deleted_running", "nonsense"):
        refused = refusal(ask, Filters=[{"Name": "fleet-state", "Values": [state]}])
        said.append(f"{'refuses' if refused else 'takes'} {state}")
    return ok(name, f"as the filter fleet-state, AWS {', '.join(said)}; Argosy filters nothing and reads both")


def deleted_over_limit(session: Session, name: str) -> list[Finding]:
    gone = [fleet["FleetId"] for fleet in _fleets(session) if fleet["FleetState"].startswith("deleted")]
    if gone:
        says = f"{len(gone)} of this deployment's fleets were deleted ({gone[0]}); nothing is bought from their pools"
        return note(name, says, "make deploy, which makes a deleted fleet again")
    return note(
        name, "not decided: none of this deployment's fleets was deleted; the first that exceeds a quota decides"
    )


def docker_blocks(session: Session, name: str) -> list[Finding]:
    """The agent's attribute says whether Docker has our init."""
    ecs, cluster = session.client("ecs"), session.deployment.cluster
    named = ecs.list_container_instances(cluster=cluster, status="ACTIVE")["containerInstanceArns"]
    with_runner = ecs.list_container_instances(
        cluster=cluster, status="ACTIVE", filter="attribute:argosy.runner exists"
    )
    if not named:
        return note(
            name, "not decided: the first instance that joins decides", "argosy doctor --probe, while a run is on"
        )
    count = len(with_runner["containerInstanceArns"])
    if count == len(named):
        return ok(name, f"each of {count} instances joined with the runner")
    says = f"{len(named) - count} of {len(named)} instances joined without the runner: programs do not run on them"
    return wrong(name, says, "argosy instances, for what the instance wrote on its console")


def launch_token(session: Session, name: str) -> list[Finding]:
    """A launch that no instance can take starts nothing, however often it is sent."""
    ecs, cluster, token = session.client("ecs"), session.deployment.cluster, str(uuid.uuid4())
    known = ecs.list_task_definitions(status="ACTIVE", maxResults=1)["taskDefinitionArns"]
    if not known:
        return note(name, "not asked: there is no task definition before the first run")
    request = {
        "cluster": cluster,
        "taskDefinition": known[0],
        "clientToken": token,
        "startedBy": "argosy-probe",
        "placementConstraints": [{"type": "memberOf", "expression": NOWHERE}],
    }
    answers = [_launched(ecs, request) for _ in range(2)]
    same = "the same both times" if answers[0] == answers[1] else f"then {answers[1]}"
    return ok(name, f"a launch that fits nowhere, sent twice with one token: {answers[0]}, {same}; nothing started")


def _launched(ecs: Any, request: JSON) -> str:
    try:
        reply = ecs.run_task(**request)
    except Exception as fault:
        if not _is_answer(fault):
            raise
        return _words(fault)
    for task in reply["tasks"]:  # AWS ignored the constraint
        ecs.stop_task(cluster=request["cluster"], task=task["taskArn"], reason="argosy doctor --probe")
    return f"{len(reply['tasks'])} tasks, failures {[failure.get('reason') for failure in reply['failures']]}"


def listing(session: Session, name: str) -> list[Finding]:
    cluster = session.deployment.cluster
    ask = session.client("ecs").list_tasks
    if said := refusal(ask, cluster=cluster, startedBy="argosy-probe", desiredStatus="STOPPED"):
        return wrong(name, f"ListTasks refuses startedBy with desiredStatus ({said})", SEND_THIS)
    return ok(name, "ListTasks takes startedBy with desiredStatus=STOPPED")


def conditional_put(session: Session, name: str) -> list[Finding]:
    s3, place = session.client("s3"), {"Bucket": session.deployment.bucket, "Key": PROBE_KEY}
    s3.put_object(**place, Body=b"argosy doctor --probe")
    try:
        said = refusal(s3.put_object, **place, Body=b"again", IfNoneMatch="*")
    finally:
        s3.delete_object(**place)
    if not said:
        return wrong(name, "S3 took a PUT whose If-None-Match does not hold: two results could mix", SEND_THIS)
    return ok(name, f"S3 refuses a PUT whose If-None-Match does not hold ({said})")


# The first five are readings of the emulator; the others have one reading that Argosy relies on.
QUESTIONS: dict[str, Callable[[Session, str], list[Finding]]] = {
    "modify-fleet-total-only": total_only,
    "modify-only-active": only_active,
    "fleet-state-hyphens": hyphens,
    "fleet-deleted-over-limit": deleted_over_limit,
    "docker-restart-blocks": docker_blocks,
    "launch tokens": launch_token,
    "lists of stopped tasks": listing,
    "conditional writes": conditional_put,
}
