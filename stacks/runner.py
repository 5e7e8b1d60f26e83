"""The runner as an asset, which an instance's boot script fetches by its digest.

The runner is the init of every container (containers/runner). `make runner` builds it for both architectures, and so
does the app where the CDK's command deploys. Without it a template can still be written, compared and destroyed;
publishing such a template's assets (`cdk deploy --app cdk.out`) fails with the command to type.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from argosy.catalogue.lookup import load_catalogue
from argosy.settings.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "build" / "runner"
FOLDERS = {"x86_64": "amd64", "arm64": "arm64"}  # the catalogue's name of an architecture: as Go names it
SOURCES = (
    "containers/runner/*.go",
    "containers/runner/go.mod",
    "containers/runner/build.sh",
    "requirements/runner.txt",
)
BUILD = ROOT / "containers" / "runner" / "build.sh"
DEPLOYS = {"deploy", "watch", "publish-assets"}  # commands of the CDK that publish the runner
NOT_BUILT = "The runner, the init of every container, is not built: type `make runner`, then deploy."
FAILED = "The runner, the init of every container, could not be built (above is why), and nothing was deployed."
NO_DIGEST = "0" * 64  # of a runner that is not built: no file has it


@dataclass(frozen=True)
class RunnerAsset:
    """The runner's place in a Region's assets. url, arn: tokens of the template."""

    url: str
    arn: str
    region: str
    sha256: str  # of the file, in hexadecimal

    @property
    def arguments(self) -> str:
        """The arguments of `install` in user_data/argosy-boot.sh."""
        return f'"{self.url}" {shlex.quote(self.region)} {self.sha256}'


class Runner(Construct):
    """`of`: the runner for each architecture that the deployment's instances have.

    dependencies: without them the template names no runner, as it does where none is built.
    """

    def __init__(
        self, scope: Construct, id: str, *, settings: Settings, dependencies: bool, folder: Path = BUILT
    ) -> None:
        super().__init__(scope, id)
        kinds = sorted({load_catalogue()[name].architecture for name in settings.instance_types.all})
        files = {kind: folder / FOLDERS[kind] / "argosy-runner" for kind in kinds}
        absent = [kind for kind, file in files.items() if not (dependencies and file.is_file())]
        self.of = {kind: self._absent(kind) if kind in absent else self._published(kind, files[kind]) for kind in kinds}
        if dependencies and absent:
            cdk.Annotations.of(self).add_warning_v2(
                "argosy:RunnerNotBuilt", f"{NOT_BUILT} Until then every launch template differs from a deployed one."
            )

    def _published(self, architecture: str, file: Path) -> RunnerAsset:
        asset = assets.Asset(self, FOLDERS[architecture], path=str(file))
        arn = asset.bucket.arn_for_objects(asset.s3_object_key)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        return RunnerAsset(asset.http_url, arn, cdk.Stack.of(self).region, digest)

    def _absent(self, architecture: str) -> RunnerAsset:
        """An asset whose publishing fails: the CDK runs a command to make it, and shows what that says."""
        stack = cdk.Stack.of(self)
        key = hashlib.sha256(f"not built: {architecture}".encode()).hexdigest()
        place = stack.synthesizer.add_file_asset(
            source_hash=key,
            executable=["sh", "-c", f"echo {shlex.quote(NOT_BUILT)} >&2; exit 1"],
            display_name="the runner",
        )
        arn = stack.format_arn(
            service="s3", region="", account="", resource=place.bucket_name, resource_name=place.object_key
        )
        return RunnerAsset(place.http_url, arn, stack.region, NO_DIGEST)


def is_current(folder: Path = BUILT) -> bool:
    """Whether the runner is newer than what it is built from, as `make` judges it."""
    made = folder / "arm64" / "argosy-runner"
    changed = max(each.stat().st_mtime for pattern in SOURCES for each in ROOT.glob(pattern))
    return made.is_file() and made.stat().st_mtime >= changed


def deploys(commands: Sequence[Sequence[str]]) -> bool:
    """Whether one of these command lines is the CDK's, with a command that publishes assets."""
    return any(
        Path(word).stem == "cdk" and not DEPLOYS.isdisjoint(words[place + 1 :])
        for words in commands
        for place, word in enumerate(words)
    )


def build_for_deployment() -> bool:
    """Build the runner if a command of the CDK that deploys has started this process; False if that fails."""
    if is_current() or not deploys([*_ancestors(os.getppid())]):
        return True
    environment = os.environ | {"RUNNER_PYTHON": sys.executable}
    return subprocess.run([BUILD], env=environment, stdout=sys.stderr, check=False).returncode == 0


def _ancestors(process: int) -> Iterator[list[str]]:
    """The command lines of this process and of those above it: the CDK tells its app no command."""
    try:
        while process > 1:
            words, process = _of_proc(process) if sys.platform == "linux" else _of_ps(process)
            yield words
    except (OSError, ValueError):  # of another user, or there is no `ps`
        return


def _of_proc(process: int) -> tuple[list[str], int]:
    """A command line, and the parent's number. Raises OSError."""
    entry = Path("/proc", str(process))
    parent = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
    return (entry / "cmdline").read_bytes().decode(errors="replace").split("\0"), int(parent)


def _of_ps(process: int) -> tuple[list[str], int]:
    """The same where there is no /proc. Raises OSError and ValueError."""
    asked = ["ps", "-o", "ppid=,args=", "-p", str(process)]
    parent, *words = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
    return words, int(parent)
