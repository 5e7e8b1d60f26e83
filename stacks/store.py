"""The stores of a deployment: the state table, the event queue with its dead letters, the results bucket."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import CfnResource
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from argosy.settings.settings import Settings

CALLS_KEPT_DAYS = 30  # uploads of `argosy.map`: the run that reads them is over by then


class Store(Construct):
    """`table`, `queue`, `dead_letters` and `bucket`."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings) -> None:
        super().__init__(scope, id)
        self.table = self._table(settings)
        self.dead_letters = self._queue("DeadLetters", f"{settings.prefix}-events-dead", None)
        self.queue = self._queue(
            "Events", f"{settings.prefix}-events", sqs.DeadLetterQueue(queue=self.dead_letters, max_receive_count=5)
        )
        self.bucket = self._bucket(settings)

    def _table(self, settings: Settings) -> dynamodb.Table:
        """The table holds nothing that is needed after the runs: results and manifests are in the bucket."""
        table = dynamodb.Table(
            self,
            "State",
            table_name=f"{settings.prefix}-state",
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute="expires_at",
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            # Encrypted at rest with DynamoDB's own key: one in KMS would bill every request.
            encryption=dynamodb.TableEncryption.DEFAULT,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        _name(table, "StateTable")
        return table

    def _queue(self, id: str, name: str, dead_letters: sqs.DeadLetterQueue | None) -> sqs.Queue:
        """visibility: longer than one turn of the controller's loop; a message that is not deleted comes again."""
        return sqs.Queue(
            self,
            id,
            queue_name=name,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            visibility_timeout=cdk.Duration.seconds(120),
            retention_period=cdk.Duration.days(14 if dead_letters is None else 4),
            dead_letter_queue=dead_letters,
        )

    def _bucket(self, settings: Settings) -> s3.Bucket:
        """Unversioned: parts are created once and never overwritten (If-None-Match), and each attempt has its own path.

        A deployment that fails leaves none (RetainExceptOnCreate). With `results: destroy` the teardown empties it:
        CDK's own way has 15 minutes, too few for millions of objects.
        """
        bucket = s3.Bucket(
            self,
            "Results",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            removal_policy=cdk.RemovalPolicy.DESTROY
            if settings.results == "destroy"
            else cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
            lifecycle_rules=[
                s3.LifecycleRule(id="unfinished-uploads", abort_incomplete_multipart_upload_after=cdk.Duration.days(1)),
                s3.LifecycleRule(
                    id="journal", prefix="argosy/journal/", expiration=cdk.Duration.days(max(1, settings.journal_days))
                ),
                s3.LifecycleRule(
                    id="calls", prefix="argosy/programs/calls/", expiration=cdk.Duration.days(CALLS_KEPT_DAYS)
                ),
                *_expiry("inputs", "argosy/programs/inputs/", settings.input_days),
                *_expiry("checkpoints", "argosy/checkpoints/", settings.checkpoint_days),
            ],
        )
        _name(bucket, "ResultsBucket")
        return bucket


def _expiry(id: str, prefix: str, days: int) -> list[s3.LifecycleRule]:
    """days: 0 = never. Uploads of inputs renew what is half as old (`argosy.client.inputs.upload`), and attempts their
    checkpoints once a day (`argosy.runner.checkpoints`)."""
    return [s3.LifecycleRule(id=id, prefix=prefix, expiration=cdk.Duration.days(days))] if days else []


def _name(construct: Construct, logical_id: str) -> None:
    """A fixed logical id: when this code is moved, CloudFormation does not replace a resource that holds data."""
    node = construct.node.default_child
    assert isinstance(node, CfnResource)
    node.override_logical_id(logical_id)
