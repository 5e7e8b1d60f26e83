"""Runs on a simulated AWS whose controllers record their work, and the folder of these records."""

from __future__ import annotations

import json
import zlib
from typing import Any

from tests.harness.simulation.controllers.recorded import RecordedTrial
from tests.harness.simulation.plan import TrialPlan
from tests.harness.simulation.trial import RECORDED, Trial


def recorded(seed: int, kinds: frozenset[str] = frozenset(), **plan: object) -> RecordedTrial:
    """The recording of a trial that ends well and that its replay reproduces; seed: a multiple of RECORDED."""
    assert seed % RECORDED == 0
    trial = Trial(TrialPlan(seed, kinds, **plan))  # type: ignore[arg-type]
    verdict = trial.run()
    assert verdict.ok, verdict.violations[0]
    assert trial.recorded is not None
    return trial.recorded


def edited(trial: RecordedTrial, change: Any) -> RecordedTrial:
    """The same record, with every line changed by hand."""
    copy = RecordedTrial()
    for name, body in trial.files.items():
        lines = [json.loads(line) for line in zlib.decompress(body, wbits=31).splitlines()]
        for line in lines:
            change(line)
        pack = zlib.compressobj(wbits=31)
        copy.files[name] = pack.compress(b"".join(json.dumps(line).encode() + b"\n" for line in lines)) + pack.flush()
    return copy
