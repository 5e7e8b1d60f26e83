"""Unmodified AWS clients, boto3 and the AWS CLI, talk to the embedded AWS over its one port."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from botocore.exceptions import ClientError

from argosy.local.deployment import local_settings
from tests.e2e.local_cloud import Cloud, cloud
from tests.fakes.commands import outcome_of
from tests.fakes.signing import send
from tests.fakes.waiting import until

pytestmark = pytest.mark.e2e

Aws = Callable[..., Any]
SLEEPS = "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\ntime.sleep(3600)"


@pytest.fixture(scope="module")
def sky(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with cloud(tmp_path_factory.mktemp("cloud"), settings=local_settings(maxInstances=7)) as made:
        yield made


@pytest.fixture(scope="module")
def gpu_instance(sky: Cloud) -> str:
    return sky.buy("g5.12xlarge")[0]


@pytest.fixture(scope="module")
def gpu_task(sky: Cloud, gpu_instance: str) -> str:
    gpu = sky.define("gpu", resourceRequirements=[{"type": "GPU", "value": "2"}])
    arn = sky.run(gpu, SLEEPS, instance=gpu_instance)
    sky.reaches(arn, "RUNNING")
    return arn


@pytest.fixture(scope="module")
def aws(sky: Cloud) -> Aws:
    """The AWS CLI as a user types it; its output, as JSON."""
    program = Path(sys.executable).with_name("aws")
    if not program.exists():
        pytest.skip("the AWS CLI is not installed")

    def run(*arguments: str) -> Any:
        done = outcome_of(["aws", "--endpoint-url", sky.aws.endpoint_url, "--output", "json", *arguments])
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout) if done.stdout.strip() else None

    return run


def test_the_cli_lists_and_describes_instances_with_their_gpus(aws: Aws, sky: Cloud, gpu_instance: str) -> None:
    listed = aws("ecs", "list-container-instances", "--cluster", "argosy")
    assert listed["containerInstanceArns"] == [gpu_instance]
    described = aws("ecs", "describe-container-instances", "--cluster", "argosy", "--container-instances", gpu_instance)
    instance = described["containerInstances"][0]
    gpus = next(each for each in instance["registeredResources"] if each["name"] == "GPU")
    assert len(gpus["stringSetValue"]) == 4
    assert all(gpu.startswith("GPU-") for gpu in gpus["stringSetValue"])
    assert {"name": "ecs.instance-type", "value": "g5.12xlarge"} in instance["attributes"]


def test_the_cli_sees_the_gpus_a_task_is_pinned_to(aws: Aws, gpu_task: str) -> None:
    described = aws("ecs", "describe-tasks", "--cluster", "argosy", "--tasks", gpu_task)
    assert len(set(described["tasks"][0]["containers"][0]["gpuIds"])) == 2
    assert described["tasks"][0]["lastStatus"] == "RUNNING"


def test_the_cli_runs_and_stops_a_task(aws: Aws, sky: Cloud, gpu_instance: str) -> None:
    definition = sky.define("plain")
    overrides = json.dumps({"containerOverrides": [{"name": "main", "command": ["raise SystemExit(3)"]}]})
    launched = aws("ecs", "run-task", "--cluster", "argosy", "--task-definition", definition, "--overrides", overrides)
    task = sky.reaches(launched["tasks"][0]["taskArn"], "STOPPED")
    assert task["containers"][0]["exitCode"] == 3


def test_the_cli_sees_fleets_instances_and_prices(aws: Aws, sky: Cloud, gpu_instance: str) -> None:
    fleets = aws("ec2", "describe-fleets")["Fleets"]
    pools = {tag["Value"] for fleet in fleets for tag in fleet["Tags"] if tag["Key"] == "argosy:pool"}
    assert len(pools) == len(fleets) == 21
    assert {"c5.large/us-east-1a", "g5.2xlarge/us-east-1c"} <= pools
    found = aws("ec2", "describe-instances", "--filters", "Name=tag:argosy:stage,Values=main")
    instance = found["Reservations"][0]["Instances"][0]
    assert (instance["InstanceType"], instance["InstanceLifecycle"]) == ("g5.12xlarge", "spot")
    prices = aws("ec2", "describe-spot-price-history", "--instance-types", "c5.large", "--product", "Linux/UNIX")
    assert float(prices["SpotPriceHistory"][0]["SpotPrice"]) > 0


def test_the_cli_shows_a_refusal_with_awss_code(aws: Aws) -> None:
    with pytest.raises(RuntimeError, match="ClusterNotFoundException"):
        aws("ecs", "list-tasks", "--cluster", "elsewhere")
    with pytest.raises(RuntimeError, match=r"InvalidInstanceID\.NotFound"):
        aws("ec2", "describe-instances", "--instance-ids", "i-00000000000000000")


def test_the_cli_invokes_the_api_function(aws: Aws, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    payload = ["--payload", '{"action": "ListRuns"}', "--cli-binary-format", "raw-in-base64-out"]
    version = aws("lambda", "invoke", "--function-name", "argosy-api", *_accepted(payload), str(out))
    assert version["StatusCode"] == 200
    assert json.loads(out.read_text())["event"] == {"action": "ListRuns"}


def _accepted(payload: list[str]) -> list[str]:
    """Version 1 of the CLI takes payloads raw and lacks version 2's option."""
    import awscli

    return payload[:2] if awscli.__version__.startswith("1.") else payload


def test_the_cli_copies_files_to_and_from_s3(aws: Aws, sky: Cloud, tmp_path: Path) -> None:
    there, back = tmp_path / "there", tmp_path / "back"
    there.write_bytes(os.urandom(9_000_000))  # a multipart upload
    for source, target in ((str(there), "s3://argosy-results/x"), ("s3://argosy-results/x", str(back))):
        done = outcome_of(["aws", "--endpoint-url", sky.aws.endpoint_url, "s3", "cp", source, target])
        assert done.returncode == 0, done.stderr
    assert back.read_bytes() == there.read_bytes()


def test_the_parameter_names_everything_that_the_command_line_needs(sky: Cloud) -> None:
    value = sky.clients("ssm").get_parameter(Name="/argosy/deployment")["Parameter"]["Value"]
    found = json.loads(value)
    assert sky.clients("dynamodb").describe_table(TableName=found["table"])["Table"]["TableStatus"] == "ACTIVE"
    assert sky.clients("sqs").get_queue_attributes(QueueUrl=found["queueUrl"], AttributeNames=["RedrivePolicy"])
    assert sky.clients("s3").head_bucket(Bucket=found["bucket"])
    assert sky.clients("ecs").describe_clusters(clusters=[found["cluster"]])["clusters"][0]["status"] == "ACTIVE"
    assert sky.clients("ssm").get_parameter(Name="/argosy/images/tool")["Parameter"]["Value"] == "argosy/tool"
    assert (found["stage"], found["region"], found["cells"]) == ("main", "us-east-1", ["us-east-1"])


def test_the_tick_rule_rests_at_first(sky: Cloud) -> None:
    assert sky.clients("events").describe_rule(Name="argosy-tick")["State"] == "DISABLED"


def test_functions_get_the_environment_that_the_stacks_give_them(sky: Cloud) -> None:
    environment = sky.aws.functions["argosy-api"].spec.environment
    assert {name for name in environment if name.startswith("ARGOSY_")} == {
        *("ARGOSY_STAGE", "ARGOSY_TABLE", "ARGOSY_QUEUE_URL", "ARGOSY_CLUSTER", "ARGOSY_BUCKET", "ARGOSY_LOG_GROUP"),
        *("ARGOSY_CONTROLLER_FUNCTION", "ARGOSY_TICK_RULE", "ARGOSY_EXECUTION_ROLE_ARN", "ARGOSY_TASK_ROLE_ARN"),
        *("ARGOSY_SETTINGS", "ARGOSY_LOOP", "ARGOSY_POLICY", "ARGOSY_CALL_RATES", "ARGOSY_IMAGES"),
        *("ARGOSY_API_FUNCTION_ARN", "ARGOSY_SCHEDULES_ROLE_ARN", "ARGOSY_MODEL_CALLS"),
    }
    assert json.loads(environment["ARGOSY_SETTINGS"])["maxInstances"] == 7
    assert environment["AWS_ENDPOINT_URL"] == sky.aws.inner_url


def test_the_other_services_are_motos(sky: Cloud) -> None:
    assert sky.clients("sts").get_caller_identity()["Account"] == "123456789012"


def _admin(sky: Cloud, path: str, body: dict[str, Any]) -> requests.Response:
    return send("POST", f"{sky.aws.endpoint_url}/argosy/{path}", "argosy", json.dumps(body).encode())


def test_health_says_where_it_is(sky: Cloud) -> None:
    found = requests.get(f"{sky.aws.endpoint_url}/argosy/health", timeout=60).json()
    assert found == {"status": "ok", "endpoint": sky.aws.endpoint_url, "region": "us-east-1"}


def test_interruptions_and_recommendations_reach_the_queue(sky: Cloud) -> None:
    sky.buy("c5.large")
    found = sky.clients("ec2").describe_instances(Filters=[{"Name": "instance-type", "Values": ["c5.large"]}])
    name = found["Reservations"][0]["Instances"][0]["InstanceId"]
    assert _admin(sky, "rebalance", {"instanceId": name}).ok
    assert _admin(sky, "interrupt", {"instanceId": name, "noticeS": 60}).ok
    seen: set[str] = set()
    wanted = {"EC2 Instance Rebalance Recommendation", "EC2 Spot Instance Interruption Warning"}

    def both_were_seen() -> bool:
        seen.update(event["detail-type"] for event in sky.events())
        return wanted <= seen

    until(both_were_seen)


def test_admin_requests_about_nothing_are_refused(sky: Cloud) -> None:
    assert _admin(sky, "interrupt", {"instanceId": "i-00000000000000000"}).status_code == 404
    assert _admin(sky, "interrupt", {}).status_code == 400


def test_a_pool_that_is_short_delivers_nothing_until_it_is_not(sky: Cloud) -> None:
    assert _admin(sky, "shortage", {"pool": "c5.4xlarge/us-east-1b", "available": 0}).json()["available"] == 0
    ec2, fleet = sky.clients("ec2"), sky.fleet("c5.4xlarge/us-east-1b")
    target = {"TotalTargetCapacity": 1, "SpotTargetCapacity": 1}
    ec2.modify_fleet(FleetId=fleet, TargetCapacitySpecification=target)
    until(lambda: ec2.describe_fleets(FleetIds=[fleet])["Fleets"][0]["ActivityStatus"] == "error")
    assert _admin(sky, "shortage", {"pool": "c5.4xlarge/us-east-1b", "available": None}).ok
    ec2.modify_fleet(FleetId=fleet, TargetCapacitySpecification={"TotalTargetCapacity": 2, "SpotTargetCapacity": 2})
    until(lambda: len(ec2.describe_fleet_instances(FleetId=fleet)["ActiveInstances"]) == 2)


def test_the_controllers_process_can_be_killed_and_comes_back(sky: Cloud) -> None:
    client = sky.clients("lambda")

    def pid() -> int:
        return int(json.load(client.invoke(FunctionName="argosy-controller")["Payload"])["pid"])

    before = pid()
    assert _admin(sky, "kill-controller", {}).json() == {"pids": [before]}
    assert until(pid) != before


def test_an_unknown_function_is_refused(sky: Cloud) -> None:
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        sky.clients("lambda").invoke(FunctionName="argosy-other")
