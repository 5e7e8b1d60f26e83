"""What CloudWatch charges a month for what a template makes: list prices of us-east-1, without free tiers.

Free in each account are ten alarm metrics, ten custom metrics and three dashboards.
https://aws.amazon.com/cloudwatch/pricing/
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.stacks.templates import Template

USD_PER_ALARM_METRIC, USD_PER_DASHBOARD = 0.10, 3.00
USD_PER_METRIC = 0.30  # a custom one; only the hours in which it is written count


def alarm_metrics(template: Template) -> int:
    """An alarm on an expression is charged for each metric that it reads."""
    alarms = template.of_type("AWS::CloudWatch::Alarm").values()
    return sum(sum("MetricStat" in each for each in alarm.get("Metrics", ())) or 1 for alarm in alarms)


def usd_a_month(templates: Iterable[Template]) -> dict[str, float]:
    """By kind."""
    every = list(templates)
    return {
        "alarms": sum(map(alarm_metrics, every)) * USD_PER_ALARM_METRIC,
        "dashboard": sum(len(each.of_type("AWS::CloudWatch::Dashboard")) for each in every) * USD_PER_DASHBOARD,
    }
