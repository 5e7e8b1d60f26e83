"""The summary of simulated trials as text for people; JSON never goes through here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from argosy.cli.figures import counted, duration, money

Report = Mapping[str, Any]


def trials(report: Report) -> str:
    """The summary of a campaign."""
    rows = [
        ("faults seen", _counts(report["faultsSeen"]) if report["faultsSeen"] else ""),
        ("never seen", ", ".join(report["faultsNotSeen"])),
        ("virtual time", f"{report['virtualHours']:,.1f} hours in {counted(report['ticks'], 'tick')}"),
        ("tasks", f"{report['tasks']:,}, each launched {report['launchesPerTask']:g} times"),
        *_economy(report),
        ("journal", _journal(report)),
        ("longest run", duration(report["makespanSeconds"])),
        ("to rest", f"{duration(report['settledSeconds'])} at most, once the faults had ended"),
        ("bought", _counts(report["instancesBought"])),
        ("runs", _counts(report["runs"])),
    ]
    return "\n".join([f"{counted(report['trials'], 'trial')}, {_violations(report)}", *_table(rows)])


def _journal(report: Report) -> str:
    deaths = report["followersDeaths"]
    return f"{report['journalLines']:,} lines, read by a follower that died {deaths:,} times"


def at_size(report: Report) -> str:
    """The summary of one run at full size."""
    measured = report["measured"]
    rows = [
        ("run", f"{report['tasks']:,} tasks in {counted(report['cells'], 'cell')}, {report['succeeded']:,} succeeded"),
        ("not run", _not_run(report.get("faultsNotRun", ()))),
        ("launches", f"{report['launches']:,}: {report['launchRateUsed']:.1%} of what AWS allows while there was work"),
        (
            "interrupted",
            f"{counted(report['interruptions'], 'instance')} of {sum(report['instancesBought'].values()):,}",
        ),
        ("makespan", duration(report["makespanSeconds"])),
        *_economy(report),
        ("records", f"{report['recordWriteUnitsPerTask']:g} of these write units for the journal and the history"),
        ("messages", f"{report['messages']:,}, at most {report['longestBacklog']:,} waiting"),
        ("bought", _counts(report["instancesBought"])),
        (
            "ticks",
            f"{report['ticks']:,}: {measured['tickMedianSeconds']:.2f} s median, "
            f"{measured['tickWorstSeconds']:.2f} s worst",
        ),
        ("measured", f"{duration(measured['seconds'])} of real time, {measured['peakMib']:,} MiB"),
    ]
    return "\n".join([_violations(report), *_table(rows), *report["found"]])


def _not_run(kinds: Sequence[str]) -> str:
    return f"{counted(len(kinds), 'kind')} of faults: with --cells only interruptions strike" if kinds else ""


def found(told: Report) -> str:
    """One violation, with the command that replays it."""
    head = f"\nseed {told['seed']} violates {told['invariant']}: {told['sentence']}\n  {told['replay']}"
    return "\n".join([head, *told["story"]])


def _economy(report: Report) -> list[tuple[str, str]]:
    calls = f"{report['apiCallsPerTask']:g} a task, {report['describeCallsPerTask']:g} of them describe"
    hours = f"{report['instanceHours']:,.1f} instance hours, {report['waste']:.0%} of it not spent on tasks"
    return [
        ("AWS calls", calls),
        ("DynamoDB", f"{report['writeUnitsPerTask']:g} write units a task"),
        ("cost", f"{money(report['costUsd'])} for {hours}"),
    ]


def _violations(report: Report) -> str:
    return counted(report["violations"], "violation") if report["violations"] else "no violation"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "none"


def _table(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"  {name:13} {text}" for name, text in rows if text]
