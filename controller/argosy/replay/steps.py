"""What did the controller know and decide at a given time? Its own steps, run again on the recording.

Exact on the same code: every tick's documents are compared with those that were committed, every decision with the
recorded one. A difference is reported, never hidden.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from argosy.catalogue.lookup import load_catalogue
from argosy.engine.steps import begin, conclude, take
from argosy.lifecycle.apply import pass_time
from argosy.model.actions import Action
from argosy.model.events import Event, Observed
from argosy.model.journal.commit import documents_of_commit
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.stored.documents import StoredItems
from argosy.placement.custom import OwnFunctions
from argosy.recording.codec import action_to_json, body_of, fact_from_json, from_text
from argosy.recording.recorder import Start, code_digest, digest_of, platform_now, switches_from_json
from argosy.replay.chains import NotRecorded
from argosy.scheduler.decide import NO_FUNCTIONS
from argosy.spec.earlier_versions import current

Line = tuple[Mapping[str, Any], list[Any]]
REPORTED = "the controller reported"  # then names a fault in the controller's code; replay stops there


@dataclass(slots=True)
class Tick:
    """One replayed tick. moment: the input of the decision; do not change its state."""

    moment: Moment
    facts: list[tuple[Event, float]]
    actions: list[Action] = field(default_factory=list)
    version: int | None = None
    digest: str = ""  # of the documents, as recorded
    differences: list[str] = field(default_factory=list)  # from the record, in sentences


@dataclass(slots=True)
class Replay:
    """Takes the lines of a chain one after the other."""

    functions: OwnFunctions = NO_FUNCTIONS
    state: State | None = None
    policy: Policy = field(default_factory=Policy)
    sweep: list[Event] = field(default_factory=list)
    strangeness: list[str] = field(default_factory=list)  # how this machine differs from the controller's, in sentences

    def ticks(self, lines: Iterable[Line]) -> Iterator[Tick]:
        """Each tick twice: as its decision is about to be made (no actions yet), and once it is over. Raises
        NotRecorded."""
        for head, line in lines:
            self._check(head)
            if line[0] == "load":
                self._load(line[1])
            elif line[0] == "sweep":
                seen = fact_from_json("Observed", line[1])
                assert isinstance(seen, Observed)
                self.sweep = [*seen.fleets, *seen.hosts, *seen.container_instances, *seen.tasks, seen]
            elif line[0] == "tick":
                yield from self._tick(*line[1:])
            else:
                raise NotRecorded(f"a line of the kind {line[0]!r} is not known to this version")

    def _check(self, head: Mapping[str, Any]) -> None:
        if self.state is not None:
            return
        self.policy = _policies().validate_python(head["policy"])
        if head["code"] != code_digest():
            self.strangeness.append(f"the controller ran different code: {head['code']}, here it is {code_digest()}")
        for name, there in head["platform"].items():
            if (here := platform_now().get(name)) != there:
                self.strangeness.append(f"the controller had {name} {there}, here it is {here}")

    def _load(self, values: Mapping[str, Any]) -> None:
        runs = {
            run_id: (body_of(record), {name: current(name, body) for name, body in from_text(rest).items()})
            for run_id, (record, rest) in values["runs"].items()
        }
        self.state = StoredItems(values["version"], from_text(values["items"]), runs).state()
        begin(self.state, Start(values["at"], values["epoch"], values["is_new"]), self.policy)

    def _tick(self, known: Mapping[str, Any], facts: list[Any], actions: list[Any]) -> Iterator[Tick]:
        state = self.state
        if state is None:
            raise NotRecorded("the record is incomplete: the state that the controller loaded is missing")
        taken = [(self._fact(said), at) for at, said in facts]
        for fact in taken:
            take(state, fact, self.policy)
        pass_time(state, known["passedAt"], self.policy)
        switches = switches_from_json(known["switches"])
        moment = Moment(state, load_catalogue(), known["decidedAt"], self.policy)
        tick = Tick(moment, taken)
        yield tick
        tick.actions = conclude(moment, switches, self.functions, known["deletions"])
        puts, _ = documents_of_commit(state, known["decidedAt"])
        tick.differences = [] if known["fault"] else _differences(known, actions, tick.actions, digest_of(puts))
        tick.version, tick.digest = known["version"], known["digest"]
        if tick.version is not None:
            documents.committed(state)
        state.left_out.clear()
        state.losses.found.clear()  # they are reported once
        yield tick
        if known["fault"]:
            raise NotRecorded(f"the record ends here, because {REPORTED}: {known['fault']}")

    def _fact(self, said: Any) -> Event:
        return self.sweep[said] if isinstance(said, int) else fact_from_json(*said)


@cache
def _policies() -> TypeAdapter[Policy]:
    return TypeAdapter(Policy)


def _differences(known: Mapping[str, Any], recorded: list[Any], actions: list[Action], digest: str) -> list[str]:
    found = []
    again = [json.loads(action_to_json(action)) for action in actions]
    if again != recorded:
        found.append(f"the decision differs: {len(again)} actions instead of {len(recorded)}, or different ones")
    if digest != known["digest"]:
        found.append("the documents that it wrote differ")
    return found
