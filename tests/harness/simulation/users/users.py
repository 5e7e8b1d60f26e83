"""The users of a trial: they submit, change open runs, lose patience, and retry failed tasks.

They call the api's own actions, whose calls to AWS fail like the controllers'. A user without an answer asks again,
with the same client token; a user whose request is refused for too little money offers more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from zlib import crc32

from botocore.exceptions import BotoCoreError, ClientError

from argosy.api import reading
from argosy.model.damage import FAULTS
from argosy.model.inbox import RetryRequest, SubmitRequest
from argosy.model.run_record import RunRecord
from argosy.model.tasks import TaskStatus
from tests.harness.simulation.audit.stored_state import StoredState
from tests.harness.simulation.controllers.deployment import SimulatedDeployment
from tests.harness.simulation.faults import Faults
from tests.harness.simulation.injection.boundary import Crash
from tests.harness.simulation.users.crowd import smaller
from tests.harness.simulation.users.front_desk import FrontDesk
from tests.harness.simulation.users.shared_queues import NAMES
from tests.harness.simulation.world.members import UNNAMED, Arrival
from tests.harness.simulation.world.workload import PLAIN_MIB, SimulatedJob, version_of_program
from tests.harness.simulation.world.world import share

MOST_CHANGES = 4  # of a run
CONCURRENT, INSTANCES = (1, 2, 3, None), (1, 2, None)
BUDGETS, HOURLY = (0.3, 3.0), (0.7, 4.0)  # factor of the spec's value: below what is spent it is refused


def changes_of(
    seed: int, number: int, spec: Mapping[str, Any], *, has_queues: bool
) -> list[tuple[float, dict[str, Any]]]:
    """When a user asks for a change of the run with this number (a share of the phase of faults), and the changes."""
    count = int((1 + MOST_CHANGES) * share(seed, "changes", number))
    return [
        (share(seed, "changed at", number, each), _change(seed, (number, each), spec, has_queues))
        for each in range(count)
    ]


def _change(seed: int, which: tuple[int, int], spec: Mapping[str, Any], has_queues: bool) -> dict[str, Any]:
    """One field or several."""
    capacity = spec.get("capacity", {})
    mixes = capacity.get("purchase", "spot") != "spot" or "deadline" in capacity
    drawn = {
        "priority": int(200 * share(seed, "priority", *which)) - 100,
        "maxConcurrentTasks": _one_of(CONCURRENT, share(seed, "tasks", *which)),
        "maxInstances": _one_of(INSTANCES, share(seed, "instances", *which)),
    }
    if has_queues:
        drawn["queue"] = _one_of(NAMES, share(seed, "queue", *which))
    if "budgetUsd" in capacity:
        drawn["budgetUsd"] = capacity["budgetUsd"] * _between(BUDGETS, share(seed, "budget", *which))
    if "maxHourlyCost" in capacity:
        drawn["maxHourlyCost"] = capacity["maxHourlyCost"] * _between(HOURLY, share(seed, "hourly", *which))
    if mixes:
        drawn["deadline"] = _one_of(("10m", "1h", None), share(seed, "deadline", *which))
    chosen = [name for name in drawn if share(seed, "field", *which, name) < 0.5]
    return {name: drawn[name] for name in chosen or ("priority",)}


def _one_of(values: tuple[Any, ...], drawn: float) -> Any:
    return values[int(len(values) * drawn)]


def _between(ends: tuple[float, float], drawn: float) -> float:
    return ends[0] + (ends[1] - ends[0]) * drawn


JSON = dict[str, Any]

DEPENDENTS = 0.3  # share of cancellations that also cancel the runs that depend on the run
MOST_RETRIES = 2  # of a run
CANCELLED, RETRIED = 0.3, 0.7  # shares of the suspended runs that their users cancel; or else try again at once
FIXED = 0.5  # share of retries of runs with a program that bring another version of it
TWICE = 0.3  # share of retries while another user retries other tasks of the run
CHOSEN = 0.3  # share of a crowd's retries that choose tasks
REFUSED = (400, 403, 404, 409)
TOO_LATE = ("instanceId", "guarantee")  # an instance that has gone; too much for the cluster
MORE_MONEY = 4  # factor for an hourly cap that was too small


@dataclass(slots=True)
class _PlannedRequest:
    """A user's request, due from some time on. ask: returns whether there was an answer."""

    at: float
    ask: Callable[[], bool]


class Users:
    """The users of one trial. jobs: by run id, which changes as soon as the api makes one up; retry: whether they retry
    runs.
    """

    def __init__(
        self,
        deployment: SimulatedDeployment,
        jobs: MutableMapping[str, SimulatedJob],
        stored: StoredState,
        *,
        retry: bool,
        choose: bool = False,
    ) -> None:
        """choose: whether they also retry chosen tasks, and with more room."""
        self._deployment, self._world, self._desk = deployment, deployment.world, FrontDesk(deployment, self._named)
        self._jobs, self._stored, self._retry, self._choose = jobs, stored, retry, choose
        self.retries = 0
        self._run_ids = list(jobs)
        """The current submission of each job."""
        self._number_of = {run_id: number for number, run_id in enumerate(jobs)}
        """By every id that a job ever had: the api gives another one if a submission was not stored."""
        self._submitted = 0
        """The number of the job that is being submitted."""
        self._wishes: list[_PlannedRequest] = []
        self._left_out: set[int] = set()
        """Jobs whose queue did not exist, so that their users came without an alias."""
        self._answered: set[tuple[str, int]] = set()
        """Requests to retry: run id, and how often it had been retried."""
        self._desk.before_retry = self._retry_too
        self._met: set[str] = set()
        """Runs that their users have seen suspended."""
        self._twice: set[str] = set()
        """Runs that two users retried at once."""

    def submit(self, faulty_s: float) -> None:
        """All runs, one soon after the other unless a job says when."""
        for number, job in enumerate(self._jobs.values()):
            after_s = number * min(60.0, faulty_s / 4)
            self._later(job.submitted_after_s or after_s, partial(self._submit, number))

    def cancel_later(self, faults: Faults, faulty_s: float) -> None:
        """Each loses patience with some runs, before anything has started, in the middle or when all is over."""
        for number, run_id in enumerate(self._run_ids):
            if faults.strikes("cancel"):
                after_s = 10.0 + faulty_s * self._world.share("cancel", run_id)
                self._later(after_s, partial(self._cancel, number))

    def cancel_tasks_later(self, faults: Faults, faulty_s: float) -> None:
        """They cancel the first and the last task of some runs."""
        for number, run_id in enumerate(self._run_ids):
            if faults.strikes("cancel-tasks"):
                after_s = 10.0 + faulty_s * self._world.share("cancel tasks at", run_id)
                self._later(after_s, partial(self._cancel_tasks, number))

    def change_later(self, faulty_s: float, *, has_queues: bool) -> None:
        """They change the terms of their runs."""
        for number, run_id in enumerate(self._run_ids):
            wanted = changes_of(self._world.seed, number, self._jobs[run_id].spec, has_queues=has_queues)
            for which, (part, changes) in enumerate(wanted):
                self._later(faulty_s * part, partial(self._change, number, changes, f"change-{which}"))

    def scale_later(self, after_s: float, instances: int, types: Sequence[str], lasts_s: float | None) -> None:
        """A user requests a minimum size. lasts_s: None = until a user requests another number."""
        self._later(after_s, partial(self._scale, instances, types, lasts_s))

    def ask_later(self, after_s: float, request: Callable[[], JSON | None]) -> None:
        """A user asks for something until there is an answer. request: made at that time; None = there is no need."""
        self._later(after_s, lambda: (asked := request()) is None or self._is_answered(asked))

    def act(self) -> None:
        """Send all requests that are due."""
        now = self._world.now
        for record in self._stored.records.values():
            if record.suspended_at and not record.has_ended and record.id not in self._met:
                self._met.add(record.id)
                self._meet_suspended(record.id)
        for wish in [each for each in self._wishes if each.at <= now]:
            if wish.ask():
                self._wishes.remove(wish)

    def try_again(self) -> bool:
        """Whether they asked for more of a run that has ended without every result."""
        asked = [self._try_again(record) for record in list(self._stored.records.values())] if self._retry else ()
        return any(asked)

    def _later(self, after_s: float, ask: Callable[[], bool]) -> None:
        self._wishes.append(_PlannedRequest(self._world.now + after_s, ask))

    def _ask(self, request: JSON, came: Arrival = UNNAMED) -> JSON | None:
        """The api's answer; None if there was none. came: how the user comes in."""
        try:
            answer = self._desk.ask(request, came)
        except (Crash, ClientError, BotoCoreError, *FAULTS):
            return None
        return answer if answer["statusCode"] == 200 or answer["statusCode"] in REFUSED else None

    def _is_answered(self, asked: JSON) -> bool:
        answer = self._ask(asked)
        fields = answer["body"]["error"].get("fieldList", ()) if answer and answer["statusCode"] != 200 else ()
        if wrong := [each for each in fields if not each["path"].endswith(TOO_LATE)]:
            raise ValueError(f"the api refuses {asked['action']}: {wrong}")
        return answer is not None

    def _named(self, submit: SubmitRequest) -> None:
        """The api is about to store the run that is being submitted, under this id."""
        number, run_id = self._submitted, submit.run_id
        job = self._jobs.pop(self._run_ids[number])
        self._run_ids[number], self._number_of[run_id] = run_id, number
        self._jobs[run_id] = replace(job, run_id=run_id)
        self._deployment.members.came[run_id] = self._came(number)

    def _came(self, number: int) -> Arrival:
        came = self._deployment.members.of(number, self._jobs[self._run_ids[number]].spec)
        return came._replace(queue="") if number in self._left_out else came

    def _submit(self, number: int) -> bool:
        self._submitted = number
        job = self._with_real_dependencies(self._jobs[self._run_ids[number]])
        self._jobs[self._run_ids[number]] = job
        request = {"action": "SubmitRun", "clientToken": f"job-{number}", "spec": dict(job.spec)}
        answer = self._ask(request, self._came(number))
        if answer is None or answer["statusCode"] == 200:
            return answer is not None
        if answer["statusCode"] == 403:
            self._left_out.add(number)
            if (run_id := self._run_ids[number]) in self._deployment.members.came:  # stored, and the answer was lost
                self._deployment.members.came[run_id] = self._came(number)
            return False
        paths = [each["path"] for each in answer["body"]["error"].get("fieldList", ())]
        capacity = job.spec.get("capacity", {})
        offered: Mapping[str, Any]
        if any(path.startswith("dependsOn") for path in paths):  # not there yet, or it has failed
            offered = self._without_ended(job.spec)
        elif "queue" in paths:  # the owner has removed it
            offered = {name: value for name, value in job.spec.items() if name != "queue"}
        elif "resources" in paths:  # one of its tasks exceeds a limit
            offered = smaller(job.spec)
        elif "maxHourlyCost" in capacity:
            offered = {**job.spec, "capacity": {**capacity, "maxHourlyCost": MORE_MONEY * capacity["maxHourlyCost"]}}
        else:
            raise ValueError(f"the api refuses the run: {answer['body']}")
        self._jobs[self._run_ids[number]] = replace(job, spec=offered)
        return False

    def _with_real_dependencies(self, job: SimulatedJob) -> SimulatedJob:
        """With the ids that the api has given to the runs that it depends on, as far as they were submitted."""
        given = job.spec.get("dependsOn", ())
        real = [{**each, "run": self._run_ids[self._number_of[each["run"]]]} for each in given]
        return replace(job, spec={**job.spec, "dependsOn": real}) if given else job

    def _without_ended(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """Users stop waiting for the success of ended runs, and of runs whose tasks are no longer known."""
        left = [each for each in spec["dependsOn"] if not self._is_hopeless(each)]
        rest = {name: value for name, value in spec.items() if name != "dependsOn"}
        return {**rest, "dependsOn": left} if left else rest

    def _is_hopeless(self, dependency: Mapping[str, Any]) -> bool:
        run_id = dependency["run"]
        return self._has_ended(run_id) and (dependency["on"] != "end" or not self._stored.records[run_id].task_count)

    def _cancel(self, number: int) -> bool:
        """An unknown run is cancelled later."""
        run_id = self._run_ids[number]
        dependents = self._world.share("cancel", number, "dependents") < DEPENDENTS
        request = {"action": "CancelRun", "runId": run_id, "reason": "enough", "dependents": dependents}
        answer = self._ask(request, self._came(number))
        return answer is not None and answer["statusCode"] in (200, 403)  # the run may have moved to another queue

    def _cancel_tasks(self, number: int) -> bool:
        """As for a whole run; one that has ended or is suspended refuses."""
        run_id = self._run_ids[number]
        last = max(0, len(self._stored.tables.get(run_id, ())) - 1)
        request = {"action": "CancelRun", "runId": run_id, "tasks": [[0, 0], [last, last]]}
        answer = self._ask(request, self._came(number))
        return answer is not None and answer["statusCode"] != 404

    def _meet_suspended(self, run_id: str) -> None:
        """Its user cancels it, tries it again before the controller does, or waits."""
        number, drawn = self._number_of.get(run_id), self._world.share("suspended", run_id)
        if number is None:
            return
        if drawn < CANCELLED:
            self._later(0.0, partial(self._cancel, number))
        elif drawn < RETRIED:
            request = {"action": "RetryRun", "runId": run_id, "clientToken": "suspended"}
            self._later(0.0, lambda: self._ask(request, self._came(number)) is not None)

    def _change(self, number: int, changes: JSON, token: str) -> bool:
        """A refused change is not repeated: the run has ended, or has spent more. An unknown run is changed later."""
        request: JSON = {"action": "UpdateRun", "runId": self._run_ids[number], "changes": changes}
        answer = self._ask({**request, "clientToken": token}, self._came(number))
        return answer is not None and answer["statusCode"] != 404

    def _scale(self, instances: int, types: Sequence[str], lasts_s: float | None) -> bool:
        wanted: JSON = {"action": "ScaleCluster", "instances": instances, "instanceTypes": [*types]}
        wanted |= {} if lasts_s is None else {"until": self._world.now + lasts_s}
        answer = self._ask(wanted)
        if answer is not None and answer["statusCode"] != 200:
            raise ValueError(f"the api refuses the size of the cluster: {answer['body']}")
        return answer is not None

    def _has_ended(self, run_id: str) -> bool:
        """According to the next version, too, whose commits the auditor reads at once; not for a torn record."""
        try:
            said = reading.run(self._deployment.store, run_id)
        except FAULTS:
            return False
        return said is not None and said.has_ended

    def _try_again(self, record: RunRecord) -> bool:
        if not record.has_ended or record.retries >= MOST_RETRIES or (record.id, record.retries) in self._answered:
            return False
        if not self._has_ended(record.id):
            return False
        number = self._number_of.get(record.id)
        request = _retry_of(record) | (self._chosen(record) if self._choose else {}) | self._fixed(record)
        answer = self._ask(request, UNNAMED if number is None else self._came(number))
        if answer is None:
            return True  # and they ask again
        self._answered.add((record.id, record.retries))
        created: bool = answer["statusCode"] == 200  # otherwise there is nothing to retry, or no money for it
        self.retries += created
        return created

    def _retry_too(self, retry: RetryRequest) -> None:
        """Between the checks of a retry and its storage another user retries other tasks of the run."""
        drawn = self._world.share("retried twice", retry.run_id, retry.failed, retry.cancelled)
        if drawn >= TWICE or retry.run_id in self._twice:
            return
        self._twice.add(retry.run_id)
        request = {"action": "RetryRun", "runId": retry.run_id, "failed": True, "cancelled": not retry.cancelled}
        self._ask({**request, "clientToken": "another"})

    def _fixed(self, record: RunRecord) -> JSON:
        """For some: another version of their program."""
        is_fixed = record.programs and self._world.share("fixed", record.id, record.retries) < FIXED
        return {"job": version_of_program(record.retries + 2)} if is_fixed else {}

    def _chosen(self, record: RunRecord) -> JSON:
        """For some: only two of the tasks without a result, or another size."""
        drawn, request = self._world.share("chosen", record.id, record.retries), dict[str, Any]()
        left = [index for index, row in enumerate(self._stored.tables[record.id]) if row[0] != TaskStatus.SUCCEEDED]
        if drawn < CHOSEN and left:
            request["tasks"] = [[each, each] for each in left[:2]]
        if not CHOSEN / 2 < drawn < 2 * CHOSEN:
            return request
        return request | {"memory": 2 * PLAIN_MIB, "vcpus": 1.5 * record.needs.cpu_units / 1024}


def _retry_of(record: RunRecord) -> JSON:
    """Of failed tasks and, for every other run, of cancelled ones; with more money if the budget was used up."""
    cancelled = crc32(f"cancelled/{record.id}/{record.retries}".encode()) % 2 == 0
    request: JSON = {"action": "RetryRun", "runId": record.id, "failed": True, "cancelled": cancelled}
    request["clientToken"] = f"retry-{record.retries}"
    if record.budget_usd and record.capped_at and cancelled:
        request["budgetUsd"] = record.cost_usd + record.budget_usd
    return request
