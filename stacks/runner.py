"""The runner as an asset, which an instance's boot script fetches by its digest.

The runner is the init of every container (containers/runner). `make runner` builds it for both architectures.
"""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import Stack
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from argosy.catalogue.lookup import load_catalogue
from argosy.settings.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "build" / "runner"
SOURCE = ROOT / "containers" / "runner" / "main.go"  # a placeholder where templates are made that are not deployed
FOLDERS = {"x86_64": "amd64", "arm64": "arm64"}  # the catalogue's name of an architecture: as Go names it


class RunnerNotBuiltError(RuntimeError):
    """The message names the command to type."""


@dataclass(frozen=True)
class Published:
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
    """`of`: the runner for each architecture that the deployment's instances have."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings, dependencies: bool) -> None:
        super().__init__(scope, id)
        kinds = {load_catalogue()[name].architecture for name in settings.instance_types.all}
        self.of = {kind: self._published(kind, built(kind) if dependencies else SOURCE) for kind in sorted(kinds)}

    def _published(self, architecture: str, file: Path) -> Published:
        asset = assets.Asset(self, FOLDERS[architecture], path=str(file))
        arn = asset.bucket.arn_for_objects(asset.s3_object_key)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        return Published(asset.http_url, arn, Stack.of(self).region, digest)


def built(architecture: str, folder: Path = BUILT) -> Path:
    """The runner for an architecture as ECS names it. Raises RunnerNotBuiltError."""
    file = folder / FOLDERS[architecture] / "argosy-runner"
    if not file.is_file():
        raise RunnerNotBuiltError(
            "the runner, the init of every container, is not built: type `make runner`. Templates alone need none: "
            "add `--context bundle=source`; such a template must not be deployed."
        )
    return file
