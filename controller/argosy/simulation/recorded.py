"""Does what the controllers of a trial recorded give again what they knew and decided?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from argosy.model.policy import Policy
from argosy.recording.recorder import FOLDER, Recorder
from argosy.replay.chains import NotRecorded, chains_of
from argosy.replay.replaying import Replay


@dataclass(slots=True)
class RecordedTrial:
    """An archive in memory, and the shelf to read it from."""

    files: dict[str, bytes] = field(default_factory=dict)
    recorders: list[Recorder] = field(default_factory=list)

    def recorder(self, policy: Policy) -> Recorder:
        """For another process."""
        self.recorders.append(Recorder(self, policy, f"c{len(self.recorders)}"))
        return self.recorders[-1]

    def put(self, name: str, body: bytes) -> None:
        self.files[name] = body

    def names(self, folder: str) -> list[str]:
        return sorted(name for name in self.files if name.startswith(folder))

    def get(self, name: str) -> bytes:
        return self.files[name]

    def faults(self) -> list[str]:
        """What is not as it was, in sentences. The last minutes of a controller that died may be missing."""
        for recorder in self.recorders:
            recorder.flush()
        versions: Counter[int] = Counter()
        found = []
        for chain in chains_of(self.names(FOLDER)):
            replay, told = Replay(), Counter[str]()
            for version, differences in _ticks(replay, chain.lines(self), told):
                versions[version] += 1
                found += [f"{chain.name}, version {version}: {each}" for each in differences]
            found += [f"{chain.name}: {each}" for each in [*replay.strangeness, *told]]
        found += [f"version {version} is recorded {times} times" for version, times in versions.items() if times > 1]
        return found


def _ticks(replay: Replay, lines: Iterator[object], told: Counter[str]) -> Iterator[tuple[int, list[str]]]:
    """The version and the differences of each tick that wrote something, until the first difference."""
    try:
        for tick in replay.ticks(lines):  # type: ignore[arg-type]
            if tick.version is not None:
                yield tick.version, tick.differences
            if tick.differences:
                return
    except NotRecorded as gap:
        if "because the controller said" not in str(gap):  # its own code had failed: that is told, and no fault
            told[str(gap)] += 1
