"""What do an idle deployment and a steady service cost a month, and how late does the controller learn of messages?

A virtual day of a steady service: invocations, ticks, calls and units are counted, CPU time is
measured, and how long calls take at AWS is assumed. What CloudWatch charges is counted in the synthesised template, and
for its metrics in what the controller writes. List prices of us-east-1, without free tiers.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import statistics
from collections import Counter

import pytest

from argosy.engine.loop import SOON_S
from argosy.engine.report import TickReport
from argosy.handlers import TickLog
from stacks.watchdog import EVERY_MINUTES
from tests.fakes.steady import Invocation, SteadyService
from tests.stacks.cloudwatch_prices import USD_PER_METRIC, alarm_metrics, usd_a_month
from tests.stacks.conftest import synthesised

HOUR_S, DAY_S, MONTH_S = 3600.0, 86_400.0, 730 * 3600.0
FLOOR_USD = 3.0  # of the controller
WATCHDOG_GB, WATCHDOG_S = 256 / 1024, 1.0  # the seconds are assumed
MEMORY_GB = 1769 / 1024  # stacks.home.CONTROLLER_MEMORY_MIB

# https://aws.amazon.com/lambda/pricing/ (arm64), https://aws.amazon.com/dynamodb/pricing/on-demand/,
# https://aws.amazon.com/sqs/pricing/, https://aws.amazon.com/s3/pricing/. EventBridge charges nothing for the events of
# AWS's services on the default bus, for its schedule rules, nor for EnableRule: https://aws.amazon.com/eventbridge/pricing/
USD_PER_GB_S, USD_PER_INVOCATION = 0.0000133334, 0.20e-6
USD_PER_READ_UNIT, USD_PER_WRITE_UNIT = 0.125e-6, 0.625e-6
USD_PER_QUEUE_CALL, USD_PER_PUT = 0.40e-6, 5e-6
LOG_BYTES, USD_PER_LOG_GB = 1_500, 0.50  # START, END, REPORT and "loop ended"

# Assumed: what a call takes within a Region, one after the other.
CALL_S = {"dynamodb": 0.01, "sqs": 0.015, "events": 0.03, "ecs": 0.08, "ec2": 0.2, "s3": 0.05}
SLOWER = 3.0  # than this machine: one vCPU of Lambda, and the first run of code in a process that was frozen
PUT_S = 0.05  # a segment of the record of decisions, which the trial's controller does not write
CALLED_A_DAY = 24  # times that a rule calls it for nothing: other instances of the account end


def billed_s(one: Invocation) -> float:
    """With the longest wait for messages if it was called."""
    return SLOWER * one.cpu_s + PUT_S + sum(CALL_S[service] * count for (service, _), count in one.calls.items())


def usd_a_day(day: list[Invocation]) -> Counter[str]:
    """By service."""
    seconds = sum(map(billed_s, day)) + CALLED_A_DAY * 2 * 5.0  # a tick of 5 s, and one more for a refused invocation
    calls = sum((one.calls for one in day), Counter[tuple[str, str]]())
    return Counter(
        {
            "Lambda": seconds * MEMORY_GB * USD_PER_GB_S + (len(day) + CALLED_A_DAY) * USD_PER_INVOCATION,
            "DynamoDB": sum(one.read_units for one in day) * USD_PER_READ_UNIT
            + sum(one.write_units for one in day) * USD_PER_WRITE_UNIT,
            "SQS": sum(count for (service, _), count in calls.items() if service == "sqs") * USD_PER_QUEUE_CALL,
            "S3": len(day) * USD_PER_PUT,
            "logs": len(day) * LOG_BYTES / 1e9 * USD_PER_LOG_GB,
        }
    )


def metrics_of(report: TickReport) -> set[str]:
    """The custom metrics that the controller writes about a tick."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        TickLog().note(report)
    groups = [each for line in said.getvalue().splitlines() for each in json.loads(line)["_aws"]["CloudWatchMetrics"]]
    return {each["Name"] for group in groups for each in group["Metrics"]}


def watchdog_usd() -> float:
    runs = MONTH_S / 60 / EVERY_MINUTES
    return runs * (WATCHDOG_S * WATCHDOG_GB * USD_PER_GB_S + USD_PER_INVOCATION)


@pytest.mark.benchmark
def test_an_idle_deployment_costs_its_alarms_and_its_dashboard(capsys: pytest.CaptureFixture[str]) -> None:
    """N8. Nothing else runs, but for the watchdog; stored data is below a cent for each 40 MB of S3."""
    (home,) = synthesised().values()
    usd = usd_a_month([home])
    further = synthesised(
        stage="dev", cells=["us-east-1", "eu-west-1"], instanceTypes={"cpu": ["c5.large"], "gpu": []}
    )["argosy-dev-eu-west-1"]
    bare = sum(usd_a_month(synthesised(alarms=False, dashboard=False).values()).values())
    with capsys.disabled():
        print(
            f"\nan idle deployment: {sum(usd.values()) + watchdog_usd():.2f} USD a month "
            f"({alarm_metrics(home)} alarm metrics {usd['alarms']:.2f}, dashboard {usd['dashboard']:.2f}, watchdog "
            f"{watchdog_usd():.2f}); each further cell {sum(usd_a_month([further]).values()) + watchdog_usd():.2f}; "
            f"without alarms and dashboard {bare + watchdog_usd():.2f}"
        )
    assert bare == 0
    assert sum(usd.values()) < 6


@pytest.mark.benchmark
def test_the_controller_of_a_steady_service_costs_less_than_three_dollars_a_month(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGOSY_CLUSTER", "argosy")
    logging.disable(logging.INFO)
    written: set[tuple[str, int]] = set()  # metrics, with the hours in which they are written
    service = SteadyService(desired=10)
    service.listener = lambda report: written.update(
        (name, int(service.world.now // HOUR_S)) for name in metrics_of(report)
    )
    service.run_to_quiet()
    before = len(service.finished)
    names = {name for name, _ in written}
    written.clear()
    service.run_for(DAY_S)
    logging.disable(logging.NOTSET)
    day = service.finished[before:]
    assert {one.reason for one in day} == {"quiet"}
    usd = usd_a_day(day)
    month = usd.total() * MONTH_S / DAY_S
    around_the_clock = MONTH_S * MEMORY_GB * USD_PER_GB_S
    calls = sum((one.calls for one in day), Counter[tuple[str, str]]())
    (home,) = synthesised().values()
    watch = sum(usd_a_month([home]).values()) + watchdog_usd()
    metrics = len(written) * USD_PER_METRIC / MONTH_S * HOUR_S * MONTH_S / DAY_S
    parts = ", ".join(f"{name} {each * MONTH_S / DAY_S:.2f}" for name, each in usd.most_common())
    with capsys.disabled():
        print(
            f"\na steady service of 10 tasks, one virtual day: {len(day):,} invocations, "
            f"{sum(one.ticks for one in day):,} ticks, {calls.total() / len(day):.1f} calls each; "
            f"{statistics.median(one.cpu_s for one in day) * 1000:.1f} ms of processor time and "
            f"{statistics.mean(map(billed_s, day)):.2f} s billed on average; {month:.2f} USD a month ({parts}); "
            f"without leaving {around_the_clock:.2f} USD for Lambda alone; with CloudWatch "
            f"{month + watch + metrics:.2f} USD (alarms, dashboard and watchdog {watch:.2f}, {len(written)} "
            f"hours of custom metrics {metrics:.2f}; {len(names) * USD_PER_METRIC:.2f} if {len(names)} were written in "
            "every hour)"
        )
    assert month < FLOOR_USD


def lateness(shares_lost: float, seeds: range) -> list[float]:
    """Seconds from the end of a task, or a warning, to the tick that has it, at random times."""
    found = []
    for seed in seeds:
        service = SteadyService(desired=4, kinds={"call-lost": shares_lost}, seed=seed)
        for number in range(12):
            service.run_for(SOON_S)
            service.run_to_quiet()
            service.run_for(120.0 * service.world.share("moment", number))
            service.run_to_quiet()
            host = sorted(each.instance_id for each in service.world.ec2.ledger.instances.values() if each.alive)[0]
            at = service.world.now
            service.world.interrupt(host)
            while not service.state.instances[host].interrupted_at:
                service.run_for(0.25)
                assert service.world.now - at < 125.0, "not heard"
            found.append(service.ticked_at[-1] - at)
    return found


@pytest.mark.benchmark
@pytest.mark.parametrize(("lost", "within_s"), [(0.0, 8.0), (1.0, 62.0)])
def test_urgent_messages_are_handled_soon(lost: float, within_s: float, capsys: pytest.CaptureFixture[str]) -> None:
    """Also if no call arrives: then the schedule's next minute handles it."""
    found = sorted(lateness(lost, range(8)))
    p99 = found[int(0.99 * (len(found) - 1))]
    with capsys.disabled():
        said = "no call arrives" if lost else "rules call the controller"
        print(f"\n{len(found)} warnings, {said}: median {statistics.median(found):.1f} s, p99 {p99:.1f} s late")
    assert found[-1] < within_s
