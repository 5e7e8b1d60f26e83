"""Does a run's marker come when the run is over, and does it say what became of it?

`marker`: `_SUCCESS` and `_FAILED` name the try of the run that they are about, which is no later one than the stored
one; that of the present try comes when all tasks have ended, and that of success when all have succeeded. At rest the
marker is about the last try.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.layout import RETRIES_METADATA, marker_uri, split_s3
from argosy.model.tasks import TERMINAL, TaskStatus
from tests.harness.simulation.audit.facts import Checker, EffectCheck, Operation, Rest

JSON = dict[str, Any]


class MarkerChecker(Checker):
    """Markers as they are written, and as they are left."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("s3", "put_object"): self._written}

    def at_rest(self, rest: Rest) -> None:
        for run_id, job in self.facts.jobs.items():
            record = self.facts.stored.records.get(run_id)
            if record is None or not record.has_ended or self.facts.torn_down:
                continue
            for succeeded in (True, False):
                marker = rest.objects.get(split_s3(marker_uri(job.output, succeeded)))
                if marker is not None and marker.metadata.get(RETRIES_METADATA) != str(record.retries):
                    self._violated(run_id, f"is left with a marker of try {marker.metadata}, of {record.retries}")

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
