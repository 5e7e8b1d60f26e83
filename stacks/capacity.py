"""The fleets that the controller buys from: one EC2 Fleet per pool (instance type x zone), with target 0.

Targets are steered only at run time. The template's target stays 0 and its launch-template version a literal, so that
neither a deployment nor a new AMI touches live work (DESIGN D8); the controller moves a fleet to the newest version. A
named type that the Region does not offer stays in the template under a condition that is false.
"""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from argosy.catalogue.lookup import as_of
from argosy.settings.settings import Settings
from stacks.launch import LaunchTemplates, logical

FIRST_VERSION = "1"  # of every launch template there is


class Fleets(Construct):
    """The fleets of one cell, and the mapping and conditions that decide which of them exist."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        subnets: Sequence[ec2.ISubnet],
        templates: LaunchTemplates,
    ) -> None:
        super().__init__(scope, id)
        region = cdk.Stack.of(self).region  # a name, not a token: the stack of a cell names its Region
        self._settings, self._region = settings, region
        usable, types = settings.offers(region), settings.instance_types.all
        self._offered = cdk.CfnMapping(
            self, "Offered", mapping={region: {logical(name): str(name in usable).lower() for name in types}}
        )
        self._offered.override_logical_id("Offered")
        # Resources that depend on these come after the fleets, and on destroy before them.
        self.lists: list[ssm.StringParameter] = []
        for name in types:
            condition = self._condition(name)
            template = templates.by_type[name]
            fleets = [
                self._fleet(name, zone, subnet, template)
                for zone, subnet in zip(settings.zones_of(region), subnets, strict=True)
                if settings.has_pool(region, name, zone)
            ]
            for fleet in fleets:
                fleet.cfn_options.condition = condition
            self.lists.append(self._list(name, condition, fleets))
        self._warn([name for name in types if name not in usable])

    def _condition(self, name: str) -> cdk.CfnCondition:
        found = self._offered.find_in_map(self._region, logical(name))
        condition = cdk.CfnCondition(self, f"Offers{logical(name)}", expression=cdk.Fn.condition_equals(found, "true"))
        condition.override_logical_id(f"Offers{logical(name)}")
        return condition

    def _fleet(self, name: str, zone: str, subnet: ec2.ISubnet, template: ec2.CfnLaunchTemplate) -> ec2.CfnEC2Fleet:
        fleet = ec2.CfnEC2Fleet(
            self,
            f"{logical(name)}{logical(zone)}",
            type="maintain",
            target_capacity_specification=ec2.CfnEC2Fleet.TargetCapacitySpecificationRequestProperty(
                total_target_capacity=0,
                on_demand_target_capacity=0,
                spot_target_capacity=0,
                default_target_capacity_type="spot",
            ),
            # The controller chooses the instance to end; the fleet would choose one without regard to its tasks.
            excess_capacity_termination_policy="no-termination",
            replace_unhealthy_instances=False,
            spot_options=ec2.CfnEC2Fleet.SpotOptionsRequestProperty(
                allocation_strategy="price-capacity-optimized", instance_interruption_behavior="terminate"
            ),
            launch_template_configs=[
                ec2.CfnEC2Fleet.FleetLaunchTemplateConfigRequestProperty(
                    launch_template_specification=ec2.CfnEC2Fleet.FleetLaunchTemplateSpecificationRequestProperty(
                        launch_template_id=template.ref, version=FIRST_VERSION
                    ),
                    overrides=[
                        ec2.CfnEC2Fleet.FleetLaunchTemplateOverridesRequestProperty(
                            instance_type=name, subnet_id=subnet.subnet_id
                        )
                    ],
                )
            ],
            tag_specifications=[
                ec2.CfnEC2Fleet.TagSpecificationProperty(
                    resource_type="fleet",
                    tags=[
                        cdk.CfnTag(key="argosy:stage", value=self._settings.stage),
                        cdk.CfnTag(key="argosy:pool", value=f"{name}/{zone}"),
                        cdk.CfnTag(key="Name", value=f"{self._settings.prefix} {name} {zone}"),
                        *(cdk.CfnTag(key=key, value=value) for key, value in self._settings.tags.items()),
                    ],
                )
            ],
        )
        fleet.override_logical_id(f"Fleet{logical(name)}{logical(zone)}")
        return fleet

    def _list(self, name: str, condition: cdk.CfnCondition, fleets: list[ec2.CfnEC2Fleet]) -> ssm.StringParameter:
        """The ids of a type's fleets. It exists without fleets too: DependsOn may not name a conditional resource."""
        refs = cdk.Fn.join(",", [fleet.ref for fleet in fleets]) if fleets else "none"
        ids = cdk.Fn.condition_if(condition.logical_id, refs, "none")
        return ssm.StringParameter(
            self,
            f"{logical(name)}Ids",
            parameter_name=f"/{self._settings.prefix}/fleets/{name}",
            description=f"Argosy: the fleets of {name}, one per zone",
            string_value=cdk.Token.as_string(ids),
        )

    def _warn(self, missing: list[str]) -> None:
        if missing:
            cdk.Annotations.of(self).add_warning_v2(
                "argosy:NotOffered",
                f"{self._region} does not offer {', '.join(missing)} (EC2's list if it was read, else the catalogue of "
                f"{as_of()['offered']}): their fleets are in "
                f"the template but not made. If it does, name them under offered.{self._region}.add.",
            )
