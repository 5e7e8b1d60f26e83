"""Is what the controller has recorded about AWS's contracts so?

`reading`: a sighting that is stored agrees with how the trial's AWS reads the contract, whatever is lost, late or
unanswered.
"""

from __future__ import annotations

from argosy.emulator.readings import QUEUE_STUCK
from argosy.model.readings import ROOM_BACK_EARLY, Readings, Sighting
from tests.harness.simulation.audit.facts import Checker, Commit, TrialFacts


class ReadingChecker(Checker):
    """The sightings in the state's root."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._held = set[str]()  # readings that ever held: the owner ends some of them
        self._known: dict[str, Sighting] = {}

    def committed(self, commit: Commit) -> None:
        present = self.facts.world.readings
        self._held |= present
        known, self._known = self._known, Readings.from_json(self.facts.stored.root.get("readings", {})).seen
        for name, sighting in self._known.items():
            names = {name, QUEUE_STUCK} if name == ROOM_BACK_EARLY else {name}
            agrees = bool(names & self._held) if sighting.holds else not names & present
            if sighting != known.get(name) and not agrees:
                self.facts.violated("reading", f"{name} is recorded as {sighting.holds}: {sighting.saw}", name)
