"""The measurements: `python -m tests.harness.bench place|shares|allocate|deadline|inputs|map`."""

from __future__ import annotations

from argosy.cli.main import main
from tests.harness.bench.allocate import allocate
from tests.harness.bench.deadline import deadline
from tests.harness.bench.inputs import inputs
from tests.harness.bench.map import map
from tests.harness.bench.place import place
from tests.harness.bench.shares import shares
from tests.harness.programs import program

app = program(place, shares, allocate, deadline, inputs, map, about="Measure Argosy on this machine.")

if __name__ == "__main__":
    main(app)
