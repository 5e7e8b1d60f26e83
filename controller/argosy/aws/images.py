"""Images named `argosy/NAME`: an SSM parameter holds each, set by the images stack or by local mode.

The stock image need not be built: without a parameter `argosy/python` is the public image that it is made from.
"""

from __future__ import annotations

import re
from typing import Any

from argosy.aws.errors import AWS_ERRORS, FailureKind, classify
from argosy.spec.program import DEFAULT_IMAGE, PYTHONS, STOCK_PYTHON

OWN_NAMESPACE = "argosy/"
# Without a tag or a digest: the deployment decides what a name stands for, and SSM would read `name:3` as version 3 of
# the parameter.
_OWN_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*", re.ASCII)


PUBLIC_PYTHON = "public.ecr.aws/docker/library/python:{version}-slim"  # of both architectures


class SsmImages:
    """`ports.ImageResolver` over a boto3 SSM client. python: the version that argosy/python stands for."""

    def __init__(self, ssm: Any, prefix: str, python: str = STOCK_PYTHON) -> None:
        self._ssm, self._prefix, self._python = ssm, prefix, python

    def resolve(self, image: str) -> str | None:
        """Raises AWS_ERRORS other than "there is no such parameter"."""
        if not image.startswith(OWN_NAMESPACE):
            return image
        stock, _, tag = image.partition(":")
        if stock == DEFAULT_IMAGE and tag in ("", *PYTHONS):
            own = self._published("python/" + tag if tag else "python")
            return own or PUBLIC_PYTHON.format(version=tag or self._python)
        name = image.removeprefix(OWN_NAMESPACE)
        return self._published(name) if _OWN_NAME.fullmatch(name) else None

    def _published(self, name: str) -> str | None:
        try:
            answer = self._ssm.get_parameter(Name=f"/{self._prefix}/images/{name}")
        except AWS_ERRORS as error:
            if classify(error).kind is FailureKind.NOT_FOUND:
                return None
            raise
        return str(answer["Parameter"]["Value"])
