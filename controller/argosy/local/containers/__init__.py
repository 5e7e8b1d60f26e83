"""Containers on this machine: as processes, or under podman or Docker."""
