"""The access key of the local mode at a port, and its deployment, for programs of the same user.

Each port has files, which only its user may read: who can sign with its key can run commands as that user. The
same port keeps its key, so that lines exported in another terminal stay valid when local mode is started again.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"
_PATIENCE_S = 0.5  # for an answer of this machine
_BYTES = 15  # of randomness: 20 characters of base64


@dataclass(frozen=True, slots=True)
class LocalKey:
    """What AWS calls access key id and secret access key."""

    id: str
    secret: str
    region: str = ""  # home of the local mode

    def exports(self, endpoint: str) -> list[str]:
        """The lines with which a shell and the programs in it reach that local mode, without the shell's proxies."""
        proxies = [name for name in os.environ if name.lower() in ("http_proxy", "all_proxy")]
        here = "127.0.0.1,localhost"
        return [
            *(f"export {name}={here}${{{name}:+,${name}}}" for name in ("NO_PROXY", "no_proxy") if proxies),
            f"export ARGOSY_ENDPOINT_URL={endpoint}",
            f"export AWS_ENDPOINT_URL={endpoint} AWS_DEFAULT_REGION={self.region}",
            f"export AWS_ACCESS_KEY_ID={self.id} AWS_SECRET_ACCESS_KEY={self.secret}",
        ]


def random_key() -> LocalKey:
    """The id has the form of AWS's: some programs look at it."""
    return LocalKey(f"AKIA{secrets.token_hex(8).upper()}", secrets.token_urlsafe(_BYTES))


def data_folder() -> Path:
    """Argosy's in the user's data folder (XDG Base Directory)."""
    data = os.environ.get("XDG_DATA_HOME", "")
    return (Path(data) if data.startswith("/") else Path.home() / ".local" / "share") / "argosy"


def key_at(port: int | None) -> LocalKey | None:
    """The key of the local mode at a port of this machine, now or the last time; None if this user has none there."""
    try:
        return LocalKey(**json.loads(_file(port).read_bytes()))
    except (OSError, RuntimeError, ValueError, TypeError):  # no file, no home, or another version's
        return None


def key_for(endpoint: str) -> LocalKey | None:
    """The same by the address of a local mode."""
    return key_at(urlsplit(endpoint).port)


def running_here() -> list[str]:
    """The addresses of this user's local modes that answer now, or are too busy to."""
    try:
        ports = sorted(int(file.name) for file in _file(None).parent.iterdir() if file.name.isdecimal())
    except (OSError, RuntimeError):  # none yet, or no home
        return []
    return [f"http://{LOOPBACK}:{port}" for port in ports if _answers(port)]


def _answers(port: int) -> bool:
    from http.client import OK, HTTPConnection, HTTPException

    connection = HTTPConnection(LOOPBACK, port, timeout=_PATIENCE_S)
    try:
        connection.request("GET", "/argosy/health")
        return connection.getresponse().status == OK
    except TimeoutError:  # it listens: to miss it would send its user's command to another one
        return True
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


@contextmanager
def published(key: LocalKey, port: int, *, lasts: bool) -> Iterator[None]:
    """The user's programs find the key. lasts: afterwards, too. Raises OSError."""
    file = _file(port)
    _write(file, asdict(key))
    try:
        yield
    finally:
        if not lasts:
            with suppress(OSError):
                file.unlink()


@contextmanager
def announced(deployment: Mapping[str, Any], port: int) -> Iterator[None]:
    """The user's programs find what the parameter of the deployment says, where the disk takes it: to ask for it takes
    a command a tenth of its time."""
    file = _file(port, "deployments")
    with suppress(OSError, RuntimeError):
        _write(file, {**deployment, "process": os.getpid()})
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink()


def announced_at(endpoint: str) -> Mapping[str, Any]:
    """The same by the address of a local mode; empty unless it runs as this user on this machine."""
    try:
        found = json.loads(_file(urlsplit(endpoint).port, "deployments").read_bytes())
        os.kill(found["process"], 0)
    except (OSError, RuntimeError, ValueError, TypeError, KeyError):  # it has ended, or is another user's
        return {}
    return dict(found)


def _write(file: Path, content: Mapping[str, Any]) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.parent.chmod(0o700)  # it may have been made by its user
    unfinished = file.with_name(f"{file.name}-{os.getpid()}")
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        json.dump(content, opened)
    unfinished.replace(file)


def _file(port: int | None, kind: str = "keys") -> Path:
    return data_folder() / kind / str(port)
