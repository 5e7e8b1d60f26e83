"""A handler in a function's process, run like Lambda's runtime does.

A fork that calls `main`: one JSON line in (an invocation), one JSON line out (its outcome), one at a time. The
handler's stdout and stderr go to the log. The process ends when its standard input does.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any

from argosy.aws.clients import AwsClients
from argosy.emulator.botocore_check import SimulatedClient
from argosy.local.lambdas import short_way

IMPORTED = ("argosy.api.actions", "argosy.engine.loop", "argosy.engine.tick", "argosy.aws.executor", "numpy.ma")
CALLED = ("events", "lambda", "s3", "scheduler", "ssm")


@dataclass(frozen=True, slots=True)
class Context:
    """The second argument that Lambda passes to a handler, as far as it is used."""

    aws_request_id: str
    function_name: str
    invoked_function_arn: str
    memory_limit_in_mb: str
    deadline_s: float  # epoch
    function_version: str = "$LATEST"

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda would end the invocation."""
        return max(0, int((self.deadline_s - time.time()) * 1000))


def load(handler: str) -> Callable[[Any, Context], Any]:
    """The function that `module.function` names."""
    module, _, name = handler.rpartition(".")
    loaded: Callable[[Any, Context], Any] = getattr(importlib.import_module(module), name)
    return loaded


def outcome(handler: Callable[[Any, Context], Any], invocation: dict[str, Any]) -> dict[str, Any]:
    """Run one invocation; an exception becomes Lambda's error document."""
    context = Context(**invocation["context"])
    try:
        return {"payload": json.dumps(handler(invocation["event"], context))}
    except Exception as fault:  # noqa: BLE001 - the runtime's boundary: Lambda reports whatever a handler raises
        traceback.print_exc()
        trace = traceback.format_tb(fault.__traceback__)
        return {
            "error": "Unhandled",
            "payload": json.dumps(
                {
                    "errorMessage": str(fault),
                    "errorType": type(fault).__name__,
                    "requestId": context.aws_request_id,
                    "stackTrace": trace,
                }
            ),
        }


def serve(handler: Callable[[Any, Context], Any], replies: IO[str]) -> None:
    """Answer invocations from stdin until it ends; then leave at once, even out of a handler."""
    invocations: queue.Queue[str] = queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            invocations.put(line)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        reply = outcome(handler, json.loads(invocations.get()))
        sys.stdout.flush()
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def main() -> None:
    """Serve the handler that sys.argv names. Keep the pipe for replies; the handler's output goes to stderr."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    short_way.take()
    serve(load(sys.argv[1]), replies)


def warm() -> None:
    """Make the imports that the handlers make at their first call, and read the models of the services that they
    call."""
    from argosy.placement.query import parse

    for module in IMPORTED:
        importlib.import_module(module)
    parse("attribute:ecs.os-type exists")  # builds the parser
    clients = AwsClients("us-east-1")
    for service in CALLED:
        clients.get(service)
    for service in short_way.SERVICES:
        SimulatedClient(None, service).can_paginate("")
