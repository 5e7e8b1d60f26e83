"""The remedies of `argosy doctor`. A test types each command.

A remedy is one shell line, or a sentence with commands between backticks.
"""

from __future__ import annotations

from collections.abc import Sequence

DEPLOY = "make deploy"
NAME_THE_CELLS = "name Regions of AWS: `argosy doctor --cells us-east-1,eu-west-1`"
MEND_SETTINGS = "correct cdk.json, then `argosy doctor`"
NONE_OFFERED = "change instanceTypes in cdk.json"
SOME_OFFERED = "nothing to do: a deployment leaves their fleets out; `offered` in cdk.json overrides this"
MORE_ZONES = "to use these types, add a zone to `zones` in cdk.json"
NO_SUCH_ZONE = "change `zones` or `vpcs` in cdk.json"
OTHER_ZONES = "nothing to do: the first deployment uses the first three of these"
NO_AMI = "choose other `cells`, or set `amis` in cdk.json"
NO_RIGHT = "ask for this permission, or ask an administrator to run `argosy doctor`"


def publish(names: Sequence[str]) -> str:
    """names: NAME of argosy/NAME. The folder of an image publishes its flavour for GPUs too."""
    folders = dict.fromkeys(name.removesuffix("-gpu") for name in names)
    return f'make deploy ARGS="-c images={",".join(folders)}"'


def not_offered(region: str, names: Sequence[str]) -> str:
    """The owner insists on types that EC2 lacks."""
    return f"in cdk.json, take {', '.join(names)} out of offered.{region}.add"


def bootstrap(account: str, region: str) -> str:
    return f"make bootstrap ARGS=aws://{account}/{region}"


def make_service_roles(services: Sequence[str]) -> str:
    """`argosy doctor --fix` does the same."""
    return " && ".join(f"aws iam create-service-linked-role --aws-service-name {service}" for service in services)


def raise_quota(region: str, service: str, code: str, wanted: int) -> str:
    return (
        f"aws service-quotas request-service-quota-increase --region {region} --service-code {service}"
        f" --quota-code {code} --desired-value {wanted}"
    )
