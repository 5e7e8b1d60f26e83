"""The operator's dashboard, and an alarm for each failure."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from argosy.settings.settings import Settings
from stacks.alarms import FIVE, MINUTE, Alarms, own_metric
from stacks.store import Store

EVENTS_TOO_OLD_S = 600  # spot warnings are worthless after two minutes; ten mean that nothing reads the queue
# Of five minutes. When the controller wakes, messages from its rest are as old as the rest was long: that shows in
# the period of the waking and, at a boundary, in the next one.
PERIODS_TO_CATCH_UP = 3


@dataclass(frozen=True)
class Functions:
    """The functions that alarms watch."""

    api: lambda_.IFunction
    controller: lambda_.IFunction
    watchdog: lambda_.IFunction


class Observability(Construct):
    """The alarms of home, and the dashboard, where the settings want them."""

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
        alarms = Alarms(self, "Alarms", settings=settings)
        freed = own_metric(settings, "InstancesFreedByWatchdog", "Sum")
        dead = store.dead_letters.metric_approximate_number_of_messages_visible(period=FIVE, statistic="Maximum")
        alarms.add("ControllerErrors", functions.controller.metric_errors(period=FIVE), 1, "the controller fails")
        alarms.add("ApiErrors", functions.api.metric_errors(period=FIVE), 1, "the api fails: users get no answer")
        alarms.add(
            "ApiFaults", own_metric(settings, "ApiFaults", "Sum"), 1, "AWS fails the api: users get InternalError"
        )
        alarms.add(
            "TickFaults",
            own_metric(settings, "TickFaults", "Maximum"),
            1,
            "the controller's own code failed: runs are suspended or facts left out; status and the log say why",
        )
        alarms.add("WatchdogErrors", functions.watchdog.metric_errors(period=FIVE), 1, "the watchdog fails")
        alarms.add(
            "WatchdogActed", freed, 1, "the controller was down for an hour while instances ran; they were terminated"
        )
        alarms.add("DeadLetters", dead, 1, "events or invocations could not be delivered")
        alarms.add(
            "EventsAge",
            self._age_while_awake(store.queue),
            EVENTS_TOO_OLD_S,
            "the controller does not read its events",
            periods=PERIODS_TO_CATCH_UP,
        )
        mend = own_metric(settings, "FleetsToMend", "Maximum")
        alarms.add("FleetsToMend", mend, 1, "fleets cannot launch until a fault is fixed: argosy cluster says why")
        behind = own_metric(settings, "FleetsBehind", "Maximum")
        alarms.add("FleetsBehind", behind, 1, "a roll has moved no fleet for a day: argosy cluster says why")
        troubled = own_metric(settings, "ServicesInTrouble", "Maximum")
        alarms.add(
            "ServicesInTrouble", troubled, 1, "a deployment failed or is stuck, or a service fails: argosy env list"
        )
        missed = own_metric(settings, "SchedulesMissed", "Sum")
        alarms.add(
            "SchedulesMissed", missed, 1, "a time of a schedule started nothing: argosy schedule list says which"
        )
        alarms.add("SchedulesDropped", self._dropped(), 1, "EventBridge Scheduler could not call the api in time")
        if settings.dashboard:
            self._dashboard(functions.controller, store.queue)

    def _dropped(self) -> cloudwatch.Metric:
        """Firings that the scheduler has given up on.
        https://docs.aws.amazon.com/scheduler/latest/UserGuide/monitoring-cloudwatch.html"""
        return cloudwatch.Metric(
            namespace="AWS/Scheduler",
            metric_name="InvocationDroppedCount",
            dimensions_map={"ScheduleGroup": self._settings.prefix},
            statistic="Sum",
            period=FIVE,
        )

    def _age_while_awake(self, queue: sqs.IQueue) -> cloudwatch.MathExpression:
        """Age of the oldest message in seconds in periods in which the tick's rule fired, 0 in others.

        At rest no controller reads, and a message about another instance of the account may wait for days. The rule
        fires every minute while there is work, whether or not a controller lives (AWS/Events publishes it by RuleName
        for rules of the default bus).
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

    def _dashboard(self, controller: lambda_.IFunction, queue: sqs.IQueue) -> None:
        rows = (
            ("Tasks", ("TasksPending", "TasksRunning"), "Maximum"),
            ("Instances", ("Instances",), "Maximum"),
            ("A tick, seconds", ("TickSeconds",), "Maximum"),
            ("Launches", ("Launches",), "Sum"),
            ("Events", ("Events",), "Sum"),
            ("Messages that cannot be read", ("PoisonMessages",), "Sum"),
            ("Task ends without an event", ("RepairedBySweep",), "Sum"),
            ("Instances that EC2 does not terminate", ("StubbornInstances",), "Maximum"),
            ("Fleets with a fault to fix", ("FleetsToMend",), "Maximum"),
        )
        ours = [
            cloudwatch.GraphWidget(
                title=title, width=8, left=[own_metric(self._settings, name, statistic) for name in names]
            )
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
