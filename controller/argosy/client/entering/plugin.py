"""A session of ECS Exec on this terminal, through AWS's Session Manager plugin, started as the AWS CLI does.

ECS Exec does not report how a command ended, and the plugin prints when a session begins and ends. So a command is run
by a shell that marks where its output begins, where it ends, and with which exit code.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from argosy.client.entering.starting import CommandLine
from argosy.client.entering.target import RunningContainer
from argosy.client.errors import InvalidInput
from argosy.model.arns import name_of

PROGRAM = "session-manager-plugin"
WHERE = "https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html"


def check_plugin() -> None:
    """Raises InvalidInput if it is not on PATH."""
    if shutil.which(PROGRAM) is None:
        raise InvalidInput(
            f"AWS's {PROGRAM} is not on PATH, and sessions of ECS Exec need it.", next_step=f"install it: {WHERE}"
        )


def plugin_command(
    session: Mapping[str, Any], target: RunningContainer, cluster: str, profile: str | None, endpoint: str
) -> CommandLine:
    """Started as in aws-cli's awscli/customizations/ecs/executecommand.py. session: of ExecuteCommand's reply."""
    where = {"Target": f"ecs:{cluster}_{name_of(target.task_arn)}_{target.runtime_id}"}
    words = [
        PROGRAM,
        json.dumps(dict(session)),
        target.region,
        "StartSession",
        profile or "",
        json.dumps(where),
        endpoint,
    ]
    return CommandLine(words)


class MarkedOutput:
    """The output of a command, filtered from the session. `code`: None until it has ended."""

    def __init__(self, token: str, show: Callable[[bytes], None], *, is_terminal: bool) -> None:
        """token: a text that occurs nowhere else. is_terminal: `show` leads to one; otherwise lines end as the command
        ended them,
        and not as the container's terminal did.
        """
        self._begin, self._end = f"argosy-{token}-begins", f"argosy-{token}-ended-"
        self._show, self._is_terminal = show, is_terminal
        self._begun, self._kept = False, b""
        self.code: int | None = None

    def command(self, words: Sequence[str]) -> str:
        """The command in the request to ECS; its agent splits it like a shell, and starts it without one."""
        script = f'echo {self._begin}; "$@"; echo {self._end}$?.'
        return shlex.join(["sh", "-c", script, "sh", *words])

    def hear(self, said: bytes) -> None:
        """More of the session."""
        self._kept += said
        if not self._begun:
            found = re.search(rf"{self._begin}\r?\n".encode(), self._kept)
            if found is None:
                return
            self._begun, self._kept = True, self._kept[found.end() :]
        if self.code is None:
            self._go_on()

    def close(self) -> None:
        """The session is over: withheld output is shown, unless the command has ended properly."""
        if self.code is None:
            self._put(self._kept)

    def _go_on(self) -> None:
        found = re.search(rf"{self._end}(\d+)\.".encode(), self._kept)
        if found is not None:
            self._put(self._kept[: found.start()])
            self.code, self._kept = int(found[1]), b""
            return
        shown = len(self._kept) - self._may_be_marker()
        self._put(self._kept[:shown])
        self._kept = self._kept[shown:]

    def _may_be_marker(self) -> int:
        """The number of last bytes that may begin the end's mark, or a line's end."""
        mark = self._end.encode()
        at = self._kept.rfind(mark)
        if at >= 0 and re.fullmatch(rb"\d{0,3}", self._kept[at + len(mark) :]):
            return len(self._kept) - at
        lengths = range(min(len(mark), len(self._kept)), 0, -1)
        partial = next((length for length in lengths if mark.startswith(self._kept[-length:])), 0)
        return max(partial, int(self._kept.endswith(b"\r")))

    def _put(self, data: bytes) -> None:
        if data:
            self._show(data if self._is_terminal else data.replace(b"\r\n", b"\n"))
