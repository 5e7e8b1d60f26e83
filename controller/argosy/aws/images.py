"""What does `argosy/NAME` stand for? An SSM parameter holds it, set by the images stack or by local mode."""

from __future__ import annotations

import re
from typing import Any

from argosy.aws.errors import AWS_ERRORS, FailureKind, classify

OWN_NAMESPACE = "argosy/"
# Without a tag or a digest: the deployment decides what a name stands for, and SSM would read `name:3` as version 3 of
# the parameter.
_OWN_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*", re.ASCII)


class SsmImages:
    """`ports.ImageResolver` over a boto3 SSM client."""

    def __init__(self, ssm: Any, prefix: str) -> None:
        self._ssm, self._prefix = ssm, prefix

    def resolve(self, image: str) -> str | None:
        """Raises AWS_ERRORS other than "there is no such parameter"."""
        if not image.startswith(OWN_NAMESPACE):
            return image
        name = image.removeprefix(OWN_NAMESPACE)
        if not _OWN_NAME.fullmatch(name):
            return None
        try:
            answer = self._ssm.get_parameter(Name=f"/{self._prefix}/images/{name}")
        except AWS_ERRORS as error:
            if classify(error).kind is FailureKind.NOT_FOUND:
                return None
            raise
        return str(answer["Parameter"]["Value"])
