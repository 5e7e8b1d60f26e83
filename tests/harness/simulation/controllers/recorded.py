"""Do a trial's recordings reproduce the input and decisions of its controllers?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from argosy.layout import JOURNAL
from argosy.model.policy import Policy
from argosy.recording.recorder import Recorder
from argosy.replay.chains import NotRecorded, chains_of
from argosy.replay.steps import REPORTED, Replay


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
        """All differences, as sentences. The last minutes of a controller that died may be missing."""
        for recorder in self.recorders:
            recorder.flush()
        committed: dict[int, list[tuple[str, str]]] = {}  # by version: by which process, and what
        found = []
        for chain in chains_of(self.names(JOURNAL)):
            replay, told = Replay(), Counter[str]()
            for version, digest, differences in _ticks(replay, chain.lines(self), told):
                committed.setdefault(version, []).append((chain.name.rpartition("-")[2], digest))
                found += [f"{chain.name}, version {version}: {each}" for each in differences]
            found += [f"{chain.name}: {each}" for each in [*replay.strangeness, *told]]
        return found + [f"version {version} is recorded twice" for version, by in committed.items() if _is_odd(by)]


def _is_odd(by: list[tuple[str, str]]) -> bool:
    """Two processes may make identical commits: the store takes the second for the first, and so does the replay."""
    return len(by) > len(dict(by)) or len({digest for _, digest in by}) > 1


def _ticks(replay: Replay, lines: Iterator[object], told: Counter[str]) -> Iterator[tuple[int, str, list[str]]]:
    """For each tick that wrote something, until the first difference: version, digest of the documents, differences."""
    try:
        for tick in replay.ticks(lines):  # type: ignore[arg-type]
            if tick.version is not None:
                yield tick.version, tick.digest, tick.differences
            if tick.differences:
                return
    except NotRecorded as gap:
        if REPORTED not in str(gap):  # its own code had failed: that is reported, and is no fault
            told[str(gap)] += 1
