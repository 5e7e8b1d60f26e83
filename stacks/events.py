"""The rules that reach and wake the controller.

There are rules onto the queue, the tick, which is off at rest, and rules that call the function for messages that
cannot wait for the tick (`argosy.messages.urgent`). Home's own events come over its default bus, where AWS puts them.
Events that further cells forward come over a bus of the deployment's own, named like it, so that the account's rules on
the default bus do not see another Region's events.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from argosy.messages.eventbridge import MESSAGE_KINDS
from argosy.messages.urgent import URGENT_KINDS
from argosy.settings.settings import Settings
from stacks.cell import event_pattern
from stacks.grants import Arns
from stacks.store import Store


class Events(Construct):
    """A rule for each kind of message in `argosy.messages.eventbridge`, and one for all that other cells forward."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        store: Store,
        api: lambda_.IFunction,
        controller: lambda_.IFunction,
    ) -> None:
        super().__init__(scope, id)
        cluster = Arns(settings).clusters[0]
        for kind in MESSAGE_KINDS:
            events.Rule(
                self,
                kind.rule,
                rule_name=f"{settings.prefix}-{kind.rule}",
                description=f"{kind.detail_type}, to the controller's queue",
                event_pattern=event_pattern(kind, [cluster]),
                targets=[targets.SqsQueue(store.queue, dead_letter_queue=store.dead_letters)],
            )
        self._urgent(settings, store, controller)
        if settings.cells[1:]:
            self._forwarded(settings, store, controller)
        self._ends_of_runs(settings, store, api)
        # The api enables it when there is work, the controller disables it when there is none: the template never
        # changes it again. A tick that finds the controller busy has no value, so it is neither repeated nor kept.
        events.Rule(
            self,
            "Tick",
            rule_name=f"{settings.prefix}-tick",
            description="Argosy: wakes the controller every minute while there is work",
            enabled=False,
            schedule=events.Schedule.rate(cdk.Duration.minutes(1)),
            targets=[self._call(store, controller)],
        )

    @staticmethod
    def _call(store: Store, controller: lambda_.IFunction) -> targets.LambdaFunction:
        """A late call has no value: the next tick comes first."""
        minute = cdk.Duration.minutes(1)
        dead_letters = store.dead_letters
        return targets.LambdaFunction(
            controller, dead_letter_queue=dead_letters, retry_attempts=0, max_event_age=minute
        )

    def _urgent(self, settings: Settings, store: Store, controller: lambda_.IFunction) -> None:
        """Rules on the default bus. A call that finds a controller at work costs some milliseconds."""
        cluster = Arns(settings).clusters[0]
        for kind in URGENT_KINDS:
            events.Rule(
                self,
                kind.rule,
                rule_name=f"{settings.prefix}-{kind.rule}",
                description=f"{kind.detail_type}, which calls the controller",
                event_pattern=event_pattern(kind, [cluster]),
                targets=[self._call(store, controller)],
            )

    def _ends_of_runs(self, settings: Settings, store: Store, api: lambda_.IFunction) -> None:
        """A firing of a schedule may wait for the run."""
        asked = {"action": "ReleaseSchedules", "runId": events.EventField.from_path("$.detail.runId")}
        events.Rule(
            self,
            "EndsOfRuns",
            rule_name=f"{settings.prefix}-ends-of-runs",
            description="Argosy: a run has ended, which a schedule may wait for",
            event_pattern=events.EventPattern(source=["argosy"], detail_type=["Run State Change"]),
            targets=[
                targets.LambdaFunction(
                    api, event=events.RuleTargetInput.from_object(asked), dead_letter_queue=store.dead_letters
                )
            ],
        )

    def _forwarded(self, settings: Settings, store: Store, controller: lambda_.IFunction) -> None:
        """The bus for events that further cells forward. Their rules have chosen already; the pattern names AWS's
        services, whose events only AWS can put. Senders of the same account need a right, but the bus needs no
        policy."""
        bus = events.EventBus(self, "Bus", event_bus_name=settings.prefix)
        # By its name, which other CloudFormation implementations accept as well as AWS's.
        rule = events.Rule(
            self,
            "Forwarded",
            event_bus=events.EventBus.from_event_bus_name(self, "BusByName", settings.prefix),
            rule_name=f"{settings.prefix}-forwarded",
            description="Events that further cells forward, to the controller's queue",
            event_pattern=events.EventPattern(
                account=[cdk.Aws.ACCOUNT_ID], source=sorted({kind.source for kind in MESSAGE_KINDS})
            ),
            targets=[targets.SqsQueue(store.queue, dead_letter_queue=store.dead_letters)],
        )
        rule.node.add_dependency(bus)
        for kind in URGENT_KINDS:
            urgent = events.Rule(
                self,
                f"Forwarded-{kind.rule}",
                event_bus=events.EventBus.from_event_bus_name(self, f"BusOf-{kind.rule}", settings.prefix),
                rule_name=f"{settings.prefix}-forwarded-{kind.rule}",
                description=f"{kind.detail_type} of a further cell, which calls the controller",
                event_pattern=event_pattern(kind, [], account=[cdk.Aws.ACCOUNT_ID]),
                targets=[self._call(store, controller)],
            )
            urgent.node.add_dependency(bus)
