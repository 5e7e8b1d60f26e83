"""The commands about how the cluster is shared: `queues`, `queues apply FILE` and `queues restore REVISION`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.figures import counted
from argosy.cli.problems import CliError
from argosy.cli.runs.spec_source import read_text
from argosy.cli.session import Session, warn
from argosy.client.run_names import owner_of

LOOKS, LOOK_S = 20, 0.5  # for the controller to apply a document
_UNITS = {"usdPerHour": "USD/h", "vcpus": "vCPUs", "gpus": "GPUs", "instances": "instances"}
_Document = Annotated[Path, typer.Argument(metavar="FILE", help="The sharing document; - reads standard input.")]
_Earlier = Annotated[int, typer.Argument(metavar="REVISION", min=1, help="The revision to restore.")]
_InForce = Annotated[
    int | None,
    typer.Option("--revision", min=0, metavar="N", help="Refuse unless revision N is in force. [default: no check]"),
]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="The queues and their usage.")
    command(group, "queues", panel=panels.CLUSTER, is_group=True)(queues)
    command(group, "apply", panel=panels.CLUSTER)(apply)
    command(group, "restore", panel=panels.CLUSTER)(restore)
    app.add_typer(group, name="queues", rich_help_panel=panels.CLUSTER)


def queues(session: Session) -> None:
    """The queues and their usage."""
    _show(session)


def apply(session: Session, file: _Document, revision: _InForce = None) -> None:
    """Share the cluster as a document says, from the next tick on."""
    _applied(session, session.api.apply_sharing(_read(file), None, revision))


def restore(session: Session, earlier: _Earlier, revision: _InForce = None) -> None:
    """Apply the document of an earlier revision again."""
    _applied(session, session.api.apply_sharing(None, earlier, revision))


def _applied(session: Session, view: Mapping[str, Any]) -> None:
    """Say so once it is in force: the next command may name a queue of it."""
    is_in_force = _is_in_force(session, view["revision"])
    if session.wants_json:
        session.print_json(view)
        return
    names = ", ".join(view["document"]["queues"])
    when = "is in force" if is_in_force else "takes effect with the controller's next tick"
    session.console.print(f"Revision {view['revision']} {when}. Queues: {names}.")
    for sentence in view.get("warnings", ()):  # a controller of an earlier version gives none
        warn(sentence)
    session.console.print(f"next: {session.again('queues')}", style="dim")


def _is_in_force(session: Session, revision: int) -> bool:
    for _ in range(LOOKS):
        if session.api.sharing()["revision"] >= revision:
            return True
        session.tools.sleep(LOOK_S)
    return False


def _read(file: Path) -> Any:
    """Raises CliError for a file that is not a document; the deployment judges its content."""
    from argosy.spec import file as spec_file
    from argosy.spec.faults import SpecError

    try:
        data = spec_file.read(read_text(file), is_json=spec_file.is_json_name(file.name)).data
    except SpecError as refusal:
        faults = [fault.text(str(file)) for fault in refusal.faults]
        raise CliError(f"{file} cannot be read.", details=faults) from refusal
    if not isinstance(data, dict):
        raise CliError(f"{file} is not a sharing document: write a mapping with `version` and `queues`.")
    return data


def _show(session: Session) -> None:
    from argosy.cli.tables import PlainTable

    view = session.api.sharing()
    if session.wants_json:
        session.print_json(view)
        return
    takes = any(each.get("preempts") for each in view["queues"])
    remembers = bool(view.get("halfLifeSeconds"))
    more = (("LATELY",) if remembers else ()) + (("TAKES ROOM", "GIVES ROOM", ">STOPPED") if takes else ())
    names = (
        "QUEUE",
        ">WEIGHT",
        ">SHARE",
        ">USE",
        ">USD/H",
        ">RUNS",
        ">RUNNING",
        ">WAITING",
        "WITHIN",
        "CAP",
        "GUARANTEE",
        *more,
    )
    shown = PlainTable(*names)
    for each in sorted(view["queues"], key=lambda each: (each["level"] is None, each["level"] or 0.0)):
        share = "-" if each["weight"] == 0 or not each["runs"] else f"{each['share']:.0%}"
        numbers = [f"{each[name]:,}" for name in ("runs", "running", "waiting")]
        use = f"{each['use']:.0%}", f"{each['used']['usdPerHour']:,.2f}"
        last = each["within"] or "-", _cap_of(each), _guarantee_of(each), *([_lately_of(each)] if remembers else [])
        last += tuple(_room_of(each)) if takes else ()
        shown.add_row(each["name"], str(each["weight"]), share, *use, *numbers, *last)
    session.console.print(shown)
    session.console.print(_said_of(view))
    for each in view["queues"]:
        if each.get("owners"):
            session.console.print(_owners_said(each))
    if (most := view["usdPerHour"]["limit"]) is not None:
        used = view["usdPerHour"]["used"]
        session.console.print(f"All instances together cost {used:,.2f} of at most {most:,.2f} USD an hour.")
    for quota in view.get("quotas", ()):  # a deployment of before shows none
        session.console.print(_quota_said(quota))


def _owners_said(queue: Any) -> str:
    named = ({"owner": each["name"] or "no owner", "ownerProven": each["proven"]} for each in queue["owners"])
    runs = (counted(each["runs"], "run") for each in queue["owners"])
    said = ", ".join(f"{owner_of(each)} {open_runs}" for each, open_runs in zip(named, runs, strict=True))
    note = "" if all(each["proven"] for each in queue["owners"]) else "; unproven owners count as one"
    return f"Owners in {queue['name']}: {said}{note}."


def _quota_said(quota: Any) -> str:
    shares = ", ".join(f"{name} {vcpus:,.4g}" for name, vcpus in quota["used"].items())
    of, used = f"{quota['purchase']} {quota['family']} in {quota['region']}", quota["vcpus"] - quota["left"]
    reserve = f"; tasks reserve: {shares}" if shares else ""
    return f"vCPU quota of {of}: instances use {used:,} of {quota['vcpus']:,}{reserve}."


def _cap_of(queue: Any) -> str:
    """The queue's use of each amount that it has a cap on."""
    said = [f"{queue['used'][unit]:,.4g} of {most:,g} {_UNITS[unit]}" for unit, most in (queue["cap"] or {}).items()]
    return ", ".join(said) or "-"


def _room_of(each: Mapping[str, Any]) -> list[str]:
    """Whether the queue may take room from others, whether it gives any, and how many of its tasks were stopped for
    that."""
    kept = f"yes, {counted(each['kept'], 'instance')} kept" if each["kept"] else "yes"
    gives = {True: "yes", False: "no", None: "if the run allows it"}[each["preemptible"]]
    return [kept if each["preempts"] else "-", gives, f"{each['preempted']:,}"]


def _lately_of(queue: Any) -> str:
    """The share of the cluster that the queue used lately, and the factor on its weight; for each owner, where the
    weight is divided among owners."""
    said = [
        (f"{name} " if (name := each["owner"] or ("unproven" if queue["within"] else "")) else "")
        + f"{each['use']:.0%}, weight x{each['factor']:.3g}"
        for each in queue["lately"]
    ]
    return "; ".join(said) or "-"


def _guarantee_of(queue: Any) -> str:
    said = [f"{amount:,g} {_UNITS[unit]}" for unit, amount in (queue["guarantee"] or {}).items()]
    return (", ".join(said) or "-") + ("" if queue["lend"] else ", not lent")


def _said_of(view: Any) -> str:
    if not view["revision"]:
        return "No sharing document is in force: there is one queue."
    earlier = ", ".join(str(each["revision"]) for each in view["earlier"])
    kept = f"; {counted(len(view['earlier']), 'earlier one')} kept: {earlier}" if earlier else ""
    first = "The queue with the lowest use relative to its weight is first."
    return f"Revision {view['revision']}, applied {view['appliedAt']}{kept}. {first}"
