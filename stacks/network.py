"""The instances' network: a VPC over explicit zones, or the owner's own, with no way in but among instances with gangs.

The setting `subnets` selects the way out. public: each instance has a public address, the cheapest for few instances.
nat: one NAT gateway for all. private: none; AWS is reached over interface endpoints, and images are in ECR.
"""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import CfnResource
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from argosy.settings.settings import ExistingVpc, Settings

# The services that an ECS agent and its tasks call:
# https://docs.aws.amazon.com/AmazonECS/latest/developerguide/vpc-endpoints.html
_INTERFACE_SERVICES = {
    "Ecs": ec2.InterfaceVpcEndpointAwsService.ECS,
    "EcsAgent": ec2.InterfaceVpcEndpointAwsService.ECS_AGENT,
    "EcsTelemetry": ec2.InterfaceVpcEndpointAwsService.ECS_TELEMETRY,
    "Ecr": ec2.InterfaceVpcEndpointAwsService.ECR,
    "EcrDocker": ec2.InterfaceVpcEndpointAwsService.ECR_DOCKER,
    "Logs": ec2.InterfaceVpcEndpointAwsService.CLOUDWATCH_LOGS,
}
_EXEC_SERVICES = {"SsmMessages": ec2.InterfaceVpcEndpointAwsService.SSM_MESSAGES}  # what ECS Exec's agent calls
_SSM_SERVICES = {**_EXEC_SERVICES, "Ssm": ec2.InterfaceVpcEndpointAwsService.SSM}
_KINDS = {
    "public": ec2.SubnetType.PUBLIC,
    "nat": ec2.SubnetType.PRIVATE_WITH_EGRESS,
    "private": ec2.SubnetType.PRIVATE_ISOLATED,
}


class Network(Construct):
    """`vpc`, `subnets` in the order of the zones, and the instances' `security_group`."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings, region: str) -> None:
        super().__init__(scope, id)
        existing = settings.vpcs.get(region)
        self.vpc = self._existing(existing) if existing else self._own(settings, region)
        self.subnets = (
            self._subnets_of(existing) if existing else self.vpc.select_subnets(subnet_group_name="Instances").subnets
        )
        inbound = "TCP from each other only" if settings.gangs else "no inbound traffic"
        self.security_group = ec2.SecurityGroup(
            self,
            "Instances",
            vpc=self.vpc,
            description=f"Container instances: {inbound}",
            allow_all_outbound=True,
        )
        if settings.gangs:  # the programs of a gang choose ports themselves
            self.security_group.add_ingress_rule(self.security_group, ec2.Port.all_tcp(), "members of gangs")
        if settings.subnets == "private" and existing is None:
            more = _SSM_SERVICES if settings.allow_ssm else _EXEC_SERVICES if settings.allow_exec else {}
            self._add_interface_endpoints({**_INTERFACE_SERVICES, **more})

    def _own(self, settings: Settings, region: str) -> ec2.IVpc:
        # 4,091 addresses a zone: more instances than any deployment may have.
        instances = ec2.SubnetConfiguration(name="Instances", subnet_type=_KINDS[settings.subnets], cidr_mask=20)
        gateways = ec2.SubnetConfiguration(name="Gateway", subnet_type=ec2.SubnetType.PUBLIC, cidr_mask=28)
        nat = settings.subnets == "nat"
        vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr("10.0.0.0/16"),
            availability_zones=list(settings.zones_of(region)),
            nat_gateways=int(nat),
            # The default group is unused; emptying it would take a function whose log group outlives the stack.
            restrict_default_security_group=False,
            subnet_configuration=[instances, gateways] if nat else [instances],
            gateway_endpoints={
                "S3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3),
                "DynamoDb": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.DYNAMODB),
            },
        )
        for subnet in [*vpc.public_subnets, *vpc.private_subnets, *vpc.isolated_subnets]:
            node = subnet.node.default_child
            assert isinstance(node, CfnResource)
            # The zones are a setting, so that synth asks no account; cfn-lint would have them asked for.
            node.add_metadata("cfn-lint", {"config": {"ignore_checks": ["W3010"]}})
        node = vpc.node.default_child
        assert isinstance(node, CfnResource)
        node.override_logical_id("Vpc")
        return vpc

    def _existing(self, vpc: ExistingVpc) -> ec2.IVpc:
        """By its ids alone: synth asks no account."""
        zones, subnets = list(vpc.subnets), list(vpc.subnets.values())
        return ec2.Vpc.from_vpc_attributes(
            self, "Vpc", vpc_id=vpc.vpc_id, availability_zones=zones, isolated_subnet_ids=subnets
        )

    def _subnets_of(self, vpc: ExistingVpc) -> list[ec2.ISubnet]:
        return [ec2.Subnet.from_subnet_id(self, f"Subnet{n}", each) for n, each in enumerate(vpc.subnets.values(), 1)]

    def _add_interface_endpoints(self, services: Mapping[str, ec2.InterfaceVpcEndpointAwsService]) -> None:
        group = ec2.SecurityGroup(
            self, "Endpoints", vpc=self.vpc, description="Interface endpoints", allow_all_outbound=False
        )
        group.add_ingress_rule(self.security_group, ec2.Port.tcp(443), "instances call AWS")
        for name, service in services.items():
            self.vpc.add_interface_endpoint(name, service=service, security_groups=[group], open=False)
