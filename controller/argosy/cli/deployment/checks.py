"""What does a deployment need from its account and region, and is it there? One function for each, which only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argosy.cli.deployment.findings import Check, Finding, looked_at, missing, note, ok, wrong
from argosy.cli.deployment.quotas import spot_quotas
from argosy.client.deployment import prefix_of

if TYPE_CHECKING:
    from argosy.cli.session import Session
    from argosy.settings.settings import Settings

# AWS creates them when a service is first used by a caller with the rights to; fleets fail without them.
SERVICE_ROLES = {
    "AWSServiceRoleForECS": "ecs.amazonaws.com",
    "AWSServiceRoleForEC2Spot": "spot.amazonaws.com",
    "AWSServiceRoleForEC2Fleet": "ec2fleet.amazonaws.com",
}
AMI_PARAMETERS = {
    "CPU": "/aws/service/ecs/optimized-ami/amazon-linux-2023/recommended/image_id",
    "GPU": "/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/recommended/image_id",
}
BOOTSTRAP_PARAMETER = "/cdk-bootstrap/hnb659fds/version"
BOOTSTRAP_VERSION = 6  # the first whose roles publish assets as the CDK's default synthesiser wants them
NAMES_SHOWN = 6

PUBLISH = 'make deploy ARGS="-c images=true"'  # publishes every folder of containers/


def run_checks(session: Session) -> list[Finding]:
    """All findings in order; without credentials, only that one. An AWS on this machine has no account to check."""
    findings = looked_at("credentials", credentials, session)
    if findings[0].state == "wrong":
        return findings
    for name, check in (LOCAL_CHECKS if session.connection.is_loopback else ACCOUNT_CHECKS).items():
        findings += looked_at(name, check, session)
    return findings


def credentials(session: Session) -> list[Finding]:
    identity = session.client("sts").get_caller_identity()
    return ok("credentials", f"account {identity['Account']}, {identity['Arn']}")


def deployment(session: Session) -> list[Finding]:
    found = session.deployment
    return ok("deployment", f"cluster {found.cluster} in {found.region}, results in s3://{found.bucket}/")


def bootstrap(session: Session) -> list[Finding]:
    step = "npx cdk bootstrap"
    try:
        value = session.client("ssm").get_parameter(Name=BOOTSTRAP_PARAMETER)["Parameter"]["Value"]
    except Exception as fault:
        if missing(fault, "ParameterNotFound"):
            return wrong("bootstrap", "this account and region are not prepared for the CDK", step)
        raise
    if int(value) < BOOTSTRAP_VERSION:
        return wrong("bootstrap", f"the CDK's bootstrap is version {value}, {BOOTSTRAP_VERSION} is needed", step)
    return ok("bootstrap", f"version {value}")


def service_roles(session: Session) -> list[Finding]:
    iam, absent = session.client("iam"), []
    for role, service in SERVICE_ROLES.items():
        try:
            iam.get_role(RoleName=role)
        except Exception as fault:
            if not missing(fault, "NoSuchEntity"):
                raise
            absent.append(service)
    if not absent:
        return ok("service-linked roles", "ECS, EC2 Spot and EC2 Fleet have theirs")
    step = " && ".join(f"aws iam create-service-linked-role --aws-service-name {service}" for service in absent)
    return wrong("service-linked roles", f"missing for {', '.join(absent)}", step)


def amis(session: Session) -> list[Finding]:
    ssm, found = session.client("ssm"), {}
    for kind, name in AMI_PARAMETERS.items():
        try:
            found[kind] = ssm.get_parameter(Name=name)["Parameter"]["Value"]
        except Exception as fault:
            if not missing(fault, "ParameterNotFound"):
                raise
            return wrong(
                "AMI", f"AWS publishes no {kind} image under {name} here", "choose another --region, or set `amis`"
            )
    return ok("AMI", ", ".join(f"{kind} {ami}" for kind, ami in found.items()))


def offered_types(session: Session) -> list[Finding]:
    wanted = settings_of(session).instance_types.all
    offered = set(_offered(session.client("ec2"), wanted))
    absent = [name for name in wanted if name not in offered]
    if not offered:
        return wrong("instance types", "none of the named types is offered here", "change instanceTypes in cdk.json")
    if not absent:
        return ok("instance types", f"all {len(wanted)} named types are offered here")
    shown = ", ".join(absent[:NAMES_SHOWN]) + (", ..." if len(absent) > NAMES_SHOWN else "")
    says = f"{len(offered)} of {len(wanted)} named types are offered here; not {shown}"
    return note("instance types", says, "nothing: their fleets are left out; `offered` in cdk.json overrides that")


def _offered(ec2: Any, wanted: tuple[str, ...]) -> list[str]:
    filters = [{"Name": "instance-type", "Values": list(wanted)}]
    pages = ec2.get_paginator("describe_instance_type_offerings").paginate(LocationType="region", Filters=filters)
    return [each["InstanceType"] for page in pages for each in page["InstanceTypeOfferings"]]


def images(session: Session) -> list[Finding]:
    """Whether each published name `argosy/NAME` resolves to an image that can be pulled."""
    path = f"/{prefix_of(session.connection.stage)}/images"
    pages = session.client("ssm").get_paginator("get_parameters_by_path").paginate(Path=path)
    published = {each["Name"].rpartition("/")[2]: each["Value"] for page in pages for each in page["Parameters"]}
    if not published:
        return note("images", "no argosy/NAME image is published; runs can name any other", PUBLISH)
    absent = [name for name, uri in published.items() if not _reachable(session, uri)]
    if absent:
        return wrong("images", f"gone from ECR: {', '.join(absent)}", PUBLISH)
    return ok("images", ", ".join(f"argosy/{name}" for name in published))


def _reachable(session: Session, uri: str) -> bool:
    """Only private ECR can be asked; ECS will report on others. ACCOUNT.dkr.ecr.REGION.amazonaws.com/NAME@DIGEST"""
    host, _, path = uri.partition("/")
    if ".dkr.ecr." not in host:
        return True
    name, at, digest = path.partition("@")
    name, _, tag = name.partition(":")
    image = {"imageDigest": digest} if at else {"imageTag": tag or "latest"}
    try:
        session.client("ecr").describe_images(registryId=host.partition(".")[0], repositoryName=name, imageIds=[image])
    except Exception as fault:
        if missing(fault, "ImageNotFoundException", "RepositoryNotFoundException"):
            return False
        raise
    return True


def quotas(session: Session) -> list[Finding]:
    return spot_quotas(session.client("service-quotas"), settings_of(session).instance_types.all)


def settings_of(session: Session) -> Settings:
    """The deployment's own settings if they can be read, else the defaults."""
    from argosy.settings.settings import Settings

    return _settings(session.client("lambda"), prefix_of(session.connection.stage)) or Settings(
        stage=session.connection.stage
    )


def _settings(functions: Any, prefix: str) -> Settings | None:
    from argosy.settings.settings import Settings

    try:
        function = functions.get_function_configuration(FunctionName=f"{prefix}-controller")
    except Exception as fault:
        if missing(fault, "ResourceNotFoundException", "AccessDeniedException"):
            return None
        raise
    text = function.get("Environment", {}).get("Variables", {}).get("ARGOSY_SETTINGS")
    return Settings.from_json(text) if text else None


LOCAL_CHECKS: dict[str, Check] = {"deployment": deployment, "images": images}
ACCOUNT_CHECKS: dict[str, Check] = {
    "deployment": deployment,
    "bootstrap": bootstrap,
    "service-linked roles": service_roles,
    "spot quotas": quotas,
    "AMI": amis,
    "instance types": offered_types,
    "images": images,
}
