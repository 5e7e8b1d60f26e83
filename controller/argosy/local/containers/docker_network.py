"""The network through which Docker's containers reach one port of this machine's loopback interface, and no other.

They share a network of local mode's own, whose bridge has an address on this machine. The embedded AWS listens at that
address too, for connections from that network only, because any container of this machine could reach it. Containers of
this network cannot reach each other.
"""

from __future__ import annotations

import ipaddress
import socket
import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

LOOPBACK = "127.0.0.1"
APART = "com.docker.network.bridge.enable_icc=false"  # containers cannot reach each other
_ADDRESSES = "{{range .IPAM.Config}}{{.Gateway}} {{.Subnet}} {{end}}"


class DockerNetwork:
    """Made with Docker's command, and removed by `close`. Raises OSError if its address is not on this machine (Docker
    Desktop,
    Docker without root), or if Docker refuses.
    """

    def __init__(self, engine: str, port: int, serve: Callable[[socket.socket], Callable[[], None]]) -> None:
        """serve: as in `engine_run.Door`."""
        self._engine, self.name = engine, f"argosy-{port}"
        self._ask("network", "rm", self.name)  # of a local mode on this port that was killed
        self._must("network", "create", "--driver", "bridge", "--opt", APART, self.name)
        with ExitStack() as undo:
            undo.callback(self._ask, "network", "rm", self.name)
            self.gateway, subnet = self._address()
            listener = undo.enter_context(_SubnetListener(subnet))
            _listen(listener, self.gateway, port)
            self._close_listener = serve(listener)
            undo.pop_all()

    def close(self) -> None:
        self._close_listener()
        self._ask("network", "rm", self.name)

    def told(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment of a container, with the endpoint as seen from there."""
        return {
            name: value.replace(LOOPBACK, self.gateway) if _names_the_endpoint(name) else value
            for name, value in environment.items()
        }

    def _address(self) -> tuple[str, ipaddress.IPv4Network]:
        """The gateway's, and its subnet."""
        words = self._must("network", "inspect", "--format", _ADDRESSES, self.name).split()
        addresses = [pair for pair in zip(words[::2], words[1::2], strict=False) if ":" not in pair[0]]
        if not addresses:
            raise OSError(f"{self.name} has no IPv4 gateway")
        gateway, subnet = addresses[0]
        try:
            return gateway, ipaddress.IPv4Network(subnet)
        except ValueError as fault:
            raise OSError(f"{self.name} has no IPv4 subnet: {fault}") from fault

    def _must(self, *arguments: str) -> str:
        done = self._ask(*arguments)
        if done.returncode:
            raise OSError(f"{self._engine} network: {done.stderr.strip() or f'exit code {done.returncode}'}")
        return done.stdout

    def _ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [self._engine, *arguments]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


class _SubnetListener(socket.socket):
    """A listener that closes every connection from elsewhere."""

    def __init__(self, subnet: ipaddress.IPv4Network) -> None:
        super().__init__(socket.AF_INET, socket.SOCK_STREAM)
        self._subnet = subnet

    def accept(self) -> tuple[socket.socket, Any]:
        while True:
            connection, address = super().accept()
            if ipaddress.IPv4Address(address[0]) in self._subnet:
                return connection, address
            connection.close()


def _listen(listener: socket.socket, gateway: str, port: int) -> None:
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((gateway, port))
        listener.listen()
    except OSError as fault:
        why = "containers of Docker Desktop and rootless Docker cannot be isolated here: use podman"
        raise OSError(
            f"the address {gateway} of Docker's bridge is not on this machine ({fault.strerror}): {why}"
        ) from fault


def _names_the_endpoint(variable: str) -> bool:
    return variable.startswith("AWS_ENDPOINT_URL") or variable.upper() == "NO_PROXY"
