"""The instance metadata service, version 2, on 127.0.0.1: a token first, then the keys of the instance's role."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from tests.fakes.answering import Answering, answering
from tests.fakes.signed_s3 import ACCESS_KEY, SECRET_KEY, TOKEN

_ROLES = "/latest/meta-data/iam/security-credentials/"


class InstanceMetadata(Answering):
    """`late`: this many requests are refused. `url`: where it answers."""

    late = 0
    url = ""

    def do_PUT(self) -> None:  # noqa: N802 - a name of the standard library
        self.answer(b"token-of-the-session")

    def do_GET(self) -> None:  # noqa: N802 - a name of the standard library
        if self.headers["X-aws-ec2-metadata-token"] != "token-of-the-session" or type(self).late > 0:
            type(self).late -= 1
            self.send_error(404)
        elif self.path == _ROLES:
            self.answer(b"argosy-instance-us-east-1")
        elif self.path == _ROLES + "argosy-instance-us-east-1":
            keys = {"Code": "Success", "AccessKeyId": ACCESS_KEY, "SecretAccessKey": SECRET_KEY, "Token": TOKEN}
            self.answer(json.dumps(keys, indent=2).encode())


@contextmanager
def instance_metadata() -> Iterator[type[InstanceMetadata]]:
    """One service that answers until the end."""
    handler: type[InstanceMetadata] = type("Handler", (InstanceMetadata,), {})
    with answering(handler) as url:
        handler.url = f"{url}/latest"
        yield handler
