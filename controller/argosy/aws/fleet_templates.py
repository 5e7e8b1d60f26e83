"""Fleets that launch from an older version of their launch template, and their move to the newest.

CloudFormation makes a fleet with version 1 and never changes that: it would replace the fleet. A deployment with
another AMI, disk or boot script makes a new version, and the controller moves each fleet there with its next target.
ModifyFleet takes `LaunchTemplateConfigs` for this (EC2's service model; terraform-provider-aws updates fleets in place
by it since its pull request 15387, tested on AWS). Instances that the fleet has launched are not touched.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from argosy.aws.cell import Cell, CheckTime, pages
from argosy.aws.errors import AWS_ERRORS, classify

PAUSES_S = (60.0, 240.0, 900.0)  # after a version was refused once, twice and every further time
_OVERRIDES = ("InstanceType", "SubnetId", "AvailabilityZone")  # what the stacks and the emulator give a fleet

log = logging.getLogger(__name__)


class FleetTemplates:
    """The last listing, by fleet. In memory only: each process lists the fleets before it buys."""

    def __init__(self, stage_tag: str, stage: str, clock: Callable[[], float]) -> None:
        """clock: seconds."""
        self._clock = clock
        self._ours = [{"Name": f"tag:{stage_tag}", "Values": [stage]}]
        self._configs: dict[str, Mapping[str, Any]] = {}  # by fleet id: what it launches, in the newest version
        self._newer: dict[str, list[dict[str, Any]]] = {}  # by fleet id: what its LaunchTemplateConfigs should be
        self._wanted: dict[str, str] = {}  # by fleet id: the newest version, if the fleet has another one
        self._is_read = False  # whether the newest versions are known
        self._why: dict[tuple[str, str], str] = {}  # by fleet id and version: the last refusal
        # By fleet id and version: refusals in a row, and when to try again.
        self._refused: dict[tuple[str, str], tuple[int, float]] = {}

    def note(self, cell: Cell, fleets: Iterable[Mapping[str, Any]], check_time: CheckTime = lambda: None) -> None:
        """Compare the fleets of DescribeFleets with the newest versions. If these cannot be read, fleets stay. Raises
        what `check_time` raises."""
        configs = {fleet["FleetId"]: fleet.get("LaunchTemplateConfigs") or [] for fleet in fleets}
        newest = self._newest(cell, check_time) if any(configs.values()) else {}
        self._is_read = bool(newest)
        for fleet_id, each in configs.items():
            self._newer.pop(fleet_id, None)
            if newest:
                self._wanted.pop(fleet_id, None)
            config = _moved(each[0], newest) if len(each) == 1 else None
            if config:
                self._wanted[fleet_id] = config["LaunchTemplateSpecification"]["Version"]
            self._configs[fleet_id] = config or (each[0] if each else {})
            if config and self._may_ask(fleet_id, config["LaunchTemplateSpecification"]["Version"]):
                self._newer[fleet_id] = [config]

    def stays_behind(self, fleet_id: str) -> str | None:
        """EC2's refusal to move a fleet to the newest version; "" = none is known, None = it has that version."""
        version = self._wanted.get(fleet_id)
        if version is None:
            return None if self._is_read else ""
        return self._why.get((fleet_id, version), "")

    def is_behind(self, fleet_id: str) -> bool:
        return fleet_id in self._newer

    def newest_version(self, fleet_id: str) -> str:
        """ "" if the newest versions could not be read."""
        found = self.config(fleet_id).get("LaunchTemplateSpecification") or {}
        return str(found.get("Version", "")) if self._is_read else ""

    def config(self, fleet_id: str) -> Mapping[str, Any]:
        """The launch template and overrides of a listed fleet, in the newest version; empty without one."""
        return self._configs.get(fleet_id, {})

    def modify_fleet(self, cell: Cell, request: Mapping[str, Any]) -> None:
        """ModifyFleet, to the newest version if the fleet is behind. A version that EC2 refuses does not hold the
        target back: the fleet keeps its version and the change is retried after a growing pause, because a missing
        right may be granted. Raises AWS_ERRORS."""
        fleet_id = request["FleetId"]
        configs = self._newer.get(fleet_id)
        if configs is None:
            cell.ec2.modify_fleet(**request)
            return
        try:
            cell.ec2.modify_fleet(**request, LaunchTemplateConfigs=configs)
        except AWS_ERRORS as error:
            if not (fault := classify(error)).lasting:
                raise
            version = configs[0]["LaunchTemplateSpecification"]["Version"]
            pause_s, self._why[fleet_id, version] = self._pause(fleet_id, version), fault.text
            log.warning("%s cannot move to version %s: %s; retry in %d s", fleet_id, version, fault.text, pause_s)
            cell.ec2.modify_fleet(**request)
        self._newer.pop(fleet_id, None)

    def _may_ask(self, fleet_id: str, version: str) -> bool:
        return self._clock() >= self._refused.get((fleet_id, version), (0, 0.0))[1]

    def _pause(self, fleet_id: str, version: str) -> float:
        times, _ = self._refused.get((fleet_id, version), (0, 0.0))
        pause_s = PAUSES_S[min(times, len(PAUSES_S) - 1)]
        self._refused[fleet_id, version] = times + 1, self._clock() + pause_s
        return pause_s

    def _newest(self, cell: Cell, check_time: CheckTime) -> dict[str, str]:
        """The newest version of each of the stage's launch templates, by its id and by its name."""
        check_time()
        try:
            listed = list(pages(cell.ec2.describe_launch_templates, Filters=self._ours))
        except AWS_ERRORS as error:
            log.warning("the launch templates of %s cannot be read: %s", cell.name, classify(error).text)
            return {}
        return {
            template[key]: str(template["LatestVersionNumber"])
            for page in listed
            for template in page["LaunchTemplates"]
            for key in ("LaunchTemplateId", "LaunchTemplateName")
        }


def _moved(config: Mapping[str, Any], newest: Mapping[str, str]) -> dict[str, Any] | None:
    """The configuration with the newest version of its template; None if it has that already or is not Argosy's."""
    now = config.get("LaunchTemplateSpecification") or {}
    key = "LaunchTemplateId" if "LaunchTemplateId" in now else "LaunchTemplateName"
    version = newest.get(now.get(key, ""))
    if version is None or version == now.get("Version"):
        return None
    overrides = [{name: each[name] for name in _OVERRIDES if name in each} for each in config.get("Overrides") or ()]
    return {"LaunchTemplateSpecification": {key: now[key], "Version": version}, "Overrides": overrides}
