"""The Lambda functions of a local deployment, with their environments."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from argosy.client.local_key import LocalKey
from argosy.local.clients import child_environment
from argosy.local.containers.images import ImageStore
from argosy.local.deployment import Names, function_environment
from argosy.local.forks import Forks
from argosy.local.lambdas.function import FunctionSpec, LambdaFunction
from argosy.local.mps import why_not_shared
from argosy.local.options import LocalOptions, package_root

API_TIMEOUT_S = 60.0
CONTROLLER_TIMEOUT_S = 900.0
API_PROCESSES = 2


def specs(options: LocalOptions, names: Names, around: Mapping[str, str], queue_url: str) -> list[FunctionSpec]:
    """The api and the controller, as the stacks deploy them except for the endpoint and the shorter patience. around:
    how they reach it."""
    of_machine = {"gpus_unshared": why_not_shared(options.gpus), "machine_programs": options.processes}
    environment = {
        **around,
        **function_environment(options.deployed_settings, names, queue_url),
        "ARGOSY_LOOP": json.dumps(dict(options.loop)),
        "ARGOSY_POLICY": json.dumps({**options.policy, **of_machine}),
        "ARGOSY_IMAGES": json.dumps(image_folders(options)),
        **({"ARGOSY_GPUS": str(len(options.gpus))} if options.gpus else {}),
        "ARGOSY_CALL_RATES": json.dumps({"times": options.call_rates}),
        "PYTHONPATH": str(package_root()),
        "OMP_NUM_THREADS": "1",  # numpy's threads would only compete with the tasks for this machine's cores
        "OPENBLAS_NUM_THREADS": "1",
    }

    def spec(name: str, handler: str, concurrency: int, throttles: bool, timeout_s: float) -> FunctionSpec:
        own = {**environment, "AWS_LAMBDA_FUNCTION_NAME": name}
        return FunctionSpec(name, handler, names.function_arn(name), own, concurrency, throttles, timeout_s)

    return [
        spec(names.api_function, options.api_handler, API_PROCESSES, False, API_TIMEOUT_S),
        spec(names.controller_function, options.controller_handler, 1, True, CONTROLLER_TIMEOUT_S),
    ]


def image_folders(options: LocalOptions) -> dict[str, Any]:
    """The api's knowledge of images: arguments of `aws.folder_images.FolderImages`."""
    return {
        "folder": str(options.images_root.absolute()),
        "runtime": options.engine or "process",
        "own_python": ImageStore.python,
        "other_pythons": list(options.pythons),
    }


def forks_of_functions() -> Forks:
    """A server of forks that have made the handlers' imports, without the user's AWS configuration."""
    return Forks(
        "argosy.local.lambdas.worker.warm", child_environment("http://127.0.0.1", "us-east-1", LocalKey("none", "none"))
    )


def deploy(
    functions: list[FunctionSpec], forks: Forks, log_folder: Path, failed: Callable[[str, Path], None]
) -> dict[str, LambdaFunction]:
    """Functions ready to be invoked, by name; each has its own log file. failed: called with each error and its log."""
    return {spec.name: LambdaFunction(spec, forks, log_folder / f"{spec.name}.log", failed) for spec in functions}
