"""The size of an image as ECR answers it: moto's, in local mode."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from argosy.aws.image_sizes import EcrImageSizes
from argosy.local.clients import LocalClients
from tests.fakes.serving import moto_clients

pytestmark = pytest.mark.slow
HOME = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
SIZE = 42_000_000  # bytes


class Raising:
    """A client whose every call fails."""

    def __init__(self, fault: Exception) -> None:
        self._fault = fault

    def describe_images(self, **_: object) -> None:
        raise self._fault


@pytest.fixture(scope="module")
def clients() -> Iterator[LocalClients]:
    with moto_clients() as made:
        yield made


@pytest.fixture(scope="module")
def digest(clients: LocalClients) -> str:
    """Of the one image, team/train:v2. moto takes the size of its configuration for that of the image."""
    kind = "application/vnd.docker.distribution.manifest.v2+json"
    config = {"mediaType": "x", "size": SIZE, "digest": "sha256:" + "0" * 64}
    manifest = {"schemaVersion": 2, "mediaType": kind, "config": config, "layers": []}
    ecr = clients("ecr")
    ecr.create_repository(repositoryName="team/train")
    put = ecr.put_image(repositoryName="team/train", imageTag="v2", imageManifest=json.dumps(manifest))
    return str(put["image"]["imageId"]["imageDigest"])


def test_a_tag_and_a_digest_name_the_image(clients: LocalClients, digest: str) -> None:
    sizes = EcrImageSizes(partial(clients, "ecr"))
    asked = [sizes.bytes_of(f"{HOME}/team/train{end}") for end in (":v2", f"@{digest}", f":v2@{digest}")]
    assert asked == [SIZE] * 3


@pytest.mark.parametrize("image", ["team/train:v1", "team/other:v2"])
def test_what_is_not_there_has_no_size(clients: LocalClients, digest: str, image: str) -> None:
    assert EcrImageSizes(partial(clients, "ecr")).bytes_of(f"{HOME}/{image}") == 0


@pytest.mark.parametrize(
    "image", ["", "python:3.12-slim", "public.ecr.aws/docker/library/python:3.12", "argosy/digits"]
)
def test_images_of_other_registries_are_not_asked_for(image: str) -> None:
    def no_client(region: str) -> None:
        raise AssertionError(region)

    assert EcrImageSizes(no_client).bytes_of(image) == 0


@pytest.mark.parametrize(
    "fault",
    [
        ClientError({"Error": {"Code": "AccessDeniedException"}}, "DescribeImages"),
        EndpointConnectionError(endpoint_url="https://api.ecr.us-east-1.amazonaws.com"),
    ],
)
def test_a_refusal_leaves_the_size_unknown(fault: Exception) -> None:
    assert EcrImageSizes(lambda region: Raising(fault)).bytes_of(f"{HOME}/team/train:v2") == 0
