"""The watchdog, which stops the spending when the controller is dead: a function with its own schedule and rights.

Home's covers all recorded cells. Each further cell's stack has one too, in case home is gone or does not name the cell
any more.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from argosy.settings.settings import Settings
from stacks import bundle, ending_grants, grants
from stacks.functions import Function, FunctionProps

EVERY_MINUTES = 15  # 2,900 short invocations a month: within Lambda's free requests, and a cent without


class Watchdog(Construct):
    """Reads home's table, and ends all instances when no controller steers them; home's wakes the controller where a
    request waits (`argosy.aws.watchdog`)."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings, region: str, dead_letters: sqs.IQueue) -> None:
        super().__init__(scope, id)
        home = region == settings.region
        watchdog = Function(
            self,
            "Watchdog",
            settings=settings,
            props=FunctionProps(
                name="watchdog",
                description="Argosy: terminates instances whose controller is down",
                code=bundle.small_code(bundle.WATCHDOG_FILES),
                handler=f"argosy.aws.watchdog.{'handler' if home else 'cell_handler'}",
                rights=ending_grants.watchdog(grants.Arns(settings), region),
                environment={
                    "ARGOSY_STAGE": settings.stage,
                    "ARGOSY_TABLE": f"{settings.prefix}-state",
                    "ARGOSY_CLUSTER": settings.prefix,
                    **(self._of_home(settings) if home else {"ARGOSY_HOME_REGION": settings.region}),
                },
                timeout_s=300,
                memory_mib=256,
                dead_letters=dead_letters,
                retries=2,
            ),
        )
        self.function = watchdog.function
        events.Rule(
            self,
            "Schedule",
            rule_name=f"{settings.prefix}-watchdog",
            description="Argosy: always on, so that a failed controller cannot waste money",
            schedule=events.Schedule.rate(cdk.Duration.minutes(EVERY_MINUTES)),
            targets=[targets.LambdaFunction(self.function, dead_letter_queue=dead_letters, retry_attempts=2)],
        )

    @staticmethod
    def _of_home(settings: Settings) -> dict[str, str]:
        return {"ARGOSY_CELLS": ",".join(settings.cells), "ARGOSY_TICK_RULE": f"{settings.prefix}-tick"}
