"""Lambda handlers that follow a test's requests."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any


def echo(event: Any, context: Any) -> dict[str, Any]:
    """Everything that a handler can read."""
    print("the handler says hello")
    return {
        "event": event,
        "pid": os.getpid(),
        "variable": os.environ.get("SET_FOR_TEST"),
        "requestId": context.aws_request_id,
        "function": context.function_name,
        "arn": context.invoked_function_arn,
        "remainingMs": context.get_remaining_time_in_millis(),
    }


def quiet(event: Any, context: Any) -> dict[str, Any]:
    """Like a controller that has nothing to do; `found` is its answer instead."""
    print("the handler says hello")
    return {"reason": event.get("found", "quiet")}


def unwell(event: Any, context: Any) -> dict[str, Any]:
    """Like an api whose store does not answer."""
    return {"statusCode": 500, "body": {}}


def obey(event: Any, context: Any) -> Any:
    """`do`: fail, exit, die, hang or count (into the file `path`, failing while it holds fewer than `until` lines)."""
    what = event.get("do")
    if what == "fail":
        raise ValueError("as asked")
    if what == "exit":
        os._exit(3)
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "unspeakable":
        return object()
    if what == "count":
        with Path(event["path"]).open("a") as file:
            file.write("x\n")
        if len(Path(event["path"]).read_text().splitlines()) < event.get("until", 0):
            raise ValueError("not yet")
    if what == "hang":
        Path(event["path"]).write_text(str(os.getpid()))
        time.sleep(3600)
    return {"pid": os.getpid()}
