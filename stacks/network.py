"""Where do the instances live? A VPC over explicit zones, with no way in and no NAT to pay for.

Public subnets by default: instances get a public address and a security group without ingress. Private subnets
(setting `subnets: private`) reach AWS over interface endpoints, which cost by the hour, and nothing else.
"""

from __future__ import annotations

from aws_cdk import CfnResource
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

# What an ECS agent and its tasks call in a subnet without a way out (notes: ECS's page on VPC endpoints).
_INTERFACE_SERVICES = {
    "Ecs": ec2.InterfaceVpcEndpointAwsService.ECS,
    "EcsAgent": ec2.InterfaceVpcEndpointAwsService.ECS_AGENT,
    "EcsTelemetry": ec2.InterfaceVpcEndpointAwsService.ECS_TELEMETRY,
    "Ecr": ec2.InterfaceVpcEndpointAwsService.ECR,
    "EcrDocker": ec2.InterfaceVpcEndpointAwsService.ECR_DOCKER,
    "Logs": ec2.InterfaceVpcEndpointAwsService.CLOUDWATCH_LOGS,
}


class Network(Construct):
    """`vpc`, `subnets` in the order of the zones, and the instances' `security_group`."""

    def __init__(self, scope: Construct, id: str, *, zones: tuple[str, ...], private: bool) -> None:
        super().__init__(scope, id)
        kind = ec2.SubnetType.PRIVATE_ISOLATED if private else ec2.SubnetType.PUBLIC
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr("10.0.0.0/16"),
            availability_zones=list(zones),
            nat_gateways=0,
            # The default group is unused; emptying it would take a function whose log group outlives the stack.
            restrict_default_security_group=False,
            # 4,091 addresses a zone: more instances than any deployment may have.
            subnet_configuration=[ec2.SubnetConfiguration(name="Instances", subnet_type=kind, cidr_mask=20)],
            gateway_endpoints={
                "S3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3),
                "DynamoDb": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.DYNAMODB),
            },
        )
        self.subnets = self.vpc.select_subnets(subnet_type=kind).subnets
        self.security_group = ec2.SecurityGroup(
            self,
            "Instances",
            vpc=self.vpc,
            description="Container instances: nothing comes in",
            allow_all_outbound=True,
        )
        if private:
            self._add_interface_endpoints()
        for subnet in self.subnets:
            subnet_node = subnet.node.default_child
            assert isinstance(subnet_node, CfnResource)
            # The zones are a setting, so that synth asks no account; cfn-lint would have them asked for.
            subnet_node.add_metadata("cfn-lint", {"config": {"ignore_checks": ["W3010"]}})
        node = self.vpc.node.default_child
        assert isinstance(node, CfnResource)
        node.override_logical_id("Vpc")

    def _add_interface_endpoints(self) -> None:
        group = ec2.SecurityGroup(
            self, "Endpoints", vpc=self.vpc, description="Interface endpoints", allow_all_outbound=False
        )
        group.add_ingress_rule(self.security_group, ec2.Port.tcp(443), "instances call AWS")
        for name, service in _INTERFACE_SERVICES.items():
            self.vpc.add_interface_endpoint(name, service=service, security_groups=[group], open=False)
