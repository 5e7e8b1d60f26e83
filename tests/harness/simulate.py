"""The real controller in a simulated AWS, in virtual time: many small trials with faults, or one run at full size.

`python -m tests.harness.simulate`, or `make simulate ARGS=...`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli.html_file import HtmlFile, write
from argosy.cli.main import main
from argosy.cli.outside_text import say
from argosy.cli.problems import RUN_FAILED, CliError
from argosy.cli.session import Session
from tests.harness import trial_summary
from tests.harness.programs import program

if TYPE_CHECKING:
    from argosy.figures.document import Page
    from tests.harness.simulation.campaign import Summary
    from tests.harness.simulation.plan import TrialPlan
    from tests.harness.simulation.scale.run import ScaleRun

MEMBERS = 0.3  # share of trials in which users come through entrances of queues
CROWDED = 0.1  # share of trials whose users are a crowd
UPDATED = 0.3  # share of trials in which users change open runs
SCHEDULED = 0.3  # share of trials that include a schedule
SHARED_GPUS = 0.2  # share of trials in which users share GPUs
SAVED = 0.2  # share of trials in which programs save checkpoints
GANGED = 0.3  # share of trials in which some runs have gangs, where no fault forbids it
FEW_TRIALS = 20  # starting another process takes a second
COMMAND = "python -m tests.harness.simulate"
LONGEST_S = 7 * 86_400.0  # duration of a user's run, in virtual time
USUAL_INSTANCES = 6


@dataclass(frozen=True)
class Options:
    """The options of a simulation. seed: the first one; 0 lets the seed decide, or means the usual size."""

    trials: Annotated[int, typer.Option(min=1, max=1_000_000, help="Seeds to try, counted from --seed.")] = 1
    seed: Annotated[int, typer.Option(min=0, help="The first seed; the same seed is the same trial.")] = 0
    faults: Annotated[str, typer.Option(metavar="all|none|LIST", help="What goes wrong: names joined by commas.")] = (
        "all"
    )
    tasks: Annotated[int, typer.Option(min=0, max=10_000_000, help="Tasks per run; 0 = the seed decides.")] = 0
    instances: Annotated[
        int, typer.Option(min=0, max=20_000, help="Instances at most; 0 = 6, or 5,000 with --cells.")
    ] = 0
    controllers: Annotated[int, typer.Option(min=0, max=8, help="Controllers at once; 0 = the seed decides.")] = 0
    cells: Annotated[int, typer.Option(min=0, max=8, help="One run at full size, over this many Regions.")] = 0
    trace: Annotated[
        bool, typer.Option("--trace", help="Show everything that happened to what a violation touched.")
    ] = False
    spec: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A run spec: how long would it take, and what would it cost?")
    ] = None
    task_seconds: Annotated[float, typer.Option(min=0.1, help="With --spec: how long a task runs.")] = 60.0
    jobs: Annotated[int, typer.Option(min=0, max=64, help="Processes; 0 = one per core.")] = 0
    html: HtmlFile = None


def simulate(session: Session, options: Options) -> None:
    """Run the controller in a simulated AWS with faults.

    The code is the real controller's, time is virtual, and every invariant is checked after every call.
    """
    kinds = _kinds(options.faults)
    if options.cells:
        _at_size(session, options, kinds)
        return
    from tests.harness.simulation import campaign

    plans = _plans(options, kinds)
    summary = campaign.Summary(kinds)
    workers = options.jobs or ((os.cpu_count() or 1) if options.trials >= FEW_TRIALS else 1)
    for verdict in campaign.run_all(plans, workers):
        summary.add(verdict)
    _show(session, summary, {plan.seed: plan for plan in plans}, options)
    if summary.bad:
        raise typer.Exit(RUN_FAILED)


def _plans(options: Options, kinds: frozenset[str]) -> list[TrialPlan]:
    from tests.harness.simulation.plan import TrialPlan

    instances = options.instances or USUAL_INSTANCES
    first = TrialPlan(options.seed, kinds, tasks=options.tasks, instances=instances, controllers=options.controllers)
    if kinds and options.spec is None:
        first = replace(first, schedules=SCHEDULED, updates=UPDATED, members=MEMBERS)
        first = replace(first, crowd=CROWDED, gpu_shares=SHARED_GPUS, checkpoints=SAVED, gangs=GANGED)
    if options.spec is not None:
        first = _of_spec(first, options.spec, options.task_seconds)
    return [replace(first, seed=options.seed + number) for number in range(options.trials)]


def _kinds(faults: str) -> frozenset[str]:
    from tests.harness.simulation.faults import kinds_of

    try:
        return kinds_of(faults)
    except ValueError as fault:
        raise CliError(f"--faults: {fault}") from None


def _at_size(session: Session, options: Options, kinds: frozenset[str]) -> None:
    """Interruption is the only fault at this size: the others need small worlds, where every call is checked."""
    from tests.harness.simulation.faults import ALL
    from tests.harness.simulation.scale.report import report_of
    from tests.harness.simulation.scale.run import ScaleRun, Size

    if kinds - {"interruption"} and kinds != ALL:
        raise CliError("--cells: at this size only interruptions strike: say --faults interruptions, or none.")
    usual = Size()
    size = Size(options.tasks or usual.tasks, options.instances or usual.instances, options.cells, options.seed)
    if "interruption" not in kinds:
        size = replace(size, interrupted_per_hour=0.0)
    run = ScaleRun(size)
    run.run()
    report = {**report_of(run), "faultsNotRun": sorted(kinds - {"interruption"})}  # `all` is the default: not refused
    if options.html is not None:
        write(session, _page_at_size(run), options.html, f"{COMMAND} --cells {size.cells} --tasks {size.tasks}")
    session.print_json(report) if session.wants_json else say(trial_summary.at_size(report))
    if report["violations"]:
        raise typer.Exit(RUN_FAILED)


def _page_at_size(run: ScaleRun) -> Page:
    """The page that a user of the deployment would see."""
    from argosy.figures.history import attempts_of
    from argosy.figures.run import run_page
    from tests.harness.simulation.scale.asking import ask, attempts_pages

    run_id = run.job.run_id
    view = ask(run, "DescribeRun", runId=run_id, include=["cost"])
    history = ask(run, "DescribeHistory", runId=run_id)
    return run_page(view, history, attempts_of(attempts_pages(run)), None, run.timeline.now)


def _of_spec(plan: TrialPlan, file: Path, task_seconds: float) -> TrialPlan:
    """The user's run on the instance types of a default deployment."""
    from argosy.cli.runs.spec_source import load
    from argosy.settings.settings import Settings
    from argosy.spec import shards
    from argosy.spec.parse import parse_spec, to_json
    from tests.harness.simulation.world.workload import SimulatedJob

    data, _ = load(file)
    form = to_json(parse_spec(data))
    if "array" in form and "itemsFrom" in form["array"]:
        raise CliError("simulate cannot read array.itemsFrom: give array.size instead.")
    settings = Settings()
    types = tuple(sorted({name for cell in settings.cells for name, _ in settings.pools(cell)}))
    run_id = f"{form['name']}-270115-080000-{plan.seed % 10_000:04d}"
    job = SimulatedJob(run_id, form, shards.task_count(form, None), shortest_s=task_seconds, longest_s=task_seconds)
    words = ("--spec", str(file), "--task-seconds", f"{task_seconds:g}")
    return replace(plan, jobs=(job,), types=types, limit_s=LONGEST_S, words=words)


def _show(session: Session, summary: Summary, plans: dict[int, TrialPlan], options: Options) -> None:
    from tests.harness.simulation import campaign

    report = summary.report()
    stories: list[dict[str, Any]] = []
    for verdict in summary.bad[: campaign.SHOWN]:
        small = campaign.shrink(plans[verdict.seed], verdict.violations[0].invariant)
        story = campaign.story_of(campaign.run_trial(small), small)
        stories.append(story if options.trace else {**story, "story": story["story"][-20:]})
    if options.html is not None:
        from tests.harness.simulation.campaign_page import campaign_page

        write(session, campaign_page(report, stories), options.html, f"{COMMAND} --trials {options.trials}")
    if session.wants_json:
        session.print_json({**report, "found": stories})
        return
    say(trial_summary.trials(report))
    for story in stories:
        say(trial_summary.found(story))


app = program(simulate)

if __name__ == "__main__":
    main(app)
