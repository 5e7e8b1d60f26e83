"""The key of a local mode: this user's programs find it, and no other user's do."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from typer.testing import CliRunner

import argosy
from argosy.cli.main import app
from argosy.client.aws_clients import Connection, make_client, with_local_mode
from argosy.client.deployment import find_deployment
from argosy.client.errors import InvalidInput
from argosy.client.local_key import (
    LocalKey,
    announced,
    announced_at,
    data_folder,
    key_at,
    key_for,
    published,
    random_key,
)
from argosy.local.clients import LocalClients
from tests.fakes.serving import front

KEY = LocalKey("AKIDLOCAL", "a-secret-of-tests", "eu-west-1")
NOBODY = 65_534


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "argosy" / "keys"


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_only_its_user_may_read_the_key(data: Path) -> None:
    data.mkdir(parents=True, mode=0o755)
    with published(KEY, 4566, lasts=True), published(KEY, 4567, lasts=False):
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        assert (modes(data), len(list(data.iterdir()))) == ({0o600}, 2)
        assert key_for("http://localhost:4567") == key_at(4566) == KEY
    assert (key_at(4566), key_at(4567)) == (KEY, None)


ANNOUNCED = {
    "stage": "main", "region": "eu-west-1", "cluster": "argosy", "apiFunction": "argosy-api", "bucket": "results",
    "logGroup": "/ecs",
}  # fmt: skip


def test_the_deployment_of_a_local_mode_that_runs_is_known_without_a_request(data: Path) -> None:
    def refused(service: str) -> Any:
        raise LookupError(service)

    here = Connection("http://127.0.0.1:4566")
    others = replace(here, stage="test"), replace(here, region="us-east-1"), Connection("http://127.0.0.1:4567")
    with announced(ANNOUNCED, 4566):
        assert find_deployment(here, refused).bucket == "results"
        assert find_deployment(replace(here, region="eu-west-1"), refused).api_function == "argosy-api"
        assert modes(data.parent / "deployments") == {0o600}
        for other in others:
            with pytest.raises(LookupError):
                find_deployment(other, refused)
    with pytest.raises(LookupError):
        find_deployment(here, refused)


@pytest.mark.parametrize("text", ["[]", "{}", '{"process": "x"}', '{"process": 99999999}', ""])
def test_a_local_mode_that_was_killed_announces_nothing(data: Path, text: str) -> None:
    file = data.parent / "deployments" / "4566"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert announced_at("http://127.0.0.1:4566") == announced_at("http://127.0.0.1:99999") == {}


def test_a_disk_that_takes_no_announcement_stops_nothing(data: Path) -> None:
    data.parent.mkdir(parents=True)
    (data.parent / "deployments").touch()
    with announced(ANNOUNCED, 4566):
        assert announced_at("http://127.0.0.1:4566") == {}


def test_keys_are_random() -> None:
    made = {random_key() for _ in range(20)}
    assert len({key.secret for key in made} | {key.id for key in made}) == 40


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"id": "a", "secret": "b", "later": 1}'])
def test_a_file_of_another_version_is_no_key(data: Path, text: str) -> None:
    data.mkdir(parents=True)
    (data / "4566").write_text(text)
    assert key_at(4566) is None


def test_without_a_home_there_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "/nowhere")
    assert data_folder() == Path("/nowhere/.local/share/argosy")
    assert key_at(4566) is None


def test_clients_sign_with_it_whatever_keys_the_shell_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDOFMYEMPLOYER")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "theirs")
    connection = Connection("http://127.0.0.1:4566", region="us-east-1")
    with published(KEY, 4566, lasts=False):
        assert presigned(connection) == {"AWSAccessKeyId": KEY.id}
    assert presigned(connection) == {"AWSAccessKeyId": "AKIDOFMYEMPLOYER", "x-amz-security-token": "theirs"}


def presigned(connection: Connection) -> dict[str, str]:
    """Who signs, as a presigned address says it."""
    address = make_client(connection, "s3").generate_presigned_url("get_object", {"Bucket": "bucket", "Key": "key"})
    found = dict(parse_qsl(urlsplit(address).query))
    return {name: value for name, value in found.items() if name not in ("Signature", "Expires")}


def test_the_command_prints_what_a_shell_needs() -> None:
    with published(KEY, 4567, lasts=False):
        said = CliRunner().invoke(app, ["local", "env", "--port", "4567"]).stdout
    asked = "echo $ARGOSY_ENDPOINT_URL $AWS_ENDPOINT_URL $AWS_DEFAULT_REGION $AWS_ACCESS_KEY_ID $AWS_SECRET_ACCESS_KEY"
    shell = subprocess.run(["sh", "-ec", f"{said}{asked}"], capture_output=True, text=True, check=True)
    endpoint = "http://127.0.0.1:4567"
    assert shell.stdout.split() == [endpoint, endpoint, "eu-west-1", KEY.id, KEY.secret]
    refused = CliRunner().invoke(app, ["local", "env", "--port", "4568"])
    assert (refused.exit_code, refused.stderr.splitlines()[-1]) == (2, "next: argosy local --port 4568")


@pytest.mark.parametrize("key", ["short:key", "no-colon", ":secret-secret", "id:with space", "id:with'quote"])
def test_a_key_that_a_shell_would_misread_is_refused(key: str) -> None:
    refused = CliRunner().invoke(app, ["local", "--port", "0", "--no-state", "--key", key])
    assert (refused.exit_code, "--key must be ID:SECRET" in refused.stderr) == (2, True)


@pytest.fixture
def unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell in which nothing names an AWS."""
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "ARGOSY_ENDPOINT_URL", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)


def healthy() -> AbstractContextManager[LocalClients]:
    return front(admin={"GET health": lambda request: {}})


def port_of(clients: LocalClients) -> int:
    return int(clients.endpoint.rpartition(":")[2])


@pytest.mark.usefixtures("unnamed")
def test_the_local_mode_of_this_user_is_used_where_nothing_names_an_aws(caplog: pytest.LogCaptureFixture) -> None:
    said: list[str] = []
    with healthy() as clients, published(KEY, port_of(clients), lasts=True), published(KEY, 9, lasts=False):
        assert with_local_mode(Connection(stage="dev"), said.append) == Connection(clients.endpoint, stage="dev")
        assert said == [f"Using the local mode at {clients.endpoint}; --profile NAME uses AWS."]
        assert argosy.Client().access.connection.endpoint_url == clients.endpoint
        assert caplog.messages == said
    assert with_local_mode(Connection(), said.append) == Connection()
    assert len(said) == 1


@pytest.mark.usefixtures("unnamed")
def test_a_local_mode_that_is_too_busy_to_answer_is_not_passed_over_for_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy, healthy() as clients:
        port = busy.getsockname()[1]
        both = published(KEY, port_of(clients), lasts=False), published(KEY, port, lasts=False)
        with both[0], both[1], pytest.raises(InvalidInput, match="2 local modes run"):
            with_local_mode(Connection(), lambda _: None)


@pytest.mark.usefixtures("unnamed")
@pytest.mark.parametrize("named", [{"profile": "work"}, {"endpoint_url": "http://127.0.0.1:9"}])
def test_an_aws_that_is_named_is_used_although_a_local_mode_runs(
    named: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    with healthy() as clients, published(KEY, port_of(clients), lasts=False):
        assert with_local_mode(Connection(**named), said.append) == Connection(**named)
        monkeypatch.setenv("AWS_PROFILE", "work")
        assert with_local_mode(Connection(), said.append) == Connection()
    assert said == []


@pytest.mark.usefixtures("unnamed")
def test_of_several_local_modes_the_user_names_one() -> None:
    with ExitStack() as running:
        one, two = (running.enter_context(healthy()) for _ in range(2))
        for each in (one, two):
            running.enter_context(published(KEY, port_of(each), lasts=False))
        with pytest.raises(InvalidInput) as refused:
            with_local_mode(Connection(), print)
    assert "2 local modes run" in str(refused.value)
    assert f"--endpoint-url {two.endpoint}" in refused.value.next_step


@pytest.mark.usefixtures("unnamed")
def test_the_command_finds_it_and_says_so() -> None:
    with healthy() as clients, published(KEY, port_of(clients), lasts=False):
        said = CliRunner().invoke(app, ["runs"]).stderr
    assert said.splitlines()[0] == f"Using the local mode at {clients.endpoint}; --profile NAME uses AWS."


def test_a_shell_with_proxies_is_told_to_go_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the AWS CLI and other programs, whose clients are not ours."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "example.com")
    assert not [line for line in KEY.exports("http://127.0.0.1:4566") if "PROXY" in line]
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    text = "\n".join([*KEY.exports("http://127.0.0.1:4566"), "echo $NO_PROXY $no_proxy"])
    shell = subprocess.run(["sh", "-ec", text], capture_output=True, text=True, check=True)
    assert shell.stdout.split() == ["127.0.0.1,localhost,example.com", "127.0.0.1,localhost"]


def test_no_proxy_stands_between_a_program_and_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP_PROXY without NO_PROXY, as companies set it; nothing listens there."""
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with front(moto=bucketless) as clients:
        connection = Connection(clients.endpoint, region="us-east-1", patience_s=60.0)
        assert make_client(connection, "s3").list_buckets()["Buckets"] == []


def bucketless(environ: object, start_response: object) -> list[bytes]:
    start_response("200 OK", [])  # type: ignore[operator]
    return [b"<ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>"]


ATTACK = """
import sys, urllib.error, urllib.request
endpoint, folder = sys.argv[1:]
try:
    print(len(__import__("os").listdir(folder)))
except PermissionError:
    print("not readable")
signature = "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/lambda/aws4_request, SignedHeaders=host, Signature=00"
calls = [("/2015-03-31/functions/argosy-api/invocations", signature), ("/argosy/shutdown", "")]
for path, proof in calls:
    headers = {"Authorization": proof} if proof else {}
    try:
        urllib.request.urlopen(urllib.request.Request(endpoint + path, b"{}", headers))
    except urllib.error.HTTPError as refused:
        print(refused.code)
"""


def python_of_all() -> str | None:
    """An interpreter that every user of the machine may run: root's own versions lie in a folder that is closed."""
    for each in (Path(sys.executable).resolve(), Path("/usr/bin/python3").resolve()):
        if each.exists() and all(place.stat().st_mode & stat.S_IXOTH for place in (each, *each.parents)):
            return str(each)
    return None


@pytest.mark.slow
def test_another_user_of_the_machine_neither_reads_the_key_nor_starts_anything(data: Path) -> None:
    """As another user where the tests run as root; else the same calls, which end before any key is looked at."""
    shared = python_of_all() if os.geteuid() == 0 else None
    with published(KEY, 4566, lasts=False), front(admin={"POST shutdown": lambda request: {}}) as clients:
        command = [shared or sys.executable, "-ISc", ATTACK, clients.endpoint, str(data)]
        other = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if shared else {}
        said = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/", **other)  # type: ignore[call-overload]
    assert said.stdout.split("\n")[:-1] == ["not readable" if shared else "1", "403", "403"]
