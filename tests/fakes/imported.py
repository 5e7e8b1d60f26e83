"""What the server of forks of a test process imports once, and what its forks call: the commands, as if typed."""

from __future__ import annotations

import importlib
import os
import pkgutil
import runpy
import sys

from tests import botocore_models

SERVICES = ("ec2", "ecs", "lambda", "logs", "s3", "ssm")  # that commands call
PACKAGES = ("argosy.cli", "argosy.client", "argosy.replay", "argosy.sdk")


def warm() -> None:
    """What local mode's functions and the commands import, and the models of the services that they call."""
    from argosy.client.aws_clients import Connection, make_client
    from argosy.local.lambdas import worker

    botocore_models.keep()
    worker.warm()
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        for found in pkgutil.walk_packages(path, f"{package}."):
            importlib.import_module(found.name)
    for other in ("awscli.clidriver", "requests"):
        importlib.import_module(other)
    for service in SERVICES:
        make_client(Connection("http://127.0.0.1", region="us-east-1"), service)


def argosy() -> None:
    from argosy.cli.start import main

    sys.argv[0] = "argosy"
    sys.modules["__main__"].__package__ = None  # a module's name would go before the command's
    main()


def aws() -> int:
    from awscli.clidriver import main

    sys.argv[0] = "aws"
    return int(main())


def program() -> None:
    """As `python -m` does: a module of the folder in which it is started, or of PYTHONPATH, which is looked for first
    there."""
    sys.argv = sys.argv[1:]
    sys.path[:0] = [os.getcwd(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
