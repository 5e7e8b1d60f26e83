"""Whose is an exception that ends a tick: the controller's own code's, or that of something outside?

All that a port raises is not ours: AWS does not answer, another controller has committed. Whatever else is raised
before the commit is a fault of our own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from argosy.model.damage import NewerFormat, OlderFormat, UnreadableState
from argosy.ports import StaleState

P = TypeVar("P")

MEANT = (StaleState, UnreadableState, NewerFormat, OlderFormat)  # what loading says with an exception


class Stumbled(Exception):
    """Our own code failed before a tick's commit. `error`: what it raised."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class PortFailed(Exception):
    """`error`: what a port raised."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class _Marked:
    """A port whose exceptions become PortFailed."""

    def __init__(self, port: Any) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)

        def call(*args: Any, **options: Any) -> Any:
            try:
                return method(*args, **options)
            except Exception as error:
                raise PortFailed(error) from error

        return call


def marked(port: P) -> P:
    """The port, whose exceptions can be told from ours."""
    return cast(P, _Marked(port))


@contextmanager
def ours() -> Iterator[None]:
    """What is raised in here becomes Stumbled, unless a port raised it or it is meant."""
    try:
        yield
    except (PortFailed, *MEANT):
        raise
    except Exception as error:
        raise Stumbled(error) from error
