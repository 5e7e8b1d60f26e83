"""How do containers run here? As processes of this machine, or under podman or Docker."""
