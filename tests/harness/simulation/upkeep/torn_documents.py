"""Does an unreadable document of one run leave all other runs alone?

One document is torn, and every controller restarts. Violations of that run do not count from then on, and all others
have to end as usual.
"""

from __future__ import annotations

from argosy.model.runs import sort_key
from argosy.model.stored import documents
from tests.harness.simulation.audit.facts import TrialFacts
from tests.harness.simulation.controllers.deployment import TABLE, SimulatedDeployment
from tests.harness.simulation.faults import Faults


class TornDocuments:
    """Of one trial."""

    def __init__(self, deployment: SimulatedDeployment, facts: TrialFacts, faults: Faults) -> None:
        self._deployment, self._facts, self._faults = deployment, facts, faults

    def plan(self, faulty_s: float) -> None:
        """At a random time in the phase of faults."""
        if self._faults.on("torn-document"):
            self._deployment.world.later(faulty_s * self._deployment.world.share("tear"), self._tear)

    def _tear(self) -> None:
        """The record of an open run, its spec, or some of its tasks."""
        world, stored = self._deployment.world, self._facts.stored
        runs = [run_id for run_id, record in stored.records.items() if not record.has_ended]
        if not runs or not self._faults.strikes("torn-document"):
            return
        run_id = runs[int(len(runs) * world.share("torn run"))]
        table = self._deployment.services.dynamodb.tables[TABLE]
        places = [(documents.RUNS, sort_key(run_id))]
        places += [(documents.run_partition(run_id), name) for name in sorted(table[documents.run_partition(run_id)])]
        partition, name = places[int(len(places) * world.share("torn document"))]
        item = table[partition][name]
        whole = item["body"]["B"]
        torn = (whole[: len(whole) // 2], whole[:-1] + bytes([whole[-1] ^ 1]), b"")[int(3 * world.share("tear how"))]
        table[partition][name] = {**item, "body": {"B": torn}}
        self._facts.damaged.add(run_id)
        self._facts.ledger_is_lost |= partition == documents.RUNS
        self._facts.trail.add(world.now, "a document is torn", {"run": run_id, "document": f"{partition} / {name}"})
        self._deployment.restart()
