"""How do the names of a deployment begin? Every command that reads needs this, and not all of the settings."""

from __future__ import annotations

STAGE = r"^[a-z][a-z0-9-]{0,15}$"
MAIN = "main"


def prefix_of_stage(stage: str) -> str:
    """How every name in AWS begins: "argosy", or "argosy-<stage>" for a stage other than main."""
    return "argosy" if stage == MAIN else f"argosy-{stage}"
