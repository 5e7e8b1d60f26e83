"""The program's arguments: which point of the grid? The command line says it, and the task's environment which row it
is."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

EXIT_BAD_INPUT = 64  # sysexits.h EX_USAGE; the run spec next to this program never retries it
FAMILIES = ("binomial", "gaussian")


@dataclass(frozen=True)
class Point:
    """glmnet's words: `alpha` mixes ridge (0) and lasso (1), `penalty` is its lambda."""

    alpha: float
    penalty: float
    family: str
    rows: int
    columns: int
    folds: int
    seed: int
    index: int


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(EXIT_BAD_INPUT, f"sweep: {message}\n")


def read_point(arguments: Sequence[str], environment: Mapping[str, str]) -> Point:
    """Raises SystemExit with EXIT_BAD_INPUT after one sentence on stderr that names every fault."""
    parser = _parser()
    given = parser.parse_args(arguments)
    faults = [*_faults(given), *_environment_faults(environment)]
    if faults:
        parser.error("; ".join(faults))
    return Point(
        alpha=given.alpha,
        penalty=given.penalty,
        family=given.family,
        rows=given.rows,
        columns=given.columns,
        folds=given.folds,
        seed=given.seed,
        index=int(environment.get("ARGOSY_TASK_INDEX", "0")),
    )


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="sweep", description="Cross-validate one point of an elastic-net grid on generated data.")
    parser.add_argument("--alpha", type=float, help="0 = ridge, 1 = lasso")
    parser.add_argument("--lambda", type=float, dest="penalty", help="how much coefficients cost, above 0")
    parser.add_argument("--family", choices=FAMILIES, default="binomial", help="response: two classes, or a number")
    parser.add_argument("--rows", type=int, default=400, help="of the generated data")
    parser.add_argument("--columns", type=int, default=100, help="of the generated data; 8 of them matter")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same data in every task")
    return parser


def _faults(given: argparse.Namespace) -> list[str]:
    wrong = {
        "--alpha must be a number from 0 to 1": given.alpha is None or not 0 <= given.alpha <= 1,
        "--lambda must be a number above 0": given.penalty is None or not 0 < given.penalty < math.inf,
        "--rows must be 20 or more": given.rows < 20,
        "--columns must be 8 or more": given.columns < 8,
        "--folds must be from 2 to a tenth of --rows": not 2 <= given.folds <= given.rows / 10,
        "--seed must be 0 or more": given.seed < 0,
    }
    return [fault for fault, found in wrong.items() if found]


def _environment_faults(environment: Mapping[str, str]) -> list[str]:
    index = environment.get("ARGOSY_TASK_INDEX", "0")
    return [] if re.fullmatch("[0-9]{1,9}", index) else [f"ARGOSY_TASK_INDEX {index!r} is not a number from 0 on"]
