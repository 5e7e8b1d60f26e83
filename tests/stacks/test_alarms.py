"""The alarm of the events' age in the life of a deployment: quiet at rest, in alarm when events are not read while
there is work.

The template's own expression is evaluated here as CloudWatch documents its functions ("Using metric math"): FILL puts
a value where a metric has no data, IF chooses.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.stacks.cloudwatch_prices import alarm_metrics, usd_a_month
from tests.stacks.templates import Template, text

pytestmark = pytest.mark.stacks
ROOT = Path(__file__).resolve().parents[2]


def is_loud(alarm: dict[str, Any], *, ticks: Sequence[int | None], ages: Sequence[int | None]) -> bool:
    """Whether the alarm is ever in ALARM over these periods; None if the metric has no data."""
    (expression,) = (each["Expression"] for each in alarm["Metrics"] if "Expression" in each)
    words = {
        "FILL": lambda metric, value: value if metric is None else metric,
        "IF": lambda condition, then, otherwise: then if condition else otherwise,
        "__builtins__": {},
    }
    values = [eval(expression, words, {"ticks": t, "age": a}) for t, a in zip(ticks, ages, strict=True)]  # noqa: S307
    breaching = [value >= alarm["Threshold"] for value in values]
    periods = alarm["EvaluationPeriods"]
    return any(all(breaching[i : i + periods]) for i in range(len(breaching) - periods + 1))


@pytest.fixture
def alarm(home: Template) -> dict[str, Any]:
    return home.named("AWS::CloudWatch::Alarm", "AlarmName", "argosy-EventsAge")


def test_it_asks_for_the_rule_that_fires_while_there_is_work(home: Template, alarm: dict[str, Any]) -> None:
    metrics = {each["Id"]: each["MetricStat"]["Metric"] for each in alarm["Metrics"] if "MetricStat" in each}
    (dimension,) = metrics["ticks"]["Dimensions"]
    rule = home.named("AWS::Events::Rule", "Name", dimension["Value"])
    assert rule["State"] == "DISABLED"
    assert "ScheduleExpression" in rule
    assert (metrics["ticks"]["Namespace"], metrics["ticks"]["MetricName"]) == ("AWS/Events", "TriggeredRules")
    assert "Events" in text(metrics["age"]["Dimensions"][0]["Value"])


def test_another_instances_event_that_waits_for_days_at_rest_is_no_alarm(alarm: dict[str, Any]) -> None:
    assert not is_loud(alarm, ticks=[None] * 12, ages=[300 * i for i in range(12)])


def test_neither_is_its_age_when_the_controller_wakes_and_reads_it(alarm: dict[str, Any]) -> None:
    """The rule first fires at the end of a period, and the message is read at the beginning of the next."""
    assert not is_loud(alarm, ticks=[None, 1, 5, 5], ages=[86_000, 86_300, 86_310, None])


def test_unread_events_while_there_is_work_are_a_violation(alarm: dict[str, Any]) -> None:
    assert is_loud(alarm, ticks=[5] * 6, ages=[300, 600, 900, 1200, 1500, 1800])


def test_a_busy_controller_is_quiet(alarm: dict[str, Any]) -> None:
    assert not is_loud(alarm, ticks=[5] * 6, ages=[2, 5, None, 130, 4, 3])


def documented() -> list[tuple[str, str]]:
    """Name and place of each row of the table of alarms."""
    document = Path(__file__).parents[2] / "docs" / "reference" / "alarms.md"
    _, _, table = document.read_text().partition("| alarm | where | what it says |\n| -- | -- | -- |\n")
    rows = [line.split("|") for line in table.partition("\n\n")[0].splitlines()]
    return [(row[1].strip(), row[2]) for row in rows]


def test_the_document_names_every_alarm_that_there_is(home: Template, wide: dict[str, Template]) -> None:
    def deployed(template: Template, prefix: str) -> set[str]:
        alarms = template.of_type("AWS::CloudWatch::Alarm").values()
        return {each["AlarmName"].removeprefix(f"{prefix}-") for each in alarms}

    assert {name for name, where in documented() if "home" in where} == deployed(home, "argosy")
    further = {name for name, where in documented() if "further cells" in where}
    assert further == deployed(wide["argosy-dev-eu-west-1"], "argosy-dev")


def test_the_documents_name_what_cloudwatch_charges_for_the_templates(home: Template) -> None:
    """N8: `make bench` prints the same. With another alarm these pages change."""
    usd = usd_a_month([home])
    page = " ".join((ROOT / "docs/concepts/costs.md").read_text().split())
    said = (
        f"{alarm_metrics(home)} alarm metrics cost {usd['alarms']:.2f} USD a month, the dashboard "
        f"{usd['dashboard']:.2f} and the watchdog 0.01: {sum(usd.values()) + 0.01:.2f} USD"
    )
    assert said in page
    for name in ("docs/guides/services.md", "docs/index.md"):
        assert f"{sum(usd.values()) + 0.01:.2f} USD" in (ROOT / name).read_text()
