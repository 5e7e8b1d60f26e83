"""The teardown of `cdk destroy`: a custom resource runs first and waits until nothing that costs money is left.

It depends on everything else in its stack, so CloudFormation deletes it before anything else, while the functions, the
table and the rights that it needs are still there. It runs `controller/argosy/aws/teardown.py`.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import CfnResource
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import custom_resources as cr
from constructs import Construct, IConstruct

from argosy.settings.settings import Settings
from stacks import bundle, ending_grants, grants, nag
from stacks.functions import Function, FunctionProps, log_group

POLL_S = 20
# CloudFormation waits at most an hour (ServiceTimeout) for a custom resource, even if the provider framework allows
# more. So the framework gives up a little earlier and its answer arrives. Deleting the stack again continues there.
CLOUDFORMATION_S = 3600
LIMIT_S = 3300


class Teardown(Construct):
    """Ends the instances of one Region, at home those of every recorded cell; with `bucket`, empties that too."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        region: str,
        bucket: s3.IBucket | None = None,
    ) -> None:
        super().__init__(scope, id)
        arns = grants.Arns(settings)
        begin = self._handler(
            settings, bucket, "Begin", "on_event", "stops the launches", ending_grants.teardown_begin(arns, region)
        )
        rights = ending_grants.teardown_wait(arns, region, bucket.bucket_arn if bucket else None)
        wait = self._handler(settings, bucket, "Wait", "is_complete", "terminates instances until none is left", rights)
        provider = cr.Provider(
            self,
            "Provider",
            on_event_handler=begin,
            is_complete_handler=wait,
            query_interval=cdk.Duration.seconds(POLL_S),
            total_timeout=cdk.Duration.seconds(LIMIT_S),
            log_group=log_group(self, "Logs", name=f"/aws/lambda/{settings.prefix}-teardown", settings=settings),
            disable_waiter_state_machine_logging=True,
        )
        self.resource = cdk.CustomResource(
            self,
            "Resource",
            resource_type="Custom::ArgosyTeardown",
            service_token=provider.service_token,
            service_timeout=cdk.Duration.seconds(CLOUDFORMATION_S),
        )
        framework = [provider.node.find_child(f"framework-{name}") for name in ("isComplete", "onTimeout")]
        nag.acknowledge_provider(provider, map(nag.logical_id, [begin, wait, *framework]))
        # Fixed: under another id CloudFormation would make a new one and delete, that is, run, the old one.
        node = self.resource.node.default_child
        assert isinstance(node, CfnResource)
        node.override_logical_id("Teardown")

    def _handler(
        self,
        settings: Settings,
        bucket: s3.IBucket | None,
        id: str,
        handler: str,
        what: str,
        rights: list[iam.PolicyStatement],
    ) -> lambda_.Function:
        environment = {
            "ARGOSY_STAGE": settings.stage,
            "ARGOSY_CLUSTER": settings.prefix,
            "ARGOSY_TABLE": f"{settings.prefix}-state",
            "ARGOSY_TICK_RULE": f"{settings.prefix}-tick",
            "ARGOSY_HOME_REGION": settings.region,
        }
        return Function(
            self,
            id,
            settings=settings,
            props=FunctionProps(
                name=f"teardown-{id.lower()}",
                description=f"Argosy: {what}",
                code=bundle.small_code(bundle.TEARDOWN_FILES),
                handler=f"argosy.aws.teardown.{handler}",
                rights=rights,
                environment={**environment, "ARGOSY_EMPTY_BUCKET": bucket.bucket_name} if bucket else environment,
                timeout_s=900,
                memory_mib=256,
            ),
        ).function

    def runs_before(self, *others: IConstruct) -> None:
        """On destroy the teardown is complete before any of `others` is deleted."""
        self.resource.node.add_dependency(*others)
