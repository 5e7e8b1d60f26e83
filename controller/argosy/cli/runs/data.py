"""The commands `put` and `data`: folders of this machine, uploaded under a name for later runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from argosy.cli import figures, panels
from argosy.cli.command import command
from argosy.cli.outside_text import say
from argosy.cli.runs.upload_progress import progress_bar
from argosy.cli.session import Session
from argosy.cli.tables import PlainTable
from argosy.client.errors import InvalidInput
from argosy.client.inputs.local import said_of
from argosy.client.inputs.named_folders import NamedFolder, NamedFolders, is_name, name_for
from argosy.client.inputs.upload import upload_folder

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="As `argosy data list` shows it.")]


def register(app: typer.Typer) -> None:
    command(app, "put", panel=panels.RUNS)(put)
    group = typer.Typer(help="Uploaded folders: list them, delete their names.", no_args_is_help=True)
    command(group, "list", panel=panels.RUNS)(list_)
    command(group, "delete", panel=panels.RUNS)(delete)
    app.add_typer(group, name="data", rich_help_panel=panels.RUNS)


def put(
    session: Session,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A folder or a file of this machine.")],
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="[default: the folder's]")] = None,
) -> None:
    """Upload a folder under a name, for later runs. Only what changed is sent."""
    wanted = name or name_for(path.resolve().name)
    if not is_name(wanted):
        raise InvalidInput(f"{wanted!r} must be lower-case letters, digits, `.`, `_` and `-`, at most 63.")
    folders = NamedFolders(session.access)
    with progress_bar(session) as progress:
        done = upload_folder(session.access, path, progress)
    folders.put(wanted, done)
    if session.wants_json:
        session.print_json(
            {
                "name": wanted,
                "uri": done.uri,
                "files": len(done.folder.files),
                "bytes": done.folder.size,
                "sentBytes": done.sent,
            }
        )
        return
    say(said_of(wanted, done))
    say(f"next: {session.again(f'run PROGRAM --input {wanted}')}")


def list_(session: Session) -> None:
    """The names, with when they expire unless a run uses them before."""
    found = NamedFolders(session.access).all()
    if session.wants_json:
        session.print_json({"folders": [_document(each) for each in found]})
        return
    table = PlainTable("NAME", ">FILES", ">SIZE", "EXPIRES")
    for each in found:
        expires = "never" if each.expires_at is None else f"{each.expires_at:%Y-%m-%d}"
        table.add_row(each.name, f"{each.files:,}", figures.size(each.size), expires)
    session.console.print(table if found else "No folder is uploaded under a name: argosy put DIR")


def delete(session: Session, name: NameArgument) -> None:
    """Delete a name. Its files expire later, as runs and other names may share them."""
    found = NamedFolders(session.access).delete(name)
    if session.wants_json:
        session.print_json(_document(found))
        return
    days = session.access.deployment.input_days
    say(f"{name} is deleted; its files {f'expire within {days} days' if days else 'stay: inputDays is 0'}.")


def _document(found: NamedFolder) -> dict[str, Any]:
    expires = None if found.expires_at is None else found.expires_at.isoformat()
    return {"name": found.name, "uri": found.uri, "files": found.files, "bytes": found.size, "expiresAt": expires}
