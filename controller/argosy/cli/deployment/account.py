"""The needs of a deployment in its account and in the Region of each cell: one function for each need."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.catalogue.offerings import zones_of
from argosy.cli.deployment.checked_account import CheckedAccount, deployed
from argosy.cli.deployment.findings import Finding, missing, note, ok, wrong
from argosy.cli.deployment.quotas import concurrency, on_demand_quotas, spot_quotas, vpcs
from argosy.cli.deployment.remedies import (
    ANOTHER_STAGE,
    MORE_ZONES,
    NO_AMI,
    NO_SUCH_ZONE,
    NONE_OFFERED,
    OTHER_ZONES,
    SOME_OFFERED,
    bootstrap,
    home_first,
    make_service_roles,
    not_offered,
    use_region,
)
from argosy.cli.deployment.reservations import reservations
from argosy.client.baking.image_amis import ECS_OPTIMISED, baked_amis
from argosy.settings.amis import newest_ami_parameter
from argosy.settings.live_offers import LiveOffers
from argosy.settings.settings import Amis, OfferedChange
from argosy.settings.values import HOME_TAG

# AWS makes them when a service is first used in the console or by some calls, CreateFleet not among them; fleets fail
# without them: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-fleet-prerequisites.html
SERVICE_ROLES = {
    "AWSServiceRoleForECS": "ecs.amazonaws.com",
    "AWSServiceRoleForEC2Spot": "spot.amazonaws.com",
    "AWSServiceRoleForEC2Fleet": "ec2fleet.amazonaws.com",
}
FOR_INTERRUPTS = {"AWSServiceRoleForFIS": "fis.amazonaws.com"}  # with allowInterrupt
BOOTSTRAP_VERSION = 6  # the first whose roles publish assets as the CDK's default synthesiser needs them
NAMES_SHOWN = 6


def service_roles(checked: CheckedAccount) -> list[Finding]:
    """The service roles belong to the account, whatever its Regions. Creates the missing ones on request."""
    iam, absent = checked.session.client("iam"), []
    needed = SERVICE_ROLES | (FOR_INTERRUPTS if checked.settings.allow_interrupt else {})
    for role, service in needed.items():
        try:
            iam.get_role(RoleName=role)
        except Exception as fault:
            if not missing(fault, "NoSuchEntity"):
                raise
            absent.append(service)
    if not absent:
        return ok(
            "service-linked roles", f"the roles of ECS, EC2 Spot{', FIS' * (len(needed) > 3)} and EC2 Fleet exist"
        )
    if not checked.may_fix:
        return wrong("service-linked roles", f"missing for {', '.join(absent)}", make_service_roles(absent))
    for service in absent:
        iam.create_service_linked_role(AWSServiceName=service)
    return ok("service-linked roles", f"created for {', '.join(absent)}")


def home(checked: CheckedAccount) -> list[Finding]:
    """Roles belong to the account, whatever the Region: a stage has one home, and nothing else may have its names."""
    settings, name = checked.settings, f"{checked.settings.prefix}-execution"
    region = settings.region
    try:
        role = checked.session.client("iam").get_role(RoleName=name)["Role"]
    except Exception as fault:
        if not missing(fault, "NoSuchEntity"):
            raise
        return ok("home", f"{region}; nothing else uses the names of stage {settings.stage}")
    found = {tag["Key"]: tag["Value"] for tag in role.get("Tags", ())}.get(HOME_TAG)
    if found == region or (found is None and deployed(checked.session.client("lambda", region), settings.prefix)):
        return ok("home", f"{region}, as deployed")
    if found is not None:
        says = f"stage {settings.stage} has its home in {found}, which cannot change to {region}: role {name} exists"
        return wrong("home", says, home_first(found))
    says = f"role {name} exists and no deployment in {region} uses it: CloudFormation would fail there and roll back"
    return wrong("home", says, ANOTHER_STAGE)


def shell_region(checked: CheckedAccount) -> list[Finding]:
    """The Region in which this shell's commands look for the deployment. The CDK takes its Regions from the cells."""
    used, region = checked.session.client("ssm").meta.region_name, checked.settings.region
    if used == region:
        return ok("Region", f"{region} is home, and your shell's")
    return note(
        "Region", f"home is {region}, but your shell uses {used}: argosy and aws look there", use_region(region)
    )


def bootstrapped(checked: CheckedAccount, cell: str) -> list[Finding]:
    qualifier = checked.settings.bootstrap_qualifier
    step = bootstrap(checked.account, cell, qualifier)
    try:
        name = f"/cdk-bootstrap/{qualifier}/version"
        value = checked.session.client("ssm", cell).get_parameter(Name=name)["Parameter"]["Value"]
    except Exception as fault:
        if missing(fault, "ParameterNotFound"):
            return wrong("bootstrap", f"{cell} of this account has no CDK bootstrap with qualifier {qualifier}", step)
        raise
    if int(value) < BOOTSTRAP_VERSION:
        return wrong("bootstrap", f"the CDK's bootstrap is version {value}, {BOOTSTRAP_VERSION} is needed", step)
    return _assets_bucket(checked, cell, step) or ok("bootstrap", f"version {value}, qualifier {qualifier}")


def _assets_bucket(checked: CheckedAccount, cell: str, step: str) -> list[Finding]:
    """A fault of the bucket to which the CDK publishes. Anyone may have taken its name, which is known beforehand."""
    name = f"cdk-{checked.settings.bootstrap_qualifier}-assets-{checked.account}-{cell}"
    try:
        checked.session.client("s3", cell).head_bucket(Bucket=name, ExpectedBucketOwner=checked.account)
    except Exception as fault:
        if missing(fault, "404", "NoSuchBucket"):
            return wrong("bootstrap", f"its bucket {name} is gone", step)
        if missing(fault, "403"):  # HEAD has no body that would tell which of the two
            says = f"its bucket {name} belongs to another account, or you may not see it"
            return note("bootstrap", says, "if it is another's, choose another `bootstrapQualifier` in cdk.json")
        raise
    return []


def amis(checked: CheckedAccount, cell: str) -> list[Finding]:
    """The AMIs that new instances would start from, where the settings pin none."""
    ssm, settings, found = checked.session.client("ssm", cell), checked.settings, {}
    pinned = settings.amis[cell].model_dump(exclude_none=True) if cell in settings.amis else {}
    for kind in sorted({settings.image_of(name) for name in settings.instance_types.all} - pinned.keys()):
        name = newest_ami_parameter(kind)
        try:
            found[kind] = ssm.get_parameter(Name=name)["Parameter"]["Value"]
        except Exception as fault:
            if not missing(fault, "ParameterNotFound"):
                raise
            return wrong("AMI", f"AWS publishes no {kind} image named {name} here", NO_AMI)
    return ok("AMI", ", ".join(f"{kind} {ami}" for kind, ami in {**found, **pinned}.items()))


def baked(checked: CheckedAccount, cell: str) -> list[Finding]:
    """Whether AWS has a newer AMI than the ones below those that hold an image. Nothing if the settings name none."""
    session, pinned = checked.session, checked.settings.amis.get(cell, Amis()).model_dump(exclude_none=True).values()
    found: list[Finding] = []
    for each in baked_amis(session.client("ec2", cell), checked.settings.stage) if pinned else ():
        if each.ami_id not in pinned or each.base_from != ECS_OPTIMISED:
            continue
        name = newest_ami_parameter(each.kind)
        newest = session.client("ssm", cell).get_parameter(Name=name)["Parameter"]["Value"]
        says = f"{each.kind} {each.ami_id} holds {each.image}, and is made from {each.base}"
        again = f"argosy image bake {each.image} --type '{each.types}' --cell {cell}"
        is_new = newest == each.base
        found += ok("baked AMI", says) if is_new else note("baked AMI", f"{says}; AWS's newest is {newest}", again)
    return found


def zones(checked: CheckedAccount, cell: str) -> list[Finding]:
    """Zone names differ between accounts; the settings name some, or guess three."""
    there, used = zones_of(checked.session.client("ec2", cell)), checked.settings.zones_of(cell)
    absent = [zone for zone in used if zone not in there]
    if not absent:
        return ok("zones", ", ".join(used))
    says = f"this account has no {', '.join(absent)}; it has {', '.join(there)}"
    if cell in checked.settings.zones or cell in checked.settings.vpcs:
        return wrong("zones", says, NO_SUCH_ZONE)
    return note("zones", says, OTHER_ZONES)


def offered_types(checked: CheckedAccount, cell: str) -> list[Finding]:
    """Which named types EC2 offers now, in the Region and in the cell's zones. A deployment reads the same list."""
    settings, wanted = checked.settings, checked.settings.instance_types.all
    live = LiveOffers.read(checked.session.client("ec2", cell), wanted)
    if not (offered := live.offered):
        return wrong("instance types", "none of the configured types is offered here", NONE_OFFERED)
    insisted = settings.offered.get(cell, OfferedChange()).add
    if wrongly := [name for name in wanted if name in insisted and name not in offered]:
        says = f"EC2 does not offer {_shown(wrongly)} here, so a deployment with their fleets fails"
        return wrong("instance types", says, not_offered(cell, wrongly))
    absent = [name for name in wanted if name not in offered]
    if not absent:
        found = ok("instance types", f"all {len(wanted)} configured types are offered here")
    else:
        says = f"{len(offered)} of {len(wanted)} configured types are offered here; missing: {_shown(absent)}"
        found = note("instance types", says, SOME_OFFERED)
    own = frozenset[str]().union(*(live.by_zone.get(zone, ()) for zone in settings.zones_of(cell)))
    if elsewhere := [name for name in wanted if name in offered - own]:
        others = sorted(zone for zone, names in live.by_zone.items() if names & set(elsewhere))
        says = f"only in zones that this deployment does not use ({', '.join(others)}): {_shown(elsewhere)}"
        found += note("instance types", says, MORE_ZONES)
    return found


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMES_SHOWN]) + (", ..." if len(names) > NAMES_SHOWN else "")


ACCOUNT_CHECKS = {
    "Region": shell_region,
    "home": home,
    "service-linked roles": service_roles,
    "Lambda concurrency": concurrency,
}
CELL_CHECKS = {
    "bootstrap": bootstrapped,
    "VPC": vpcs,
    "spot quotas": spot_quotas,
    "on-demand quotas": on_demand_quotas,
    "reservations": reservations,
    "AMI": amis,
    "baked AMI": baked,
    "zones": zones,
    "instance types": offered_types,
}
