"""Massive batch computations on EC2 Spot, from Python: `argosy.Client`, `argosy.map` and `argosy.Executor`.

The names below are the library's public ones ([the SDK](../../docs/guides/sdk.md)). Each is loaded on first use, so
that `import argosy` costs nothing, and the functions in Lambda use none of it. Type checkers read `__init__.pyi`.
"""

from __future__ import annotations

_PUBLIC = {  # name -> (module, its name there)
    "ArgosyError": ("argosy.client.errors", "ArgosyError"),
    "CannotPickle": ("argosy.sdk.mapping.pickling", "CannotPickle"),
    "Client": ("argosy.sdk.client", "Client"),
    "Cluster": ("argosy.sdk.views", "ClusterView"),
    "DeploymentFailed": ("argosy.sdk.deployment", "DeploymentFailed"),
    "Executor": ("argosy.sdk.mapping.executor", "RemoteExecutor"),
    "InvalidSpec": ("argosy.sdk.errors", "InvalidSpec"),
    "MissingPackage": ("argosy.sdk.errors", "MissingPackage"),
    "Plan": ("argosy.sdk.views", "RunPlan"),
    "RemoteError": ("argosy.sdk.mapping.outcomes", "RemoteError"),
    "RemoteTraceback": ("argosy.sdk.mapping.outcomes", "RemoteTraceback"),
    "Result": ("argosy.sdk.results", "TaskResult"),
    "Run": ("argosy.sdk.run", "RunHandle"),
    "RunFailed": ("argosy.sdk.errors", "RunFailed"),
    "UnreadableResult": ("argosy.sdk.mapping.outcomes", "UnreadableResult"),
    "WaitTimedOut": ("argosy.client.waiting", "WaitTimedOut"),
    "map": ("argosy.sdk.mapping.map_runs", "map_items"),
    "starmap": ("argosy.sdk.mapping.map_runs", "starmap"),
    "task": ("argosy.sdk.mapping.task_function", "task"),
}
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


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("argosy")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'argosy' has no attribute {name!r}")
    from importlib import import_module

    module, member = _PUBLIC[name]
    found = getattr(import_module(module), member)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
