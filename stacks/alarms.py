"""Alarms of one stack, sent by mail where the settings name an address."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from argosy.settings.settings import Settings

MINUTE, FIVE = cdk.Duration.minutes(1), cdk.Duration.minutes(5)
NAMESPACE = "Argosy"


class Alarms(Construct):
    """They go to `alarmEmail` when that is set, and are visible in the console anyway."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings) -> None:
        super().__init__(scope, id)
        self._settings = settings
        self._topic = self._topic_for(settings.alarm_email)

    def add(self, name: str, metric: cloudwatch.IMetric, threshold: float, meaning: str, *, periods: int = 1) -> None:
        """An alarm that goes off at `threshold` or above; none where the settings want no alarms."""
        if not self._settings.alarms:
            return
        alarm = cloudwatch.Alarm(
            self,
            name,
            alarm_name=f"{self._settings.prefix}-{name}",
            alarm_description=f"Argosy: {meaning}",
            metric=metric,
            threshold=threshold,
            evaluation_periods=periods,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        if self._topic:
            alarm.add_alarm_action(actions.SnsAction(self._topic))

    def _topic_for(self, email: str | None) -> sns.Topic | None:
        if email is None:
            return None
        topic = sns.Topic(self, "Topic", topic_name=f"{self._settings.prefix}-alarms", enforce_ssl=True)
        topic.add_subscription(subscriptions.EmailSubscription(email))
        return topic


class CellAlarms(Construct):
    """The alarms of a further cell's own Region."""

    def __init__(
        self, scope: Construct, id: str, *, settings: Settings, watchdog: lambda_.IFunction, undelivered: sqs.IQueue
    ) -> None:
        super().__init__(scope, id)
        alarms = Alarms(self, "Alarms", settings=settings)
        waiting = undelivered.metric_approximate_number_of_messages_visible(period=FIVE, statistic="Maximum")
        alarms.add("Undelivered", waiting, 1, "events of this cell could not be sent to the home Region")
        alarms.add("WatchdogErrors", watchdog.metric_errors(period=FIVE), 1, "this cell's watchdog fails")
        freed = own_metric(settings, "InstancesFreedByWatchdog", "Sum")
        alarms.add("WatchdogActed", freed, 1, "this cell had no controller while instances ran; they were terminated")


def own_metric(settings: Settings, name: str, statistic: str) -> cloudwatch.Metric:
    """A metric that the functions write into their logs; Cluster is the only dimension, because each is billed."""
    return cloudwatch.Metric(
        namespace=NAMESPACE,
        metric_name=name,
        dimensions_map={"Cluster": settings.prefix},
        statistic=statistic,
        period=MINUTE if statistic == "Maximum" else FIVE,
    )
