"""STS on this machine: checks signatures as AWS does, over a real socket, and names the signer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from argosy.model.signed_requests import BODY, SignedFor

SECRETS = {"AKIDALICE": "alices-secret", "AKIDBOB": "bobs-secret"}
ARNS = {
    "AKIDALICE": "arn:aws:iam::123456789012:user/alice",
    "AKIDBOB": "arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Data_0123456789abcdef/bob@example.com",
}
SPACE = "https://sts.amazonaws.com/doc/2011-06-15/"
ANSWER = (
    f'<GetCallerIdentityResponse xmlns="{SPACE}"><GetCallerIdentityResult><Arn>{{arn}}</Arn><UserId>AIDA</UserId>'
    "<Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"
)
ERROR = f'<ErrorResponse xmlns="{SPACE}"><Error><Type>Sender</Type><Code>{{code}}</Code></Error></ErrorResponse>'


def credentials(who: str = "AKIDALICE", secret: str = "", token: str | None = None) -> Credentials:
    return Credentials(who, secret or SECRETS[who], token)


class Sts:
    """answers: (status, body) in place of the check; the last one forever."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, str]] = []
        self.seen: list[dict[str, str]] = []
        self.bodies: list[str] = []
        self.signed_for = SignedFor("", "")

    def reply(self, path: str, headers: dict[str, str], body: str) -> tuple[int, str]:
        self.seen.append(headers)
        self.bodies.append(body)
        if self.answers:
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        given = headers["authorization"]
        who = given.partition("Credential=")[2].partition("/")[0]
        names = given.partition("SignedHeaders=")[2].partition(",")[0].split(";")
        if who not in SECRETS:
            return 403, ERROR.format(code="InvalidClientTokenId")
        again = AWSRequest("POST", f"https://{headers['host']}{path}", {name: headers[name] for name in names}, body)
        again.context["timestamp"] = headers["x-amz-date"]
        check = SigV4Auth(credentials(who), "sts", given.split("/")[2])
        signature = check.signature(check.string_to_sign(again, check.canonical_request(again)), again)
        if body != BODY or not given.endswith(f"Signature={signature}"):
            return 403, ERROR.format(code="SignatureDoesNotMatch")
        return 200, ANSWER.format(arn=ARNS[who])


@contextmanager
def sts() -> Iterator[Sts]:
    """Its `signed_for` names its own address as the host."""
    found = Sts()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            given = {name.lower(): value for name, value in self.headers.items()}
            status, body = found.reply(self.path, given, self.rfile.read(length).decode())
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.signed_for = SignedFor(f"127.0.0.1:{server.server_port}", "123456789012/us-east-1/argosy")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
