"""TensorFlow through the whole of Argosy on one machine: `demo-tensorflow`.

Trains a small CNN on scikit-learn's digits, classifies all of them in shards with one interruption, from which a
checkpoint is taken up again, and trains a tiny network through the 1-, 4- and 8-GPU task definitions, with CPUs in the
GPUs' place. The programs are those of the images; they run with the Python of an environment that has TensorFlow.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli import figures
from argosy.cli.here import demo
from argosy.cli.here.local import TRY_PANEL
from argosy.cli.problems import RUN_FAILED, CliError
from argosy.cli.session import Session, command
from argosy.client.aws_clients import Place

if TYPE_CHECKING:
    from argosy.cli.here.demo import Show

CONTAINERS = Path("containers")
PYTHON = Path(".venv-tensorflow/bin/python")
TRAINER = CONTAINERS / "tensorflow-inference/examples/digits.py"
INFERENCE = CONTAINERS / "tensorflow-inference/run.yaml"
BENCHMARKS = tuple(CONTAINERS / f"tensorflow-benchmark/run-{count}-gpu.yaml" for count in (1, 4, 8))
IMAGES = 1797
SHARD = 300  # few and large: the start of TensorFlow costs ten seconds of processor time
SECONDS_PER_IMAGE = 0.025  # pretended, so that an interruption finds a task in the middle of its images
BATCH = 50
PROCESSES = 3  # tasks at once; more only get in each other's way on two cores
MODEL_KEY = "models/digits/"
# A tiny network on two logical CPUs, so that it takes no GPU and a second.
TINY = ["--model", "tiny", "--cpu-devices", "2", "--batch-size", "32", "--steps", "200", "--precision", "float32"]


def register(app: typer.Typer) -> None:
    command(app, "demo-tensorflow", panel=TRY_PANEL, connected=False, as_json=True)(demo_tensorflow)


def demo_tensorflow(
    session: Session,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the summary and the results go.")] = Path(
        "out/demo-tensorflow"
    ),
    python: Annotated[Path, typer.Option("--python", metavar="PATH", help="A Python with TensorFlow.")] = PYTHON,
) -> None:
    """TensorFlow on this machine: train a model, classify with an interruption, benchmark."""
    from argosy.cli.here import demo_tensorflow_report as report
    from argosy.cli.here.local_aws import started

    _check(python)
    show = demo.Show(session, session.tools.now())
    _train(python, out, show)
    with started(PROCESSES, {"tensorflow-*": str(python.absolute())}) as aws:
        show.step(f"local AWS at {aws.endpoint_url}: nothing leaves this machine, nothing costs money")
        inside = Session(session.tools, Place(endpoint_url=aws.endpoint_url, region=aws.region))
        model = _upload(inside, out / "model")
        run = _submit(inside, INFERENCE, inference_changes(out / "images", model), show)
        play = Working(inside, aws, show)
        [view] = play.until_ended([run["runId"]])
        manifest = demo.download(inside, view, out / "results")
        facts = report.part_facts(inside, view, manifest)
        benchmarks = [_submit(inside, file, benchmark_changes, show) for file in BENCHMARKS]
        ended = Watching(inside, aws, show).until_ended([each["runId"] for each in benchmarks])
        measured = report.benchmarks(inside, ended)
    rows = report.rows_of(out / "results")
    truth = json.loads((out / "truth.json").read_text())
    found = report.summary(view, ended, facts, report.Classified(rows, truth), measured)
    found["seconds"] = session.tools.now() - show.begun
    (out / "summary.json").write_text(json.dumps(found, indent=2) + "\n")
    _print(session, found, out)
    if any(each["status"] != "SUCCEEDED" for each in (view, *ended)):
        raise typer.Exit(RUN_FAILED)


def _check(python: Path) -> None:
    """Raises CliError."""
    for file in (TRAINER, INFERENCE, *BENCHMARKS):
        if not file.exists():
            raise CliError(f"{file} is not here.", next_step="type `argosy demo-tensorflow` in a checkout of Argosy")
    if not os.access(python, os.X_OK):
        raise CliError(
            f"There is no Python with TensorFlow at {python}.", next_step="type `make tensorflow`, which makes one"
        )


def _train(python: Path, out: Path, show: Show) -> None:
    """Images, their truth and a SavedModel below `out`. Raises CliError."""
    show.step("writing the digits as PNG files and training a small CNN on the first 900 of them")
    for folder in ("images", "model"):
        shutil.rmtree(out / folder, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([python, TRAINER, out], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CliError("The training failed.", details=done.stderr.splitlines()[-5:], exit_code=RUN_FAILED)
    show.step(done.stdout.strip())


def _upload(inside: Session, folder: Path) -> str:
    """The model's address in the deployment's own bucket."""
    bucket, s3 = inside.deployment.bucket, inside.client("s3")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            key = MODEL_KEY + path.relative_to(folder).as_posix()
            s3.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())
    return f"s3://{bucket}/{MODEL_KEY}"


def inference_changes(images: Path, model: str) -> Any:
    """What turns the run spec beside the image into the demo's: other images, another model, another pace."""

    def changed(spec: Mapping[str, Any]) -> dict[str, Any]:
        environment = {
            "INFERENCE_IMAGES": str(images.absolute()),
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


def _submit(inside: Session, file: Path, changes: Any, show: Show) -> Any:
    from argosy.cli.runs import spec_source

    spec, _ = spec_source.load(file, spec_source.Shorthands(), [])
    view = inside.api.submit(changes(spec), inside.tools.new_token())
    show.step(f"submitted {view['runId']}: {figures.counted(view['tasks']['total'], 'task')} ({file})")
    return view


class Working(demo.Play):
    """Takes an instance away as soon as one of its tasks has told of finished images."""

    notice_s = 10.0  # the batch in hand is finished and a checkpoint written well within
    time_limit_s = 900.0

    def busiest(self, view: Mapping[str, Any]) -> str | None:
        from argosy.cli.runs.log_streams import find_streams

        running = [each for each in view["taskList"] if each["status"] == "RUNNING" and each["taskArn"]]
        instances = {each["taskArn"]: each["instance"] for each in running}
        logs = self.session.client("logs")
        for arn, stream in find_streams(self.session, view, running).items():
            events = logs.get_log_events(logGroupName=stream.group, logStreamName=stream.name)["events"]
            if any(event["message"].startswith("classified ") for event in events):
                return str(instances[arn])
        return None


class Watching(demo.Play):
    """Leaves every instance in peace: half a measurement is worth nothing."""

    interrupts = False
    time_limit_s = 900.0


def _print(session: Session, found: Mapping[str, Any], out: Path) -> None:
    from argosy.cli.here import demo_tensorflow_report as report

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
        " containers/tensorflow-inference/run.yaml",
        style="dim",
    )
