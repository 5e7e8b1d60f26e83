"""The command `local`, an AWS on this machine: tasks run as processes, and nothing leaves it or costs money."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.here.examples import example
from argosy.cli.here.runtime import PROCESS, BaseImage, Runtime, engine_of
from argosy.cli.outside_text import say
from argosy.cli.own_name import as_typed
from argosy.cli.problems import CliError
from argosy.cli.session import Session

if TYPE_CHECKING:
    from argosy.client.local_key import LocalKey
    from argosy.local.cloud import LocalAws
    from argosy.local.options import LocalOptions
    from argosy.settings.settings import Settings


from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@dataclass(frozen=True)
class StateOptions:
    """The state that local mode keeps for its next start."""

    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="DIR",
            file_okay=False,
            help="Folder for runs, results and logs, kept across restarts. [default: argosy/local in the data folder]",
        ),
    ] = None
    no_state: Annotated[bool, typer.Option("--no-state", help="Keep nothing after the process ends.")] = False
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the kept state and start over.")] = False

    @property
    def folder(self) -> Path | None:
        """None: nothing is kept. Raises CliError for options that contradict each other."""
        from argosy.local.keeping.folder import default_folder

        if not self.no_state:
            return (self.state or default_folder()).absolute()
        if self.state is not None or self.fresh:
            other = "--fresh" if self.state is None else "--state"
            raise CliError(f"--no-state keeps nothing and contradicts {other}: leave one of them out.")
        return None


@contextmanager
def refusals_told() -> Iterator[None]:
    """An unusable folder gives a sentence with the remedy."""
    from argosy.local.keeping.folder import StateRefusedError

    try:
        yield
    except StateRefusedError as refused:
        raise CliError(str(refused), next_step=refused.step) from refused


LAST_PORT = 65_535
_KEY = re.compile(r"[A-Za-z0-9_]+:[A-Za-z0-9+/=_.:-]{8,}")
_OF_PORTS = frozenset({errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES})  # what binding fails with


def register(app: typer.Typer) -> None:
    group = typer.Typer(rich_markup_mode=None)
    command(group, "local", panel=panels.HERE, connected=False, as_json=False, is_group=True)(local)
    command(group, "env", panel=panels.HERE, connected=False, as_json=False)(env)
    app.add_typer(group, name="local", rich_help_panel=panels.HERE)


PORT = 4566
Port = Annotated[int, typer.Option("--port", min=0, max=LAST_PORT, help="Port; 0 chooses a free one.")]


def env(
    session: Session,
    port: Annotated[int, typer.Option("--port", min=1, max=LAST_PORT, help="Port of the local mode.")] = PORT,
) -> None:
    """Print the export lines with which a shell reaches local mode: eval "$(argosy local env)"."""
    from argosy.client.local_key import key_at

    key = key_at(port)
    if key is None:
        raise CliError(f"You have no local mode on port {port}.", next_step=_started_on(port))
    say("\n".join(key.exports(f"http://127.0.0.1:{port}")))


def _started_on(port: int) -> str:
    return "argosy local" if port == PORT else f"argosy local --port {port}"


@dataclass(frozen=True)
class LocalChoices:
    """The settings that replace local mode's own."""

    settings: Annotated[
        Path | None,
        typer.Option(
            "--settings",
            metavar="FILE",
            help="JSON file with settings as in cdk.json, or a cdk.json; they override local mode's own.",
        ),
    ] = None
    cells: Annotated[
        str,
        typer.Option(
            "--cells",
            metavar="REGIONS",
            help="Regions to run in, separated by commas; the first is home. [default: the settings', else us-east-1]",
        ),
    ] = ""
    key: Annotated[
        str,
        typer.Option(
            "--key",
            metavar="ID:SECRET",
            envvar="ARGOSY_LOCAL_KEY",
            show_envvar=False,
            help="Access key that callers sign with. [env ARGOSY_LOCAL_KEY] [default: random, kept for the port]",
        ),
    ] = ""
    processes: Annotated[
        int | None,
        typer.Option(
            "--processes",
            min=1,
            help="Programs that run at once; further tasks wait. [default: one per core, at least 4]",
        ),
    ] = None
    pretend_gpus: Annotated[
        bool, typer.Option("--pretend-gpus", help="Simulate GPUs instead of using those of this machine.")
    ] = False
    reading: Annotated[
        list[str] | None,
        typer.Option("--reading", hidden=True, help="For maintainers: docs/maintainers/notes/readings.md. Or `all`."),
    ] = None

    def access_key(self) -> LocalKey | None:
        """None: local mode's own. Raises CliError."""
        from argosy.client.local_key import LocalKey

        if self.key and not _KEY.fullmatch(self.key):
            raise CliError(
                "--key must be ID:SECRET, an id of letters and digits, and a secret of at least 8 characters without"
                " spaces and quotation marks."
            )
        return LocalKey(*self.key.split(":", 1)) if self.key else None

    def readings(self) -> frozenset[str]:
        """Raises CliError for an unknown one."""
        from argosy.emulator.readings import known

        try:
            return frozenset(known(self.reading or ()))
        except ValueError as fault:
            raise CliError(f"--reading {fault}") from fault


def local(
    session: Session,
    chosen: LocalChoices,
    kept: StateOptions,
    port: Port = PORT,
    python: Annotated[
        list[str] | None,
        typer.Option(
            "--python",
            metavar="IMAGES=PATH",
            help="Python that runs the programs of some images, such as 'tensorflow-*=.venv-tensorflow/bin/python';"
            " may be repeated. [default: the one that runs argosy]",
        ),
    ] = None,
    runtime: Runtime = PROCESS,
    base_image: BaseImage = None,
) -> None:
    """Start AWS on this machine and keep it running until Ctrl-C."""
    try_port(port)
    from argosy.local.commands import commands_ready
    from argosy.local.gpus import find_gpus, fitting_types
    from argosy.local.options import LocalOptions
    from argosy.local.run import serve

    gpus = () if chosen.pretend_gpus else find_gpus()
    settings = settings_of(chosen.settings, chosen.cells, base_image, fitting_types(gpus, os.cpu_count() or 1))
    options = LocalOptions(
        gpus=gpus,
        settings=settings,
        key=chosen.access_key(),
        pythons=pythons_of(python or ()),
        engine=engine_of(runtime),
        keep=kept.folder,
        fresh=kept.fresh,
        readings=chosen.readings(),
    )
    options = replace(options, processes=chosen.processes or options.processes)

    def greet(aws: LocalAws) -> None:
        ending.enter_context(commands_ready(int(aws.endpoint_url.rpartition(":")[2]), "argosy.cli.fork.warm"))
        greeting = [*welcome(aws.endpoint_url, options.keep), machine(options), *lacking(options)]
        say(as_typed("\n".join(greeting)))

    try:
        with refusals_told(), ExitStack() as ending:
            serve(port, options, greet)
    except OSError as fault:
        raise cannot_start(port, fault) from fault


def try_port(port: int) -> None:
    """Fail before the imports and the models, which take seconds. Raises CliError if the port is taken."""
    import socket

    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as fault:  # its text repeats the address
        raise cannot_start(port, OSError(fault.errno, os.strerror(fault.errno or 0))) from fault


def cannot_start(port: int, fault: OSError) -> CliError:
    """Whether the port is the obstacle, or another problem of this machine, such as a full temporary folder."""
    if fault.filename is not None or fault.errno not in _OF_PORTS:
        return CliError(f"Local mode cannot start: {fault}.")
    step = f"choose another port: argosy local --port {port + 1 if port < LAST_PORT else 0}" if port else ""
    return CliError(f"Cannot listen on 127.0.0.1:{port}: {fault.strerror or fault}.", next_step=step)


def welcome(endpoint_url: str, keep: Path | None = None) -> list[str]:
    """The commands that a newcomer can type now."""
    kept = f"Runs, results and logs are kept in {keep}." if keep else "Nothing is kept after it ends."
    port = endpoint_url.rpartition(":")[2]
    of_port = "" if port == str(PORT) else f" --port {port}"
    return [
        f"Local AWS is ready at {endpoint_url} (Ctrl-C stops it). {kept} In another terminal:",
        f"  export ARGOSY_ENDPOINT_URL={endpoint_url}",
        f"  argosy submit {example('digits/run.yaml')}",
        "  argosy cluster",
        "For the AWS CLI and your own programs, which need its address and its access key:",
        f'  eval "$(argosy local env{of_port})"',
        "  aws ecs list-container-instances --cluster argosy",
    ]


def machine(options: LocalOptions) -> str:
    """What tasks find here: `This machine: 16 cores, 128 GiB, simulated GPUs. It runs 16 programs at once ...`"""
    import psutil

    from argosy.local.gpus import described
    from argosy.local.mps import why_not_shared

    gib = round(psutil.virtual_memory().total / 1024**3)
    found = described(options.gpus) if options.gpus else "simulated GPUs"
    lacks = f" Its GPUs are not shared: {why}." if (why := why_not_shared(options.gpus)) else ""
    most = f"It runs {options.processes} programs at once (--processes)"
    return f"This machine: {os.cpu_count()} cores, {gib} GiB, {found}. {most}.{lacks}"


def lacking(options: LocalOptions) -> list[str]:
    """Packages that Dockerfiles install, and that the Python in place of their images lacks."""
    from argosy.aws.folder_images import FolderImages
    from argosy.local.lambdas.functions import image_folders

    lacks = FolderImages.of_nobody(**image_folders(options)).lacking()
    if not lacks:
        return []
    found = ", ".join(f"{image} ({', '.join(names)})" for image, names in lacks.items())
    return [f"The Python of local mode lacks the packages that these images install: {found}."]


def settings_of(
    file: Path | None, cells: str = "", base_image: str | None = None, gpu_types: Sequence[str] = ()
) -> Settings:
    """The deployment's settings: the file's, overridden by the given options. gpu_types: where the file names none.

    Raises CliError for a file that cannot be read, and for refused settings, with each fault.
    """
    from pydantic import ValidationError

    from argosy.local.deployment import local_settings
    from argosy.settings.settings import faults_of

    changes = {} if file is None else _read(file)
    if cells:
        changes["cells"] = [name.strip() for name in cells.split(",")]
    if base_image:
        changes["baseImage"] = base_image
    try:
        return local_settings(gpu_types, **changes)
    except ValidationError as fault:
        faults = sorted({f"{path}: {says}" for path, says in faults_of(fault)})
        if cells and any(each.startswith("cells") for each in faults):
            step = "e.g. --cells us-east-1,eu-west-1"
            raise CliError(f"--cells {cells} is not a list of Regions.", details=faults, next_step=step) from fault
        raise CliError(f"The settings{f' in {file}' if file else ''} are invalid.", details=faults) from fault


def _read(file: Path) -> dict[str, Any]:
    """Argosy's part of the file: all of it, or `context.argosy` of a cdk.json."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise CliError(f"The settings in {file} cannot be read: {fault}.") from fault
    if isinstance(found, dict) and isinstance(found.get("context"), dict):
        found = found["context"].get("argosy", {})
    if not isinstance(found, dict):
        raise CliError(
            f"{file} contains no settings.",
            next_step='write a JSON object, e.g. {"maxInstances": 4, "lingerSeconds": 60}',
        )
    return found


def pythons_of(assignments: Iterable[str]) -> dict[str, str]:
    """`tensorflow-*=.venv-tensorflow/bin/python` -> {glob: absolute path}. Raises CliError."""
    found = {}
    for text in assignments:
        images, _, path = text.partition("=")
        if not images or not path:
            raise CliError(
                f"--python {text!r} must be IMAGES=PATH, such as 'tensorflow-*=.venv-tensorflow/bin/python'."
            )
        if not os.access(path, os.X_OK) or Path(path).is_dir():
            step = "type `make tensorflow`" if ".venv-tensorflow" in path else ""
            raise CliError(f"--python {text!r}: {path} is not an executable program.", next_step=step)
        found[images] = str(Path(path).absolute())  # not resolved: only the link belongs to that environment
    return found
