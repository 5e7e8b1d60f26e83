"""Does the history have one true row for every attempt?

H1: no attempt has two rows, and none with a row is alive. H2: a row names the ECS task, the instance and the exit code
that really occurred, and reports no success that was not one. H3: a run that is over has as many rows as attempts,
and each ECS task that was started is among them. Attempts that were alive when their run was closed while suspended
need no row, also if the run is retried (decision 25).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from typing import Any, NamedTuple

from argosy.layout import history_part_uri, split_s3
from argosy.lifecycle.suspension import CANCELLED, GIVEN_UP
from argosy.messages.ecs import key_of_task
from argosy.model.arns import name_of
from argosy.model.ended_attempts import EndedAttempt, Outcome
from argosy.model.history_parts import from_npz
from argosy.model.run_record import RunRecord
from argosy.model.tasks import NO_EXIT_CODE
from tests.harness.simulation.audit.facts import Checker, Commit, EffectCheck, Operation, TrialFacts, TrialResults

JSON = dict[str, Any]
AttemptName = tuple[str, int, int]
"""Run id, index, attempt."""
UNWATCHED = (CANCELLED, GIVEN_UP.format(""))
"""The reason of a run that ended while it was suspended contains this: the ends of its last attempts were not seen."""
WITHOUT_TASK = (Outcome.LOST, Outcome.INTERRUPTED, Outcome.CANCELLED)
"""The outcomes of a launch of which nothing was ever known: users may have cancelled it."""


class StartedTask(NamedTuple):
    """An attempt that ECS really started."""

    attempt: AttemptName
    instance: str


class UnseenEnds(NamedTuple):
    """Attempts of a run whose ends were not seen.
    counted: the number in its record; attempts: index and attempt of all that ECS started.
    """

    counted: int
    attempts: Set[tuple[int, int]] = frozenset()


class HistoryChecker(Checker):
    """The stored rows of ended attempts, compared with the world's own census."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._started: dict[str, StartedTask] = {}
        """By task id."""
        self._exit_codes: dict[str, int] = {}
        """By task id, as its agent reported it."""
        self._rows: defaultdict[str, dict[tuple[int, int], EndedAttempt]] = defaultdict(dict)
        """By run, then by index and attempt."""
        self._unwatched: set[str] = set()
        """Runs that ended while they were suspended and have not been retried since."""
        self._unseen: dict[str, UnseenEnds] = {}
        """By run that was retried after that."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("ecs", "run_task"): self._launched}

    def heard(self, message: JSON) -> None:
        detail = message["detail"]
        if message["detail-type"] != "ECS Task State Change" or detail.get("lastStatus") != "STOPPED":
            return
        code = next((each["exitCode"] for each in detail["containers"] if "exitCode" in each), None)
        if code is not None:
            self._exit_codes[name_of(detail["taskArn"])] = code

    def committed(self, commit: Commit) -> None:
        stored = self.facts.stored
        for record in stored.records.values():
            self._note_unseen(record)
        live = {each.key[:3] for each in stored.live.values()} if stored.ended else set()
        for run_id, row in stored.ended:
            name = (run_id, row.index, row.attempt)
            if row.amends:
                self._amend(name, row)
            elif row[:2] in self._rows[run_id]:
                self._violated("H1", name, "has two rows in the history")
            else:
                self._rows[run_id][row[:2]] = row
                self._check(name, row)
            if name in live:
                self._violated("H1", name, "has a row in the history and is alive")

    def at_rest(self, rest: TrialResults) -> None:
        for run_id, record in self.facts.stored.records.items():
            if not record.has_ended or run_id in self._unwatched:
                continue
            rows, unseen = self._rows[run_id], self._unseen.get(run_id, UnseenEnds(0))
            if not record.attempts - unseen.counted <= len(rows) <= record.attempts:
                sentence = f"{run_id} had {record.attempts} attempts, its history has {len(rows)}"
                self.facts.violated("H3", sentence, run_id)
            self._check_parts(record, rest)
            for task in self._started.values():
                if task.attempt[0] == run_id and task.attempt[1:] not in (rows.keys() | unseen.attempts):
                    self._violated("H3", task.attempt, "ran, and is not in the history")

    def _note_unseen(self, record: RunRecord) -> None:
        """Attempts without a row when a run that was closed unwatched is retried never get one."""
        if record.has_ended and any(reason in record.status_reason for reason in UNWATCHED):
            self._unwatched.add(record.id)
        elif record.id in self._unwatched:
            self._unwatched.remove(record.id)
            rows = self._rows[record.id].keys()
            started = {task.attempt[1:] for task in self._started.values() if task.attempt[0] == record.id}
            self._unseen[record.id] = UnseenEnds(record.attempts - len(rows), started - rows)

    def _check_parts(self, record: RunRecord, rest: TrialResults) -> None:
        """The results of a finished run include all of its rows, with their amendments."""
        found: dict[tuple[int, int], EndedAttempt] = {}
        for begin, part in zip(["", *(part.to for part in record.history)], record.history, strict=False):
            stored = rest.objects.get(split_s3(history_part_uri(record.output, begin, part.to)))
            rows = [] if stored is None else list(from_npz(stored.body).rows())
            plain = {row[:2]: row for row in rows if not row.amends}
            if len(rows) != part.rows or len(plain) + sum(row.amends for row in rows) != part.rows:
                self.facts.violated(
                    "H3", f"a part of {record.id} has {len(rows)} rows instead of {part.rows}", record.id
                )
            found |= plain
            for row in rows:
                if row.amends and row[:2] in found:
                    found[row[:2]] = found[row[:2]]._replace(outcome=row.outcome)
        told = {key: (row.outcome, row.task_id) for key, row in found.items()}
        if told != {key: (row.outcome, row.task_id) for key, row in self._rows[record.id].items()}:
            self.facts.violated(
                "H3", f"the rows next to the results of {record.id} are not those of its commits", record.id
            )

    def _launched(self, request: JSON, reply: JSON) -> None:
        key = key_of_task(request)
        for task in reply["tasks"] if key else ():
            assert key is not None
            there = self.facts.regions.task(task["taskArn"])
            if there is not None:
                started = StartedTask(key[:3], there.instance.ec2_instance_id)
                self._started[name_of(task["taskArn"])] = started

    def _amend(self, name: AttemptName, row: EndedAttempt) -> None:
        before = self._rows[name[0]].get(row[:2])
        if before is None or before.outcome is not Outcome.SUCCEEDED:
            self._violated("H1", name, "is amended, and there is no success to amend")
        else:
            self._rows[name[0]][row[:2]] = before._replace(outcome=row.outcome, exit_code=row.exit_code)

    def _check(self, name: AttemptName, row: EndedAttempt) -> None:
        if not row.task_id:
            if row.outcome not in WITHOUT_TASK:
                self._violated("H2", name, f"ended as {row.outcome.name} without an ECS task")
            return
        task = self._started.get(row.task_id)
        if task is None or task != (name, row.instance):
            self._violated("H2", name, f"names task {row.task_id} on {row.instance}, which was {task}")
        code = self._exit_codes.get(row.task_id)
        if row.exit_code not in (NO_EXIT_CODE, code):
            self._violated("H2", name, f"ended with exit code {row.exit_code}, and really with {code}")
        job = self.facts.jobs.get(name[0])
        went_well = row.exit_code == 0 and not (job is not None and job.serves)  # a server is never done
        went_well = went_well and row.outcome is not Outcome.WITH_GANG  # it was stopped, and may say so with code 0
        if (row.outcome is Outcome.SUCCEEDED) != went_well:
            self._violated("H2", name, f"ended as {row.outcome.name} with exit code {row.exit_code}")

    def _violated(self, invariant: str, name: AttemptName, sentence: str) -> None:
        names = self.facts.names(name[0], name[1])
        self.facts.violated(invariant, f"attempt {name[2]} of task {name[1]} of {name[0]} {sentence}", *names)
