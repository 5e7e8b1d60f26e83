"""The cells' network, launch templates and fleets: the pools to buy from, and that no deploy buys anything."""

from __future__ import annotations

import email
import hashlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from argosy.catalogue.lookup import ECS_RESERVED_MEMORY_MIB, load_catalogue
from argosy.settings.settings import OTHER_RESOURCES, Settings, load_settings
from stacks.boot import USER_DATA
from stacks.runner import NO_DIGEST, NOT_BUILT, Runner, deploys
from tests.stacks.templates import Template, text

pytestmark = pytest.mark.stacks

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


def test_there_is_one_fleet_for_every_named_type_and_zone(home: Template) -> None:
    pools = []
    for fleet in home.of_type("AWS::EC2::EC2Fleet").values():
        tags = {tag["Key"]: tag["Value"] for tag in fleet["TagSpecifications"][0]["Tags"]}
        (config,) = fleet["LaunchTemplateConfigs"]
        (override,) = config["Overrides"]
        zone = home.resources[override["SubnetId"]["Ref"]]["Properties"]["AvailabilityZone"]
        assert tags["argosy:pool"] == f"{override['InstanceType']}/{zone}"
        assert tags["argosy:stage"] == "main"
        pools.append((override["InstanceType"], zone))
    assert sorted(pools) == sorted((name, zone) for name in Settings().instance_types.all for zone in ZONES)
    assert any(name.startswith("c5.") for name, _ in pools)
    assert any(name.startswith("p3.") for name, _ in pools)


def test_no_stack_needs_more_resources_than_the_settings_count(home: Template, wide: dict[str, Template]) -> None:
    """Settings refuse as many types as would not fit beside these."""
    for template in (home, *wide.values()):
        types = [each["Type"] for each in template.resources.values()]
        lists = [name for name in template.resources if name.startswith("CellFleets")]
        for_types = types.count("AWS::EC2::EC2Fleet") + len(lists) + types.count("AWS::EC2::LaunchTemplate")
        assert len(types) - for_types <= OTHER_RESOURCES


def test_fleets_exist_exactly_where_the_region_offers_the_type(home: Template) -> None:
    existing = {
        fleet["LaunchTemplateConfigs"][0]["Overrides"][0]["InstanceType"]
        for id, fleet in home.of_type("AWS::EC2::EC2Fleet").items()
        if home.exists(id)
    }
    settings = Settings()
    assert existing == set(settings.instance_types.all) & settings.offers("us-east-1")
    assert "p3.2xlarge" not in existing
    assert "p3dn.24xlarge" in existing


def test_no_deploy_ever_buys_ends_or_replaces_instances(home: Template) -> None:
    for fleet in home.of_type("AWS::EC2::EC2Fleet").values():
        target = fleet["TargetCapacitySpecification"]
        assert {value for key, value in target.items() if key.endswith("TargetCapacity")} == {0}
        assert fleet["Type"] == "maintain"
        assert fleet["ExcessCapacityTerminationPolicy"] == "no-termination"
        assert fleet["LaunchTemplateConfigs"][0]["LaunchTemplateSpecification"]["Version"] == "1"


def test_each_type_has_its_own_launch_template_so_that_no_change_to_one_replaces_a_fleet(home: Template) -> None:
    used: dict[str, set[str]] = {}
    for fleet in home.of_type("AWS::EC2::EC2Fleet").values():
        (config,) = fleet["LaunchTemplateConfigs"]
        template = config["LaunchTemplateSpecification"]["LaunchTemplateId"]["Ref"]
        used.setdefault(template, set()).add(config["Overrides"][0]["InstanceType"])
    assert set(used) == set(home.of_type("AWS::EC2::LaunchTemplate"))
    assert all(len(types) == 1 for types in used.values())


def test_a_type_has_the_disk_that_its_owner_has_set(wide: dict[str, Template]) -> None:
    sizes = {}
    for template in wide["argosy-dev"].of_type("AWS::EC2::LaunchTemplate").values():
        (name,) = [t["Value"] for t in template["TagSpecifications"][0]["Tags"] if t["Key"] == "Name"]
        sizes[name] = template["LaunchTemplateData"]["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"]
    assert sizes == {"argosy-dev c5.large": 60, "argosy-dev p3.2xlarge": 150, "argosy-dev g5.xlarge": 300}


def test_a_volume_has_a_throughput_that_fits_its_type(wide: dict[str, Template]) -> None:
    """The ledger charges for it: tests/unit/catalogue/test_overheads.py."""
    given = {}
    for template in wide["argosy-dev"].of_type("AWS::EC2::LaunchTemplate").values():
        (name,) = [t["Value"] for t in template["TagSpecifications"][0]["Tags"] if t["Key"] == "Name"]
        given[name] = template["LaunchTemplateData"]["BlockDeviceMappings"][0]["Ebs"]["Throughput"]
    assert given == {"argosy-dev c5.large": 125, "argosy-dev p3.2xlarge": 250, "argosy-dev g5.xlarge": 250}


def test_a_rate_is_bought_for_the_volumes_of_the_types_that_the_owner_has_named(wide: dict[str, Template]) -> None:
    bought = {}
    for template in wide["argosy-dev"].of_type("AWS::EC2::LaunchTemplate").values():
        (name,) = [t["Value"] for t in template["TagSpecifications"][0]["Tags"] if t["Key"] == "Name"]
        bought[name] = template["LaunchTemplateData"]["BlockDeviceMappings"][0]["Ebs"].get("VolumeInitializationRate")
    assert bought == {"argosy-dev c5.large": None, "argosy-dev p3.2xlarge": None, "argosy-dev g5.xlarge": 300}


def test_gpu_types_start_from_the_gpu_image_and_others_from_the_plain_one(home: Template) -> None:
    for fleet in home.of_type("AWS::EC2::EC2Fleet").values():
        (config,) = fleet["LaunchTemplateConfigs"]
        template = home.resources[config["LaunchTemplateSpecification"]["LaunchTemplateId"]["Ref"]]["Properties"]
        parameter = home.body["Parameters"][template["LaunchTemplateData"]["ImageId"]["Ref"]]
        gpus = load_catalogue()[config["Overrides"][0]["InstanceType"]].gpus
        path = "amazon-linux-2023/gpu/" if gpus else "amazon-linux-2023/"
        assert parameter["Default"] == f"/aws/service/ecs/optimized-ami/{path}recommended/image_id"
        assert parameter["Type"] == "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>"


def test_a_pinned_image_is_used_as_it_is(wide: dict[str, Template]) -> None:
    images = [
        t["LaunchTemplateData"]["ImageId"] for t in wide["argosy-dev"].of_type("AWS::EC2::LaunchTemplate").values()
    ]
    assert "ami-0123456789abcdef0" in images


def test_instances_keep_their_credentials_from_tasks(home: Template) -> None:
    for template in home.of_type("AWS::EC2::LaunchTemplate").values():
        options = template["LaunchTemplateData"]["MetadataOptions"]
        assert (options["HttpTokens"], options["HttpPutResponseHopLimit"]) == ("required", 1)
        assert options["HttpProtocolIpv6"] == "disabled"
        boothook, script = parts(template)
        for each in (boothook, script):
            assert each.startswith("#!/bin/bash\nset -euo pipefail\n")
        assert script.index("systemctl enable --now argosy-firewall.service") < script.index("ECS_CLUSTER=")


def without_comments(script: Path) -> str:
    first, *lines = script.read_text().splitlines(keepends=True)
    return "".join([first, *(line for line in lines if not line.strip().startswith("#"))])


def test_the_boot_script_writes_the_firewall_as_it_is_tested_and_starts_it_at_every_boot(
    home: Template, tmp_path: Path
) -> None:
    """A real shell executes the script's here-documents, in a folder in place of the root."""
    booted(next(iter(home.of_type("AWS::EC2::LaunchTemplate").values())), tmp_path)
    written = tmp_path / "usr/local/sbin/argosy-firewall"
    assert written.read_text() == without_comments(USER_DATA / "argosy-firewall.sh")
    assert written.stat().st_mode & 0o777 == 0o755
    unit = (tmp_path / "etc/systemd/system/argosy-firewall.service").read_text()
    assert unit == (USER_DATA / "argosy-firewall.service").read_text()
    assert {"Before=docker.service ecs.service", "RequiredBy=ecs.service"} <= set(unit.splitlines())
    assert "ECS_CLUSTER=argosy" in (tmp_path / "etc/ecs/ecs.config").read_text().splitlines()


def parts(template: dict[str, Any]) -> tuple[str, str]:
    """The boothook and the boot script, as cloud-init takes them from the user data."""
    read = email.message_from_string(text(template["LaunchTemplateData"]["UserData"]))
    assert [each.get_content_type() for each in read.walk()] == [
        "multipart/mixed",
        "text/cloud-boothook",
        "text/x-shellscript",
    ]
    boothook, script = (str(each.get_payload()) for each in read.walk() if not each.is_multipart())
    return boothook, script


def booted(template: dict[str, Any], root: Path) -> None:
    """Both parts of the user data are carried out below `root`."""
    folders = ("usr/local/sbin", "etc/systemd/system", "etc/ecs", "opt/argosy")
    for folder in folders:
        (root / folder).mkdir(parents=True)
    for part in parts(template):
        script = part
        for folder in folders:
            script = re.sub(
                rf"^(.*(?:cat >+|chmod 755|mkdir -p) )/{folder}", rf"\g<1>{root}/{folder}", script, flags=re.M
            )
        subprocess.run(["bash", "-c", f"systemctl() {{ :; }}; tee() {{ cat; }}\n{script}"], check=True)


def test_the_boothook_writes_what_the_boot_order_is_tested_with(home: Template, tmp_path: Path) -> None:
    """tests/unit/stacks/test_boot_order.py boots it under a real systemd."""
    booted(next(iter(home.of_type("AWS::EC2::LaunchTemplate").values())), tmp_path)
    installer = tmp_path / "usr/local/sbin/argosy-boot"
    assert installer.read_text() == without_comments(USER_DATA / "argosy-boot.sh")
    assert installer.stat().st_mode & 0o777 == 0o755
    unit = (tmp_path / "etc/systemd/system/argosy-runner.service").read_text()
    assert "Before=docker.service ecs.service" in unit.splitlines()
    assert "argosy-boot attributes" in (tmp_path / "etc/systemd/system/ecs.service.d/argosy.conf").read_text()


def test_the_agents_attributes_wait_for_what_docker_says(home: Template, tmp_path: Path) -> None:
    booted(next(iter(home.of_type("AWS::EC2::LaunchTemplate").values())), tmp_path)
    lines = (tmp_path / "etc/ecs/ecs.config").read_text().splitlines()
    assert [line for line in lines if line.startswith("ECS_INSTANCE_ATTRIBUTES=")] == []
    attributes = (tmp_path / "opt/argosy/attributes").read_text().splitlines()
    assert attributes == ['ECS_INSTANCE_ATTRIBUTES={"argosy.runner":"1"}']


def test_a_type_fetches_the_runner_of_its_architecture_by_its_digest(home: Template) -> None:
    """With the argument that its template gives; the instances' role may read that object and no other."""
    (role,) = [id for id, each in home.of_type("AWS::IAM::Role").items() if "InstanceRole" in id]
    readable = [r for each in home.role_statements(role) if "s3:GetObject" in each.actions for r in each.resources]
    fetched = set()
    for template in home.of_type("AWS::EC2::LaunchTemplate").values():
        boothook, _ = parts(template)
        (found,) = re.findall(r'^ExecStart=\S*argosy-boot install "(\S+)" us-east-1 (\S+)$', boothook, re.M)
        assert found[1] == NO_DIGEST  # tests' templates are written without a built runner
        fetched.add(found[0].replace("https://s3.us-east-1.<URLSuffix>/", "arn:aws:s3:::"))
    assert fetched == set(readable)
    assert all("/" in each and "*" not in each for each in readable)


@pytest.mark.parametrize("stack", ["argosy-dev", "argosy-dev-eu-west-1"])
def test_every_cell_has_the_runner_among_its_own_regions_assets(wide: dict[str, Template], stack: str) -> None:
    region = "eu-west-1" if stack.endswith("eu-west-1") else "us-east-1"
    for template in wide[stack].of_type("AWS::EC2::LaunchTemplate").values():
        assert f'"https://s3.{region}.<URLSuffix>/' in text(template["LaunchTemplateData"]["UserData"])


def runner_of(folder: Path, built: Path, *, dependencies: bool = True) -> tuple[Runner, list[dict[str, Any]]]:
    """The runner of a stack, and the sources of its assets."""
    app = cdk.App(outdir=str(folder / "out"))
    stack = cdk.Stack(app, "Stack", env=cdk.Environment(region="us-east-1"))
    runner = Runner(stack, "Runner", settings=Settings(), dependencies=dependencies, folder=built)
    assembly = app.synth()
    files = json.loads((Path(assembly.directory) / "Stack.assets.json").read_text())["files"].values()
    return runner, [each["source"] for each in files if not str(each["source"].get("path")).endswith(".template.json")]


def test_a_template_needs_no_built_runner_and_deploying_it_says_what_to_type(tmp_path: Path) -> None:
    """So that `cdk ls`, `synth`, `diff` and `destroy` work in a fresh checkout (F1)."""
    runner, [source] = runner_of(tmp_path, tmp_path / "none")
    assert runner.of["x86_64"].sha256 == NO_DIGEST
    done = subprocess.run(source["executable"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, NOT_BUILT + "\n")
    assert "`make runner`" in NOT_BUILT


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("node /x/node_modules/.bin/cdk deploy --all", True),
        ("node /x/node_modules/aws-cdk/bin/cdk.js --profile me deploy", True),
        ("node /x/node_modules/.bin/cdk diff", False),
        ("bash deploy.sh", False),
        ("npm exec deploy cdk ls", False),
    ],
)
def test_the_runner_is_built_under_commands_of_the_cdk_that_publish_it(line: str, expected: bool) -> None:
    assert deploys([["sh", "-c", "exec"], line.split()]) is expected


def test_a_built_runner_is_published_and_named_by_its_digest(tmp_path: Path) -> None:
    file = tmp_path / "runner" / "amd64" / "argosy-runner"
    file.parent.mkdir(parents=True)
    file.write_text("a runner")
    runner, [source] = runner_of(tmp_path, tmp_path / "runner")
    assert runner.of["x86_64"].sha256 == hashlib.sha256(b"a runner").hexdigest()
    assert (tmp_path / "out" / source["path"]).read_text() == "a runner"


def test_the_boot_script_is_as_small_as_ec2_takes_it(wide: dict[str, Template]) -> None:
    for template in wide["argosy-dev"].of_type("AWS::EC2::LaunchTemplate").values():
        assert len(text(template["LaunchTemplateData"]["UserData"]).encode()) < 16_384


def test_the_agents_settings(home: Template) -> None:
    for template in home.of_type("AWS::EC2::LaunchTemplate").values():
        lines = text(template["LaunchTemplateData"]["UserData"]).splitlines()
        assert "ECS_CLUSTER=argosy" in lines
        assert "ECS_ENABLE_SPOT_INSTANCE_DRAINING=true" in lines
        assert "ECS_DISABLE_PRIVILEGED=true" in lines
        assert "ECS_IMAGE_PULL_BEHAVIOR=once" in lines  # prefer-cached switches the agent's clean-up of images off
        assert f"ECS_RESERVED_MEMORY={ECS_RESERVED_MEMORY_MIB}" in lines
        assert f"ECS_CONTAINER_STOP_TIMEOUT={Settings().stop_timeout_s}s" in lines


def test_instances_and_their_disks_carry_the_ownership_tag_and_go_together(home: Template) -> None:
    for template in home.of_type("AWS::EC2::LaunchTemplate").values():
        data = template["LaunchTemplateData"]
        tagged = {spec["ResourceType"] for spec in data["TagSpecifications"] if _has_stage(spec["Tags"])}
        assert tagged == {"instance", "volume"}
        assert _has_stage(template["TagSpecifications"][0]["Tags"])
        (disk,) = data["BlockDeviceMappings"]
        assert disk["Ebs"]["Encrypted"]
        assert disk["Ebs"]["DeleteOnTermination"]
        assert disk["Ebs"]["VolumeType"] == "gp3"


def test_nothing_is_tagged_that_the_fleets_role_may_not_tag(home: Template) -> None:
    """AWS's managed policy AWSEC2FleetServiceRolePolicy (version 3) allows ec2:CreateTags on instances, spot requests
    and volumes; EC2 refuses the whole launch where a template names anything else."""
    allowed = {"instance", "spot-instances-request", "volume"}
    for template in home.of_type("AWS::EC2::LaunchTemplate").values():
        named = {spec["ResourceType"] for spec in template["LaunchTemplateData"]["TagSpecifications"]}
        assert named <= allowed


def _has_stage(tags: list[dict[str, str]]) -> bool:
    return {"Key": "argosy:stage", "Value": "main"} in tags


def test_three_public_zones_with_gateway_endpoints_and_no_nat(home: Template) -> None:
    zones = [subnet["AvailabilityZone"] for subnet in home.of_type("AWS::EC2::Subnet").values()]
    assert sorted(zones) == list(ZONES)
    assert not home.of_type("AWS::EC2::NatGateway")
    services = [text(e["ServiceName"]) for e in home.of_type("AWS::EC2::VPCEndpoint").values()]
    assert sorted(name.rpartition(".")[2] for name in services) == ["dynamodb", "s3"]
    assert {e["VpcEndpointType"] for e in home.of_type("AWS::EC2::VPCEndpoint").values()} == {"Gateway"}


def test_nothing_comes_in(home: Template) -> None:
    assert not home.of_type("AWS::EC2::SecurityGroupIngress")
    assert not [g for g in home.of_type("AWS::EC2::SecurityGroup").values() if g.get("SecurityGroupIngress")]


def test_instances_reach_each_other_by_tcp_where_the_owner_allows_gangs(tmp_path: Path) -> None:
    import aws_cdk as cdk

    from stacks.network import Network

    app = cdk.App(outdir=str(tmp_path))
    Network(cdk.Stack(app, "open"), "Network", settings=load_settings({"gangs": True}), region="us-east-1")
    made = app.synth().get_stack_by_name("open").template["Resources"].values()
    [rule] = [each["Properties"] for each in made if each["Type"] == "AWS::EC2::SecurityGroupIngress"]
    assert rule["GroupId"] == rule["SourceSecurityGroupId"]
    assert (rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) == ("tcp", 0, 65535)


def test_private_subnets_have_no_way_out_but_endpoints(closed: Template) -> None:
    assert not closed.of_type("AWS::EC2::InternetGateway")
    assert not closed.of_type("AWS::EC2::NatGateway")
    assert not [s for s in closed.of_type("AWS::EC2::Subnet").values() if s.get("MapPublicIpOnLaunch")]
    services = {
        text(e["ServiceName"]).rpartition("us-east-1.")[2] for e in closed.of_type("AWS::EC2::VPCEndpoint").values()
    }
    assert {"ecs", "ecs-agent", "ecs-telemetry", "ecr.api", "ecr.dkr", "logs"} <= services
    for rule in closed.of_type("AWS::EC2::SecurityGroupIngress").values():
        assert (rule["FromPort"], rule["ToPort"]) == (443, 443)
        assert "CidrIp" not in rule


@pytest.mark.parametrize(
    ("allowed", "reached"),
    [({}, set()), ({"allowExec": True}, {"ssmmessages"}), ({"allowSsm": True}, {"ssm", "ssmmessages"})],
)
def test_private_subnets_reach_the_sessions_that_the_owner_allows(
    allowed: dict[str, bool], reached: set[str], tmp_path: Path
) -> None:
    import aws_cdk as cdk

    from stacks.network import Network

    app = cdk.App(outdir=str(tmp_path))
    settings = load_settings({"subnets": "private", **allowed})
    Network(cdk.Stack(app, "closed"), "Network", settings=settings, region="us-east-1")
    endpoints = app.synth().get_stack_by_name("closed").template["Resources"].values()
    services = [text(e["Properties"]["ServiceName"]) for e in endpoints if e["Type"] == "AWS::EC2::VPCEndpoint"]
    assert {name.rpartition(".")[2] for name in services if ".ssm" in name} == reached


def test_instances_in_private_subnets_call_no_service_that_has_no_endpoint_there(closed: Template) -> None:
    """The agent calls EC2's DescribeTags before it registers, and gives up on an error, if it is configured to
    propagate tags from the instance (aws/amazon-ecs-agent, agent/app/agent.go); there is no endpoint of EC2."""
    for template in closed.of_type("AWS::EC2::LaunchTemplate").values():
        assert "PROPAGATE_TAGS" not in text(template["LaunchTemplateData"]["UserData"])


def test_no_definition_ships_whose_image_private_subnets_cannot_pull(closed: Template) -> None:
    assert not closed.of_type("AWS::ECS::TaskDefinition")


def test_with_nat_instances_leave_through_one_gateway_and_have_no_public_address(wide: dict[str, Template]) -> None:
    for name in ("argosy-dev", "argosy-dev-eu-west-1"):
        template = wide[name]
        assert len(template.of_type("AWS::EC2::NatGateway")) == 1
        public = {id for id, s in template.of_type("AWS::EC2::Subnet").items() if s.get("MapPublicIpOnLaunch")}
        used = {
            fleet["LaunchTemplateConfigs"][0]["Overrides"][0]["SubnetId"]["Ref"]
            for fleet in template.of_type("AWS::EC2::EC2Fleet").values()
        }
        assert len(used) == 3
        assert not used & public


def test_an_existing_vpc_is_used_and_nothing_is_made_in_it_but_a_security_group(guest: Template) -> None:
    for name in ("VPC", "Subnet", "InternetGateway", "RouteTable", "VPCEndpoint", "NatGateway"):
        assert not guest.of_type(f"AWS::EC2::{name}")
    assert guest.one("AWS::EC2::SecurityGroup")["VpcId"] == "vpc-0123456789abcdef0"
    places = {}
    for fleet in guest.of_type("AWS::EC2::EC2Fleet").values():
        pool = next(tag["Value"] for tag in fleet["TagSpecifications"][0]["Tags"] if tag["Key"] == "argosy:pool")
        places[pool.partition("/")[2]] = fleet["LaunchTemplateConfigs"][0]["Overrides"][0]["SubnetId"]
    assert places == {"us-east-1b": "subnet-0123456789abcdef0", "us-east-1d": "subnet-0123456789abcdef1"}
    assert guest.body["Outputs"]["VpcId"]["Value"] == "vpc-0123456789abcdef0"


def test_task_definitions_for_cpu_and_for_one_four_and_eight_gpus(home: Template) -> None:
    found = {}
    for definition in home.of_type("AWS::ECS::TaskDefinition").values():
        (container,) = definition["ContainerDefinitions"]
        needs = [r["Value"] for r in container.get("ResourceRequirements", []) if r["Type"] == "GPU"]
        found[definition["Family"]] = (needs, container["Memory"])
        assert container["Name"] == "main"
        assert container["ReadonlyRootFilesystem"]
        assert container["LinuxParameters"]["Capabilities"]["Drop"] == ["ALL"]
        has_gpus = "ResourceRequirements" in container
        assert container["LinuxParameters"].get("SharedMemorySize") == (container["Memory"] // 2 if has_gpus else None)
        assert not container.get("Privileged")
        assert definition["NetworkMode"] == "bridge"
    assert found == {
        "argosy-cpu": ([], 6144),
        "argosy-1-gpu": (["1"], 6144),
        "argosy-4-gpu": (["4"], 8192),
        "argosy-8-gpu": (["8"], 131_072),
    }


def test_the_warning_names_what_is_not_offered(home: Template) -> None:
    report = json.loads((home.folder / "validation-report.json").read_text())
    found = [v["description"] for plugin in report["pluginReports"] for v in plugin["violations"]]
    assert [line for line in found if "does not offer p3.2xlarge, p3.8xlarge, p3.16xlarge" in line]


def test_the_agent_of_a_type_registers_the_attributes_that_its_owner_gives(wide: dict[str, Template]) -> None:
    """As JSON, the form of the agent's README: https://github.com/aws/amazon-ecs-agent#environment-variables.

    With the runner, without it, and until Docker has told which."""
    given = {}
    for template in wide["argosy-dev"].of_type("AWS::EC2::LaunchTemplate").values():
        script = text(template["LaunchTemplateData"]["UserData"])
        lines = [line for line in script.splitlines() if line.startswith("ECS_INSTANCE_ATTRIBUTES=")]
        (name,) = {
            tag["Value"].split()[-1]
            for each in template["LaunchTemplateData"]["TagSpecifications"]
            for tag in each["Tags"]
            if tag["Key"] == "Name"
        }
        given[name] = [json.loads(line.partition("=")[2]) for line in lines]
    runner, own = {"argosy.runner": "1"}, {"team": "vision", "tier": "a 1"}
    assert given == {"c5.large": [runner], "p3.2xlarge": [runner], "g5.xlarge": [own | runner, own, own]}
