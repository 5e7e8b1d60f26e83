"""The command `explain`: why a run waits or waited, what would help, and why a task was placed where it was."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.figures import counted, duration, instant, money, start_up
from argosy.cli.options import RunId
from argosy.cli.problems import CliError
from argosy.cli.session import Session
from argosy.cli.typed_values import FORMS, moment
from argosy.client import start_ups
from argosy.client.api import ApiError
from argosy.client.checkpoints import resumption
from argosy.client.errors import ArgosyError
from argosy.figures.headroom import said_headroom
from argosy.model.resources import said_vcpus
from argosy.model.wording import FOR_A_CORE, hour_and_minute

RECORDED = "give a time at which the controller was running; the setting journalDays sets how long its record is kept"
LATER = "The record is stored every minute and when a run ends: ask again then, or without --at for the present state"


def register(app: typer.Typer) -> None:
    command(app, "explain", panel=panels.RUNS)(explain)


def explain(
    session: Session,
    run: RunId,
    index: Annotated[int | None, typer.Argument(metavar="[TASK]", min=0, help="The index of one of its tasks.")] = None,
    task: Annotated[int | None, typer.Option("--task", min=0, help="The same as TASK.")] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help=f"As of this time: {FORMS}.")] = None,
) -> None:
    """Why a run's tasks wait, in numbers, and what would help. With --at, the situation at a past time, and why a task
    was placed where it was, recomputed from the controller's own record."""
    if None not in (index, task) and index != task:
        raise CliError(f"TASK is {index} and --task is {task}: name one task.")
    wanted = task if index is None else index
    reply = start_ups.explained(session.access, run, wanted) if at is None else _then(session, run, wanted, at)
    if session.wants_json:
        session.print_json(reply)
        return
    for line in lines_of(reply) if at is None else past_lines(reply):
        session.console.print(line)
    if saved := reply.get("checkpoint"):
        session.console.print(resumption(saved, session.tools.now()))


def _then(session: Session, run: str, index: int | None, at: str) -> dict[str, Any]:
    from argosy.client.recordings import S3Segments  # these load the placement engine: only --at needs it
    from argosy.replay.chains import NotRecorded
    from argosy.replay.past_decisions import why

    try:
        when = moment(at, session.tools.now())
        if when > session.tools.now():
            raise ValueError(f"{at} is in the future, and only past decisions can be explained")
        shelf = S3Segments(session.client("s3"), session.deployment.bucket)
        reply = why(shelf, run, index, when)
        if index is not None and reply["placement"] is None and (ended := _launched_before(session, run, index, when)):
            earlier = why(shelf, run, index, ended)
            if earlier["placement"] is None:
                raise NotRecorded(f"the launch of the task's attempt at that time is not in the record. {LATER}")
            reply |= {name: earlier[name] for name in ("placement", "exact", "differences")}
        if reply["run"] is None and reply["at"] < _submitted_at(session, run) <= when:
            raise NotRecorded(f"nothing was recorded between the run's submission and that time. {LATER}")
        return {**reply, "notRecordedFrom": _next_decision(session, reply, when)}
    except ValueError as fault:
        raise ArgosyError(f"--at: {fault}", is_users_fault=True) from fault
    except NotRecorded as gap:
        raise ArgosyError(f"That time cannot be reproduced: {gap}.", next_step=RECORDED) from gap


def _next_decision(session: Session, reply: Mapping[str, Any], when: float) -> dict[str, Any] | None:
    """The first commit after the shown one, up to the given time: that decision is not in the record. None = there is
    none, or it is too old to find."""
    try:
        page = session.api.changes(since=str(reply["version"] + 1), maxResults=1)
    except ApiError as refusal:
        if refusal.code == "ChangesExpired":
            return None
        raise
    first = next(iter(page["changes"]), None)
    decided = None if first is None else instant(first["at"])
    if first is None or decided is None or decided.timestamp() > when:
        return None
    return {"at": decided.timestamp(), "version": int(first["sequence"].partition(".")[0])}


def _submitted_at(session: Session, run: str) -> float:
    """Epoch seconds. Raises ArgosyError for an unknown run."""
    submitted = instant(session.api.describe(run)["submittedAt"])
    assert submitted is not None, "every run has been submitted"
    return submitted.timestamp()


def _launched_before(session: Session, run: str, index: int, when: float) -> float | None:
    """When the task's last attempt before a given time was launched, by the run's history; None = there was none. The
    history rounds to tenths of a second, so the result is half a tenth later: not before the decision to launch it."""
    from argosy.model.ended_attempts import TENTHS  # it loads numpy: only --at needs it

    attempts = session.api.task(run, index)["attempts"]
    launched = [at.timestamp() for each in attempts if (at := instant(each["launchedAt"])) is not None]
    return max((at + 0.5 / TENTHS for at in launched if at <= when), default=None)


def past_lines(reply: Mapping[str, Any]) -> list[str]:
    """The decision, the task's place, and the output of `explain` at that time."""
    if reply["placement"] is not None or reply["run"] is None:
        return [*heading(reply), *placement_lines(reply)]
    return [*heading(reply), *placement_lines(reply), *lines_of(reply["run"])]


_AFTER_A_PLACE = (FOR_A_CORE, "pulling its image", "PENDING")  # why tasks that have instances do not run


def lines_of(reply: Mapping[str, Any]) -> list[str]:
    """The verdict first, then each supply, then the task."""
    words = {"done": "nothing waits", "placed": "starts soon", "waiting": "waits", "never": "can never run here"}
    words |= {"off": "may not start", "capped": "is held back by its own limit", "behind": "waits behind other runs"}
    has_places = reply["verdict"] == "done" and reply["sentence"].startswith(_AFTER_A_PLACE)
    verdict = "" if has_places else f"{words[reply['verdict']]}; "
    lines = [f"{reply['runId']}: {verdict}{reply['sentence']}"]
    lines += (reply.get("standing") or {}).get("sentences", ())
    if (purchase := reply.get("purchase")) is not None and reply["verdict"] != "done":
        lines.append(_purchase(purchase))
    if reply["verdict"] in ("waiting", "never"):
        lines += _supply("Running instances", reply["cluster"])
        lines += _supply("Instances on order", reply["coming"])
        lines += _supply("Instances that could be bought (when empty)", reply["market"])
        lines += _last_order(reply.get("lastOrder"))
        lines += _next_price(reply.get("nextPrice"))
        lines += [each] if (each := reply.get("assumedRates")) else []
    if (task := reply["task"]) is not None:
        back_off = f", in back-off for {task['backOffSeconds']} s" if task["backOffSeconds"] else ""
        reason = f": {task['reason']}" if task["reason"] else ""
        lines.append(f"task {task['index']}: {task['status']}, {task['attempts']} attempts{back_off}{reason}")
    if parts := start_up(reply.get("startUp")):
        usd = reply["startUp"]["usd"]
        cost = f"; pull and start cost {money(usd)} of its instance" if usd is not None else ""
        lines.append(f"its last attempt started up: {parts}{cost}")
    lines += [said_headroom(each)] if (each := reply.get("headroom")) else []
    for each in reply.get("sharedGpus", ()):
        devices = ", ".join(f"GPU {place} {_device(device)}" for place, device in enumerate(each["gpuDevices"]))
        lines.append(f"{each['instanceId']} ({each['instanceType']}): {devices}")
    for each in reply.get("impaired", ()):
        lines.append(f"{each['instanceId']} ({each['instanceType']}) gets no new tasks: {each['because']}")
        lines.append(f"  {_of_sick_host(each)}")
    for each in reply.get("consoles", ()):
        lines.append(f"{each['instanceId']} ({each['instanceType']}) never joined the cluster; its console ended with:")
        lines += [f"  {line}" for line in each["console"].splitlines()]
    return lines


def _of_sick_host(host: Mapping[str, Any]) -> str:
    """What follows for its tasks. An earlier deployment does not count them."""
    if not host.get("tasks"):
        return "its tasks start elsewhere, and what fails there counts as lost, not as your program's failure"
    time = f"its {counted(host['tasks'], 'task')} have until {hour_and_minute(host['until'])} to end"
    return f"{time}, else they start elsewhere; what fails there counts as lost, not as your program's failure"


def _device(device: Mapping[str, Any]) -> str:
    """`is shared by 2 tasks (16.0 of 21.5 GiB taken)`."""
    if device["mode"] != "NVIDIA_MPS":
        return "is idle" if device["mode"] == "IDLE" else "belongs to one task"
    taken, total = ((device["totalMib"] - less) / 1024 for less in (device["freeMib"], 0))
    return f"is shared by {counted(device['tasks'], 'task')} ({taken:.1f} of {total:.1f} GiB taken)"


# By the source of a rate of interruptions, as `argosy prices` has it.
_SOURCES = {
    "own": "by what Argosy counted",
    "account": "by this account's record in EC2 Capacity Manager",
    "advisor": "by AWS's Spot Instance Advisor",
    "none": "assumed, as no source has a rate",
}


def _next_price(price: Mapping[str, Any] | None) -> list[str]:
    """What the risk of an interruption adds to the price of the next instance, and which source says so."""
    if price is None:
        return []
    place = f"{price['instanceType']} in {price['availabilityZone']}"
    rate = f"{price['interruptionsPerHour']:.2g} interruptions an hour, {_SOURCES[price['interruptionsFrom']]}"
    cost = f"{price['usdPerHour']:.4f} USD/h, counted as {price['countedUsdPerHour']:.4f}"
    return [f"the cheapest spot instance for it, {place}: {cost} ({rate})"]


def _purchase(purchase: Mapping[str, Any]) -> str:
    """The current purchases, and the slack before the deadline."""
    why = f" ({purchase['reason']})" if purchase["reason"] else ""
    line = f"buys {purchase['now']} now{why}"
    if purchase["slackSeconds"] is None:
        return line
    slack, left = purchase["slackSeconds"], duration(purchase["leftSeconds"])
    if slack < 0:
        return f"{line}; on-demand needs about {left} for the rest: {duration(-slack)} too long for the deadline"
    return f"{line}; on-demand needs about {left} for the rest: {duration(slack)} of slack"


def _supply(title: str, explanation: Mapping[str, Any] | None) -> list[str]:
    if not explanation or not explanation["instances"]:
        return []
    lines = [f"{title}: {explanation['fits']} of {explanation['instances']} would take the next task"]
    if not explanation["fits"]:
        lines += [f"  {_reason(reason)}" for reason in explanation["reasons"]]
    if explanation["relaxation"]:
        lines.append(f"  it would fit if {explanation['relaxation']}")
    return lines


def _last_order(order: Mapping[str, Any] | None) -> list[str]:
    """The controller's last purchase, for any run, and its distance from the cheapest."""
    if not order:
        return []
    above = "" if order["gapPct"] is None else f", at most {order['gapPct']:.1f} % above the least it could cost"
    bought = counted(order["instances"], "instance")
    return [f"The last purchase: {bought} for ${order['usdPerHour']:.4f} an hour{above}"]


def _reason(reason: Mapping[str, Any]) -> str:
    most = "" if reason["bestInstance"] is None else f"; the most free is {reason['best']} on {reason['bestInstance']}"
    return f"{reason['refused']} refuse: {reason['detail']}{most} ({reason['only']} for this reason alone)"


def heading(reply: Mapping[str, Any]) -> list[str]:
    """The decision, and whether its replay is exact."""
    lines = [f"{reply['runId']}: as of the decision at {_clock(reply['at'])}, version {reply['version']}"]
    if not reply["exact"]:
        lines.append("this may not be what the controller decided:")
        lines += [f"  {each}" for each in reply["differences"]]
    if (later := reply.get("notRecordedFrom")) is not None:
        lines.append(
            f"later decisions, from {_clock(later['at'])} (version {later['version']}) on, are not in the record: "
            "it is stored every minute, so the last minute is lost if the controller stops"
        )
    if reply["run"] is None:
        lines.append("the run was not open then")
    return lines


def placement_lines(reply: Mapping[str, Any]) -> list[str]:
    """The place of the task's attempt, and the alternatives."""
    found, index = reply["placement"], reply["index"]
    if found is None:
        return [] if index is None else [f"task {index} had no attempt then"]
    machine, when = _machine(found["instance"]), _clock(found["decidedAt"])
    lines = [
        f"task {index}, attempt {found['attempt']}: placed on {machine} at {when}",
        f"  {_rank(found)}, by {', then by '.join(found['strategy'])}; {found['instances']} were active",
    ]
    if (others := found["placedTogether"] - 1) > 0:
        lines.append(f"  {counted(others, 'other task')} of the run were placed with it in the same decision")
    share_mib = found.get("gpuShareMib") or 0
    lines += [f"  {_ranked(each, share_mib)}" for each in found["ranked"]]
    lines += [f"  {each['refused']} had no room: {each['detail']}" for each in found["refusals"]]
    return lines + _order_before(found["lastOrder"])


def _rank(found: Mapping[str, Any]) -> str:
    if found["rank"] is None:
        return "not ranked"
    return f"number {found['rank']} of the {counted(found['fits'], 'instance')} with room"


def _order_before(order: Mapping[str, Any] | None) -> list[str]:
    if order is None:
        return []
    above = "" if order["gapPct"] is None else f", at most {order['gapPct']:.1f} % above the least it could cost"
    bought = f"{counted(order['instances'], 'instance')} for {money(order['usdPerHour'])} an hour"
    return [f"  the last purchase before it: {bought}{above}"]


def _ranked(each: Mapping[str, Any], share_mib: int) -> str:
    free = each["free"]
    room = f"{said_vcpus(free['cpuUnits'])}, {free['memoryMib']:,} MiB"
    room += f", {counted(free['gpus'], 'GPU')}" if free["gpus"] else ""
    room += f", {counted(each['gpuShares'], 'share')} of {share_mib:,} MiB of a GPU" if share_mib else ""
    says = ", ".join(f"{name} {figure}" for name, figure in each["figures"].items())
    took = f"; took {counted(each['placedTogether'], 'task')}" if each["placedTogether"] else ""
    return f"{each['rank']:>3}. {_machine(each)}: {room} free; {says}{took}"


def _machine(each: Mapping[str, Any]) -> str:
    return f"{each['id']} ({each['type']}, {each['zone']}, {each['purchase']}, {money(each['usdPerHour'])} an hour)"


def _clock(at: float) -> str:
    """To the millisecond: several decisions fall into a second."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC"
