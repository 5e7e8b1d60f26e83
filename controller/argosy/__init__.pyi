"""What is public, for type checkers. `__init__.py` loads each when it is first used."""

from argosy.client.errors import ArgosyError
from argosy.client.waiting import WaitTimedOut
from argosy.sdk.client import Client
from argosy.sdk.deployment import DeploymentFailed
from argosy.sdk.errors import InvalidSpec, MissingPackage, RunFailed
from argosy.sdk.mapping.executor import RemoteExecutor as Executor
from argosy.sdk.mapping.map_runs import map_items as map
from argosy.sdk.mapping.map_runs import starmap
from argosy.sdk.mapping.outcomes import RemoteError, RemoteTraceback, UnreadableResult
from argosy.sdk.mapping.pickling import CannotPickle
from argosy.sdk.mapping.task_function import task
from argosy.sdk.results import TaskResult as Result
from argosy.sdk.run import RunHandle as Run
from argosy.sdk.views import ClusterView as Cluster
from argosy.sdk.views import RunPlan as Plan

__all__ = [
    "ArgosyError",
    "CannotPickle",
    "Client",
    "Cluster",
    "DeploymentFailed",
    "Executor",
    "InvalidSpec",
    "MissingPackage",
    "Plan",
    "RemoteError",
    "RemoteTraceback",
    "Result",
    "Run",
    "RunFailed",
    "UnreadableResult",
    "WaitTimedOut",
    "map",
    "starmap",
    "task",
]

__version__: str
