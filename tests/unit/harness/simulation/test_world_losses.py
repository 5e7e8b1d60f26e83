"""What happens to tasks and instances of a world when hosts, networks or warnings interfere?"""

from __future__ import annotations

from tests.fakes.worlds import grown, instances, run, task, world
from tests.harness.simulation.world.agent import AgentBehaviour
from tests.harness.simulation.world.virtual_task import TaskBehaviour


def test_an_interruption_drains_the_instance_but_ends_its_tasks_only_with_the_host() -> None:
    made = world(TaskBehaviour(duration_s=float("inf")))
    (instance,) = grown(made)
    arn = run(made)
    made.run_for(10)
    made.interrupt(instance["ec2InstanceId"])
    made.run_for(119)
    assert instances(made)[0]["status"] == "DRAINING"
    assert task(made, arn)["lastStatus"] == "RUNNING"
    made.run_for(10)
    assert task(made, arn)["stopCode"] == "TerminationNotice"
    assert instance["ec2InstanceId"] in task(made, arn)["stoppedReason"]
    made.run_for(120)
    assert instance["ec2InstanceId"] not in {each["ec2InstanceId"] for each in instances(made)}
    assert len(instances(made)) == 1


def test_a_warning_before_registration_drains_at_once() -> None:
    made = world(agent=AgentBehaviour(register_s=60))
    made.add_fleet("c5.large", "us-east-1a", spot=1)
    made.run_for(40)
    (instance_id,) = made.agents
    made.interrupt(instance_id)
    made.run_for(60)
    assert [each["status"] for each in instances(made) if each["ec2InstanceId"] == instance_id] == ["DRAINING"]


def test_draining_can_be_switched_off() -> None:
    made = world(agent=AgentBehaviour(drains_s=None))
    (instance,) = grown(made)
    made.interrupt(instance["ec2InstanceId"])
    made.run_for(60)
    assert instances(made)[0]["status"] == "ACTIVE"


def test_events_behind_a_cut_network_arrive_when_it_heals() -> None:
    made = world(TaskBehaviour(duration_s=30))
    (instance,) = grown(made)
    arn = run(made)
    made.run_for(10)
    agent = made.agents[instance["ec2InstanceId"]]
    agent.disconnect()
    made.run_for(60)
    assert instances(made)[0]["agentConnected"] is False
    assert task(made, arn)["lastStatus"] == "RUNNING"
    refused = made.ecs_client().run_task(cluster=made.cluster, taskDefinition="digits")
    assert [each["reason"] for each in refused["failures"]] == ["AGENT"]
    made.ecs_client().stop_task(cluster=made.cluster, task=arn)
    agent.reconnect()
    made.run_for(5)
    assert (task(made, arn)["lastStatus"], task(made, arn)["containers"][0]["exitCode"]) == ("STOPPED", 0)
    assert instances(made)[0]["agentConnected"] is True


def test_an_instance_whose_network_is_cut_before_it_registers_registers_later() -> None:
    made = world(agent=AgentBehaviour(register_s=20))
    made.add_fleet("c5.large", "us-east-1a", spot=1)
    made.run_for(40)
    (agent,) = made.agents.values()
    agent.disconnect()
    made.run_for(60)
    assert instances(made) == []
    agent.reconnect()
    assert len(instances(made)) == 1


def test_a_host_that_ends_while_its_network_is_cut_reports_no_more() -> None:
    made = world(TaskBehaviour(duration_s=30))
    (instance,) = grown(made)
    arn = run(made)
    made.run_for(10)
    agent = made.agents[instance["ec2InstanceId"]]
    agent.disconnect()
    made.run_for(60)
    made.ec2.lose(instance["ec2InstanceId"])
    made.run_for(1)
    agent.reconnect()
    made.run_for(10)
    assert task(made, arn)["stopCode"] == "TerminationNotice"
    assert "exitCode" not in task(made, arn)["containers"][0]


def test_the_two_clients_of_a_world_are_checked() -> None:
    made = world()
    fleet = made.add_fleet("c5.large", "us-east-1b", on_demand=1, stage="main")
    made.run_for(1)
    (seen,) = made.ec2_client().describe_fleets()["Fleets"]
    assert (seen["FleetId"], seen["Tags"]) == (fleet, [{"Key": "stage", "Value": "main"}])
    (reservation,) = made.ec2_client().describe_instances()["Reservations"]
    assert made.ec2.instance(reservation["Instances"][0]["InstanceId"]).purchase == "on-demand"


def test_a_task_that_is_put_on_a_host_whose_end_ecs_has_not_seen_ends_with_it() -> None:
    made = world()
    (instance,) = grown(made)
    made.ec2.lose(instance["ec2InstanceId"])
    made.run_for(3)
    arn = run(made)
    assert task(made, arn)["containerInstanceArn"] == instance["containerInstanceArn"]
    made.run_for(10)
    assert task(made, arn)["stopCode"] == "TerminationNotice"
