"""A stand-in for nvidia-cuda-mps-control: a daemon is a file among its pipes, which holds the GPUs that it shows."""

from __future__ import annotations

from pathlib import Path

CONTROL = """\
alive="$CUDA_MPS_PIPE_DIRECTORY/control"
if [ "$1" = -d ]; then
    [ ! -e "$alive" ] && printf '%s' "$CUDA_VISIBLE_DEVICES" > "$alive" && [ -d "$CUDA_MPS_LOG_DIRECTORY" ]
    exit
fi
read asked
[ -e "$alive" ] || exit 1
if [ "$asked" = quit ]; then /bin/rm "$alive"; fi
"""


def install_mps(folder: Path, script: str = CONTROL) -> None:
    """Into a folder of PATH."""
    program = folder / "nvidia-cuda-mps-control"
    program.write_text(f"#!/bin/sh\n{script}")
    program.chmod(0o755)
