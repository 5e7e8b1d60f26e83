"""Attempts of one task that are alive at once, each acting in the middle of the others' requests."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.model.exit_codes import WRONG_REQUEST
from argosy.runner.checkpoints import CheckpointChanged, Checkpoints
from argosy.runner.objects import StoredInput
from argosy.runner.order import CheckpointOrder, RunnerFault

URI = "s3://b/run/checkpoints/0000000/"


class Bucket:
    """Objects in memory. Before each request `meanwhile` is called, unless it is one of what that does."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self.kept: dict[str, bytes] = {}
        self._meanwhile, self._inside = meanwhile, False

    def _turn(self) -> None:
        if not self._inside:
            self._inside = True
            try:
                self._meanwhile()
            finally:
                self._inside = False

    def read(self, uri: str, what: str) -> bytes:
        self._turn()
        if uri not in self.kept:
            raise RunnerFault(WRONG_REQUEST, f"{what} {uri} could not be read: NoSuchKey")
        return self.kept[uri]

    def download(self, uri: str, path: Path, what: str) -> None:
        path.write_bytes(self.read(uri, what))

    def write(self, uri: str, body: bytes, what: str) -> None:
        self._turn()
        self.kept[uri] = body

    def upload(self, path: Path, uri: str, what: str) -> None:
        self.write(uri, path.read_bytes(), what)

    def delete(self, uri: str, what: str) -> None:
        self._turn()
        self.kept.pop(uri, None)

    def below(self, uri: str, what: str) -> Iterator[StoredInput]:
        self._turn()
        return iter([StoredInput(key.removeprefix("s3://b/"), len(body)) for key, body in [*self.kept.items()]])


def test_what_never_changes_is_sent_again_once_a_day_because_objects_expire_by_their_age() -> None:
    def keys(renewed_s: float) -> list[str]:
        """Of the objects that a second save writes."""
        with TemporaryDirectory() as above:
            return saved_again(Path(above), renewed_s)

    def saved_again(above: Path, renewed_s: float) -> list[str]:
        folder = above / "folder"
        folder.mkdir()
        (folder / "weights").write_text("same")
        bucket = Bucket(lambda: None)
        order = CheckpointOrder(URI, 1, 600.0, renewed_s)
        saving = Checkpoints(order, folder, above / "staging", bucket)  # type: ignore[arg-type]
        assert saving.save("time") is not None
        bucket.kept.clear()
        saving.save("time")
        return [key.removeprefix(URI).rpartition("/")[0] for key in bucket.kept]

    assert keys(CheckpointOrder(URI, 1, 0.0).renewed_s) == []
    assert keys(0.0) == ["1/files", "1"]


def test_a_stop_which_leaves_little_time_sends_again_only_what_is_due_for_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [2e9]
    monkeypatch.setattr(time, "time", lambda: now[0])
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "weights").write_text("same")
    order, bucket = CheckpointOrder(URI, 1, 600.0), Bucket(lambda: None)
    saving = Checkpoints(order, tmp_path / "folder", tmp_path / "staging", bucket)  # type: ignore[arg-type]
    saving.save("time")
    for days, cause, is_sent in (
        (1.5, "stop", False),
        (1.6, "commit", True),
        (2.5, "time", False),
        (3.7, "stop", True),
    ):
        now[0] = 2e9 + days * 86_400
        bucket.kept.clear()
        saving.save(cause)
        assert any("/files/" in key for key in bucket.kept) is is_sent, days


class World:
    """At most four attempts, and for each the states that it has completely saved, in order."""

    def __init__(self, folder: Path, draws: random.Random) -> None:
        self.bucket = Bucket(self._something)
        self._folder, self._draws, self._state, self._saving = folder, draws, 0, 0
        self.alive: dict[int, Checkpoints] = {}
        self.saved: dict[int, list[bytes]] = {}

    def begin(self) -> None:
        """The next attempt starts, whether or not the earlier ones have ended."""
        number = len(self.saved) + 1
        before = self._best()
        self.saved[number] = []
        own = self._folder / str(number)
        shutil.rmtree(own, ignore_errors=True)
        (own / "folder").mkdir(parents=True)
        order = CheckpointOrder(URI, number, 0.0)
        made = Checkpoints(order, own / "folder", own / "staging", self.bucket)  # type: ignore[arg-type]
        made.restore()
        found = self._content(number)
        possible = [b""] if not before else []
        for attempt, states in self.saved.items():
            possible += states if attempt > before else states[-1:] if attempt == before else []
        # what was newest when it started, or what came later
        assert found in [*possible, *([b""] if not before else self.saved[before][self._index :])]
        self.alive[number] = made

    def save(self, number: int) -> None:
        self._state, self._saving = self._state + 1, number
        (self._folder / str(number) / "folder" / "state").write_bytes(b"%d" % self._state)
        content = self._content(number)
        with suppress(CheckpointChanged):
            if self.alive[number].save("commit") is not None:
                self.saved[number].append(content)
        self._saving = 0

    def _best(self) -> int:
        """The highest attempt with a complete checkpoint; 0 = none."""
        best = max((attempt for attempt, states in self.saved.items() if states), default=0)
        self._index = len(self.saved[best]) - 1 if best else 0
        return best

    def _content(self, number: int) -> bytes:
        path = self._folder / str(number) / "folder" / "state"
        return path.read_bytes() if path.exists() else b""

    def _something(self) -> None:
        others = sorted(self.alive.keys() - {self._saving})
        if others and self._draws.random() < 0.2:
            before = self._saving
            self.save(self._draws.choice(others))
            self._saving = before


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_a_restored_state_is_whole_and_never_older_than_the_newest_of_the_highest_attempt(seed: int) -> None:
    draws = random.Random(seed)
    with TemporaryDirectory() as folder:
        world = World(Path(folder), draws)
        world.begin()
        for _ in range(draws.randint(1, 10)):
            if len(world.saved) < 4 and draws.random() < 0.4:
                world.begin()
            else:
                world.save(draws.choice(sorted(world.alive)))
        world.begin()
