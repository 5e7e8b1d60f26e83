"""TensorFlow through the whole of Argosy on one machine: `make demo-tensorflow`.

Trains a small CNN on scikit-learn's digits and classifies all of them in shards. One interruption is injected, and the
retry continues from a checkpoint. Then it trains a tiny network through the 1-, 4- and 8-GPU task definitions, with
CPUs in place of GPUs. The programs are those of the images; they run with the Python of an environment that has
TensorFlow.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from argosy.cli import figures
from argosy.cli.here.demo.supervision import RunSupervisor, StepLog, download_results, embedded_aws, session_in
from argosy.cli.here.examples import example
from argosy.cli.here.local import settings_of
from argosy.cli.here.runtime import PROCESS, BaseImage, Runtime, engine_of
from argosy.cli.main import main
from argosy.cli.problems import RUN_FAILED, CliError
from argosy.cli.session import Session
from tests.harness.programs import program

PYTHON = Path(".venv-tensorflow/bin/python")
TRAINER = "tensorflow-inference/examples/digits.py"
INFERENCE = "tensorflow-inference/run.yaml"
BENCHMARKS = tuple(f"tensorflow-benchmark/run-{count}-gpu.yaml" for count in (1, 4, 8))
IMAGES = 1797
SHARD = 300  # few and large: starting TensorFlow takes ten seconds of CPU time
SECONDS_PER_IMAGE = 0.025  # simulated work, so that an interruption finds a task in the middle of its images
BATCH = 50
PROCESSES = 3  # concurrent tasks; more would slow each other down on two cores
UPLOADS = {"images": "images/digits/", "model": "models/digits/"}  # folder -> its place in the bucket
# A tiny network on two logical CPUs: it needs no GPU and takes a second.
TINY = ["--model", "tiny", "--cpu-devices", "2", "--batch-size", "32", "--steps", "200", "--precision", "float32"]


def demo_tensorflow(
    session: Session,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the summary and the results.")] = Path(
        "out/demo-tensorflow"
    ),
    python: Annotated[Path, typer.Option("--python", metavar="PATH", help="A Python with TensorFlow.")] = PYTHON,
    runtime: Runtime = PROCESS,
    base_image: BaseImage = None,
) -> None:
    """TensorFlow here: train, classify, benchmark.

    The classification is interrupted once and continues from a checkpoint.
    """
    from tests.harness.demo_tensorflow import report

    _check(python)
    options = {"engine": engine_of(runtime), "settings": settings_of(None, base_image=base_image)}
    log = StepLog(session, session.tools.now())
    _train(python, out, log)
    with embedded_aws(PROCESSES, pythons={"tensorflow-*": str(python.absolute())}, **options) as aws:
        log.welcome(aws)
        inside = session_in(session, aws)
        images, model = (_upload(inside, out / name, prefix) for name, prefix in UPLOADS.items())
        run = _submit(inside, example(INFERENCE), inference_changes(images, model), log)
        [view] = ReclaimDuringWork(inside, aws, log).until_ended([run["runId"]])
        manifest = download_results(inside, view, out / "results")
        facts = report.part_facts(inside, view, manifest)
        benchmarks = [_submit(inside, example(file), benchmark_changes, log) for file in BENCHMARKS]
        ended = NoReclaims(inside, aws, log).until_ended([each["runId"] for each in benchmarks])
        measured = report.benchmarks(inside, ended)
    rows = report.rows_of(out / "results")
    truth = json.loads((out / "truth.json").read_text())
    found = report.summary(view, ended, facts, report.ClassifiedRows(rows, truth), measured)
    found["seconds"] = session.tools.now() - log.begun
    (out / "summary.json").write_text(json.dumps(found, indent=2) + "\n")
    _print(session, found, out)
    if any(each["status"] != "SUCCEEDED" for each in (view, *ended)):
        raise typer.Exit(RUN_FAILED)


def _check(python: Path) -> None:
    """Raises CliError."""
    if not os.access(python, os.X_OK):
        raise CliError(
            f"There is no Python with TensorFlow at {python}.", next_step="type `make tensorflow`, which makes one"
        )


def _train(python: Path, out: Path, log: StepLog) -> None:
    """Images, their labels and a SavedModel below `out`. Raises CliError."""
    log.step("writing the digits as PNG files and training a small CNN on the first 900 of them")
    for folder in ("images", "model"):
        shutil.rmtree(out / folder, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([python, example(TRAINER), out], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CliError("The training failed.", details=done.stderr.splitlines()[-5:], exit_code=RUN_FAILED)
    log.step(done.stdout.strip())


def _upload(inside: Session, folder: Path, prefix: str) -> str:
    """The folder's address in the deployment's own bucket."""
    bucket, s3 = inside.deployment.bucket, inside.client("s3")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            key = prefix + path.relative_to(folder).as_posix()
            s3.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())
    return f"s3://{bucket}/{prefix}"


def inference_changes(images: str, model: str) -> Any:
    """Turn the run spec next to the image into the demo's: other images, another model, a slower pace."""

    def changed(spec: Mapping[str, Any]) -> dict[str, Any]:
        environment = {
            "INFERENCE_IMAGES": images,
            "INFERENCE_MODEL": model,
            "INFERENCE_BATCH_SIZE": str(BATCH),
            "INFERENCE_SECONDS_PER_IMAGE": str(SECONDS_PER_IMAGE),
        }
        return {
            **spec,
            "container": {**spec["container"], "environment": environment},
            "resources": {"vcpus": 2, "memory": 3072},
            "array": {"range": f"0:{IMAGES}", "shardSize": SHARD},
        }

    return changed


def benchmark_changes(spec: Mapping[str, Any]) -> dict[str, Any]:
    container = spec["container"]
    return {**spec, "container": {**container, "command": [*container["command"], *TINY]}}


def _submit(inside: Session, file: Path, changes: Any, log: StepLog) -> Any:
    from argosy.cli.runs.spec_source import load

    spec, _ = load(file)
    view = inside.api.submit(changes(spec), inside.tools.new_token())
    log.step(f"submitted {view['runId']}: {figures.counted(view['tasks']['total'], 'task')} ({file})")
    return view


class ReclaimDuringWork(RunSupervisor):
    """Reclaims an instance as soon as one of its tasks has reported finished images."""

    notice_s = 10.0  # long enough to finish a batch and write a checkpoint
    time_limit_s = 900.0

    def busiest(self, view: Mapping[str, Any]) -> str | None:
        from argosy.client.logs import find_streams

        running = [each for each in view["taskList"] if each["status"] == "RUNNING" and each["taskArn"]]
        instances = {each["taskArn"]: each["instance"] for each in running}
        logs = self.session.client("logs")
        for arn, stream in find_streams(self.session.access, view, running).items():
            events = logs.get_log_events(logGroupName=stream.group, logStreamName=stream.name)["events"]
            if any(event["message"].startswith("classified ") for event in events):
                return str(instances[arn])
        return None


class NoReclaims(RunSupervisor):
    """Reclaims no instance: an interrupted measurement would be worthless."""

    interrupts = False
    time_limit_s = 900.0


def _print(session: Session, found: Mapping[str, Any], out: Path) -> None:
    from tests.harness.demo_tensorflow import report

    if session.wants_json:
        session.print_json(found)
        return
    session.console.print()
    session.console.print(report.closing_table(found, out / "results"))
    session.console.print()
    session.console.print(report.benchmark_table(found))
    session.console.print(f"\nThe same figures, unrounded: {out / 'summary.json'}", style="dim")
    session.console.print(
        "next: argosy local --python 'tensorflow-*=.venv-tensorflow/bin/python', then argosy submit"
        f" {example(INFERENCE)}",
        style="dim",
    )


app = program(demo_tensorflow)

if __name__ == "__main__":
    main(app)
