"""The user data of an instance: two parts that cloud-init runs at different times.

The first, a boothook, runs at every boot, before the network is declared online and so before Docker starts. It writes
the units that install the runner and only queues them: waiting for a unit could block the boot. The second, the boot
script, runs once and late. It starts the firewall, a unit that is up again after a reboot, and then configures the
agent, which starts after it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from argosy.catalogue.lookup import ECS_RESERVED_MEMORY_MIB, load_catalogue
from argosy.messages.health import XIDS
from argosy.settings.settings import Settings

USER_DATA = Path(__file__).parent / "user_data"
PARTS = """Content-Type: multipart/mixed; boundary="ARGOSY"
MIME-Version: 1.0

--ARGOSY
Content-Type: text/cloud-boothook

{boothook}
--ARGOSY
Content-Type: text/x-shellscript

{script}
--ARGOSY--
"""
_UNITS = "/etc/systemd/system"
OVERCOMMITS = ("g6f.large",)  # ECS needs vm.overcommit_memory=1 for its part of a GPU
_DROP_INS = {
    "docker": "[Service]\nExecStopPost=-/usr/local/sbin/argosy-boot undo\n",
    "ecs": "[Service]\nExecStartPre=-/usr/local/sbin/argosy-boot attributes\n",
}


def user_data(settings: Settings, name: str, runner: str) -> str:
    """The user data of a type's instances. runner: the arguments of `argosy-boot install`."""
    unit = _runner_unit(settings, name, runner)
    return PARTS.format(boothook=_boothook(unit, load_catalogue()[name].gpus), script=_script(settings, name))


def _runner_unit(settings: Settings, name: str, runner: str) -> str:
    """Without the step that uses the instance's own disks, if the settings say so."""
    lines = _file("argosy-runner.service").replace("RUNNER", runner).splitlines(keepends=True)
    gib = str(settings.policy().disk_gib_of(load_catalogue()[name]))
    kept = [line for line in lines if settings.images_on_instance_storage or "argosy-boot store" not in line]
    return "".join(line.replace("GIB", gib) for line in kept)


def _boothook(runner_unit: str, gpus: int) -> str:
    xids = _file("argosy-xids.service").replace("XIDS", " ".join(map(str, XIDS)))
    return "\n".join(
        [
            *_beginning("the boothook"),
            *_written("/usr/local/sbin/argosy-boot", _file("argosy-boot.sh"), mode="755"),
            *_written(f"{_UNITS}/argosy-runner.service", runner_unit),
            *_written(f"{_UNITS}/argosy-watch.service", _file("argosy-watch.service")),
            *(_written(f"{_UNITS}/argosy-xids.service", xids) if gpus else ()),
            *(
                line
                for unit, text in _DROP_INS.items()
                for line in (
                    f"mkdir -p {_UNITS}/{unit}.service.d",
                    *_written(f"{_UNITS}/{unit}.service.d/argosy.conf", text),
                )
            ),
            "systemctl daemon-reload",
            "systemctl start --no-block argosy-runner.service argosy-watch.service",
            *(["systemctl start --no-block argosy-xids.service"] if gpus else []),
        ]
    )


def _script(settings: Settings, name: str) -> str:
    """The firewall comes first: if it fails there is no agent configuration, so nothing joins. `argosy-boot attributes`
    adds the attribute that runs with a program of their own require."""
    policy = settings.policy()
    own = _attributes(policy.own_attributes_of(name))
    return "\n".join(
        [
            *_beginning("the boot script, so that this instance does not join,"),
            *_written("/usr/local/sbin/argosy-firewall", _file("argosy-firewall.sh"), mode="755"),
            *_written(f"{_UNITS}/argosy-firewall.service", _file("argosy-firewall.service")),
            "systemctl daemon-reload",
            "systemctl enable --now argosy-firewall.service",
            *(["sysctl --write vm.overcommit_memory=1"] if name in OVERCOMMITS else []),
            "mkdir -p /opt/argosy",
            *_written("/opt/argosy/attributes", _attributes(policy.attributes_of(name)) + own),
            f"cat >> /etc/ecs/ecs.config {_here(_agent(settings, name) + own)}",
            f"say the firewall is up and the agent is configured for the cluster {settings.prefix}",
        ]
    )


def _agent(settings: Settings, name: str) -> str:
    agent = {
        "ECS_CLUSTER": settings.prefix,
        "ECS_ENABLE_SPOT_INSTANCE_DRAINING": "true",
        "ECS_RESERVED_MEMORY": ECS_RESERVED_MEMORY_MIB,
        "ECS_CONTAINER_STOP_TIMEOUT": f"{settings.stop_timeout_s}s",
        "ECS_IMAGE_PULL_BEHAVIOR": "once",  # CUDA images have gigabytes; prefer-cached would end the clean-up of images
        "ECS_ENGINE_TASK_CLEANUP_WAIT_DURATION": "10m",  # 3 h by default: thousands of short tasks would fill the disk
        "ECS_IMAGE_CLEANUP_INTERVAL": "30m",
        "ECS_AWSVPC_BLOCK_IMDS": "true",
        "ECS_DISABLE_PRIVILEGED": "true",
        "ECS_ENABLE_AWSLOGS_EXECUTIONROLE_OVERRIDE": "true",
    }
    if load_catalogue()[name].gpus:
        agent["ECS_ENABLE_GPU_SUPPORT"] = "true"
    return "".join(f"{name}={value}\n" for name, value in agent.items())


def _attributes(given: Mapping[str, str]) -> str:
    return f"ECS_INSTANCE_ATTRIBUTES={json.dumps(given, separators=(',', ':'))}\n" if given else ""


def _beginning(part: str) -> list[str]:
    """A shell that ends at the first failure, which it reports on the console."""
    return [
        "#!/bin/bash",
        "set -euo pipefail",
        'say() { echo "argosy boot: $*" | tee -a /dev/console || true; }',
        f"trap 'say \"{part} failed at: $BASH_COMMAND\"' ERR",
    ]


def _file(name: str) -> str:
    """Without lines that are comments: a template has a copy for each type, and CloudFormation takes a megabyte."""
    lines = (USER_DATA / name).read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if line.startswith("#!") or not line.lstrip().startswith("#"))


def _written(path: str, text: str, mode: str | None = None) -> list[str]:
    """The lines that write a file on the instance."""
    return [f"cat > {path} {_here(text)}", *([f"chmod {mode} {path}"] if mode else [])]


def _here(text: str) -> str:
    """A here-document that the shell takes literally."""
    return f"<<'ARGOSY_END'\n{text}ARGOSY_END"
