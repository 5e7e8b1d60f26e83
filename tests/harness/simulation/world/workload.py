"""The work of a trial, and its programs, which succeed, fail, hang and write results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from argosy.layout import ATTEMPT_METADATA, attempt_uri, part_suffix, part_uri, split_s3
from argosy.messages.ecs import key_of_task
from argosy.model.attempts import AttemptKey
from argosy.model.exit_codes import TEMPORARY, WRONG_REQUEST
from argosy.model.inbox import SubmitRequest
from argosy.model.program_versions import FIRST_ATTEMPT_VARIABLE
from argosy.model.run_terms import RunTerms
from argosy.runner.order import order_from
from argosy.spec import shards
from argosy.spec.terms import terms_of_form
from tests.harness.simulation.world.s3 import S3Model
from tests.harness.simulation.world.saving import SavingAttempt
from tests.harness.simulation.world.virtual_task import SIGTERM_CODE, TaskBehaviour
from tests.harness.simulation.world.world import share

JSON = dict[str, Any]
WITH_FILES, FILES = 0.1, 12  # share of attempts that leave files next to their part, and how many
VCPUS = 4  # of an instance
PLAIN_MIB = 1024  # of memory for a task
MOST_PLAIN = 7  # tasks with that much memory on an instance
BUCKET = "results"
JOB_METADATA = "argosy-job"  # of a part: the version of the program that wrote it
FALLS_ILL_S, LONGEST_ILL_S = 600.0, 400.0
RUNNER_FAILS, RUNNER_REFUSES = 0.3, 0.35  # share of the failures with a runner: S3 fails it, or the request is wrong
CANARY = "canary-7c1f-secret"  # a secret in the environment of every task: it must appear in no log


def version_of_program(number: int) -> str:
    """The job of a version of a program."""
    return f"s3://{BUCKET}/argosy/programs/jobs/{number}.json"


@dataclass(frozen=True)
class SimulatedJob:
    """The work of one run. Times in seconds; shares of tasks or attempts in 0..1."""

    run_id: str
    spec: Mapping[str, Any]
    tasks: int
    submitted_after_s: float = 0.0  # time after the trial's start; 0 = soon after the previous run
    shortest_s: float = 20.0
    longest_s: float = 240.0
    failing: float = 0.0  # attempts that end with code 1
    faulty: float = 0.0  # indexes whose every attempt ends so
    hanging: float = 0.0  # attempts that never end by themselves
    deaf: float = 0.0  # attempts that ignore SIGTERM
    unpullable: float = 0.0  # attempts whose image cannot be pulled
    silent: float = 0.0  # attempts that succeed and write nothing
    clean: float = 0.0  # attempts that answer SIGTERM with exit code 0, before they have written anything
    instant: float = 0.0  # attempts that take no time
    ill: float = 0.0  # attempts whose health command fails for a while
    never_well: float = 0.0  # attempts whose health command never succeeds
    upload_s: float = 0.0  # of a checkpoint; 0 = its programs save none

    @cached_property
    def terms(self) -> RunTerms:
        """The terms of its spec."""
        return terms_of_form(self.spec)

    @property
    def serves(self) -> bool:
        """Whether its tasks run until they are stopped, unless they fail."""
        return self.spec.get("kind") in ("service", "daemon")

    @property
    def is_daemon(self) -> bool:
        """Whether its tasks run on every instance that matches, and are not work."""
        return self.spec.get("kind") == "daemon"

    @property
    def has_health(self) -> bool:
        """Whether its container has a health command."""
        return "health" in self.spec.get("container", {})

    @property
    def gang_size(self) -> int:
        """1 = it has no gangs."""
        return shards.gang_size(self.spec)

    @property
    def expects_result(self) -> bool:
        """Whether success needs an object, as the spec says."""
        return shards.expects_result(self.spec)

    @property
    def longest_attempt_s(self) -> float:
        """Hanging ones have a time-out."""
        return float(self.spec.get("timeout", {}).get("attemptDurationSeconds", self.longest_s))

    @property
    def output(self) -> str:
        return f"s3://{BUCKET}/{self.run_id}/"

    def request(self, now: float) -> SubmitRequest:
        image = str(self.spec.get("container", {}).get("image", ""))
        return SubmitRequest(
            self.run_id, now, self.spec, self.terms, self.tasks, image, self.output, self.expects_result
        )


def environment_of(task: JSON) -> dict[str, str]:
    """What the task was started with."""
    overrides = task["overrides"]["containerOverrides"]
    return {each["name"]: each["value"] for override in overrides for each in override.get("environment", ())}


class Programs:
    """The behaviour of all jobs' containers. Chance depends on (index, attempt) alone, not on the order of events."""

    def __init__(self, seed: int, s3: S3Model, jobs: Mapping[str, SimulatedJob]) -> None:
        self._seed, self._s3, self._jobs = seed, s3, jobs
        self.written: set[tuple[str, int, int]] = set()
        """(run id, index, attempt) of every result, also of attempts whose end was not reported."""
        self.saving: list[SavingAttempt] = []
        """Attempts that save checkpoints, in the order in which they began."""
        self.good = False
        """Whether all programs succeed: in the phase in which everything has to end."""

    def behaviour(self, task: JSON) -> TaskBehaviour:
        key = key_of_task(task)
        job = self._jobs.get(key.run_id) if key else None
        if key is None or job is None:
            return TaskBehaviour()
        if self._unlucky(job.unpullable, "pull", key):
            return TaskBehaviour(cannot_start="CannotPullContainerError: pull access denied")
        failed = self._fails(job, key)
        first = key.index % job.gang_size == 0  # the result of a gang is that of rank 0
        writes = job.expects_result and first and not failed and not self._unlucky(job.silent, "silent", key)
        return TaskBehaviour(
            duration_s=self._duration_s(job, key),
            exit_code=self._failure_code(job, key) if failed else 0,
            obeys_s=None if self._unlucky(job.deaf, "deaf", key) else 0.5,
            obeys_with=0 if self._unlucky(job.clean, "clean", key) else SIGTERM_CODE,
            is_well=partial(self._is_well, job, key) if job.has_health else None,
            at_the_end=partial(self._write, job, key, environment_of(task)) if writes else None,
            saves=self._saving(job, key, environment_of(task)) if job.upload_s else None,
        )

    def _saving(self, job: SimulatedJob, key: AttemptKey, told: Mapping[str, str]) -> SavingAttempt | None:
        """As its environment orders it."""
        order = order_from(told)
        if order is None or order.checkpoint is None:
            return None
        return SavingAttempt(key, order.checkpoint, job.upload_s, self._s3, self.saving)

    def _is_well(self, job: SimulatedJob, key: AttemptKey, age_s: float) -> bool:
        """Some are unhealthy from the start, some become unhealthy and recover, or do not."""
        if self._unlucky(job.never_well, "well", key):
            return False
        begins_s, lasts_s = FALLS_ILL_S * self._share("falls ill", key), LONGEST_ILL_S * self._share("for", key)
        return not (self._unlucky(job.ill, "ill", key) and begins_s <= age_s < begins_s + lasts_s)

    def _fails(self, job: SimulatedJob, key: AttemptKey) -> bool:
        """With some indexes a program fails forever."""
        return self._unlucky(job.failing, "fail", key) or self._share("faulty", key._replace(attempt=0)) < job.faulty

    def _failure_code(self, job: SimulatedJob, key: AttemptKey) -> int:
        """For a failing attempt: with a user's own program it may be the runner that failed."""
        chance = self._share("code", key) if "run" in job.spec else 1.0
        return TEMPORARY if chance < RUNNER_FAILS else WRONG_REQUEST if chance < RUNNER_REFUSES else 1

    def _duration_s(self, job: SimulatedJob, key: AttemptKey) -> float:
        if self._unlucky(job.hanging, "hang", key) or (job.serves and not self._fails(job, key)):
            return float("inf")
        if self._unlucky(job.instant, "instant", key):
            return 0.0
        drawn = self._share("length", key._replace(attempt=0) if job.upload_s else key)
        return job.shortest_s + (job.longest_s - job.shortest_s) * drawn

    def _write(self, job: SimulatedJob, key: AttemptKey, told: Mapping[str, str]) -> None:
        """Its result, unless an earlier attempt has left one, whatever became of that. One that another version of the
        program left is replaced. Some attempts first leave other files: more than a part of the manifest takes.
        """
        if self._share("files", key) < WITH_FILES:
            bucket, folder = split_s3(attempt_uri(job.output, key.index // job.gang_size, key.attempt))
            for number in range(FILES):
                self._s3.put_object(Bucket=bucket, Key=f"{folder}{number}.txt", Body=b"a file\n")
        bucket, name = split_s3(part_uri(job.output, key.index // job.gang_size, part_suffix(job.spec)))
        there = self._s3.objects.get((bucket, name))
        first = int(told.get(FIRST_ATTEMPT_VARIABLE, 0))
        if there is None or int(there.metadata[ATTEMPT_METADATA]) < first:
            metadata = {ATTEMPT_METADATA: str(key.attempt), JOB_METADATA: told.get("ARGOSY_JOB", "")}
            condition = {"IfNoneMatch": "*"} if there is None else {"IfMatch": there.etag}
            self._s3.put_object(Bucket=bucket, Key=name, Body=b"{}\n", Metadata=metadata, **condition)
            self.written.add(key[:3])

    def _unlucky(self, rate: float, what: str, key: AttemptKey) -> bool:
        return bool(rate) and not self.good and self._share(what, key) < rate

    def _share(self, what: str, key: AttemptKey) -> float:
        return share(self._seed, what, *key[:3])
