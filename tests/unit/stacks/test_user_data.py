"""The addresses that the boot script's firewall lets tasks reach: the shipped file, run in network namespaces.

A container host, a bridge with a task on it, and the world behind the host's interface, where the instance metadata
service answers. The kernel and iptables are real; Docker and the agent are only their bridges and ports.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

USER_DATA = Path(__file__).resolve().parents[3] / "stacks" / "user_data"
LISTEN = """
import socket, sys
listening = []
for where in sys.argv[1:]:
    host, port = where.rsplit(":", 1)
    each = socket.create_server((host, int(port)))
    listening.append(each)
print("ready", flush=True)
import selectors
waiting = selectors.DefaultSelector()
for each in listening:
    waiting.register(each, selectors.EVENT_READ)
while True:
    for key, _ in waiting.select():
        key.fileobj.accept()[0].close()
"""
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=float(sys.argv[3]))"
# ecs-init, `ecs-init/exec/iptables/iptables.go` of aws/amazon-ecs-agent: how a task reaches its own credentials.
CREDENTIALS = "PREROUTING -p tcp -d 169.254.170.2 --dport 80 -j DNAT --to-destination 127.0.0.1:51679"
METADATA, TASK_CREDENTIALS = ("169.254.169.254", 80), ("169.254.170.2", 80)
BRIDGES = {"docker0": "172.17.0", "br-0123456789ab": "172.18.0"}


def missing() -> str:
    """Why namespaces cannot be made here; empty if they can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "network namespaces need root on Linux"
    lacking = [name for name in ("ip", "iptables", "ip6tables", "sysctl") if shutil.which(name) is None]
    if lacking:
        return f"{', '.join(lacking)} not installed"
    probe = f"argosy-probe-{uuid4().hex[:8]}"
    allowed = subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False).returncode == 0
    subprocess.run(["ip", "netns", "delete", probe], capture_output=True, check=False)
    return "" if allowed else "this machine does not allow network namespaces"


pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing() or "-")]


@dataclass(frozen=True)
class Network:
    """Names of namespaces: `host`, `world` behind it, and `tasks`, one on each of the host's bridges."""

    host: str
    world: str
    tasks: dict[str, str]

    def run(self, namespace: str, *command: str) -> subprocess.CompletedProcess[str]:
        inside = ["ip", "netns", "exec", namespace, *command]
        return subprocess.run(inside, capture_output=True, text=True, check=False, timeout=30)

    def reaches(self, namespace: str, where: tuple[str, int], patience_s: float = 5.0) -> bool:
        """Whether a TCP connection is accepted. Where it is expected not to be, a second is enough."""
        host, port = where
        return self.run(namespace, sys.executable, "-c", CONNECT, host, str(port), str(patience_s)).returncode == 0

    def start_firewall(self) -> None:
        started = self.run(self.host, "bash", str(USER_DATA / "argosy-firewall.sh"))
        assert started.returncode == 0, started.stderr


@pytest.fixture
def network() -> Iterator[Network]:
    mark = uuid4().hex[:6]
    host, world = f"argosy-host-{mark}", f"argosy-world-{mark}"
    network = Network(host, world, {bridge: f"argosy-task{n}-{mark}" for n, bridge in enumerate(BRIDGES)})
    namespaces = [host, world, *network.tasks.values()]
    listeners: list[subprocess.Popen[str]] = []
    try:
        for name in namespaces:
            _ip(f"netns add {name}")
            _ip(f"-n {name} link set lo up")
        _connect(network)
        listeners += [
            _listen(host, "0.0.0.0:51678", "127.0.0.1:51679", "0.0.0.0:51680", "0.0.0.0:8080"),
            _listen(world, "169.254.169.254:80", "192.0.2.1:443", "192.0.2.1:51678"),
        ]
        yield network
    finally:
        for each in listeners:
            each.kill()
            each.wait()
            assert each.stdout is not None
            each.stdout.close()
        for name in namespaces:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def _ip(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True, capture_output=True, timeout=30)


def _connect(network: Network) -> None:
    host, world = network.host, network.world
    _ip(f"-n {host} link add ens5 type veth peer name eth0 netns {world}")
    _ip(f"-n {host} address add 192.0.2.2/24 dev ens5")
    _ip(f"-n {host} link set ens5 up")
    _ip(f"-n {world} address add 192.0.2.1/24 dev eth0")
    _ip(f"-n {world} address add 169.254.169.254/32 dev eth0")
    _ip(f"-n {world} link set eth0 up")
    _ip(f"-n {world} route add 172.16.0.0/12 via 192.0.2.2")
    _ip(f"-n {host} route add 169.254.169.254 via 192.0.2.1")
    for bridge, subnet in BRIDGES.items():
        task = network.tasks[bridge]
        _ip(f"-n {host} link add {bridge} type bridge")
        _ip(f"-n {host} address add {subnet}.1/24 dev {bridge}")
        _ip(f"-n {host} link set {bridge} up")
        _ip(f"-n {host} link add veth{subnet[4:6]} master {bridge} type veth peer name eth0 netns {task}")
        _ip(f"-n {host} link set veth{subnet[4:6]} up")
        _ip(f"-n {task} address add {subnet}.2/24 dev eth0")
        _ip(f"-n {task} link set eth0 up")
        _ip(f"-n {task} route add default via {subnet}.1")
    # What ECS's page on task roles asks of a host, and Docker of every host.
    for setting in ("net.ipv4.ip_forward=1", "net.ipv4.conf.all.route_localnet=1"):
        assert network.run(host, "sysctl", "-w", setting).returncode == 0
    assert network.run(host, "iptables", "-t", "nat", "-A", *CREDENTIALS.split()).returncode == 0


def _listen(namespace: str, *where: str) -> subprocess.Popen[str]:
    command = ["ip", "netns", "exec", namespace, sys.executable, "-c", LISTEN, *where]
    listener = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert listener.stdout is not None
    assert listener.stdout.readline() == "ready\n"
    return listener


def test_without_the_firewall_a_task_reaches_credentials_and_neighbours(network: Network) -> None:
    """The control: the addresses closed below are open here, so the namespaces themselves close nothing."""
    for bridge, task in network.tasks.items():
        gateway = f"{BRIDGES[bridge]}.1"
        for where in (METADATA, (gateway, 51678), (gateway, 51680), TASK_CREDENTIALS, ("192.0.2.1", 443)):
            assert network.reaches(task, where), (bridge, where)


def test_a_task_on_any_bridge_reaches_no_credentials_but_its_own(network: Network) -> None:
    network.start_firewall()
    for bridge, task in network.tasks.items():
        addresses = (f"{BRIDGES[bridge]}.1", "192.0.2.2")  # of the instance: on the bridge, and in the VPC
        closed = [METADATA, *((address, port) for address in addresses for port in (51678, 51679, 51680))]
        assert [where for where in closed if network.reaches(task, where, patience_s=0.5)] == [], bridge
        assert network.reaches(task, TASK_CREDENTIALS), bridge
        assert network.reaches(task, ("192.0.2.1", 443)), bridge
        assert network.reaches(task, (addresses[0], 8080)), bridge  # only the agent's ports are closed
        assert network.reaches(task, ("192.0.2.1", 51678)), bridge  # and only this instance's


def test_the_instance_itself_reaches_what_its_agent_needs(network: Network) -> None:
    network.start_firewall()
    for where in (METADATA, ("127.0.0.1", 51678), ("127.0.0.1", 51679), ("192.0.2.2", 51678)):
        assert network.reaches(network.host, where), where


def test_starting_it_again_changes_nothing(network: Network) -> None:
    network.start_firewall()
    once = network.run(network.host, "iptables", "-t", "raw", "-S").stdout
    network.start_firewall()
    assert network.run(network.host, "iptables", "-t", "raw", "-S").stdout == once
    assert once.count("-j ARGOSY") == 1
