"""The command `run`: a program of the user's own, run by a spec made from the command line.

The program's folder and its packages are uploaded once. `--dry-run` prints that spec, for use in a file.
"""

from __future__ import annotations

import io
import json
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.options import WaitTimeout
from argosy.cli.outside_text import say
from argosy.cli.plain_help import PlainCommand
from argosy.cli.problems import OK, RUN_FAILED, CliError, reported
from argosy.cli.runs.run_spec import FileOptions, SplitOptions, Terms, spec_of
from argosy.cli.runs.submission import announce, foreseen, sent, with_warnings
from argosy.cli.runs.upload_progress import packed
from argosy.cli.session import Session

ABBREVIATED = 5  # characters, dashes included, from which the beginning of an option is taken for it: --mem

OF_OTHERS = {  # what other tools call it, to Argosy's option: programs may have options of these names
    "--array": "--size", "--array-size": "--size", "--count": "--size", "--ntasks": "--size",
    "--num-instances": "--size", "--cpus-per-task": "--vcpus", "--mem-per-cpu": "--memory", "--gres": "--gpus",
    "--job-name": "--name", "--retries": "--attempts",
}  # fmt: skip

Takes = Mapping[str, bool]  # an option's name -> whether a value follows it


class ProgramCommand(PlainCommand):
    """A command that passes options on to PROGRAM."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        takes = {
            name: not getattr(each, "is_flag", False) and not getattr(each, "count", False)
            for each in self.get_params(ctx)
            if each.param_type_name == "option"
            for name in (*each.opts, *each.secondary_opts)
        }
        if not ctx.resilient_parsing:  # the shell completes what is not whole yet
            with reported():
                args = with_dashes(args, takes)
        return super().parse_args(ctx, args)


def with_dashes(words: Sequence[str], takes: Takes) -> list[str]:
    """The same words, with `--` before the program's own. Raises CliError for ambiguous words."""
    own = _first_of_program(words, takes)
    if own is None:
        return list(words)
    for word in words[own:]:
        meant = _nearly(_name(word), takes)
        if meant:
            raise CliError(
                f"argosy run has no option {_name(word)}; did you mean {meant}?",
                next_step=f"if {_name(word)} belongs to the program, write -- before the program's own options",
            )
        if (other := OF_OTHERS.get(_name(word))) in takes:
            say(
                f"warning: {_name(word)} is passed to the program; Argosy's option is {other}, before PROGRAM", err=True
            )
    behind = next((word for word in words[own:] if _name(word) in takes), None)
    if behind is not None:
        raise CliError(
            f"{_name(behind)} comes after {_name(words[own])}, which belongs to the program. Does it, too?",
            next_step=f"if not, write it before {_name(words[own])}; if so, write -- before the program's own options",
        )
    return [*words[:own], "--", *words[own:]]


def _first_of_program(words: Sequence[str], takes: Takes) -> int | None:
    """Where the program's own options begin; None if `--` says so, or if there are none."""
    if "--" in words:
        return None
    at, program = 0, False
    while at < len(words):
        word = words[at]
        if len(word) < 2 or not word.startswith("-"):
            program = True
        elif _name(word) not in takes:
            return at if program else None
        elif takes[_name(word)] and "=" not in word:
            at += 1
        at += 1
    return None


def _name(word: str) -> str:
    return word.partition("=")[0]


def _nearly(name: str, takes: Takes) -> str | None:
    """The option of Argosy's that was probably meant."""
    if not name.startswith("--") or name in takes:
        return None
    shortened = [known for known in takes if len(name) >= ABBREVIATED and known.startswith(name)]
    return next(iter(shortened), None) or next((known for known in takes if _is_misspelt(name, known)), None)


def _is_misspelt(name: str, known: str) -> bool:
    """Whether a letter was left out, added, changed, or swapped with its neighbour."""
    shorter, longer = sorted((name, known), key=len)
    if len(longer) == len(shorter) + 1:
        return any(longer[:at] + longer[at + 1 :] == shorter for at in range(2, len(longer)))
    others = [at for at, (one, two) in enumerate(zip(name, known, strict=False)) if one != two]
    if len(longer) > len(shorter) or not others:
        return False
    first, last = others[0], others[-1]
    return first == last or (last == first + 1 and name[first : last + 1] == known[last] + known[first])


INLINE_ITEMS = 100_000  # bytes of items in the spec itself; more of them become an object in S3

Program = Annotated[
    str, typer.Argument(metavar="PROGRAM", help="A script, an executable, a command of the image, or a shell line.")
]
Arguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ARGS]...", help="Its arguments; ${start} ${end} ${index} ${item} ... are replaced."),
]


@dataclass(frozen=True)
class EndOptions:
    """What happens with the run and its results."""

    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait for the end.")] = False
    merge: Annotated[
        str | None,
        typer.Option("--merge", metavar="FILE", help="Merge all rows into it at the end (.csv: CSV)."),
    ] = None
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Copy all results there at the end.")] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the run spec; upload and start nothing.")] = False
    client_token: Annotated[
        str | None, typer.Option("--client-token", help="A second submission with the same token starts nothing.")
    ] = None
    wait_timeout: WaitTimeout = None

    @property
    def wants_results(self) -> bool:
        return self.merge is not None or self.out is not None


def register(app: typer.Typer) -> None:
    command(app, "run", panel=panels.RUNS, as_lines=True, form=ProgramCommand)(run)


def run(
    session: Session,
    program: Program,
    split: SplitOptions,
    surroundings: FileOptions,
    terms: Terms,
    ending: EndOptions,
    arguments: Arguments = None,
) -> None:
    """Run your own program: it is uploaded, run and followed. Its own options come last, behind -- if in doubt."""
    _check(session, ending, surroundings.result)
    spec = spec_of(program, arguments or (), split, surroundings, terms)
    only: dict[str, list[str]] = {}
    if split.each is not None:
        from argosy.client.inputs.task_per_file import files_named, shards_of

        base, names = files_named(split.each, lambda: session.access.client("s3"))
        only[base] = names
        spec["array"] = {"items": shards_of(names, split.shard_size)}
        spec["inputs"] = [*spec.get("inputs", ()), f"{base}${{item}}"]
    if ending.dry_run:
        _refuse_faults(spec)
        _print_spec(session, spec)
    else:
        _submit(session, spec, ending, only)


def _check(session: Session, ending: EndOptions, result: str | None) -> None:
    if ending.detach and ending.wants_results:
        raise CliError("--detach does not wait for results: leave out --detach, or --merge and --out.")
    if result == "none" and ending.wants_results:
        raise CliError("--result none leaves no results to fetch: leave it out, or --merge and --out.")
    if ending.merge == "-" and session.wants_json:
        raise CliError("--json and --merge - would both write to standard output.", next_step="name a file")
    if ending.merge == "-" and ending.out is not None:
        raise CliError(
            "--merge - and --out would both write to standard output.", next_step="name a file to merge into"
        )
    if ending.merge not in (None, "-") and not (folder := Path(str(ending.merge)).absolute().parent).is_dir():
        raise CliError(f"--merge {ending.merge} cannot be written at the end: {folder} is no folder.")
    if ending.out is not None and ending.out.exists() and not ending.out.is_dir():
        raise CliError(f"--out {ending.out} cannot be written at the end: it is a file.", next_step="name a folder")


_OPTIONS = {
    "array": "--range, --size, --items",
    "array.range": "--range",
    "array.shardSize": "--shard-size",
    "array.size": "--size",
    "array.items": "--items",
    "resources.vcpus": "--vcpus",
    "resources.memory": "--memory",
    "resources.gpus": "--gpus",
    "resources.gpuShare": "--gpu-share",
    "resources.gpuModel": "--gpu-model",
    "packages": "--with",
    "container.image": "--image",
    "container.environment": "--env",
    "inputs": "--input",
    "result": "--result",
    "setup": "--setup",
    "capacity.budgetUsd": "--budget",
    "capacity.deadline": "--deadline",
    "retryStrategy.attempts": "--attempts",
    "name": "--name",
    "run": "PROGRAM",
}


class RunRefused(CliError):
    """The faults, by option. faults: (path, message)."""

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        many = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        details = [": ".join(part for part in (_option(path), message) if part) for path, message in faults]
        super().__init__(f"The command line has {many}; nothing was submitted.", details=details)


def _option(path: str) -> str:
    """`run[2]` -> its argument, `array.range` -> `--range`."""
    plain = path.split("[", 1)[0]
    while plain and plain not in _OPTIONS:
        plain = plain.rpartition(".")[0]
    return _OPTIONS.get(plain, path)


def _refuse_faults(spec: Mapping[str, Any]) -> None:
    """Raises RunRefused with every fault that can be found on this machine. Else the deployment finds them before
    anything is uploaded: to import what finds them here takes half a second."""
    from argosy.api.admission.specs import check_spec
    from argosy.spec.faults import SpecError

    try:
        check_spec(spec, now=time.time())
    except SpecError as refusal:
        raise RunRefused([(fault.path, fault.message) for fault in refusal.faults]) from refusal


class _NoFile:
    """In place of a spec's file: its faults have no places."""

    def placed(self, faults: Sequence[Any]) -> Sequence[Any]:
        return faults


def _checked(call: Any, spec: Any) -> Any:
    """The deployment's answer, with its faults by option."""
    from argosy.cli.runs.spec_source import SpecRefused

    try:
        return sent(call, spec, "", _NoFile())
    except SpecRefused as refusal:
        raise RunRefused([(fault.path, fault.message) for fault in refusal.faults]) from refusal


def _submit(session: Session, spec: dict[str, Any], ending: EndOptions, only: Mapping[str, Sequence[str]]) -> None:
    """Raises typer.Exit. Rows are alone on standard output: everything else then goes to standard error."""
    with session.one_document(_together):
        with redirect_stdout(sys.stderr) if ending.merge == "-" else nullcontext():
            last = _to_its_end(session, spec, ending, only)
        if last is not None:
            _deliver(session, last, ending)
    raise typer.Exit(OK if last is None or last["status"] == "SUCCEEDED" else RUN_FAILED)


def _to_its_end(
    session: Session, spec: dict[str, Any], ending: EndOptions, only: Mapping[str, Sequence[str]]
) -> Mapping[str, Any] | None:
    """The run's last view; None if the command does not wait for it. only: as for a Packer."""
    words = spec["run"]
    spec = _with_items_in_s3(session, spec)
    targets = [Path(each) for each in (ending.merge, ending.out) if each is not None]
    spec = packed(session, spec, Path(), _checked, targets, only=only)
    token = ending.client_token or session.tools.new_token()
    warnings = foreseen(session, spec)
    view = with_warnings(_checked(lambda form: session.api.submit(form, token), spec), warnings)
    say(f"each task runs: {words if isinstance(words, str) else shlex.join(words)}", err=True)
    announce(session, view, ending.detach)
    if ending.detach:
        return None
    from argosy.cli.runs.watch import followed

    return followed(session, view["runId"], ending.wait_timeout, view, delivers=ending.wants_results)


def _together(documents: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The run, and its delivered results."""
    run, *delivered = documents
    return {**run, "delivered": delivered} if delivered else run


def _with_items_in_s3(session: Session, spec: dict[str, Any]) -> dict[str, Any]:
    """Many items as an object of lines; a spec holds 256 KiB."""
    items = spec["array"].get("items")
    text = "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in items or ()).encode()
    if len(text) <= INLINE_ITEMS:
        return spec
    from argosy.client.packing.upload import put

    _refuse_faults(spec)
    array = {name: value for name, value in spec["array"].items() if name != "items"}
    return {**spec, "array": {**array, "itemsFrom": put(session.access, text, ".jsonl")}}


def _deliver(session: Session, view: Mapping[str, Any], ending: EndOptions) -> None:
    """The results, merged or copied, as requested."""
    if ending.merge is not None:
        from argosy.cli.runs.merge import merge

        merge(session, view, "csv" if ending.merge.endswith(".csv") else "jsonl", ending.merge, partial=False)
    if ending.out is not None:
        from argosy.cli.runs.results import copy_results

        copy_results(session, view, ending.out, partial=view["status"] != "SUCCEEDED")


def _print_spec(session: Session, spec: Mapping[str, Any]) -> None:
    """The spec as a file has it: YAML, or JSON with --json."""
    if session.wants_json:
        session.print_json(spec)
        return
    from ruamel.yaml import YAML

    yaml, text = YAML(), io.StringIO()  # the round-trip form keeps the order
    yaml.width = 120
    yaml.dump(dict(spec), text)
    session.console.print(text.getvalue().rstrip(), markup=False, highlight=False, soft_wrap=True)
