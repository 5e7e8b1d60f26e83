"""Does stored progress only move forward and report the real events?

The markers of runs do, too. I2: at most one committed outcome per task. I3: terminal states stay. I4: counters agree
with the tasks, and with the manifest at rest. I8: user attempts and losses stay within their limits and are counted
apart, and no task fails without a reason. I9: the version never decreases. R4: at rest, every task of every run has
ended, and every run is closed.
`marker`: `_SUCCESS` and `_FAILED` name a try of the run that is no later than the stored one. The marker of the present
try comes when all tasks have ended, and that of success when all have succeeded. At rest it is the marker of the last
try. `program`: each part was made by the version of the program that the manifest says of its task. `seen`: when
nothing goes wrong, an ended task is stored as ended within SEEN_S.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from typing import Any, NamedTuple

from argosy.client.errors import ArgosyError
from argosy.client.results.manifest import Manifest
from argosy.layout import RETRIES_METADATA, manifest_uri, marker_uri, part_suffix, part_uri, split_s3
from argosy.lifecycle.suspension import CANCELLED, DELETED
from argosy.messages.ecs import key_of_task
from argosy.model.attempts import AttemptKey
from argosy.model.exit_codes import TEMPORARY, WRONG_REQUEST
from argosy.model.policy import Policy
from argosy.model.run_record import RunRecord
from argosy.model.runs import TERMINAL_RUN, RunStatus
from argosy.model.tasks import TERMINAL, TaskStatus
from tests.harness.simulation.audit.facts import Checker, Commit, EffectCheck, Operation, TrialFacts, TrialResults
from tests.harness.simulation.world.workload import JOB_METADATA, SimulatedJob

JSON = dict[str, Any]


REFUSALS = ("no task can be started: ", "the run could not be prepared: ")


# Trials tick up to 127 s apart, and each lost commit costs a tick. Since a failure keeps its time over lost commits,
# the three slowest of 70 trials without a lease take 193, 118 and 108 s; they took 384, 222 and 198 s before.
SEEN_S = 300.0
TOOK_TOO_LONG = "argosy: the attempt took longer"  # begins the reason of the only stop that uses up a user attempt
UNPULLED = ("argosy: still PENDING after", "argosy: its image was still being pulled after")  # of a stuck task too


class TaskRow(NamedTuple):
    """The stored row of a task."""

    status: int
    user_failures: int
    losses: int
    committed: int
    """The attempt whose outcome counts; 0 = none yet."""


class ProgressChecker(Checker):
    """The tasks and runs as they are stored, compared with the real ends of the attempts."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._blamed: Counter[tuple[str, int]] = Counter()  # attempts that really ended through the user's fault
        self._refused: set[tuple[str, int]] = set()  # tasks for which a runner said that a retry cannot help
        self._ended_well: set[tuple[str, int, int]] = set()

    def heard(self, message: JSON) -> None:
        detail = message["detail"]
        if message["detail-type"] != "ECS Task State Change" or detail.get("lastStatus") != "STOPPED":
            return
        key = key_of_task(detail)
        if key is not None:
            self._ended(key, detail)

    def time_passed(self) -> None:
        if not self.facts.nothing_goes_wrong:
            return
        for each in self.facts.stored.live.values():
            task = self.facts.regions.task_by_id(each.task_id) if each.task_id else None
            ended_at = task.stopped_at if task is not None and task.last_status == "STOPPED" else None
            if ended_at and self.facts.world.now - ended_at > SEEN_S:
                sentence = f"{each.key} ended {self.facts.world.now - ended_at:.0f} s ago, and is stored as live"
                self.facts.violated("seen", sentence, each.key.run_id)

    def _ended(self, key: AttemptKey, detail: JSON) -> None:
        code = next((each["exitCode"] for each in detail.get("containers", ()) if "exitCode" in each), None)
        if code == 0:
            self._ended_well.add(key[:3])
        job = self.facts.jobs.get(key.run_id)
        may_lack = job is not None and job.expects_result and job.silent > 0
        has_runner = job is not None and "run" in job.spec
        is_ours = code == TEMPORARY and has_runner
        if code == WRONG_REQUEST and has_runner:
            self._refused.add(key[:2])
        failed = may_lack if code == 0 else code is not None and not is_ours
        by_itself = detail.get("stopCode") == "EssentialContainerExited" and self._stands(detail)
        if job is not None and job.serves:  # a server that ends has failed, and so has one that cannot start
            unpulled = str(detail.get("stoppedReason")).startswith(UNPULLED)
            failed, by_itself = True, by_itself or unpulled or detail.get("stopCode") == "TaskFailedToStart"
        if (by_itself and failed) or str(detail.get("stoppedReason")).startswith(TOOK_TOO_LONG):
            self._blamed[key[:2]] += 1

    def _stands(self, detail: JSON) -> bool:
        """Whether the task's instance was not shutting down."""
        host = self.facts.regions.host_of(str(detail.get("containerInstanceArn")))
        return host is not None and host.state == "running"

    def committed(self, commit: Commit) -> None:
        stored = self.facts.stored
        if stored.version not in (commit.version_before, commit.version_before + 1):
            self.facts.violated("I9", f"version {stored.version} follows {commit.version_before}")
        for run_id, table in stored.tables.items():
            before = commit.tables_before.get(run_id)
            if table is not before:
                self._check_run(run_id, before, self._final(run_id, run_id in commit.retried))

    def _final(self, run_id: str, is_retried: bool) -> tuple[TaskStatus, ...]:
        """The final statuses. A service may start a dropped task again, until its run is closed."""
        if self.facts.jobs[run_id].serves and not self.facts.stored.records[run_id].halted:
            return ()
        return _FINAL if is_retried else TERMINAL

    def _check_run(self, run_id: str, before: list[tuple[int, ...]] | None, final: tuple[TaskStatus, ...]) -> None:
        record, table = self.facts.stored.records[run_id], self.facts.stored.tables[run_id]
        counts = [0] * len(TaskStatus)
        for index, row in enumerate(table):
            counts[row[0]] += 1
            if before is None or index >= len(before) or row != before[index]:
                after = TaskRow(*row)
                if before is not None and index < len(before):
                    self._check_change(run_id, index, (TaskRow(*before[index]), after), final)
                self._check_task(run_id, index, after)
        if record.halted and record.status_reason.startswith(REFUSALS):
            self.facts.violated("I8", f"{run_id} is given up for a refusal that passed: {record.status_reason}", run_id)
        if tuple(counts) != record.counts:
            self.facts.violated("I4", f"{run_id} counts {[*record.counts]}, its tasks say {counts}")

    def _check_change(
        self, run_id: str, index: int, change: tuple[TaskRow, TaskRow], final: tuple[TaskStatus, ...]
    ) -> None:
        """final: the statuses that nothing may change."""
        (before, after), name = change, f"task {index} of {run_id}"
        names = self.facts.names(run_id, index)
        if before.status in final:
            ended, now = TaskStatus(before.status).name, TaskStatus(after.status).name
            self.facts.violated("I3", f"{name} had ended as {ended} and is now {now}", *names)
        if before.committed not in (0, after.committed):
            sentence = f"{name}: attempt {before.committed} was committed, now {after.committed}"
            self.facts.violated("I2", sentence, *names)

    def _check_task(self, run_id: str, index: int, row: TaskRow) -> None:
        name, names = f"task {index} of {run_id}", self.facts.names(run_id, index)
        job, policy = self.facts.jobs[run_id], self.facts.policy
        peers = [(run_id, each) for each in self._peers(job, index)]
        blamed = sum(self._blamed[each] for each in peers)
        limit = int(job.spec.get("retryStrategy", {}).get("attempts", 1))
        if job.serves:
            self._check_of_service(name, row, blamed, names)
            return
        if row.user_failures > limit or row.losses > policy.max_losses:
            sentence = f"{name} used {row.user_failures} user attempts of {limit} and {row.losses} losses"
            self.facts.violated("I8", sentence, *names)
        if row.user_failures > blamed:
            self.facts.violated("I8", f"{name}: {row.user_failures} user attempts booked, {blamed} used", *names)
        given_up = bool(self.facts.stored.records[run_id].halted) or bool(self._refused.intersection(peers))
        if sentence := unfounded_failure(row, limit, policy, given_up):
            self.facts.violated("I8", f"{name} {sentence}", *names)
        attempt = (run_id, index, row.committed)
        if row.status == TaskStatus.SUCCEEDED and attempt not in self._ended_well | self.facts.written:
            sentence = f"{name} succeeded by attempt {row.committed}, which did not end well"
            self.facts.violated("I2", sentence, *names)

    def _peers(self, job: SimulatedJob, index: int) -> range:
        """The tasks that are tried and charged together."""
        first = index - index % job.gang_size
        return range(first, first + job.gang_size)

    def _check_of_service(self, name: str, row: TaskRow, blamed: int, names: tuple[str, ...]) -> None:
        """It is retried forever, and the count decides how long that takes."""
        if row.user_failures > blamed:
            self.facts.violated("I8", f"{name}: {row.user_failures} failures booked, {blamed} ended by itself", *names)

    def at_rest(self, rest: TrialResults) -> None:
        for job in () if self.facts.torn_down else self.facts.jobs.values():
            self._check_closed(job, rest)

    def _check_closed(self, job: SimulatedJob, rest: TrialResults) -> None:
        record, table = self.facts.stored.records[job.run_id], self.facts.stored.tables[job.run_id]
        if record.status_reason.startswith((CANCELLED, f"{DELETED}; ")):
            return  # while it was suspended: its tasks and results stay as they are
        status, counts = record.status, Counter(TaskStatus(row[0]) for row in table)
        if status not in TERMINAL_RUN or any(row[0] not in TERMINAL for row in table):
            self.facts.violated("R4", f"{job.run_id} is {status.value} with {dict(counts)} at rest", job.run_id)
            return
        succeeded = status is RunStatus.SUCCEEDED
        own, other = (split_s3(marker_uri(job.output, well)) for well in (succeeded, not succeeded))
        manifest = rest.objects.get(split_s3(manifest_uri(job.output)))
        if manifest is None or own not in rest.objects:
            self.facts.violated("R4", f"{job.run_id} is closed without manifest or marker", job.run_id)
            return
        if other in rest.objects:
            sentence = f"{job.run_id} is {status.value}, and it has the opposite marker as well"
            self.facts.violated("R4", sentence, job.run_id)
        said = Manifest(BytesIO(manifest.body), lambda name: BytesIO(rest.objects[split_s3(job.output + name)].body))
        left = objects_left(job.output, rest)
        try:
            wrong = [
                entry["index"]
                for entry, row in zip(said.entries(), (TaskRow(*row) for row in table[:: job.gang_size]), strict=True)
                if entry["status"] != TaskStatus(row.status).name
                or entry["keys"] != left(entry["index"], row.committed)
            ]
        except (ArgosyError, ValueError) as fault:  # a part is missing, or entries are missing or repeated
            self.facts.violated("I4", f"the manifest of {job.run_id} is not whole: {fault}", job.run_id)
            return
        if foreign := list(self._of_another_version(job, record, rest, said.head)):
            self.facts.violated("program", f"{job.run_id}: {foreign[0]}", job.run_id)
        if lost := self._without_result(job, table, rest):
            self.facts.violated("I2", f"tasks {lost[:5]} of {job.run_id} succeeded, and their results are not there")
        if wrong or said.head["tasks"]["succeeded"] != counts[TaskStatus.SUCCEEDED]:
            self.facts.violated("I4", f"the manifest of {job.run_id} is wrong about tasks {wrong[:5]}", job.run_id)

    def _of_another_version(
        self, job: SimulatedJob, record: RunRecord, rest: TrialResults, head: Mapping[str, Any]
    ) -> Iterator[str]:
        """Parts that another version of the program wrote than the manifest says of their tasks."""
        jobs = [each.job for each in record.programs]
        if len(jobs) > 1 and [each["job"] for each in head["programs"]] != jobs:
            yield f"the manifest has the versions {head['programs']}, the record {jobs}"
        for entry in self._entries(job, rest) if job.expects_result and jobs else ():
            part = rest.objects.get(split_s3(part_uri(job.output, entry["index"], part_suffix(job.spec))))
            made_by = "" if part is None else part.metadata.get(JOB_METADATA, "")
            if entry["attempt"] and made_by != jobs[entry.get("program", 1) - 1]:
                yield f"version {entry.get('program', 1)} is said to have made task {entry['index']}, and {made_by} did"

    def _entries(self, job: SimulatedJob, rest: TrialResults) -> Iterator[dict[str, Any]]:
        body = rest.objects[split_s3(manifest_uri(job.output))].body
        return Manifest(BytesIO(body), lambda name: BytesIO(rest.objects[split_s3(job.output + name)].body)).entries()

    def _without_result(self, job: SimulatedJob, table: list[tuple[int, ...]], rest: TrialResults) -> list[int]:
        """Indexes of tasks whose exit code 0 counted although they wrote nothing."""
        rows = enumerate(table[:: job.gang_size])
        done = [index for index, row in rows if row[0] == TaskStatus.SUCCEEDED and job.expects_result]
        suffix = part_suffix(job.spec)
        return [index for index in done if split_s3(part_uri(job.output, index, suffix)) not in rest.objects]


def objects_left(output: str, rest: TrialResults) -> Callable[[int, int], list[str]]:
    """The keys that a manifest has to name, by index and committed attempt: the part, then the attempt's files."""
    bucket, folder = split_s3(output)
    by_whom: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for place, key in sorted(rest.objects):
        if place == bucket and key.startswith((f"{folder}parts/", f"{folder}attempts/")):
            first, name, *below = key.removeprefix(folder).split("/")
            by_whom[(name, below[0]) if first == "attempts" else (name.removeprefix("part-")[:7],)].append(key)

    def left(index: int, attempt: int) -> list[str]:
        task = f"{index:07d}"
        return by_whom[task,] + by_whom[task, str(attempt)] if attempt else []

    return left


_FINAL = (TaskStatus.SUCCEEDED,)  # when a user retries a run: the other tasks become pending again


def unfounded_failure(row: TaskRow, limit: int, policy: Policy, given_up: bool) -> str:
    """The fault of a task's end; "" = nothing.

    No task fails that has attempts left, unless its run was given up. limit: user attempts that the spec allows.
    """
    least_losses = min(policy.max_losses, policy.max_start_failures)  # the reason of each loss is not stored
    if given_up or row.status != TaskStatus.FAILED or row.user_failures >= limit or row.losses >= least_losses:
        return ""
    return f"failed after {row.user_failures} user attempts of {limit} and {row.losses} losses"


class MarkerChecker(Checker):
    """Markers when they are written, and at the end."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("s3", "put_object"): self._written}

    def at_rest(self, rest: TrialResults) -> None:
        for run_id, job in self.facts.jobs.items():
            record = self.facts.stored.records.get(run_id)
            if record is None or not record.has_ended or self.facts.torn_down:
                continue
            for succeeded in (True, False):
                marker = rest.objects.get(split_s3(marker_uri(job.output, succeeded)))
                if marker is None:
                    continue
                named = int(marker.metadata.get(RETRIES_METADATA, -1))
                # A success stays from the try that wrote it, if the controller failed before it stored the close.
                if not (0 <= named <= record.retries if succeeded else named == record.retries):
                    self._violated(run_id, f"is left with a marker of try {named}, of {record.retries}")

    def _written(self, request: JSON, reply: JSON) -> None:
        place = request["Bucket"], request["Key"]
        for run_id, job in self.facts.jobs.items():
            for succeeded in (True, False):
                if place == split_s3(marker_uri(job.output, succeeded)):
                    self._check(run_id, succeeded, int(request.get("Metadata", {}).get(RETRIES_METADATA, -1)))

    def _check(self, run_id: str, succeeded: bool, named: int) -> None:
        record, table = self.facts.stored.records[run_id], self.facts.stored.tables[run_id]
        statuses = {TaskStatus(row[0]) for row in table}
        if not 0 <= named <= record.retries:
            self._violated(run_id, f"gets a marker of try {named}, and is at its try {record.retries}")
        elif named == record.retries and (record.revives or not statuses <= set(TERMINAL)):
            self._violated(run_id, f"gets a marker while its tasks are {sorted(each.name for each in statuses)}")
        elif succeeded and named == record.retries and statuses != {TaskStatus.SUCCEEDED}:
            self._violated(run_id, "gets the marker of success, and not all of its tasks have succeeded")

    def _violated(self, run_id: str, sentence: str) -> None:
        self.facts.violated("marker", f"{run_id} {sentence}", run_id)


# In a trial, nothing is refused for good, and nothing for as long as a run can bear.
