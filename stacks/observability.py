"""What does an operator look at? One dashboard, and an alarm for each thing that should not happen."""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from argosy.settings.settings import Settings
from stacks.store import Store

MINUTE, FIVE = cdk.Duration.minutes(1), cdk.Duration.minutes(5)
NAMESPACE = "Argosy"
EVENTS_TOO_OLD_S = 600  # spot warnings are worthless after two minutes; ten mean that nothing reads the queue
# Of five minutes. When the controller wakes, what came at rest is as old as the rest was long: that shows in
# the period of the waking and, at a boundary, in the next one.
PERIODS_TO_CATCH_UP = 3


@dataclass(frozen=True)
class Functions:
    """The functions that alarms watch."""

    api: lambda_.IFunction
    controller: lambda_.IFunction
    watchdog: lambda_.IFunction


class Observability(Construct):
    """Alarms go to `alarmEmail` when that is set, and are visible in the console anyway."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        store: Store,
        functions: Functions,
    ) -> None:
        super().__init__(scope, id)
        self._settings = settings
        self._topic = self._topic_for(settings.alarm_email)
        freed = self._own("InstancesFreedByWatchdog", "Sum")
        dead = store.dead_letters.metric_approximate_number_of_messages_visible(period=FIVE, statistic="Maximum")
        self._alarm("ControllerErrors", functions.controller.metric_errors(period=FIVE), 1, "the controller fails")
        self._alarm("ApiErrors", functions.api.metric_errors(period=FIVE), 1, "the api fails: users get no answer")
        self._alarm("ApiFaults", self._own("ApiFaults", "Sum"), 1, "AWS fails the api: users get InternalError")
        self._alarm("WatchdogErrors", functions.watchdog.metric_errors(period=FIVE), 1, "the watchdog fails")
        self._alarm(
            "WatchdogActed", freed, 1, "the controller was dead for an hour while instances ran; they were ended"
        )
        self._alarm("DeadLetters", dead, 1, "events or invocations could not be delivered")
        self._alarm(
            "EventsAge",
            self._age_while_awake(store.queue),
            EVENTS_TOO_OLD_S,
            "the controller does not read its events",
            periods=PERIODS_TO_CATCH_UP,
        )
        mend = self._own("FleetsToMend", "Maximum")
        self._alarm("FleetsToMend", mend, 1, "fleets launch nothing until somebody acts: argosy cluster says why")
        self._dashboard(functions.controller, store.queue)

    def _topic_for(self, email: str | None) -> sns.Topic | None:
        if email is None:
            return None
        topic = sns.Topic(self, "Alarms", topic_name=f"{self._settings.prefix}-alarms", enforce_ssl=True)
        topic.add_subscription(subscriptions.EmailSubscription(email))
        return topic

    def _age_while_awake(self, queue: sqs.IQueue) -> cloudwatch.MathExpression:
        """Age of the oldest message in seconds in periods in which the tick's rule fired, 0 in others.

        At rest nobody reads, and a message about another instance of the account may wait for days. The rule fires
        every minute while there is work, whether or not a controller lives (AWS/Events publishes it by RuleName for
        rules of the default bus).
        """
        ticks = cloudwatch.Metric(
            namespace="AWS/Events",
            metric_name="TriggeredRules",
            dimensions_map={"RuleName": f"{self._settings.prefix}-tick"},
            statistic="Sum",
            period=FIVE,
        )
        age = queue.metric_approximate_age_of_oldest_message(period=FIVE, statistic="Maximum")
        return cloudwatch.MathExpression(
            expression="IF(FILL(ticks, 0) > 0, FILL(age, 0), 0)",
            using_metrics={"ticks": ticks, "age": age},
            label="Seconds",
            period=FIVE,
        )

    def _alarm(
        self, name: str, metric: cloudwatch.IMetric, threshold: float, meaning: str, *, periods: int = 1
    ) -> None:
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

    def _own(self, name: str, statistic: str) -> cloudwatch.Metric:
        """A metric that the functions write into their logs; Cluster is the only dimension, because each is billed."""
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=name,
            dimensions_map={"Cluster": self._settings.prefix},
            statistic=statistic,
            period=MINUTE if statistic == "Maximum" else FIVE,
        )

    def _dashboard(self, controller: lambda_.IFunction, queue: sqs.IQueue) -> None:
        rows = (
            ("Tasks", ("TasksPending", "TasksRunning"), "Maximum"),
            ("Instances", ("Instances",), "Maximum"),
            ("A tick, seconds", ("TickSeconds",), "Maximum"),
            ("Launches", ("Launches",), "Sum"),
            ("Events", ("Events",), "Sum"),
            ("Messages that cannot be read", ("PoisonMessages",), "Sum"),
            ("Ends that no event told of", ("RepairedBySweep",), "Sum"),
            ("Instances that EC2 will not end", ("StubbornInstances",), "Maximum"),
            ("Fleets that somebody has to mend", ("FleetsToMend",), "Maximum"),
        )
        ours = [
            cloudwatch.GraphWidget(title=title, width=8, left=[self._own(name, statistic) for name in names])
            for title, names, statistic in rows
        ]
        theirs = [
            cloudwatch.GraphWidget(
                title="Controller",
                width=12,
                left=[controller.metric_duration(period=MINUTE)],
                right=[controller.metric_errors(period=MINUTE)],
            ),
            cloudwatch.GraphWidget(
                title="Events waiting",
                width=12,
                left=[queue.metric_approximate_number_of_messages_visible(period=MINUTE)],
                right=[queue.metric_approximate_age_of_oldest_message(period=MINUTE)],
            ),
        ]
        cloudwatch.Dashboard(
            self, "Dashboard", dashboard_name=self._settings.prefix, widgets=[ours[:3], ours[3:], theirs]
        )
