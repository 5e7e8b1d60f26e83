"""The progress of packing and uploading a program: one line for each slow step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.outside_text import say
from argosy.cli.session import Session
from argosy.client.errors import InvalidInput

if TYPE_CHECKING:
    from argosy.spec.faults import Fault

Checked = Callable[[Callable[[Any], Any], Any], Any]  # (call, spec) -> its answer, faults shown as the user's own


def packed(
    session: Session,
    spec: Mapping[str, Any],
    folder: Path,
    checked: Checked,
    without: Collection[Path] = (),
    **how: Any,
) -> dict[str, Any]:
    """The spec that is sent. Nothing is uploaded for a spec that the deployment refuses anyway.

    folder: the base of `workdir`. without: files that stay behind, because they are written there.
    how: other fields of Packer.
    """
    from argosy.client.packing.program import Packer, unpacked

    plain = unpacked(spec)
    if plain == dict(spec):
        return plain
    checked(session.api.validate, plain)
    with progress_bar(session) as progress:
        return Packer(tell=_tell, progress=progress, without=without, **how).pack(spec, folder, session.access)


def repacked(session: Session, run: Mapping[str, Any], folder: Path) -> str:
    """The address of the job of another version of a run's program."""
    from argosy.client.packing.program import Packer

    with progress_bar(session) as progress:
        return Packer(tell=_tell, progress=progress).repack(run, folder, session.access)


def folder_of(file: Path) -> Path:
    """The folder that a spec file's `workdir` is relative to."""
    return Path() if str(file) == "-" else file.parent


def folder_faults(spec: Mapping[str, Any], base: Path) -> list[Fault]:
    """The obstacle to packing it, as a fault of the spec. base: the folder that `workdir` is relative to."""
    from argosy.client.inputs.local import local_paths
    from argosy.client.inputs.named_folders import is_name
    from argosy.client.packing.folder import packed_entries
    from argosy.client.packing.program import absent_program
    from argosy.spec.faults import Fault

    if absent := [each for each in local_paths(spec) if not (base / Path(each).expanduser()).exists()]:
        return [Fault("inputs", f"there is no file or folder {each}") for each in absent if not is_name(each)]
    if spec.get("workdir") is None:
        return []
    try:
        why = absent_program(spec, packed_entries(base / spec["workdir"]))
        return [Fault("run", why)] if why else []
    except InvalidInput as refusal:
        return [Fault("workdir", "; ".join([refusal.message.rstrip("."), *map(str.strip, refusal.details)]))]


def _tell(sentence: str) -> None:
    """On standard error, so that piped output stays clean."""
    say(sentence, err=True)


@contextmanager
def progress_bar(session: Session) -> Iterator[Callable[[int, int], None]]:
    """A bar in a terminal."""
    if session.tools.is_terminal() and not session.wants_json:
        from rich.progress import Progress

        from argosy.cli.console import PlainTextConsole

        with Progress(console=PlainTextConsole(stderr=True), transient=True) as bars:
            bar = bars.add_task("uploading", total=None)

            def advance(sent: int, total: int) -> None:
                bars.update(bar, completed=sent, total=total)

            yield advance
    else:
        yield lambda sent, total: None
