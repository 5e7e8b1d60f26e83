"""The remedies of `argosy doctor`. A test types each command.

A remedy is one shell line, or a sentence with commands between backticks.
"""

from __future__ import annotations

from collections.abc import Sequence

from argosy.settings import values

DEPLOY = "make deploy"
NAME_THE_CELLS = "name Regions of AWS: `argosy doctor --cells us-east-1,eu-west-1`"
MEND_SETTINGS = "correct cdk.json, then `argosy doctor`"
NONE_OFFERED = "change instanceTypes in cdk.json"
SOME_OFFERED = "nothing to do: a deployment leaves their fleets out; `offered` in cdk.json overrides this"
MORE_ZONES = "to use these types, add a zone to `zones` in cdk.json"
NO_SUCH_ZONE = "change `zones` or `vpcs` in cdk.json"
OTHER_ZONES = "nothing to do: the first deployment uses the first three of these"
SAME_VERSION = "use the checkout that deployed it, or deploy this one over it: `make deploy CHECKED_ACCOUNT=no`"
NO_AMI = "choose other `cells`, or set `amis` in cdk.json"
NO_RIGHT = "ask for this permission, or ask an administrator to run `argosy doctor`"
NO_RIGHT_IN_ORGANIZATION = "ask the administrators of your AWS organization to allow it: no policy of your own can"
ANOTHER_STAGE = "deploy under other names: `make deploy STAGE=dev`; or delete the role if nothing uses it"


def publish(names: Sequence[str]) -> str:
    """names: NAME of argosy/NAME. The folder of an image publishes its flavour for GPUs too."""
    folders = dict.fromkeys(name.removesuffix("-gpu") for name in names)
    return f'make deploy ARGS="-c images={",".join(folders)}"'


def not_offered(region: str, names: Sequence[str]) -> str:
    """The owner insists on types that EC2 lacks."""
    return f"in cdk.json, take {', '.join(names)} out of offered.{region}.add"


def bootstrap(account: str, region: str, qualifier: str) -> str:
    """A custom qualifier gets a separate toolkit stack, so the account's default one stays as it is."""
    place = f"aws://{account}/{region}"
    if qualifier == values.DEFAULT_QUALIFIER:
        return f"make bootstrap ARGS={place}"
    return f'make bootstrap ARGS="{place} --qualifier {qualifier} --toolkit-stack-name CDKToolkit-{qualifier}"'


def home_first(region: str) -> str:
    return f"name {region} first in `cells` of cdk.json, or deploy another stage: `make deploy STAGE=dev`"


def use_region(region: str) -> str:
    """boto3 and the first AWS CLI read one of the variables, the second CLI and the CDK the other."""
    return f"export AWS_REGION={region} AWS_DEFAULT_REGION={region}"


def make_service_roles(services: Sequence[str]) -> str:
    """`argosy doctor --fix` does the same."""
    return " && ".join(f"aws iam create-service-linked-role --aws-service-name {service}" for service in services)


def raise_quota(region: str, service: str, code: str, wanted: int) -> str:
    return (
        f"aws service-quotas request-service-quota-increase --region {region} --service-code {service}"
        f" --quota-code {code} --desired-value {wanted}"
    )
