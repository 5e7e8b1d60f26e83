"""A controller with nothing to do leaves, and comes back with the minute, when called, and when something is due."""

from __future__ import annotations

from datetime import UTC, datetime

from argosy.aws import cell_records, watchdog
from argosy.emulator.botocore_check import SimulatedClient
from argosy.engine.loop import SOON_S
from argosy.spec.parse import parse_spec, to_json
from tests.builders import submit_request
from tests.fakes.steady import SteadyService
from tests.harness.simulation.controllers.deployment import TABLE
from tests.harness.simulation.controllers.invocations import TICK_RULE
from tests.harness.simulation.injection.boundary import Call

HOUR_S = 3600.0


class CalledAtTheLastMoment(SteadyService):
    """EC2 warns just after a quiet controller has looked into its queue. The call arrives at once, the message does
    not, and no other call arrives."""

    def __init__(self) -> None:
        super().__init__(kinds={"call-lost": 1.0})
        self.warned_at = 0.0
        self.is_armed = False

    @property
    def host(self) -> str:
        return min(each.instance_id for each in self.world.ec2.ledger.instances.values())

    def took_effect(self, call: Call, reply: dict[str, object]) -> None:
        super().took_effect(call, reply)
        if self.is_armed and call.operation == "receive_message":
            self.is_armed, self.warned_at = False, self.world.now
            self.world.interrupt(self.host)
            self.deployment.call()


def test_a_warning_that_comes_while_the_controller_leaves_is_handled_at_once() -> None:
    service = CalledAtTheLastMoment()
    service.run_to_quiet()
    service.is_armed = True
    service.run_for(58.0)
    while not service.warned_at:
        service.run_for(1.0)
    service.run_for(10.0)
    assert service.deployment.invocations.turned_away
    assert service.state.instances[service.host].interrupted_at


def test_the_controller_stays_while_a_deployment_waits_for_its_tasks_to_be_healthy_for_long_enough() -> None:
    service = SteadyService(desired=2, healthy_s=3 * int(SOON_S))
    service.run_to_quiet()
    deployment = service.state.environments["web"].deployment
    assert deployment is not None
    assert deployment.status == "COMPLETED"


def test_a_quiet_hour_is_sixty_short_invocations() -> None:
    service = SteadyService()
    service.run_to_quiet()
    before = len(service.finished)
    service.run_for(HOUR_S)
    hour = service.finished[before:]
    assert 59 <= len(hour) <= 61
    assert {one.reason for one in hour} == {"quiet"}
    assert max(one.ticks for one in hour) <= 3
    assert sum(one.calls.total() for one in hour) < 20 * len(hour)


def records_of(service: SteadyService) -> cell_records.Records:
    records = cell_records.read(SimulatedClient(service.services.dynamodb, "dynamodb"), TABLE)
    assert records is not None
    return records


def wakes(service: SteadyService) -> bool:
    """One turn of home's watchdog."""
    dynamodb = SimulatedClient(service.services.dynamodb, "dynamodb")
    home = watchdog.HomeTick(dynamodb, TABLE, service.services.bus, TICK_RULE)
    return watchdog.wake(home, records_of(service), now=service.world.now)


def test_the_watchdog_takes_a_quiet_controller_for_alive() -> None:
    service = SteadyService()
    service.run_to_quiet()
    service.run_for(600.0)
    beaten_at = records_of(service).heartbeat
    assert beaten_at is not None
    assert service.world.now - beaten_at < 2 * 60.0
    assert not wakes(service)


def test_a_tick_that_an_update_has_disabled_is_enabled_again_by_the_watchdog() -> None:
    service = SteadyService()
    service.run_to_quiet()
    service.services.bus.disable_rule(Name=TICK_RULE)
    service.run_for(300.0)
    invocations = len(service.finished)
    assert wakes(service)
    service.run_for(120.0)
    assert len(service.finished) > invocations


def test_an_idle_instance_is_released_as_soon_as_its_linger_ends() -> None:
    service = SteadyService(desired=16, linger_s=400.0)
    service.run_to_quiet()
    service.ask("scale", desired=1)
    service.run_for(2.0)
    service.run_to_quiet()
    due_at = min(each.idle_since for each in service.state.instances.values() if each.idle_since) + 400.0
    assert service.world.now < due_at - 100.0
    service.run_for(due_at + 5.0 - service.world.now)
    assert any(each.released_at for each in service.state.instances.values())


def test_a_task_is_started_again_as_soon_as_its_pause_ends() -> None:
    """It ends every minute, and the pauses grow."""
    service = SteadyService(desired=1, work_s=60.0)
    service.run_to_quiet()
    while service.pause_ends_at < service.world.now + 110.0:
        service.run_for(5.0)
    ends_at = service.pause_ends_at
    service.run_to_quiet()
    assert service.world.now < ends_at - SOON_S
    service.run_for(ends_at + 4.0 - service.world.now)
    assert service.state.attempts.live().size == 1


def test_a_request_is_taken_in_at_once() -> None:
    service = SteadyService(desired=2)
    service.run_to_quiet()
    service.run_for(30.0)
    service.ask("scale", desired=3)
    service.run_for(2.0)
    assert service.state.environments["web"].desired == 3


def test_while_a_run_waits_for_its_time_the_controller_looks_once_a_minute_and_starts_it_at_that_time() -> None:
    service = SteadyService(desired=1)
    service.run_to_quiet()
    starts_at = service.world.now + 2400.0
    spec = {
        "version": 1,
        "name": "night",
        "container": {"image": "argosy/web"},
        "resources": {"vcpus": 0.5, "memory": 512},
        "array": {"size": 1},
        "notBefore": datetime.fromtimestamp(starts_at, UTC).isoformat(),
    }
    form, run_id = to_json(parse_spec(spec)), "night-261121-062702-k3f9"
    asked = submit_request(run_id, service.world.now, form, 1, "argosy/web", f"s3://results/{run_id}/", False)
    service.deployment.put(asked, run_id)
    service.run_for(120.0)
    before = len(service.finished)
    service.run_for(starts_at - 90.0 - service.world.now)
    waiting = service.finished[before:]
    assert {one.reason for one in waiting} == {"quiet"}
    assert 35 <= len(waiting) <= 38
    run = service.state.runs[run_id]
    service.run_for(starts_at - 1.0 - service.world.now)
    assert run.attempts == 0
    service.run_for(5.0)
    assert service.state.runs[run_id].attempts == 1


def test_a_deployment_that_a_user_has_frozen_keeps_no_controller_running() -> None:
    service = SteadyService(desired=2, healthy_s=600)
    service.run_for(120.0)
    service.ask("freeze", reason="looking at it")
    service.run_to_quiet(limit_s=300.0)
    env = service.state.environments["web"]
    assert env.deployment is not None
    assert not env.deployment.has_ended
    service.run_for(900.0)
    assert env.deployment.status == "COMPLETED", "what was there has become healthy"
