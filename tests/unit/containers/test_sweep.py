"""The sweep's container program: one row for each point, the same data in every task, and which point is best."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.fakes.commands import outcome_of

pytestmark = pytest.mark.slow

CONTAINERS = Path(__file__).resolve().parents[3] / "containers"
FOLDER = CONTAINERS / "sweep"
SMALL = ["--rows", "60", "--columns", "12", "--folds", "3"]
POINT = ["--alpha", "0.5", "--lambda", "0.05", *SMALL]


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "sweep", *arguments],
        cwd=FOLDER,
        env=dict(os.environ) | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: str, **environment: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    process = outcome_of(["program", "sweep", *arguments], FOLDER, **environment)
    return process.returncode, process.stdout, process.stderr


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The modules of the program, imported here: scikit-learn takes a process a second to load."""
    import importlib

    monkeypatch.syspath_prepend(str(FOLDER))
    names = ("arguments", "best", "elastic_net")
    yield {name: importlib.import_module(f"sweep.{name}") for name in names}
    for name in [each for each in sys.modules if each.partition(".")[0] == "sweep"]:
        del sys.modules[name]


def fitted(program: dict[str, ModuleType], *arguments: str) -> Any:
    point = program["arguments"].read_point([*arguments], {})
    return program["elastic_net"].cross_validate(point)


def test_a_point_becomes_one_row_of_standard_output() -> None:
    code, out, err = run(*POINT, ARGOSY_TASK_INDEX="13")
    assert (code, err, out.count("\n")) == (0, "", 1)
    row = json.loads(out)
    assert list(row) == ["index", "alpha", "lambda", "deviance", "error", "nonzero", "converged", "seconds"]
    assert (row["index"], row["alpha"], row["lambda"]) == (13, 0.5, 0.05)


def test_every_task_draws_the_same_data_and_another_seed_draws_others(program: dict[str, ModuleType]) -> None:
    assert fitted(program, *POINT) == fitted(program, *POINT)
    assert fitted(program, *POINT) != fitted(program, *POINT, "--seed", "2")


@pytest.mark.parametrize("family", ["binomial", "gaussian"])
def test_lambda_and_alpha_do_what_they_do_in_glmnet(program: dict[str, ModuleType], family: str) -> None:
    def nonzero(alpha: float, penalty: float) -> int:
        found = fitted(program, "--alpha", str(alpha), "--lambda", str(penalty), "--family", family)
        assert found.converged
        return int(found.nonzero)

    assert nonzero(0, 0.1) == 100  # ridge drops nothing
    assert nonzero(1, 9) == 0  # everything is too expensive
    assert 0 < nonzero(1, 0.1) < nonzero(0.3, 0.1) < 100


def test_the_planted_signal_is_found(program: dict[str, ModuleType]) -> None:
    """Guessing has a deviance of 2 log 2 = 1.386, an overfit more."""
    good = fitted(program, "--alpha", "0.7", "--lambda", "0.03").deviance
    assert good < 1.0
    assert fitted(program, "--alpha", "0.7", "--lambda", "0.001").deviance > 1.5


def test_the_penalty_is_glmnets_formula(program: dict[str, ModuleType]) -> None:
    """At the optimum, each column's gradient of the loss / n is within alpha * lambda of ridge's part."""
    import numpy as np

    module = program["elastic_net"]
    point = program["arguments"].read_point(["--alpha", "0.5", "--lambda", "0.05"], {})
    inputs, responses = module.generate(point)
    fit = module.unfitted_model(point, point.rows).set_params(tol=1e-8).fit(inputs, responses)
    gradient = inputs.T @ (fit.predict_proba(inputs)[:, 1] - responses) / point.rows
    rest = np.abs(gradient + 0.05 * 0.5 * fit.coef_[0])
    assert rest.max() < 0.05 * 0.5 + 1e-4
    assert rest[fit.coef_[0] != 0].min() > 0.05 * 0.5 - 1e-4


def test_a_fit_that_does_not_converge_says_so(program: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program["elastic_net"], "ITERATIONS", 1)
    assert not fitted(program, *POINT).converged


@pytest.mark.parametrize(
    ("arguments", "complaints"),
    [
        (["--lambda", "1"], ["--alpha must be"]),
        (["--alpha", "2", "--lambda", "0"], ["--alpha must be", "--lambda must be"]),
        (["--alpha", "nan", "--lambda", "inf"], ["--alpha must be", "--lambda must be"]),
        ([*POINT, "--folds", "1", "--seed", "-1"], ["--folds must be", "--seed must be"]),
        ([*POINT, "--rows", "9", "--columns", "2"], ["--rows must be", "--columns must be"]),
        ([*POINT, "--family", "poisson"], ["invalid choice"]),
        ([*POINT, "--points", "3"], ["unrecognized arguments"]),
        (["best"], ["takes one table"]),
    ],
)
def test_bad_arguments_exit_64_and_every_fault_is_named(arguments: list[str], complaints: list[str]) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (64, "")
    assert [each for each in complaints if each not in err] == []
    assert "Traceback" not in err


def test_a_bad_environment_exits_64() -> None:
    code, _, err = run(*POINT, ARGOSY_TASK_INDEX="-1")
    assert code == 64
    assert "ARGOSY_TASK_INDEX '-1' is not a number from 0 on" in err


def test_sigterm_ends_the_work_at_once_with_nothing_written() -> None:
    heavy = ["--rows", "20000", "--columns", "800", "--alpha", "1", "--lambda", "0.00001"]
    process = start(*heavy)
    wait_until_it_computes(process.pid)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (143, "")
    assert "SIGTERM" in err


def wait_until_it_computes(pid: int) -> None:
    import threading

    import psutil

    pause = threading.Event()
    for _ in range(600):
        if psutil.Process(pid).cpu_times().user > 0.5:
            return
        pause.wait(0.05)
    raise AssertionError("the program never began to work")


ROWS = [
    {"alpha": 0.5, "lambda": 0.1, "deviance": 1.0, "error": 0.1, "nonzero": 20},
    {"alpha": 1.0, "lambda": 0.1, "deviance": 1.05, "error": 0.1, "nonzero": 5},
    {"alpha": 1.0, "lambda": 0.3, "deviance": 1.2, "error": 0.1, "nonzero": 1},
]


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_the_best_are_those_that_cv_glmnet_would_name(tmp_path: Path, form: str) -> None:
    table = tmp_path / f"table.{form}"
    lines = [",".join(ROWS[0]), *(",".join(map(str, row.values())) for row in ROWS)]
    table.write_text("\n".join(lines if form == "csv" else map(json.dumps, ROWS)))
    code, out, err = run("best", str(table))
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "3 points",
        "lowest deviance:           alpha 0.5, lambda 0.1: deviance 1.0000 +- 0.1000, 20 coefficients",
        "sparsest within one error: alpha 1, lambda 0.1: deviance 1.0500 +- 0.1000, 5 coefficients",
    ]


@pytest.mark.parametrize(
    "table",
    [b"", b"a,b\n1,2\n", b'{"alpha": 1}', b"{", b"\xff\xfe", b"alpha,lambda,deviance,error,nonzero\n1,1,nan,1,1"],
)
def test_what_is_no_table_is_refused(program: dict[str, ModuleType], table: bytes) -> None:
    with pytest.raises(program["best"].UnusableTable, match="t is no table of a sweep"):
        program["best"].rows_of(table, "t")


def test_an_unusable_table_and_a_missing_one_exit_64(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    assert run("best", str(tmp_path / "table.csv"))[0] == 64
    assert run("best", str(tmp_path / "none.csv"))[0] == 64


def test_the_run_spec_has_a_task_for_each_point() -> None:
    from argosy.model.attempts import AttemptKey
    from argosy.spec import parse as spec
    from argosy.spec import shards
    from argosy.spec.file import check_text

    form = spec.to_json(check_text((FOLDER / "run.yaml").read_text())[0])
    points = {(item["alpha"], item["lambda"]) for item in form["array"]["items"]}
    assert len(points) == shards.task_count(form) == 20
    assert shards.task_overrides(form, "s3://b/r/", AttemptKey("r", 7, 1, 1))["command"] == [
        "python", "-m", "sweep", "--alpha", "0.3", "--lambda", "0.03",
    ]  # fmt: skip
