"""moto in the embedded AWS: its lock, and its end.

moto is used for the services that it emulates well (S3, SQS, EventBridge, SSM, logs, STS; DynamoDB behind a lock),
never as the ECS oracle (DESIGN D11). Its state is global to the process, so one embedded AWS runs per process at a
time.
"""

from __future__ import annotations

import errno
import io
import json
import tempfile
import threading
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from xml.sax.saxutils import escape

from argosy.local.moto import events, queues
from argosy.loopback.server import Environ, StartResponse

if TYPE_CHECKING:
    from argosy.local.moto.objects import KeptObjects

_POLL_S = 1  # moto counts long polls in whole seconds; also how long close() may have to wait for one


def _telling(backend: Any) -> Any:
    """The backend with a reply that reports when this machine's disk is full, where Flask would only say 500.

    As XML, which is what S3 reads, the one service that keeps anything on the disk: its objects from 16 MiB on.
    """

    def reply(fault: OSError) -> Any:
        status, code, message = 500, "InternalError", str(fault)
        if fault.errno == errno.ENOSPC:
            status, code = 503, "ServiceUnavailable"
            message = f"no space left on device: the disk of {tempfile.gettempdir()} is full"
        body = f"<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
        return body, status, {"Content-Type": "application/xml"}

    backend.register_error_handler(OSError, reply)
    return backend


def _changes_s3(environ: Environ) -> bool:
    """Whether a request is one of S3 that may change something, whatever its signature."""
    if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
        return False
    signed = f"{environ.get('HTTP_AUTHORIZATION', '')} {unquote(environ['QUERY_STRING'])}"
    return "/s3/aws4_request" in signed or "AWSAccessKeyId=" in signed or signed.startswith("AWS ")


def secret_of_moto(account: str, key_id: str) -> str | None:
    """The secret of an access key that IAM or STS has given out; None if they know none of this id."""
    from moto.iam.models import iam_backends
    from moto.sts.models import sts_backends

    made = [key for user in iam_backends[account]["aws"].users.values() for key in user.access_keys]
    given: list[Any] = [*made, *sts_backends[account]["aws"].assumed_roles]
    return next((str(each.secret_access_key) for each in given if each.access_key_id == key_id), None)


class MotoApp:
    """A WSGI application: moto, with DynamoDB calls one at a time and long polls that notice the end.

    Raises RuntimeError while another one of this process is not closed.
    """

    _one = threading.Lock()

    def __init__(self) -> None:
        from moto.core.model_instances import reset_model_data
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

        if not MotoApp._one.acquire(blocking=False):
            raise RuntimeError("an embedded AWS already runs in this process")
        queues.quicken()
        events.quicken()
        self._app: Any = DomainDispatcherApplication(lambda service: _telling(create_backend_app(service)))
        # It lists the folders of moto's modules twice for each request: a third of its time.
        self._app.get_backend_for_host = lru_cache(1_024)(self._app.get_backend_for_host)  # type: ignore[method-assign]
        self._reset_models = reset_model_data
        self._dynamodb = threading.Lock()
        self._closing = threading.Event()
        self.objects: KeptObjects | None = None  # where those of S3 are stored
        self._reset()

    def stop_waiting(self) -> None:
        """Make long polls end early, from now on."""
        self._closing.set()

    def close(self) -> None:
        """Forget everything that was stored, so that the next one can begin."""
        self._reset()
        MotoApp._one.release()

    def _reset(self) -> None:
        from moto.core.base_backend import BackendDict

        BackendDict.reset()
        self._reset_models()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request."""
        target = environ.get("HTTP_X_AMZ_TARGET", "")
        if target.startswith("DynamoDB_"):
            # Without it, transact_write_items under threads loses or doubles writes (measured).
            with self._dynamodb:
                return [self._whole(environ, start_response)]
        if target == "AmazonSQS.ReceiveMessage":
            return [self._receive(environ, start_response)]
        if self.objects is not None and _changes_s3(environ):
            with self.objects.request():
                return [self._whole(environ, start_response)]
        result: Iterable[bytes] = self._app(environ, start_response)
        return result

    def _whole(self, environ: Environ, start_response: StartResponse) -> bytes:
        result = self._app(environ, start_response)
        try:
            return b"".join(result)
        finally:
            result.close()

    def _receive(self, environ: Environ, start_response: StartResponse) -> bytes:
        """A long poll in short pieces: moto would hold the thread for up to 20 s, whatever happens."""
        request = json.loads(environ["wsgi.input"].read() or b"{}")
        ends = time.monotonic() + int(request.get("WaitTimeSeconds", 0))
        while True:
            left_s = ends - time.monotonic()
            request["WaitTimeSeconds"] = _POLL_S if left_s > 0 else 0
            body = json.dumps(request).encode()
            environ["wsgi.input"] = io.BytesIO(body)
            environ["CONTENT_LENGTH"] = str(len(body))
            reply = self._whole(environ, start_response)
            if left_s <= 0 or self._closing.is_set() or b'"Messages"' in reply or b'"__type"' in reply:
                return reply
