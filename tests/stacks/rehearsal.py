"""Deploys the synthesised templates into an independent AWS, moto's CloudFormation.

Resources that moto lacks (`Rehearsal.unknown`) are left out, except the fleets, which its EC2 creates with the
template's properties. `_as_moto_takes_it` corrects moto's own errors, each with its reason.
"""

from __future__ import annotations

import copy
import io
import json
import zipfile
from dataclasses import dataclass, field
from typing import Any

import boto3

from tests.stacks.templates import Template

AMI, AMI_PARAMETER = "ami-12345678", "/rehearsal/ami"
TEMPLATES = "rehearsal-templates"
FLEET = "AWS::EC2::EC2Fleet"
# A statement of a function's policy; and moto makes a bus, but does not say its name.
WITHOUT_AN_ID = {"AWS::Lambda::Permission", "AWS::Events::EventBus"}


@dataclass
class Rehearsal:
    """One deployed stack. ids: logical id -> physical id of the created resource. fleets: logical id -> fleet id."""

    region: str
    template: Template
    ids: dict[str, str] = field(default_factory=dict)
    fleets: dict[str, str] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        return boto3.client(service, region_name=self.region)

    def unknown(self) -> set[str]:
        """The types of the template that this CloudFormation lacks."""
        from moto.cloudformation.parsing import get_model_map  # all of moto, which takes seconds

        kinds = {each["Type"] for each in self.template.resources.values()}
        return {kind for kind in kinds - get_model_map().keys() if not kind.startswith("Custom::")}

    def left_out(self) -> set[str]:
        """Logical ids of the unknown types, and of custom resources: no function runs here."""
        unknown, resources = self.unknown(), self.template.resources
        return {id for id, each in resources.items() if each["Type"] in unknown or each["Type"].startswith("Custom::")}

    def missing(self) -> set[str]:
        """Logical ids, with a true condition, that were not created although the type is known."""
        named = {id for id, each in self.template.resources.items() if each["Type"] not in WITHOUT_AN_ID}
        return {id for id in named - self.left_out() if self.template.exists(id)} - self.ids.keys()


def deploy(name: str, region: str, template: Template) -> Rehearsal:
    """Raises moto's errors if it refuses the template."""
    rehearsal = Rehearsal(region, template)
    body = _as_moto_takes_it(copy.deepcopy(template.body), rehearsal.left_out())
    _provide_parameters(rehearsal)
    _provide_assets(rehearsal, body)
    storage = rehearsal.client("s3")
    bucket = _bucket(storage, region, f"{TEMPLATES}-{region}")
    storage.put_object(Bucket=bucket, Key=name, Body=json.dumps(body))
    overrides = [key for key, each in body["Parameters"].items() if "/optimized-ami/" in each.get("Default", "")]
    formation = rehearsal.client("cloudformation")
    formation.create_stack(
        StackName=name,
        TemplateURL=f"https://{bucket}.s3.amazonaws.com/{name}",
        Capabilities=["CAPABILITY_NAMED_IAM"],
        Parameters=[{"ParameterKey": key, "ParameterValue": AMI_PARAMETER} for key in overrides],
    )
    for page in formation.get_paginator("list_stack_resources").paginate(StackName=name):
        made = [each for each in page["StackResourceSummaries"] if each.get("PhysicalResourceId")]
        rehearsal.ids |= {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in made}
    _make_fleets(rehearsal)
    return rehearsal


def _as_moto_takes_it(body: dict[str, Any], left_out: set[str]) -> dict[str, Any]:
    """Without `left_out`; references to them become their logical ids.

    moto 5.2 reads the tags of a parameter as a list; CloudFormation documents a map (AWS::SSM::Parameter).
    """
    body["Resources"] = {id: _without(each, left_out) for id, each in body["Resources"].items() if id not in left_out}
    for each in body["Resources"].values():
        if each["Type"] == "AWS::SSM::Parameter":
            each["Properties"].pop("Tags", None)
    return body


def _without(value: Any, left_out: set[str]) -> Any:
    if isinstance(value, list):
        return [_without(each, left_out) for each in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"Ref"} and value["Ref"] in left_out:
        return value["Ref"]
    if set(value) == {"Fn::GetAtt"} and value["Fn::GetAtt"][0] in left_out:
        return value["Fn::GetAtt"][0]
    kept = {key: _without(each, left_out) for key, each in value.items()}
    if "DependsOn" in kept:
        depends = kept["DependsOn"] if isinstance(kept["DependsOn"], list) else [kept["DependsOn"]]
        kept["DependsOn"] = [each for each in depends if each not in left_out]
    return kept


def _provide_parameters(rehearsal: Rehearsal) -> None:
    """The resources of an account before the first deployment: the CDK's bootstrap, and AMIs under names that moto can
    hold."""
    ssm = rehearsal.client("ssm")
    for name, value in (("/cdk-bootstrap/hnb659fds/version", "21"), (AMI_PARAMETER, AMI)):
        ssm.put_parameter(Name=name, Value=value, Type="String", Overwrite=True)


def _provide_assets(rehearsal: Rehearsal, body: dict[str, Any]) -> None:
    """The zips that `cdk deploy` uploads before, each with one empty file."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("empty.py", "")
    account = rehearsal.client("sts").get_caller_identity()["Account"]
    storage = rehearsal.client("s3")
    bucket = _bucket(storage, rehearsal.region, f"cdk-hnb659fds-assets-{account}-{rehearsal.region}")
    for each in body["Resources"].values():
        if each["Type"] == "AWS::Lambda::Function" and "S3Key" in each["Properties"]["Code"]:
            storage.put_object(Bucket=bucket, Key=each["Properties"]["Code"]["S3Key"], Body=archive.getvalue())


def _bucket(storage: Any, region: str, name: str) -> str:
    where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    storage.create_bucket(Bucket=name, **where)
    return name


def _make_fleets(rehearsal: Rehearsal) -> None:
    """By CreateFleet: the properties of AWS::EC2::EC2Fleet are its request."""
    ec2 = rehearsal.client("ec2")
    for id, each in rehearsal.template.resources.items():
        if each["Type"] == FLEET and rehearsal.template.exists(id):
            request = _resolved(each["Properties"], rehearsal.ids)
            rehearsal.fleets[id] = ec2.create_fleet(**request)["FleetId"]


def _resolved(value: Any, ids: dict[str, str]) -> Any:
    """References become the ids of the created resources. Raises KeyError for one that was not created."""
    if isinstance(value, dict):
        return ids[value["Ref"]] if set(value) == {"Ref"} else {k: _resolved(v, ids) for k, v in value.items()}
    return [_resolved(each, ids) for each in value] if isinstance(value, list) else value
