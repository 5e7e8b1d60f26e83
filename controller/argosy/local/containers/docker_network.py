"""How do Docker's containers reach one port of this machine's loopback interface, and nothing else that listens there?

They share a network of local mode's own, whose bridge has an address on this machine. The embedded AWS listens at that
address too, for connections from that network only: any container of this machine could reach it. Containers of one
network cannot reach each other.
"""

from __future__ import annotations

import ipaddress
import socket
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

LOOPBACK = "127.0.0.1"
APART = "com.docker.network.bridge.enable_icc=false"  # containers cannot reach each other
_ADDRESSES = "{{range .IPAM.Config}}{{.Gateway}} {{.Subnet}} {{end}}"


class DockerNetwork:
    """Made with Docker's command, and there until it is closed. Raises OSError where its address is not on this machine
    (Docker Desktop, Docker without root), or Docker refuses."""

    def __init__(self, engine: str, port: int, serve: Callable[[socket.socket], Callable[[], None]]) -> None:
        """serve: as in `engine_run.Door`."""
        self._engine, self.name = engine, f"argosy-{port}"
        self._ask("network", "rm", self.name)  # of a local mode on this port that was killed
        self._must("network", "create", "--driver", "bridge", "--opt", APART, self.name)
        try:
            words = self._must("network", "inspect", "--format", _ADDRESSES, self.name).split()
            addresses = [pair for pair in zip(words[::2], words[1::2], strict=False) if ":" not in pair[0]]
            if not addresses:
                raise OSError(f"{self.name} has no IPv4 gateway")
            self.gateway, subnet = addresses[0]
            self._close_listener = serve(_listener(self.gateway, port, subnet))
        except OSError:
            self._ask("network", "rm", self.name)
            raise

    def close(self) -> None:
        self._close_listener()
        self._ask("network", "rm", self.name)

    def told(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment of a container, with the endpoint where it is from there."""
        return {
            name: value.replace(LOOPBACK, self.gateway) if _names_the_endpoint(name) else value
            for name, value in environment.items()
        }

    def _must(self, *arguments: str) -> str:
        done = self._ask(*arguments)
        if done.returncode:
            raise OSError(f"{self._engine} network: {done.stderr.strip() or f'exit code {done.returncode}'}")
        return done.stdout

    def _ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [self._engine, *arguments]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


class _FromSubnet(socket.socket):
    """A listener that hangs up on everybody from elsewhere."""

    subnet = ipaddress.IPv4Network("0.0.0.0/32")

    def accept(self) -> tuple[socket.socket, Any]:
        while True:
            connection, address = super().accept()
            if ipaddress.IPv4Address(address[0]) in self.subnet:
                return connection, address
            connection.close()


def _listener(gateway: str, port: int, subnet: str) -> socket.socket:
    listener = _FromSubnet(socket.AF_INET, socket.SOCK_STREAM)
    listener.subnet = ipaddress.IPv4Network(subnet)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((gateway, port))
        listener.listen()
    except OSError as fault:
        listener.close()
        why = "containers of Docker Desktop, and of Docker without root, cannot be kept apart here: use podman"
        raise OSError(
            f"the address {gateway} of Docker's bridge is not on this machine ({fault.strerror}): {why}"
        ) from fault
    return listener


def _names_the_endpoint(variable: str) -> bool:
    return variable.startswith("AWS_ENDPOINT_URL") or variable.upper() == "NO_PROXY"
