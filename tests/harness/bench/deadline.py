"""What does the deadline policy cost on recorded spot availability (`bench deadline`)?
Any missed deadline is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli.outside_text import say
from argosy.cli.problems import CliError
from argosy.cli.session import Session

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tests.harness.bench.replay import Setting

FIELDS = ("jobs", "best", "greedy", "argosy", "onDemand", "gapShare", "missed", "missedByGreedy", "impossible")


@dataclass(frozen=True)
class ReplayInput:
    """The traces to replay, and the jobs."""

    traces: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="JSON files, in nested folders: metadata.gap_seconds, and data, how many instances were available.",
        ),
    ]
    work: Annotated[
        float, typer.Option(metavar="HOURS", min=0.1, max=1_000, help="Length of the job, on one instance.")
    ] = 48
    deadlines: Annotated[str, typer.Option(metavar="HOURS", help="Deadlines to try, separated by commas.")] = "52,70,92"
    change: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=1, max=36_000, help="Time from the decision until work starts on a new instance."
        ),
    ] = 180
    spot_price: Annotated[
        float, typer.Option(metavar="SHARE", min=0, max=1, help="Spot price, as a share of the on-demand price.")
    ] = 0.3
    starts: Annotated[int, typer.Option(min=1, max=1_000, help="Jobs for each trace and deadline.")] = 8


def deadline(session: Session, options: ReplayInput) -> None:
    """Replay a job with a deadline on traces of spot availability: our policy, greedy, on-demand and hindsight."""
    from tests.harness.bench.availability_traces import read_traces

    settings = [_setting(options, hours) for hours in _hours(options.deadlines, options.work)]
    rows: dict[str, Tally] = {}
    for folder, data, gap_s in read_traces(options.traces):
        tally = rows.setdefault(folder, Tally())
        for setting in settings:
            tally.add(data, gap_s, setting, options.starts)
    report = {"setting": _told(settings), "folders": {name: tally.figures() for name, tally in rows.items()}}
    report["all"] = Tally.together(rows.values()).figures()
    if session.wants_json:
        session.print_json(report)
    else:
        _show(report)


@dataclass
class Tally:
    """Sums over jobs. Costs in hours at the on-demand price."""

    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(FIELDS, 0.0))

    def add(self, data: NDArray[np.int64], gap_s: float, setting: Setting, starts: int) -> None:
        """Replay every job that fits into the trace."""
        from tests.harness.bench.replay import greedy, hindsight, on_demand_only, replay, windows

        for window in windows(data, gap_s, setting, starts):
            ours, theirs, held = (replay(window, setting, *p) for p in ((), (greedy,), (on_demand_only,)))
            best = hindsight(window, setting)
            values = (1, best.cost, theirs.cost, ours.cost, held.cost)
            misses = (held.met and not ours.met, held.met and not theirs.met, not held.met)
            for name, value in zip((*FIELDS[:5], *FIELDS[6:]), (*values, *misses), strict=True):
                self.sums[name] += value

    @classmethod
    def together(cls, tallies: Any) -> Tally:
        """The sum of several totals."""
        whole = cls()
        for tally in tallies:
            for name, value in tally.sums.items():
                whole.sums[name] += value
        return whole

    def figures(self) -> dict[str, Any]:
        """Means of the costs; gapShare: our distance from the best as a share of greedy's."""
        sums, jobs = self.sums, max(1.0, self.sums["jobs"])
        found: dict[str, Any] = {name: round(sums[name] / jobs, 3) for name in FIELDS[1:5]}
        gap = sums["greedy"] - sums["best"]
        found["gapShare"] = round((sums["argosy"] - sums["best"]) / gap, 3) if gap > 1e-9 else None
        return {"jobs": int(sums["jobs"])} | found | {name: int(sums[name]) for name in FIELDS[6:]}


def _hours(text: str, work: float) -> list[float]:
    try:
        hours = [float(part) for part in text.split(",")]
    except ValueError:
        raise CliError(f"--deadlines {text} is not a list of hours.", next_step="e.g. --deadlines 52,70,92") from None
    if short := [each for each in hours if not work < each <= 10_000]:
        raise CliError(f"--deadlines {short[0]:g} leaves no slack beyond the work of {work:g} hours, or is not a time.")
    return hours


def _setting(options: ReplayInput, hours: float) -> Setting:
    """A job with a deadline after `hours`, in steps of at most a change-over and six minutes."""
    from tests.harness.bench.replay import Setting

    step_s = options.change / max(1, round(options.change / 360))
    return Setting(
        work_s=round(options.work * 3600 / step_s) * step_s,
        window_s=int(hours * 3600 / step_s) * step_s,
        change_s=options.change,
        step_s=step_s,
        spot_price=options.spot_price,
    )


def _told(settings: Sequence[Setting]) -> dict[str, Any]:
    first = settings[0]
    return {
        "workHours": round(first.work_s / 3600, 3),
        "deadlineHours": [round(each.window_s / 3600, 3) for each in settings],
        "changeSeconds": first.change_s,
        "stepSeconds": first.step_s,
        "spotPrice": first.spot_price,
    }


def _show(report: dict[str, Any]) -> None:
    setting = report["setting"]
    say(
        f"{setting['workHours']:g} h of work, deadlines {', '.join(f'{h:g} h' for h in setting['deadlineHours'])},"
        f" change-over {setting['changeSeconds']:g} s, spot at {setting['spotPrice']:.0%} of on-demand."
    )
    say("Mean cost of a job in hours of on-demand; gap: distance from the best in hindsight, as a share of greedy's.\n")
    heads = ("", "jobs", "best", "greedy", "argosy", "on-demand", "gap", "missed")
    say(f"{heads[0]:44}" + "".join(f"{head:>11}" for head in heads[1:]))
    for name, row in [*report["folders"].items(), ("all", report["all"])]:
        gap = "-" if row["gapShare"] is None else f"{row['gapShare']:.0%}"
        costs = "".join(f"{row[key]:>11.2f}" for key in ("best", "greedy", "argosy", "onDemand"))
        remark = "" if row["jobs"] else "  (shorter than the deadlines)"
        say(f"{name:44}{row['jobs']:>11}{costs}{gap:>11}{row['missed']:>11}{remark}")
