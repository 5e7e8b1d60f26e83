"""A run in a terminal: its view becomes tables and lines, without a call or a clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType

from argosy.cli import figures
from argosy.cli.console import PlainText
from argosy.cli.runs.event_sentences import changes_in_words
from argosy.cli.tables import PlainTable, facts_grid
from argosy.client import task_use
from argosy.client.checkpoints import SavedCheckpoint
from argosy.client.failures import AlikeAttempts
from argosy.client.gpu_use import MeasuredUse, advice, sentence
from argosy.client.measurements import MeasuredAttempt
from argosy.client.progress import TERMINAL
from argosy.client.run_names import owner_of
from argosy.client.task_use import MeasuredTask
from argosy.model.wording import FOR_A_CORE

View = Mapping[str, Any]
COLOURS = {
    "SUCCEEDED": "green",
    "RUNNING": "cyan",
    "PROVISIONING": "cyan",
    "SUBMITTED": "cyan",
    "STARTING": "cyan",
    "VERIFYING": "cyan",
    "CANCELLING": "yellow",
    "PARTIAL": "yellow",
    "FAILED": "red",
    "CANCELLED": "yellow",
}
_LEAST_OF_RUNS = ("ON-DEMAND", "ATTEMPTS", "SUBMITTED", "COST", "CANCELLED")
_LEAST_OF_TASKS = ("GPUS", "TOOK", "ATTEMPTS")
KINDS_SHOWN = 10
_COUNTED = ("pending", "starting", "running", "succeeded", "failed", "cancelled")


def headline(view: View, now: float) -> PlainText:
    """One line: status, run id, progress, and the time so far or in total."""
    tasks, status = view["tasks"], view["status"]
    line = PlainText().append(status, f"bold {COLOURS.get(status, '')}".strip())
    line.append("  ").append(view["runId"], "bold").append("  ")
    if view.get("environment"):
        line.append(f"{figures.counted(tasks['running'], 'task')} of the environment {view['environment']} running")
    else:
        line.append(f"{tasks['succeeded']:,} of {figures.counted(tasks['total'], 'task')} succeeded")
    if tasks["failed"]:
        line.append(f", {tasks['failed']:,} failed", "red")
    took = figures.seconds_between(view["submittedAt"], view["stoppedAt"], now)
    if took is not None:
        ended = view["status"] in TERMINAL
        line.append(f", {'took' if ended else 'submitted'} {figures.duration(took)}{'' if ended else ' ago'}")
    return line


def facts(view: View) -> RenderableType:
    """The run's use so far, one fact per line."""
    rows = [
        ("reason", view.get("statusReason")),
        ("waiting", view.get("waiting")),
        ("in line", _in_line(view)),
        ("owner", owner_of(view)),
        ("tasks", task_counts(view)),
        ("attempts", attempts(view)),
        ("instances", f"{view['instances']:,} used{_gpus(view)}"),
        ("cost", figures.cost(view) + figures.useful(view)),
        ("start-up", figures.started_up(view)),
        ("limits", figures.caps(view)),
        ("deadline", figures.deadline(view)),
        ("changed", changes(view)),
        ("program", versions(view)),
        ("purchase", figures.purchase(view)),
        ("submitted", figures.clock(view["submittedAt"])),
        ("output", view["output"]),
    ]
    return facts_grid([(name, text) for name, text in rows if text], label_width=11)


def _in_line(view: View) -> str:
    """Its place in line, one sentence per line; if a run has no place in line, `waiting` says why."""
    standing = view.get("standing") or {}
    return "\n".join(standing["sentences"]) if standing.get("inLine") else ""


def task_counts(view: View) -> str:
    """`2 running, 16 succeeded`: only counts above 0. What waits for its turn on this machine does not start yet."""
    tasks, waits = view["tasks"], str(view.get("waiting") or "").startswith(FOR_A_CORE)
    named = {"starting": "waiting for a core"} if waits else {}
    return ", ".join(f"{tasks[each]:,} {named.get(each, each)}" for each in _COUNTED if tasks[each]) or "none"


def attempts(view: View) -> str:
    stopped = f", {view['preemptions']:,} stopped for other queues" if view.get("preemptions") else ""
    redone = (
        f": {figures.hours(view['redoneHours'])}, {figures.money(view['redoneUsd'])} redone"
        if view.get("redoneUsd")
        else ""
    )
    pool = view.get("nextPool")
    tried = f"; next tried: {pool['instanceType']} in {pool['availabilityZone']} ({pool['purchase']})" if pool else ""
    return f"{view['attempts']:,}, {view['interruptions']:,} interrupted{redone}{stopped}{tried}"


def changes(view: View) -> str:
    """`priority 5, no deadline: the boss asked`, of the changes since its submission; empty without."""
    reason = f": {view['changeReason']}" if view.get("changeReason") else ""
    return f"{changes_in_words(view['changes'])}{reason}" if view.get("changes") else ""


def versions(view: View) -> str:
    """`version 1 made 9 results, version 2 (4f2a9c01, uploaded ...) 3`; empty for a run with one version at most."""
    known = view.get("programs") or ()
    made = [
        f"version {each['version']} ({each['sha256'][:8]}, {figures.clock(each['addedAt'])}):"
        f" {figures.counted(each['results'], 'result')} of {figures.counted(each['attempts'], 'attempt')}"
        for each in known
    ]
    return "\n".join(made) if len(made) > 1 else ""


def _gpus(view: View) -> str:
    share = f", {view['gpuShareMib']:,} MiB of a GPU per task" if view.get("gpuShareMib") else ""
    whole = figures.counted(view["gpus"], "GPU") if view["gpus"] else ""
    gpus = f"{view['gpuPart']:g} of a GPU" if view.get("gpuPart") else whole
    return f", {gpus} per task" if gpus else share


def use_lines(uses: Sequence[MeasuredAttempt], view: View, region: str) -> list[str]:
    """What the measured attempts used, and what would be enough."""
    tasks = [each for each in uses if isinstance(each, MeasuredTask)]
    of_gpus = [each for each in uses if isinstance(each, MeasuredUse)]
    lines = []
    if used := task_use.sentence(tasks, view):
        lines = [f"{figures.counted(len(tasks), 'attempt')} used {used}", task_use.advice(tasks, view, region)]
    if of_gpus:
        many = figures.counted(len(of_gpus), "attempt")
        lines += [f"GPUs of {many} used {sentence(of_gpus)}", advice(of_gpus, view, region)]
    return list(filter(None, lines))


def use_table(uses: Sequence[MeasuredTask]) -> PlainTable:
    """The figures of each attempt: means over time, and the most memory."""
    table = PlainTable(">TASK", ">ATTEMPT", ">VCPUS", ">AT MOST", ">MEMORY AT MOST")
    for each in uses:
        vcpus = ("-" if value is None else f"{value:.2f}" for value in (each.mean_vcpus, each.peak_vcpus))
        memory = "-" if each.peak_mib is None else f"{each.peak_mib:,.0f} MiB"
        table.add_row(str(each.index), str(each.attempt), *vcpus, memory)
    return table


def gpu_table(uses: Sequence[MeasuredUse]) -> PlainTable:
    """The figures of each attempt: means over time, and the most memory."""
    table = PlainTable(">TASK", ">ATTEMPT", "GPU", "USED", least=("GPU",))
    for each in uses:
        table.add_row(str(each.index), str(each.attempt), f"{each.gpus} x {each.name}", sentence([each]))
    return table


def checkpoint_table(saved: Sequence[SavedCheckpoint], now: float) -> PlainTable:
    """What a next attempt of each task resumes from. now: epoch seconds."""
    table = PlainTable(">TASK", "RESUMES FROM", ">AGE", ">SIZE")
    for each in saved:
        age = figures.duration(max(0.0, now - each.at))
        table.add_row(str(each.index), f"attempt {each.attempt} ({each.cause})", age, f"{each.size / 1e6:,.1f} MB")
    return table


# Their meaning in the images of containers/ (sysexits.h): their run specs retry the one and not the other.
EXIT_WORDS = {64: "64: invalid input, never retried", 75: "75: temporary fault, retried"}


def failure_lines(kinds: Sequence[AlikeAttempts], most: int = KINDS_SHOWN) -> list[PlainText]:
    """`12 attempts of tasks 3 to 40: exit 139: SIGSEGV: a segmentation fault`, and the last output of one of them."""
    lines = []
    for kind in kinds[:most]:
        lines.append(PlainText(f"{kind.places}: ", style="red").append(kind.cause, style="default"))
        if kind.said:
            lines.append(PlainText(f"  its last line: {kind.said}"))
    if len(kinds) > most:
        others = sum(kind.count for kind in kinds[most:])
        lines.append(PlainText(f"and {figures.counted(others, 'attempt')} that failed in other ways", style="dim"))
    return lines


def exit_words(kinds: Sequence[AlikeAttempts]) -> str:
    """The meaning of those exit codes that Argosy's own images use; empty when there are none."""
    codes = {kind.exit_code for kind in kinds}
    known = [words for code, words in EXIT_WORDS.items() if code in codes]
    return f"exit codes of Argosy's images: {'; '.join(known)}" if known else ""


def run_table(runs: Sequence[View]) -> PlainTable:
    owned = any(map(owner_of, runs))
    table = PlainTable(
        "RUN",
        *(["OWNER"] if owned else []),
        "STATUS",
        ">DONE",
        ">FAILED",
        ">CANCELLED",
        ">ATTEMPTS",
        ">COST",
        ">ON-DEMAND",
        "SUBMITTED",
        least=_LEAST_OF_RUNS,
    )
    for view in runs:
        tasks, status = view["tasks"], view["status"]
        table.add_row(
            view["runId"],
            *([owner_of(view) or "-"] if owned else []),
            PlainText(status, COLOURS.get(status, "")),
            "service" if view.get("environment") else f"{tasks['succeeded']:,}/{tasks['total']:,}",
            f"{tasks['failed']:,}",
            f"{tasks['cancelled']:,}" if tasks["cancelled"] else "-",
            f"{view['attempts']:,}",
            figures.money(view["costUsd"]),
            figures.money(view["onDemandCostUsd"]),
            figures.clock(view["submittedAt"]),
        )
    return table


def task_table(tasks: Sequence[View]) -> PlainTable:
    versions = any((each.get("program") or 1) > 1 for each in tasks)
    heads = (">TASK", "STATUS", ">ATTEMPTS", *([">PROGRAM"] if versions else []), ">EXIT", ">TOOK", "INSTANCE", "GPUS")
    table = PlainTable(*heads, "~REASON", least=_LEAST_OF_TASKS)
    for each in tasks:
        table.add_row(
            str(each["index"]),
            PlainText(each["status"], COLOURS.get(each["status"], "")),
            str(each["attempts"]),
            *([str(each.get("program") or 1)] if versions else []),
            "-" if each["exitCode"] is None else str(each["exitCode"]),
            "-" if each["seconds"] is None else figures.duration(each["seconds"]),
            each["instance"] or "-",
            ",".join(each["gpuIds"]) or "-",
            each["reason"] or "",
        )
    return table
