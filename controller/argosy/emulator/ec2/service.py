"""The whole model of Amazon EC2: the operations by group, and the effects of time and of the market."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from argosy.emulator.ec2.changes import shut_down, warn
from argosy.emulator.ec2.events import rebalance_recommendation
from argosy.emulator.ec2.fleet_targets import fill
from argosy.emulator.ec2.fleets import FleetOperations
from argosy.emulator.ec2.instances import InstanceOperations
from argosy.emulator.ec2.ledger import Ec2Ledger, Ec2Setup, PriceFunction
from argosy.emulator.ec2.market import MarketOperations
from argosy.emulator.ec2.records import (
    CapacityReservation,
    Ec2Instance,
    LaunchObstacle,
    LaunchTemplate,
    MachineType,
)
from argosy.emulator.ec2.reservations import ON_DEMAND, ReservationOperations, end_block, reclaim
from argosy.emulator.region import AwsRegion

__all__ = ["Ec2Instance", "Ec2Model", "Ec2Setup", "LaunchObstacle", "MachineType", "PriceFunction"]


class Ec2Model(FleetOperations, InstanceOperations, MarketOperations, ReservationOperations):
    """One account's EC2 in one region: fleets of type maintain and their instances. Operations as in EcsModel.

    The passing of time takes effect in `advance` only; `next_due` says when there is something to do. Functions in
    `on_launched`, `on_running` and `on_terminated` are called under the model's lock, in order.
    """

    def __init__(self, region: AwsRegion, setup: Ec2Setup) -> None:
        super().__init__(Ec2Ledger(region, setup))

    @property
    def on_launched(self) -> list[Callable[[Ec2Instance], None]]:
        """Called when an instance is launched, before any event."""
        return self.ledger.on_launched

    @property
    def on_running(self) -> list[Callable[[Ec2Instance], None]]:
        """Called when an instance runs: its agent starts."""
        return self.ledger.on_running

    @property
    def on_shutting_down(self) -> list[Callable[[Ec2Instance], None]]:
        """Called when an operating system has to shut down."""
        return self.ledger.on_shutting_down

    @property
    def on_terminated(self) -> list[Callable[[Ec2Instance], None]]:
        """Called when an instance ends: its agent dies."""
        return self.ledger.on_terminated

    def advance(self) -> None:
        """Up to now(): fleets follow their targets, instances boot and end, notices run out."""
        with self.lock:
            self.ledger.do_due()
            fill(self.ledger)
            self.ledger.do_due()

    def next_due(self) -> float | None:
        """Epoch seconds at which `advance` has something to do; None when nothing is under way."""
        with self.lock:
            return self.ledger.next_due()

    def interrupt(self, instance_id: str, notice_s: float = 120.0) -> None:
        """EC2 reclaims a spot instance: warning now, end after the notice. KeyError; ValueError if on-demand."""
        with self.lock:
            instance = self.ledger.instances[instance_id]
            if instance.purchase != "spot":
                raise ValueError(f"{instance_id} is an on-demand instance: EC2 does not interrupt it")
            warn(self.ledger, instance, notice_s)

    def recommend_rebalance(self, instance_id: str) -> None:
        """The advice alone; nothing else happens. KeyError."""
        with self.lock:
            rebalance_recommendation(self.ledger, self.ledger.instances[instance_id])

    def set_failed_checks(self, instance_id: str, *checks: str) -> None:
        """Which of the status checks system, instance and attached-ebs fail from now on. KeyError."""
        with self.lock:
            self.ledger.instances[instance_id].failed_checks = frozenset(checks)

    def lose(self, instance_id: str) -> None:
        """The host fails without a warning. KeyError."""
        with self.lock:
            instance = self.ledger.instances[instance_id]
            shut_down(self.ledger, instance, "Server.InternalError", "Server.InternalError: Internal error on launch")

    def reserve(
        self, pool: str, count: int, *, kind: str = ON_DEMAND, lasts: tuple[float, float] = (0.0, 0.0)
    ) -> CapacityReservation:
        """A Capacity Reservation of the account in `pool` ("p5.48xlarge/us-east-1a"). lasts: from (0 = now), until (0 =
        without an end)."""
        instance_type, zone = pool.split("/")
        with self.lock:
            found = CapacityReservation(
                self.ledger.short_id("cr"),
                instance_type,
                zone,
                count,
                kind,
                lasts[0] or self.ledger.now(),
                lasts[1],
            )
            self.ledger.reservations[found.reservation_id] = found
            end_block(self.ledger, found)
            return found

    def reclaim(self, reservation: CapacityReservation, count: int) -> None:
        """The owner of an interruptible Capacity Reservation takes places back."""
        with self.lock:
            reclaim(self.ledger, reservation, count)

    def set_withdrawn(self, pool: str, *, withdrawn: bool = True) -> None:
        """Whether EC2 has withdrawn the type of `pool` from its zone."""
        with self.lock:
            (self.ledger.withdrawn.add if withdrawn else self.ledger.withdrawn.discard)(pool)

    def set_shortage(self, pool: str, available: int | None) -> None:
        """How many more this pool delivers; None = no limit. `pool`: "c5.large/us-east-1a" (spot), or the same with
        "/on-demand".
        Fleets that already wait try again at their next turn.
        """
        with self.lock:
            if available is None:
                self.ledger.available.pop(pool, None)
            else:
                self.ledger.available[pool] = available

    def set_obstacle(self, pool: str, obstacle: LaunchObstacle | None) -> None:
        """The obstacle to launches in this pool ("c5.large/us-east-1a", spot and on-demand alike); None = nothing."""
        with self.lock:
            if obstacle is None:
                self.ledger.obstacles.pop(pool, None)
            else:
                self.ledger.obstacles[pool] = obstacle

    def set_spot_quota(self, name: str, vcpus: int | None) -> None:
        """The account's spot vCPUs of a class ("P", "G and VT", "Standard", ...); None = no limit."""
        with self.lock:
            if vcpus is None:
                self.ledger.quotas.pop(name, None)
            else:
                self.ledger.quotas[name] = vcpus

    def add_launch_template(
        self, name: str, *, image_id: str, tags: Mapping[str, str], own_tags: Mapping[str, str] | None = None
    ) -> None:
        """A new template, or a new version of an existing one. From now on fleets may only name templates added here
        (before the
        first, any name is accepted). tags: of its instances; own_tags: of the template, None = the same.
        """
        with self.lock:
            earlier = self.ledger.templates.get(name)
            image_ids = (*(earlier.image_ids if earlier else ()), image_id)
            self.ledger.templates[name] = LaunchTemplate(
                image_ids, dict(tags), dict(tags if own_tags is None else own_tags)
            )

    def instance(self, instance_id: str) -> Ec2Instance:
        """The record, to read. KeyError."""
        with self.lock:
            return self.ledger.instances[instance_id]

    def runs(self, instance_id: str) -> bool:
        """Whether it is there, and running."""
        with self.lock:
            found = self.ledger.instances.get(instance_id)
            return found is not None and found.state == "running"
