"""A command in a fork of a process that has made its imports (`client.forked_command`)."""

from __future__ import annotations

import atexit
import importlib
import json
import os
import pkgutil
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import IO

ROOMS = ("argosy.cli", "argosy.client")
LATE = (
    "argosy.api.admission.specs",
    "argosy.ui.deployment_reader",
    "encodings.idna",
    "numpy.ma",
)  # which functions import
SERVICES = ("ec2", "ecs", "lambda", "logs", "s3", "ssm")  # that commands call


def warm() -> None:
    """Import all commands, make their parsers, and read the models of the services that they call. Nothing that is
    read from the environment may stay: a command has another one."""
    from argosy.cli.main import Commands, load
    from argosy.client.local_key import random_key
    from argosy.local.clients import LocalClients, share_models

    share_models()
    clients = LocalClients("http://127.0.0.1", "us-east-1", random_key())
    for service in SERVICES:
        clients(service)
    clients.close()
    rooms = (pkgutil.walk_packages(importlib.import_module(each).__path__, f"{each}.") for each in ROOMS)
    for name in (*(each.name for room in rooms for each in room), *LATE):
        importlib.import_module(name)
    for name, late in Commands.late.items():
        for each in load(name, late).params:
            each.get_runtime_param()


def main() -> None:
    """The command, as it would run in the process that `forked_command.take` was called in."""
    try:
        from argosy.cli.main import main as command

        about, sys.argv = json.loads(sys.argv[1]), sys.argv[2:]
        sys.modules["__main__"].__package__ = None  # a module's name would go before the command's
        os.umask(about["umask"])
        time.tzset()
        sys.path[:] = about["path"]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for each in about["ignored"]:
            signal.signal(each, signal.SIG_IGN)
        sys.stdin, sys.stdout = (_stream(at, "rw"[at], errors) for at, errors in enumerate(about["errors"]))
        sys.stderr = _stream(2, "w", "backslashreplace", 1)
        command()
    except KeyboardInterrupt:  # before it could handle that: it ends by the signal, as an interpreter does
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        _finish()


def _stream(number: int, mode: str, errors: str, buffering: int = -1) -> IO[str]:
    return open(number, mode, buffering, encoding="utf-8", errors=errors, newline="\n", closefd=False)


def _finish() -> None:
    """As an interpreter does before it ends."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    with suppress(BrokenPipeError):  # as the command, which has said so if that matters
        sys.stdout.flush()
