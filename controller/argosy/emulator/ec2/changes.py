"""Every change of an instance's state, with its events and callbacks."""

from __future__ import annotations

from functools import partial

from argosy.emulator.ec2.events import fleet_instance, fleet_state, instance_state, interruption_warning
from argosy.emulator.ec2.ledger import TERMINATED_KEPT_S, Ec2Ledger
from argosy.emulator.ec2.records import CapacityPool, Ec2Fleet, Ec2Instance

_ANY_IMAGE = "ami-00000000000000000"


def launch(ledger: Ec2Ledger, fleet: Ec2Fleet, pool: CapacityPool, purchase: str) -> Ec2Instance:
    """A new member, pending; it runs after boot_s."""
    template = ledger.templates.get(pool.template)
    image_id = template.image_ids[int(pool.template_version) - 1] if template else _ANY_IMAGE
    tags = {
        **(template.tags if template else {}),
        "aws:ec2:fleet-id": fleet.fleet_id,
        "aws:ec2launchtemplate:id": pool.template,
    }
    instance = Ec2Instance(
        ordinal=ledger.ordinal(),
        instance_id=ledger.short_id("i"),
        pool=pool,
        purchase=purchase,
        fleet_id=fleet.fleet_id,
        image_id=image_id,
        subnet_id=ledger.subnet(pool.zone),
        launched_at=ledger.now(),
        tags={**tags, "aws:ec2launchtemplate:version": pool.template_version},
        spot_request_id=f"sir-{ledger.new_id()[:8]}" if purchase == "spot" else "",
        lifecycle=purchase if purchase == "spot" else "",
    )
    ledger.instances[instance.instance_id] = instance
    fleet.members[instance.instance_id] = instance
    for tell in ledger.on_launched:
        tell(instance)
    instance_state(ledger, instance)
    fleet_instance(ledger, fleet, instance, "launched")
    ledger.later(ledger.now() + ledger.setup.boot_s, partial(_run, ledger, instance))
    return instance


def warn(ledger: Ec2Ledger, instance: Ec2Instance, notice_s: float) -> None:
    """EC2 takes it back: warning now, termination after the notice. A second warning changes nothing."""
    if not instance.alive or instance.ends_at is not None:
        return
    instance.ends_at = ledger.now() + notice_s
    interruption_warning(ledger, instance)
    fleet_instance(ledger, ledger.fleets[instance.fleet_id], instance, "termination_notified")
    code = "Server.SpotInstanceTermination" if instance.purchase == "spot" else "Server.InternalError"
    ledger.later(instance.ends_at, partial(shut_down, ledger, instance, code, f"{code}: EC2 took it back"))


def shut_down(ledger: Ec2Ledger, instance: Ec2Instance, code: str, reason: str) -> None:
    """shutting-down now, terminated after shutdown_s; its fleet may replace it from now on."""
    if not instance.alive:
        return
    instance.state, instance.reason_code, instance.reason = "shutting-down", code, reason
    fleet = ledger.fleets[instance.fleet_id]
    fleet.members.pop(instance.instance_id)
    ledger.to_fill[fleet.fleet_id] = fleet
    if code.startswith("Client.") and instance.purchase == "spot" and instance.pool.name in ledger.available:
        ledger.available[instance.pool.name] += 1  # what we give back can be bought again; what EC2 reclaims cannot
    for tell in ledger.on_shutting_down:
        tell(instance)
    instance_state(ledger, instance)
    ledger.later(ledger.now() + ledger.setup.shutdown_s, partial(_terminated, ledger, instance))


def delete(ledger: Ec2Ledger, fleet: Ec2Fleet, terminate: bool) -> None:
    """With its instances or without them."""
    fleet.state = "deleted_terminating" if terminate else "deleted_running"
    for instance in list(fleet.members.values()) if terminate else ():
        shut_down(ledger, instance, "Client.FleetDeleted", "Fleet deleted")
    if not any(each.fleet_id == fleet.fleet_id for each in ledger.instances.values() if not each.ended_at):
        fleet.state = "deleted"
    fleet_state(ledger, fleet, fleet.state)


def _run(ledger: Ec2Ledger, instance: Ec2Instance) -> None:
    if instance.state != "pending":
        return
    instance.state = "running"
    instance_state(ledger, instance)
    for tell in ledger.on_running:
        tell(instance)


def _terminated(ledger: Ec2Ledger, instance: Ec2Instance) -> None:
    instance.state, instance.ended_at = "terminated", ledger.now()
    instance_state(ledger, instance)
    fleet = ledger.fleets[instance.fleet_id]
    fleet_instance(ledger, fleet, instance, "terminated")
    for tell in ledger.on_terminated:
        tell(instance)
    if fleet.state == "deleted_terminating" and not fleet.members:
        fleet.state = "deleted"
        fleet_state(ledger, fleet, "deleted")
    ledger.later(ledger.now() + TERMINATED_KEPT_S, partial(_forget, ledger, instance))


def _forget(ledger: Ec2Ledger, instance: Ec2Instance) -> None:
    ledger.instances.pop(instance.instance_id, None)
