"""Models of requests, one for each action. A refusal names every fault."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from argosy.model.cluster_history import KEPT_S
from argosy.model.instances import InstanceStatus
from argosy.model.journal.items import Place
from argosy.model.journal.lines import SUBJECTS, LineType
from argosy.model.tasks import TaskStatus
from argosy.placement.query import QuerySyntaxError, subjects
from argosy.spec.faults import Fault, SpecError, from_pydantic
from argosy.spec.fields import USD_LIMIT, S3Object, Strict, refused

PAGE_LIMIT = 100  # runs
TASK_PAGE_LIMIT = 1000  # tasks, or instances; keeps a reply far below Lambda's 6 MB
TOKEN_LIMIT = 64  # characters, as of ECS's clientToken
CHANGE_LIMIT = 10_000  # lines of the journal
MAX_WAIT_S = 20  # for a change; the function may take a minute
PLACE_LIMIT = 200  # characters of where a page starts: a run's time and id
TOKEN_DAYS = 30  # how long client tokens, and pointers to requests, are kept; runs are kept forever
TYPE_LIMIT = 50  # instance types of a floor

STRETCH_LIMIT = 1_000  # stretches of tasks that are chosen
CANCELLED_TASKS = 20  # of one request: each may change another chunk of tasks and another chunk of attempts

InstanceTypeName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,20}\.[a-z0-9-]{1,20}$")]


def printable(text: str) -> str:
    """Raises what pydantic reports, for text that is not printable ASCII."""
    if not (text.isascii() and text.isprintable()):
        raise refused("must be printable ASCII")
    return text


def _stretch(pair: list[int]) -> list[int]:
    if len(pair) != 2 or not 0 <= pair[0] <= pair[1]:
        raise refused("must be the first and the last index of a range of tasks, such as [7, 12]")
    return pair


class SubmitRun(Strict):
    """Start a run. client_token: the same token with the same spec starts nothing a second time."""

    action: Literal["SubmitRun"]
    client_token: Annotated[str, Field(min_length=1, max_length=TOKEN_LIMIT), AfterValidator(printable)] | None = None
    spec: dict[str, Any]


class ValidateRun(Strict):
    """Check a spec against the deployment; nothing is started."""

    action: Literal["ValidateRun"]
    spec: dict[str, Any]


class PlanRun(Strict):
    """What the run would buy, cost and take now; nothing is started."""

    action: Literal["PlanRun"]
    spec: dict[str, Any]


class DescribeRun(Strict):
    """One run. include: a page of its tasks; the status of every task, as a column; what it has cost; and, of a run of
    which nothing runs, its place in line (`ExplainRun` tells that of any run). With the last, also the pool that an
    interrupted run would buy from next."""

    action: Literal["DescribeRun"]
    run_id: str
    include: list[Literal["tasks", "statuses", "cost", "standing"]] = Field(default_factory=list)
    max_results: int = Field(default=100, ge=1, le=TASK_PAGE_LIMIT)
    next_token: str | None = None


class ListRuns(Strict):
    """The runs, the newest first."""

    action: Literal["ListRuns"]
    max_results: int = Field(default=20, ge=1, le=PAGE_LIMIT)
    next_token: str | None = None


class CancelRun(Strict):
    """Stop a run's tasks and start no more; what has ended well stays. dependents: also the runs that depend on it.
    tasks: these only, and the run continues: first and last index of each stretch, at most 20 tasks."""

    action: Literal["CancelRun"]
    run_id: str
    dependents: bool = False
    reason: Annotated[str, Field(max_length=255), AfterValidator(printable)] = ""
    tasks: (
        Annotated[list[Annotated[list[int], AfterValidator(_stretch)]], Field(min_length=1, max_length=CANCELLED_TASKS)]
        | None
    ) = None

    @model_validator(mode="after")
    def _few(self) -> CancelRun:
        if self.tasks and (self.dependents or self.reason):
            raise refused("dependents and reason are of a whole run: leave them out, or tasks")
        if sum(last - first + 1 for first, last in self.tasks or ()) > CANCELLED_TASKS:
            raise refused(f"tasks may name {CANCELLED_TASKS} tasks at once: repeat the request, or cancel the run")
        return self


class RetryRun(Strict):
    """Run the failed tasks of an ended run once more, the cancelled ones too if asked. tasks: these only, whatever they
    ended as: first and last index of each stretch. budget_usd: of all tries. memory, vcpus: of each task from now on,
    MiB and vCPUs. job: another version of the program for them; without it they run the latest one."""

    action: Literal["RetryRun"]
    run_id: str
    failed: bool = True
    cancelled: bool = False
    tasks: (
        Annotated[list[Annotated[list[int], AfterValidator(_stretch)]], Field(min_length=1, max_length=STRETCH_LIMIT)]
        | None
    ) = None
    budget_usd: float | None = Field(default=None, gt=0, le=USD_LIMIT)  # of all tries of the run together
    memory: int | None = None  # judged as `resources` of a spec
    vcpus: float | None = None
    job: S3Object | None = None
    client_token: Annotated[str, Field(min_length=1, max_length=TOKEN_LIMIT), AfterValidator(printable)] | None = None

    @model_validator(mode="after")
    def _something(self) -> RetryRun:
        if not (self.failed or self.cancelled):
            raise refused("failed and cancelled are both false: nothing would be retried")
        return self


class UpdateRun(Strict):
    """Change what an open run asks for, from the controller's next tick on. changes: new values by name of the field of
    the spec; null takes a limit away. client_token: the same token and changes a second time change nothing."""

    action: Literal["UpdateRun"]
    run_id: str
    changes: dict[str, Any] = Field(min_length=1)
    reason: Annotated[str, Field(max_length=255), AfterValidator(printable)] = ""
    client_token: Annotated[str, Field(min_length=1, max_length=TOKEN_LIMIT), AfterValidator(printable)] | None = None


class ExplainRun(Strict):
    """Why the run's tasks, or the task `index`, wait or run where they do."""

    action: Literal["ExplainRun"]
    run_id: str
    index: int | None = Field(default=None, ge=0)


class DescribeCluster(Strict):
    """The cluster now. form: its instances as objects, or as columns, which take a fifth of the bytes. include: which
    attempts run on them, as columns; the history of the last `history_hours`, or of those before
    `until` (epoch seconds)."""

    action: Literal["DescribeCluster"]
    form: Literal["objects", "columns"] = "objects"
    include: list[Literal["attempts", "history"]] = Field(default_factory=list)
    history_hours: float = Field(default=24.0, gt=0, le=KEPT_S / 3600)
    until: float | None = Field(default=None, gt=0)


class ScaleCluster(Strict):
    """Keep at least this number of instances, of these types or of any type, even without work; 0 = as many as the work
    needs. until: epoch seconds at which this ends; None = until another request."""

    action: Literal["ScaleCluster"]
    instances: int = Field(ge=0)
    instance_types: list[InstanceTypeName] = Field(default_factory=list, max_length=TYPE_LIMIT)
    until: float | None = Field(default=None, gt=0)


class DrainInstance(Strict):
    """Start no more tasks on the instance until a time (epoch seconds, at most a week ahead); its tasks run on, and it
    is not released. None = let it take tasks again."""

    action: Literal["DrainInstance"]
    instance_id: Annotated[str, Field(min_length=1, max_length=64)]
    until: float | None = Field(default=None, gt=0)


def _place(value: Any) -> str:
    if Place.from_text(str(value)) is None:
        raise refused("must be the sequence of a change: VERSION, or VERSION.LINE with lines counted from 1")
    return str(value)


def _known_types(types: list[str]) -> list[str]:
    known = {*SUBJECTS, *LineType}
    if unknown := sorted({*types} - known):
        raise refused(f"{unknown[0][:60]!r} is unknown; known: {', '.join(sorted(known))}")
    return types


class ListChanges(Strict):
    """What has changed, in order. since: after which change; since_seconds: those of the last seconds; neither: all
    that are kept."""

    action: Literal["ListChanges"]
    since: Annotated[str, BeforeValidator(_place)] | None = None
    since_seconds: float | None = Field(default=None, ge=0)
    types: Annotated[list[str], AfterValidator(_known_types)] = Field(default_factory=list)
    run_id: str | None = None
    instance: str | None = None
    max_results: int = Field(default=1000, ge=1, le=CHANGE_LIMIT)
    wait_seconds: float = Field(default=0, ge=0, le=MAX_WAIT_S)

    @model_validator(mode="after")
    def _one_start(self) -> ListChanges:
        if self.since is not None and self.since_seconds is not None:
            raise refused("since and sinceSeconds exclude each other")
        return self


class DescribeHistory(Strict):
    """A run's history: its samples, orders and instances, page by page."""

    action: Literal["DescribeHistory"]
    run_id: str
    next_token: str | None = None


class DescribeTask(Strict):
    """One task with all its attempts."""

    action: Literal["DescribeTask"]
    run_id: str
    index: int = Field(ge=0)


class ListAttempts(Strict):
    """The ended attempts of a run as columns, page by page."""

    action: Literal["ListAttempts"]
    run_id: str
    next_token: str | None = None


def _each_once(values: list[str]) -> list[str]:
    if twice := sorted({value for value in values if values.count(value) > 1}):
        raise refused(f"has {twice[0]} twice")
    return values


def _one_of(names: Collection[str]) -> Callable[[list[str]], list[str]]:
    def check(values: list[str]) -> list[str]:
        if unknown := sorted({*values} - {*names}):
            raise refused(f"{unknown[0][:60]!r} is unknown; known: {', '.join(names)}")
        return _each_once(values)

    return check


def _cluster_query(expression: str) -> str:
    try:
        unknown = subjects(expression) & {"task:startedBy", "agentVersion"}
    except QuerySyntaxError as fault:
        raise refused(f"is not a cluster query: {fault}") from fault
    if unknown:
        raise refused(f"{min(unknown)} is not known here: `argosy query` can ask ECS")
    return expression


class ListTasks(Strict):
    """Tasks by what they have in common. run_id None: the tasks of all open runs. instance, cell: of the attempt that
    is alive, else of the last one. failed: whether an attempt has failed by itself, whatever came after it. exit_code:
    of the last that ended."""

    action: Literal["ListTasks"]
    run_id: str | None = None
    status: Annotated[list[str], AfterValidator(_one_of([each.name for each in TaskStatus]))] = Field(
        default_factory=list
    )
    instance: Annotated[str, Field(pattern=r"^i-[0-9a-f]{8,17}$")] | None = None
    cell: str | None = None
    failed: bool | None = None
    exit_code: int | None = Field(default=None, ge=0, le=255)
    max_results: int = Field(default=100, ge=1, le=TASK_PAGE_LIMIT)
    next_token: str | None = None


class ListInstances(Strict):
    """Instances by what they have in common. type: a name, or a pattern such as `g5.*`. where: a cluster query, of
    registered instances."""

    action: Literal["ListInstances"]
    status: Annotated[list[str], AfterValidator(_one_of([each.value for each in InstanceStatus]))] = Field(
        default_factory=list
    )
    cell: str | None = None
    zone: str | None = None
    type: str | None = None
    purchase: Literal["spot", "on-demand", "reserved"] | None = None
    where: Annotated[str, AfterValidator(_cluster_query)] | None = None
    max_results: int = Field(default=100, ge=1, le=TASK_PAGE_LIMIT)
    next_token: str | None = None


Paged = DescribeHistory | ListAttempts | ListTasks | ListInstances


def parse_request(request: Any, models: Mapping[str, type[Strict]]) -> Strict:
    """The request as its model. models: by action. Raises SpecError with every fault."""
    if not isinstance(request, Mapping):
        raise SpecError([Fault("", "a request is a JSON object with an action")])
    model = models.get(request["action"]) if isinstance(request.get("action"), str) else None
    if model is None:
        what = "is required" if "action" not in request else "is unknown"
        raise SpecError([Fault("action", f"{what}; known: {', '.join(models)}")])
    try:
        return model.model_validate(dict(request))
    except ValidationError as refusal:
        fields = [field.alias or name for name, field in model.model_fields.items()]
        raise SpecError(from_pydantic(refusal.errors(include_url=False), lambda path: fields)) from refusal


def page_token(place: str) -> str:
    """An opaque token for the place where the next page starts."""
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def page_place(token: str) -> str:
    """The inverse of `page_token`. Raises SpecError for any other text."""
    try:
        place = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as fault:
        raise _not_issued() from fault
    if not 0 < len(place) <= PLACE_LIMIT or not place.isprintable():
        raise _not_issued()
    return place


def _not_issued() -> SpecError:
    return SpecError([Fault("nextToken", "is not a token that this api has issued")])


def index_of_page(token: str | None) -> int:
    """The task at which a page of tasks starts. Raises SpecError for a token that we did not issue."""
    if token is None:
        return 0
    place = page_place(token)
    if not re.fullmatch(r"[0-9]{1,7}", place, re.ASCII):
        raise _not_issued()
    return int(place)


def token_of(request: Paged, place: str) -> str:
    """A token for the place where the next page starts, which only the same request may use."""
    return page_token(f"{_fingerprint(request)} {place}")


def place_of(request: Paged) -> str | None:
    """Where the page that is asked for starts; None = at the beginning. Raises SpecError for another request's
    token."""
    if request.next_token is None:
        return None
    fingerprint, _, place = page_place(request.next_token).partition(" ")
    if fingerprint != _fingerprint(request):
        raise SpecError([Fault("nextToken", "belongs to a request with different filters")])
    if not place:
        raise _not_issued()
    return place


def place_of_task(request: ListTasks) -> tuple[str, int]:
    """Run id and index of the task at which the page that is asked for starts; "" = at the first run."""
    place = place_of(request)
    if place is None:
        return "", 0
    found = re.fullmatch(r"(\S+) ([0-9]{1,7})", place, re.ASCII)
    if found is None:
        raise _not_issued()
    return found[1], int(found[2])


def _fingerprint(request: Paged) -> str:
    filters = request.model_dump(mode="json", exclude={"next_token", "max_results"})
    return hashlib.sha256(json.dumps(filters, sort_keys=True).encode()).hexdigest()[:16]
