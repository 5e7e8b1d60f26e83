"""What the server of forks of a test process imports once, and what its forks call: commands, and a local mode."""

from __future__ import annotations

import importlib
import os
import pkgutil
import runpy
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from argosy.local import forks
from argosy.local.clients import share_models
from argosy.local.options import LocalOptions
from argosy.local.run import serve
from tests.fakes.local_mode import SharedForks
from tests.fakes.signing import KEY

SERVICES = ("ec2", "ecs", "lambda", "logs", "s3", "ssm")  # that commands call
PACKAGES = ("argosy.cli", "argosy.client", "argosy.replay", "argosy.sdk")


def warm() -> None:
    """What local mode's functions and the commands import, and the models of the services that they call."""
    from argosy.client.aws_clients import Connection, make_client
    from argosy.local.lambdas import worker

    share_models()
    worker.warm()
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        for found in pkgutil.walk_packages(path, f"{package}."):
            importlib.import_module(found.name)
    with suppress(ModuleNotFoundError):  # only some tests need the AWS CLI
        importlib.import_module("awscli.clidriver")
    for service in SERVICES:
        make_client(Connection("http://127.0.0.1", region="us-east-1"), service)


class OwnForks(SharedForks):
    """A server that is a fork of this process, which must have no threads yet."""

    def __init__(self) -> None:
        own, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = os.fork()
        if self._process == 0:
            own.close()
            forks.serve(theirs)
            os._exit(0)
        theirs.close()
        super().__init__(own)

    def close(self) -> None:
        super().close()
        os.waitpid(self._process, 0)


def local_mode() -> None:
    """A local mode that keeps its state in the folder that is its first word. It prints its endpoint."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup, for one, has it ignored
    folder = Path(sys.argv[1])
    options = LocalOptions(images_root=folder / "containers", state_dir=folder / "logs", keep=folder / "kept", key=KEY)
    serve(0, options, lambda aws: print(aws.endpoint_url, flush=True), OwnForks())


def argosy() -> None:
    from argosy.cli.start import main

    sys.argv[0] = "argosy"
    sys.modules["__main__"].__package__ = None  # a module's name would go before the command's
    main()


def aws() -> int:
    from awscli.clidriver import main

    sys.argv[0] = "aws"
    return int(main())


def script() -> None:
    """As `python` does with a file."""
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(Path(sys.argv[0]).parent.absolute()))
    runpy.run_path(sys.argv[0], run_name="__main__")


def program() -> None:
    """As `python -m` does: a module of the folder in which it is started, or of PYTHONPATH, which is looked for first
    there."""
    sys.argv = sys.argv[1:]
    sys.path[:0] = [os.getcwd(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
