"""Accepted findings of cdk-nag's AwsSolutions pack, each with its reason. Any other finding fails.

Wildcards in our own rights are accepted one by one: a new one needs a reason in WILDCARDS, or synth stops.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import IConstruct

_LAUNCHED = ("network-interface", "security-group", "volume")
# (how the resource ends, why); the first that fits.
WILDCARDS = (
    (":repository/*", "Runs may use any image of this account's registry."),
    ("/tasks:*", "The streams of one log group."),
    ("/attempts/*", "Each attempt writes below a separate prefix, created at run time."),
    ("/parts/*", "A run's final objects, made at run time."),
    ("/checkpoints/*", "Each task has a separate prefix, created at run time; its runner deletes old checkpoints."),
    ("/*/_FAILED", "The marker of a run that is tried again; runs are made at run time."),
    (":parameter/*", "The parameters of this deployment."),
    ("/images/*", "The images stack publishes one parameter an image."),
    (":task-definition/*", "A spec may name any definition; the cluster condition and PassRole on two roles bound it."),
    (":fleet/*", "Fleets are found at run time; a condition asks for our ownership tag."),
    (
        ":image/*",
        "ModifyFleet also needs rights on the AMI of a fleet's template, which is AWS's own; the fleet must be ours.",
    ),
    (":subnet/*", "The same for the fleet's subnet; the fleet must carry our tag."),
    *((f":{kind}/*", "What an on-demand launch makes or names; only from our launch templates.") for kind in _LAUNCHED),
    (":launch-template/*", "The same for the fleet's template; a condition asks for our ownership tag."),
    (":instance/*", "Instances come and go; a condition asks for our ownership tag."),
    ("/*", "The members of one bucket or one cluster come and go."),
    ("-instance-*", "The instances' roles of all cells, those that the settings have forgotten too; for EC2 only."),
    ("-*", "The controller registers a definition for each distinct content, under this prefix."),
    ("*", "These are calls without a resource: lists, prices, tokens, definitions."),
)

_PROVIDER = "CDK's own provider framework makes this; nothing but it may invoke the two functions."
_SSM = "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/AmazonSSMManagedInstanceCore]"
_CELL = {
    _SSM: "Only with the setting allowSsm; AWS keeps up to date what Session Manager's agent may call.",
    "AwsSolutions-VPC7": "Flow logs cost by the gigabyte and nothing comes in; add them to the VPC if you need them.",
    "AwsSolutions-ECS4": "Container Insights bills every task; the controller's own metrics show what is used.",
    "AwsSolutions-ECS2": "Two figures (GPU, BATCH_SIZE) and the driver's capabilities: no secret is among them.",
    "AwsSolutions-L1": "Python 3.13 is what the wheels are locked and measured for; the framework's Node is CDK's.",
    "AwsSolutions-SF1": "The teardown's waiter; the functions that it calls log what they do.",
    "AwsSolutions-SF2": "The teardown's waiter; it runs once in a deployment's life.",
    "AwsSolutions-SQS3": "This queue is itself where undeliverable events end.",
}
_HOME = {**_CELL, "AwsSolutions-S1": "Results only; access logs would need a second bucket that outlives the first."}


def acknowledge_home(stack: cdk.Stack) -> None:
    """The home stack's findings other than wildcards."""
    _accept(stack, _HOME)


def acknowledge_examples(stack: cdk.Stack) -> None:
    """The examples' stack's findings."""
    _accept(stack, {"AwsSolutions-ECS2": "Command lines, sizes and addresses of public data: no secret is among them."})


def acknowledge_cell(stack: cdk.Stack) -> None:
    """A further cell's stack's findings other than wildcards."""
    _accept(stack, _CELL)


def logical_id(construct: IConstruct) -> str:
    """The id of a construct's own resource in the template."""
    node = construct.node.default_child
    assert isinstance(node, cdk.CfnResource)
    return str(cdk.Stack.of(construct).resolve(node.logical_id))


def acknowledge_provider(provider: IConstruct, handlers: Iterable[str]) -> None:
    """A custom resource's provider framework; `handlers` are the logical ids of the functions that it invokes."""
    arns = [f"AwsSolutions-IAM5[Resource::<{handler}.Arn>:*]" for handler in handlers]
    managed = "Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
    _accept(provider, dict.fromkeys([*arns, f"AwsSolutions-IAM4[{managed}]"], _PROVIDER))


def acknowledge_wildcards(holder: IConstruct, statements: Iterable[iam.PolicyStatement]) -> None:
    """Every resource with a wildcard in our rights, by its own id. Raises LookupError for one without a reason."""
    resources = {_written(cdk.Stack.of(holder).resolve(r)) for each in statements for r in each.resources}
    _accept(holder, {f"AwsSolutions-IAM5[Resource::{r}]": _reason(r) for r in sorted(resources) if "*" in r})


def _reason(resource: str) -> str:
    for ending, reason in WILDCARDS:
        if resource.endswith(ending):
            return reason
    raise LookupError(f"{resource} has a wildcard without a reason in stacks/nag.py")


def _written(value: Any) -> str:
    """A resolved ARN as cdk-nag writes it: references in angle brackets."""
    match value:
        case str():
            return value
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"<{name}.{attribute}>"
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(_written(part) for part in parts)
        case {"Fn::Sub": str(text)}:
            return text.replace("${", "<").replace("}", ">")
    raise TypeError(f"an ARN made of {value!r}")


def _accept(construct: IConstruct, reasons: dict[str, str]) -> None:
    for rule, reason in reasons.items():
        cdk.Validations.of(construct).acknowledge(cdk.Acknowledgment(id=rule, reason=reason))
