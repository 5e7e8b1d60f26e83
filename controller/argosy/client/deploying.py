"""The deployments of a service that a request led to, followed until they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from argosy.client.waiting import Pauses, WaitTimedOut

View = Mapping[str, Any]
UNDER_WAY = ("IN_PROGRESS", "WAITING", "STUCK")


def followed(begun: View, look: Callable[[], View], pauses: Pauses) -> Iterator[tuple[View, list[View]]]:
    """The environment at each poll, with the deployment that was begun and those after it, such as its roll-back.

    The last poll is the first at which none of them is under way. begun: the reply to the request. Raises WaitTimedOut,
    and the errors of `look`.
    """
    while True:
        view = look()
        ours = since(begun, view["deployments"])
        yield view, ours
        if ours and ours[-1]["status"] not in UNDER_WAY:
            return
        if not pauses.pause():
            what = f"Revision {begun['deploying']} of {begun['name']} was still being deployed"
            raise WaitTimedOut(view, pauses.timeout_s or 0.0, what)


def since(begun: View, deployments: Sequence[View]) -> list[View]:
    """The deployment that was begun, and those after it; none until the controller has processed it."""
    last = max((each["deployment"] for each in begun["deployments"]), default=0)
    later = [each["deployment"] for each in deployments if each["revision"] == begun["deploying"]]
    if begun["created"]:
        first = next((number for number in later if number > last), None)
    else:
        first = later[-1] if later else None
    return [each for each in deployments if first is not None and each["deployment"] >= first]
