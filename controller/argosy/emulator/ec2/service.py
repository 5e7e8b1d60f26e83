"""What would Amazon EC2 do? The whole model: the operations by group, and what time and the spot market bring about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from argosy.emulator.ec2.account import Ec2Ledger, Emit, PriceFunction
from argosy.emulator.ec2.changes import shut_down, warn
from argosy.emulator.ec2.events import rebalance_recommendation
from argosy.emulator.ec2.fill import fill
from argosy.emulator.ec2.fleets import Fleets
from argosy.emulator.ec2.instances import Instances
from argosy.emulator.ec2.market import Market
from argosy.emulator.ec2.records import Ec2Instance, LaunchTemplate, MachineType

__all__ = ["Ec2Instance", "Ec2Model", "Emit", "MachineType", "PriceFunction"]


class Ec2Model(Fleets, Instances, Market):
    """One account's EC2 in one region: fleets of type maintain and their instances. Operations as in EcsModel.

    Time does its work in `advance` only; `next_due` says when it has some. `emit`, `on_running` and `on_terminated` are
    called under the model's lock, in order. Without `prices` every type costs its typical spot price.
    """

    def __init__(  # noqa: PLR0913 - a composition root: each argument is one fact of this emulated cloud
        self,
        *,
        now: Callable[[], float],
        region: str = "us-east-1",
        account: str = "123456789012",
        emit: Emit | None = None,
        catalogue: Mapping[str, MachineType],
        zones: Sequence[str] = ("us-east-1a", "us-east-1b", "us-east-1c"),
        boot_s: float = 30.0,
        prices: PriceFunction | None = None,
        shutdown_s: float = 1.0,
        shortage_retry_s: float = 60.0,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(
            Ec2Ledger(
                now=now,
                region=region,
                account=account,
                emit=emit or (lambda message: None),
                catalogue=catalogue,
                zones=zones,
                prices=prices,
                boot_s=boot_s,
                shutdown_s=shutdown_s,
                shortage_retry_s=shortage_retry_s,
                new_id=new_id,
            )
        )

    @property
    def on_running(self) -> list[Callable[[Ec2Instance], None]]:
        """How an agent comes to life."""
        return self.ledger.on_running

    @property
    def on_terminated(self) -> list[Callable[[Ec2Instance], None]]:
        """How an agent dies."""
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

    def lose(self, instance_id: str) -> None:
        """The host fails without a word. KeyError."""
        with self.lock:
            instance = self.ledger.instances[instance_id]
            shut_down(self.ledger, instance, "Server.InternalError", "Server.InternalError: Internal error on launch")

    def set_shortage(self, pool: str, available: int | None) -> None:
        """How many more this pool delivers; None = without end. `pool`: "c5.large/us-east-1a" (spot), or the same with
        "/on-demand". Fleets that already wait try again at their next turn."""
        with self.lock:
            if available is None:
                self.ledger.available.pop(pool, None)
            else:
                self.ledger.available[pool] = available

    def set_spot_quota(self, name: str, vcpus: int | None) -> None:
        """The account's spot vCPUs of a class ("P", "G and VT", "Standard", ...); None = no limit."""
        with self.lock:
            if vcpus is None:
                self.ledger.quotas.pop(name, None)
            else:
                self.ledger.quotas[name] = vcpus

    def add_launch_template(self, name: str, *, image_id: str, tags: Mapping[str, str]) -> None:
        """From now on fleets may only name templates added here (until the first, any name will do)."""
        with self.lock:
            self.ledger.templates[name] = LaunchTemplate(image_id, dict(tags))

    def instance(self, instance_id: str) -> Ec2Instance:
        """The record, to read. KeyError."""
        with self.lock:
            return self.ledger.instances[instance_id]
