"""The user data of an instance that becomes an AMI, and the lines that it writes on its console.

It replaces that of a container instance: this one never joins a cluster. The work is a separate unit (systemd-run), so
that it does not matter whether Docker starts before or after cloud-init's end, and its files are in /run, so that the
AMI holds none of them. A second shutdown bounds the cost of an instance that hangs.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

MOST_MINUTES = 45  # until the instance stops by itself
SCRIPT = Path(__file__).with_name("argosy-bake.sh")
_HOLDS = re.compile(r"argosy bake: holds \S+ as (sha256:[0-9a-f]{64})")
_LINE = re.compile(r"argosy bake: [^\r\n]*")
LINES_SHOWN = 5


def user_data(image: str) -> str:
    return f"""#!/bin/bash
systemctl mask --runtime ecs.service
systemctl stop --no-block ecs.service
shutdown -h +{MOST_MINUTES}
cat > /run/argosy-bake.sh <<'ARGOSY_END'
{SCRIPT.read_text(encoding="utf-8")}ARGOSY_END
systemd-run --no-block --unit=argosy-bake --property=Wants=docker.service --property=After=docker.service \\
  --setenv=IMAGE={shlex.quote(image)} /bin/bash /run/argosy-bake.sh
"""


def held_digest(console: str) -> str | None:
    """The digest of the image that the instance holds; None = it has not said so."""
    found = _HOLDS.findall(console)
    return found[-1] if found else None


def last_lines(console: str) -> list[str]:
    """The last of our lines of a console, else the last of any."""
    ours = list(dict.fromkeys(_LINE.findall(console)))
    return (ours or [line for line in console.splitlines() if line.strip()])[-LINES_SHOWN:]
