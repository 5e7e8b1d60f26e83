"""A stand-in for nvidia-smi with one GPU, in a folder of PATH."""

from __future__ import annotations

from pathlib import Path

USE = "37, 9216, 24576, 120.50, NVIDIA A10G"  # what `runner.task_use` asks for
SCRIPT = """\
case "$*" in
    *utilization.gpu*) echo '{use}' ;;
    *compute-apps*) {apps} ;;
    *) {listed} ;;
esac
"""


def install_nvidia_smi(folder: Path, *, use: str = USE, apps: str = ":", listed: str = ":", script: str = "") -> None:
    """use: the answer about the use of its GPUs; apps, listed: shell lines that print processes with their
    memory, and that answer anything else; script: in place of all."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script or SCRIPT.format(use=use, apps=apps, listed=listed)}")
    program.chmod(0o755)
