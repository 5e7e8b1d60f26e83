"""Adds numbers, saves its progress, and resumes from there in the next attempt."""

import json
import os
import signal
import sys
from pathlib import Path

saved = Path(os.environ["ARGOSY_CHECKPOINT"], "state.json")
state = json.loads(saved.read_text()) if saved.exists() else {"step": 0, "sum": 0}
resumed, stops = state["step"], []
signal.signal(signal.SIGTERM, lambda *_: stops.append(True))
while state["step"] < 1000:
    state = {"step": state["step"] + 1, "sum": state["sum"] + state["step"]}
    if state["step"] == 600 and not resumed:
        os.kill(os.getpid(), signal.SIGTERM)  # stands for a Spot interruption
    if stops or state["step"] % 250 == 0:
        draft = saved.with_suffix(".draft")
        draft.write_text(json.dumps(state))
        draft.replace(saved)
    if stops:
        (saved.parent / ".commit").touch()  # this state counts, however the program ends
        sys.exit(143)
print(json.dumps({**state, "resumed": resumed}))
