"""The images named argosy/NAME: this optional stack builds containers/NAME and publishes it.

The setting `images` names some, or all. An image with flavours is published twice: argosy/NAME for CPUs,
argosy/NAME-gpu for GPUs. Deploying builds and pushes them, which needs Docker or podman. The address ends in the hash
of the image's inputs, so its content never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from argosy.settings.settings import Settings
from argosy.settings.values import ALL_IMAGES
from stacks.bundle import ROOT
from stacks.image_assets import GPU, flavours, image_asset


class ImagesStack(cdk.Stack):
    """One SSM parameter `/<prefix>/images/NAME` for each folder that is named and has a Dockerfile, and each flavour.

    Raises LookupError for a name without one.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings, folder: Path = ROOT / "containers") -> None:
        super().__init__(
            scope, id, env=cdk.Environment(region=settings.region), description=f"Argosy: images of {settings.prefix}"
        )
        for name, source, flavour in _flavoured(_chosen(settings.images, folder)):
            image = image_asset(self, f"{name.capitalize()}Image", source, flavour, settings)
            ssm.StringParameter(
                self,
                name.capitalize(),
                parameter_name=f"/{settings.prefix}/images/{name}",
                description=f"Argosy: the image behind argosy/{name}",
                string_value=image.image_uri,
            )


def _chosen(names: Sequence[str], folder: Path) -> list[Path]:
    sources = {dockerfile.parent.name: dockerfile.parent for dockerfile in sorted(folder.glob("*/Dockerfile"))}
    unknown = [] if names == ALL_IMAGES else [name for name in names if name not in sources]
    if unknown:
        raise LookupError(f"images: {', '.join(unknown)} is not a folder of containers/; known: {', '.join(sources)}")
    return list(sources.values()) if names == ALL_IMAGES else [sources[name] for name in names]


def _flavoured(sources: Iterable[Path]) -> Iterator[tuple[str, Path, str]]:
    """(name, folder, flavour) of every image."""
    for source in sources:
        for flavour in flavours(source) or ("",):
            yield f"{source.name}-gpu" if flavour == GPU else source.name, source, flavour
