"""`make gpu-check`: a machine that lacks something is named, and what a GPU does not keep is a failure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import argosy
from argosy.local.gpus import Gpu
from tests.fakes.mps import install_mps
from tests.harness.gpu_check import parts
from tests.harness.gpu_check.__main__ import pytorch_of, why_not

H200 = Gpu("GPU-11111111-2222-3333-4444-555555555555", "0", "NVIDIA H200", 143_771)


@dataclass
class Told:
    """A bench whose tasks print what the test says, one list for each run; `speeds` are those of its programs."""

    printed: list[list[dict[str, Any]]] = field(default_factory=list)
    speeds: list[float] = field(default_factory=list)
    scratch: Path = Path()
    gpus: Sequence[Gpu] = (H200,)
    share_mib: int = 8000
    on_cpu: bool = False

    def rows(self, words: Sequence[str], tasks: int, **resources: Any) -> list[dict[str, Any]]:
        return self.printed.pop(0)

    def program(self, image: str, words: Sequence[str]) -> None:
        Path(words[-1]).write_text(json.dumps({"imagesPerSecond": self.speeds.pop(0)}))

    by_hand = program

    def folder(self) -> str:
        return str(self.scratch)


def whole(*times: tuple[float, float], right: bool = True) -> list[dict[str, Any]]:
    return [{"began": began, "ended": ended, "right": right} for began, ended in times]


IN_TURN = [(float(n), n + 0.9) for n in range(8)]


@pytest.mark.parametrize(
    ("rows", "gpus", "enough"),
    [
        (whole(*IN_TURN), 1, True),
        (whole(*IN_TURN, right=False), 1, False),
        (whole(*IN_TURN[:7], (6.5, 8.0)), 1, False),  # two on one GPU
        (whole(*IN_TURN[:7], (6.5, 8.0)), 2, True),
        (whole(*IN_TURN[:7]), 1, False),
    ],
)
def test_tasks_with_whole_gpus_take_turns_and_are_right(rows: list[Any], gpus: int, enough: bool) -> None:
    assert parts.one_after_another(Told([rows], gpus=[H200] * gpus)).enough is enough  # type: ignore[arg-type]


@pytest.mark.parametrize(("each", "on_cpu", "enough"), [(753.0, False, True), (600.0, False, False), (1.0, True, None)])
def test_eight_shares_do_most_of_what_they_did_by_hand(each: float, on_cpu: bool, enough: bool | None) -> None:
    bench = Told([[{"imagesPerSecond": 878.0}], [{"imagesPerSecond": each}] * 8], on_cpu=on_cpu)
    assert parts.sharing(bench).enough is enough  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("row", "enough"),
    [
        ({"limit": "0=4000M", "quarter": True, "double": False}, True),
        ({"limit": "0=4000M", "quarter": True, "double": True}, False),
        ({"limit": "0=4000M", "quarter": False, "double": False}, False),
        ({"limit": "", "quarter": True, "double": False}, False),
    ],
)
def test_the_memory_of_a_share_is_enforced(row: dict[str, Any], enough: bool) -> None:
    assert parts.memory_limit(Told([[row]])).enough is enough  # type: ignore[arg-type]


@pytest.mark.parametrize(("through", "enough"), [(4700.0, True), (4600.0, False)])
def test_training_through_argosy_is_as_fast_as_by_hand_before_and_after(
    through: float, enough: bool, tmp_path: Path
) -> None:
    bench = Told(speeds=[4710.0, through, 4720.0], scratch=tmp_path)
    assert parts.training(bench).enough is enough  # type: ignore[arg-type]


def test_a_part_that_cannot_end_is_a_failure_and_the_others_run() -> None:
    class Stuck(Told):
        def rows(self, words: Sequence[str], tasks: int, **resources: Any) -> list[dict[str, Any]]:
            if words[0] == "whole":
                raise argosy.ArgosyError("it was still RUNNING")
            return super().rows(words, tasks, **resources)

    told = Stuck([[{"limit": "0=4000M", "quarter": True, "double": False}]])
    first, second = parts.run(told, ["whole GPUs", "memory of a share"])  # type: ignore[arg-type]
    assert (first.enough, first.found, second.enough) == (False, "it was still RUNNING", True)


def test_what_a_machine_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    pytorch = ("/usr/bin/python3", "2.11.0", True)
    assert why_not((), pytorch, on_cpu=False) == "this machine has no GPU"
    assert why_not((H200,), None, on_cpu=False) == "no Python with PyTorch"
    blind = ("/usr/bin/python3", "1.13.1", False)
    assert why_not((H200,), blind, on_cpu=False) == "PyTorch 1.13.1 sees no GPU"
    assert "nvidia-cuda-mps-control is not installed" in why_not((H200,), pytorch, on_cpu=False)
    install_mps(tmp_path)
    assert why_not((H200,), pytorch, on_cpu=False) == why_not((H200,), blind, on_cpu=True) == ""
    assert pytorch_of(str(tmp_path / "python")) is None
    assert [row.found for row in parts.not_run(list(parts.PARTS), "no GPU")] == ["not run: no GPU"] * 5
