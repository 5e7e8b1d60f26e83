"""How does a run look in a terminal? Its view becomes tables and lines; nothing is called and no clock is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from argosy.cli import figures
from argosy.cli.console import PlainText
from argosy.client.progress import TERMINAL, finished

View = Mapping[str, Any]
COLOURS = {
    "SUCCEEDED": "green",
    "RUNNING": "cyan",
    "PROVISIONING": "cyan",
    "SUBMITTED": "cyan",
    "STARTING": "cyan",
    "VERIFYING": "cyan",
    "PARTIAL": "yellow",
    "FAILED": "red",
    "CANCELLED": "yellow",
}
_COUNTED = ("pending", "starting", "running", "succeeded", "failed", "cancelled")


def headline(view: View, now: float) -> PlainText:
    """One line: status, run id, what is done, how long it took or has taken."""
    tasks, status = view["tasks"], view["status"]
    line = PlainText().append(status, f"bold {COLOURS.get(status, '')}".strip())
    line.append("  ").append(view["runId"], "bold").append("  ")
    line.append(f"{tasks['succeeded']:,} of {figures.counted(tasks['total'], 'task')} succeeded")
    if tasks["failed"]:
        line.append(f", {tasks['failed']:,} failed", "red")
    took = figures.seconds_between(view["submittedAt"], view["stoppedAt"], now)
    if took is not None:
        ended = view["status"] in TERMINAL
        line.append(f", {'took' if ended else 'submitted'} {figures.duration(took)}{'' if ended else ' ago'}")
    return line


def facts(view: View) -> Table:
    """What the run has used so far, one fact per line."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True, min_width=11)
    grid.add_column()
    if view.get("statusReason"):
        grid.add_row("reason", view["statusReason"])
    if view.get("waiting"):
        grid.add_row("waiting", view["waiting"])
    grid.add_row("tasks", task_counts(view["tasks"]))
    grid.add_row("attempts", attempts(view))
    grid.add_row("instances", f"{view['instances']:,} used{_gpus(view)}")
    grid.add_row("cost", figures.cost(view) + figures.useful(view))
    if caps := figures.caps(view):
        grid.add_row("limits", caps)
    for name, text in (("deadline", figures.deadline(view)), ("purchase", figures.purchase(view))):
        if text:
            grid.add_row(name, text)
    grid.add_row("submitted", figures.clock(view["submittedAt"]))
    grid.add_row("output", view["output"])
    return grid


def task_counts(tasks: View) -> str:
    """`2 running, 16 succeeded`: only what there is."""
    return ", ".join(f"{tasks[status]:,} {status}" for status in _COUNTED if tasks[status]) or "none"


def attempts(view: View) -> str:
    return f"{view['attempts']:,}, {view['interruptions']:,} interrupted"


def _gpus(view: View) -> str:
    return f", {figures.counted(view['gpus'], 'GPU')} per task" if view["gpus"] else ""


# What the images of containers/ mean by them (sysexits.h): their run specs retry the one and not the other.
EXIT_WORDS = {64: "64: input is wrong, never retried", 75: "75: temporary, retried"}


def failure_lines(failures: Sequence[View], said: Mapping[tuple[int, int], str] | None = None) -> list[PlainText]:
    """`task 3, attempt 2: exit 137, OutOfMemoryError ... (i-0abc)`, the latest last.

    said: (task, attempt) -> what it printed last, which gets a separate line.
    """
    lines = []
    for each in failures:
        code = "" if each["exitCode"] is None else f"exit {each['exitCode']}, "
        where = f" ({each['instance']})" if each.get("instance") else ""
        line = PlainText(f"task {each['index']}, attempt {each['attempt']}: ", style="red")
        lines.append(line.append(f"{code}{each['reason']}{where}", style="default"))
        if text := (said or {}).get((each["index"], each["attempt"])):
            lines.append(PlainText(f"  its last line: {text}"))
    return lines


def exit_words(failures: Sequence[View]) -> str:
    """What those exit codes mean that Argosy's own images use; empty when there are none."""
    codes = {each["exitCode"] for each in failures}
    known = [words for code, words in EXIT_WORDS.items() if code in codes]
    return f"exit codes of Argosy's images: {'; '.join(known)}" if known else ""


def run_table(runs: Sequence[View]) -> Table:
    table = plain_table("RUN", "STATUS", ">DONE", ">FAILED", ">ATTEMPTS", ">COST", ">ON-DEMAND", "SUBMITTED")
    for view in runs:
        tasks, status = view["tasks"], view["status"]
        table.add_row(
            view["runId"],
            PlainText(status, COLOURS.get(status, "")),
            f"{finished(tasks):,}/{tasks['total']:,}",
            f"{tasks['failed']:,}",
            f"{view['attempts']:,}",
            figures.money(view["costUsd"]),
            figures.money(view["onDemandCostUsd"]),
            figures.clock(view["submittedAt"]),
        )
    return table


def task_table(tasks: Sequence[View]) -> Table:
    table = plain_table(">TASK", "STATUS", ">ATTEMPTS", ">EXIT", ">TOOK", "INSTANCE", "GPUS", "REASON")
    for each in tasks:
        table.add_row(
            str(each["index"]),
            PlainText(each["status"], COLOURS.get(each["status"], "")),
            str(each["attempts"]),
            "-" if each["exitCode"] is None else str(each["exitCode"]),
            "-" if each["seconds"] is None else figures.duration(each["seconds"]),
            each["instance"] or "-",
            ",".join(each["gpuIds"]) or "-",
            each["reason"] or "",
        )
    return table


def plain_table(*headings: str) -> Table:
    """Columns without rules; `>` before a heading aligns to the right. Cells are never cut; the last may wrap."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for place, heading in enumerate(headings):
        is_last = place == len(headings) - 1
        justify: Any = "right" if heading.startswith(">") else "left"
        table.add_column(heading.removeprefix(">"), justify=justify, no_wrap=not is_last, overflow="fold")
    return table
