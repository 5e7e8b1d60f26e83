"""The controller's deployment in AWS: its names, and a cell with its clients for each region."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple, TypeVar

from argosy.aws.call_rates import CallRates
from argosy.model.events import ActionFailed, Event
from argosy.model.suspensions import reason_of

A = TypeVar("A")


def shielded(action: A, do: Callable[[A], Iterable[Event]]) -> list[Event]:
    """The events of `do(action)`. AWS's answers raise nothing there, so an exception is Argosy's own fault."""
    try:
        return list(do(action))
    except Exception as error:  # noqa: BLE001 - whatever it is
        return [ActionFailed(_run_of(action), reason_of(error), "".join(traceback.format_exception(error)))]


def read_each(read: Callable[[A], Event], answer: Iterable[A]) -> Iterator[Event]:
    """The result of `read` for each item of an answer. An item at which it fails becomes an ActionFailed; the others
    are shown."""
    for item in answer:
        yield from shielded(item, lambda one: [read(one)])


def _run_of(action: object) -> str:
    """ "" for an action that concerns no run."""
    key = getattr(action, "key", None)
    return str(key.run_id if key else getattr(action, "run_id", ""))


TIME_WAS_UP = "the time limit was reached"  # why an action was not begun
CHUNK = 100  # most Describe* calls and TerminateInstances take this many ids
THREADS = 8  # requests at a time in a cell: a RunTask takes some 100 ms, so 8 use up the launch rate of 40/s
CheckTime = Callable[[], None]  # called before each request of a listing; raises when there is no time for another


class PartSize(NamedTuple):
    """The size of one part of a run's manifest: the most tasks, and the most objects read in each of the two folders of
    results. A third of a second of work, 40 pages of listings, and 3 to 5 MB."""

    tasks: int = 10_000
    objects: int = 20_000


PART_SIZE = PartSize()


@dataclass(frozen=True, slots=True)
class AwsDeployment:
    """The deployment that CDK made, as the controller's environment names it."""

    stage: str
    prefix: str  # of every name in AWS
    log_group: str
    execution_role_arn: str
    task_role_arn: str
    stop_timeout_s: int = 30  # between SIGTERM and SIGKILL; ECS's own default, well inside a spot warning's 120 s
    placement_scores: bool = False  # whether EC2 is queried for them
    capacity_manager: bool = False  # whether it is asked for the account's interruptions
    allow_exec: bool = False  # whether tasks are started so that commands can be run in them
    part_size: PartSize = PART_SIZE
    target_groups: Mapping[str, str] = field(default_factory=dict)  # ARNs by the names that services give
    threads: int = THREADS  # of each cell; 1: everything one after the other, in the caller's own thread


class HomeClients(NamedTuple):
    """Clients of the home region's services that do not belong to a cell."""

    s3: Any  # boto3 client
    events: Any  # of EventBridge
    prices: Any = None  # OnDemandPrices; None = those of the catalogue


Appended = Callable[[str, str], Sequence[tuple[str, bytes]]]
"""The items of a run that commits appended after a given one ("" = all), ROWS_PER_PART rows or fewer."""


def nothing_appended(run_id: str, after: str) -> Sequence[tuple[str, bytes]]:
    return ()


class Coordination(NamedTuple):
    """Keeps long work and another controller out of each other's way.

    keep_alive: renews the lease of the invocation. It is called often during work that may outlast the lease, so it is
    cheap; it raises nothing. retries_of: how often a run was reopened, as the store has it now. Raises AWS_ERRORS.
    appended: history items that are not next to its results yet. Raises AWS_ERRORS.
    """

    keep_alive: Callable[[], None] = lambda: None
    retries_of: Callable[[str], int] = lambda run_id: 0
    appended: Appended = nothing_appended


ALONE = Coordination()  # there is no other controller


@dataclass(frozen=True, slots=True)
class Cell:
    """One region's cluster and fleets, the clients that reach them, and how fast these may be used."""

    name: str  # the Region
    cluster: str
    ecs: Any  # boto3 client
    ec2: Any
    rates: CallRates
    _: KW_ONLY
    elbv2: Any = None  # of load balancers; None = no target group is here
    logs: Any = None  # None = the logs of tasks cannot be read
    reservations: frozenset[str] = frozenset()  # Capacity Reservations of the settings: ids, and ARNs of their groups
    grouped: set[str] = field(default_factory=set)  # ids of reservations in those groups, as last read


def pages(call: Any, **request: Any) -> Iterator[dict[str, Any]]:
    """The pages of a listing that continues by `nextToken` (ECS) or `NextToken` (EC2). Lazy: the caller may stop at any
    page.

    boto3's paginators need real clients; here clients are handed in (DESIGN D11) and only need the operations.
    """
    while True:
        page = call(**request)
        yield page
        name = "nextToken" if "nextToken" in page else "NextToken"
        if not page.get(name):
            return
        request[name] = page[name]


def chunks(ids: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), CHUNK):
        yield ids[start : start + CHUNK]
